//! The type [`Tenancy`]. Its methods are in the modules that are named after what they do.

use std::sync::Arc;

use ed25519_dalek::SigningKey;

use crate::known::KnownCompanies;
use crate::sessions::Sessions;
use crate::settings::Settings;
use memhost_access::Tokens;
use memhost_oplog::Oplog;
use memhost_ports::Clock;
use memhost_queues::{Deliveries, Jobs, Reviews};
use memhost_records::Records;
use memhost_registry::ActivityLog;
use memhost_store::{Store, StoreError};
use memhost_types::CursorKey;

/// The parts that [`Tenancy::open`] puts together.
pub struct TenancyParts {
    /// The rows.
    pub store: Arc<dyn Store>,
    /// Time and randomness.
    pub clock: Arc<dyn Clock>,
    /// The log, which refusals enter.
    pub oplog: Arc<Oplog>,
    /// The companies that this host has.
    pub known: Arc<KnownCompanies>,
    /// The activity log.
    pub activity: Arc<ActivityLog>,
    /// The rows of records.
    pub records: Arc<Records>,
    /// Deliveries, which end with time.
    pub deliveries: Arc<Deliveries>,
    /// Extraction jobs, which end with time.
    pub jobs: Arc<Jobs>,
    /// Review items, whose texts end with time.
    pub reviews: Arc<Reviews>,
    /// Tokens and whose they are.
    pub tokens: Arc<Tokens>,
    /// Seals the cursors of pages.
    pub cursors: CursorKey,
    /// Signs tombstones.
    pub signing: SigningKey,
    /// Seals what sessions have.
    pub session_key: [u8; 32],
    /// Whether the first write of an operator makes its company.
    pub zero_config: bool,
}

/// The companies of a host: which there are, who may enter, what they may keep and for how long.
pub struct Tenancy {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) oplog: Arc<Oplog>,
    pub(crate) known: Arc<KnownCompanies>,
    pub(crate) settings: Settings,
    pub(crate) activity: Arc<ActivityLog>,
    pub(crate) records: Arc<Records>,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) reviews: Arc<Reviews>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) cursors: CursorKey,
    pub(crate) signing: SigningKey,
    pub(crate) zero_config: bool,
    pub(crate) sessions: Sessions,
    /// Held while what is too old is removed of every company.
    pub(crate) sweeping: tokio::sync::Mutex<()>,
}

impl Tenancy {
    /// Reads the settings and tombstones of the companies.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn open(parts: TenancyParts) -> Result<Self, StoreError> {
        Ok(Self {
            settings: Settings::open(&*parts.store).await?,
            sessions: Sessions::new(Arc::clone(&parts.store), parts.session_key),
            store: parts.store,
            clock: parts.clock,
            oplog: parts.oplog,
            known: parts.known,
            activity: parts.activity,
            records: parts.records,
            deliveries: parts.deliveries,
            jobs: parts.jobs,
            reviews: parts.reviews,
            tokens: parts.tokens,
            cursors: parts.cursors,
            signing: parts.signing,
            zero_config: parts.zero_config,
            sweeping: tokio::sync::Mutex::default(),
        })
    }

    /// The sessions of people in the explorer.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }
}
