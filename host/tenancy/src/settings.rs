//! Settings and tombstones of companies, in the store and cached in memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use memhost_store::{self as store, Store, StoreError, Table};
use memhost_types::{CompanyId, Principal};

/// The prefix of the keys of tombstones.
pub(crate) const TOMBSTONE: &[u8] = b"tombstone\0";

/// How long a company's records are kept. Null means no end; what is absent has its default. Sums,
/// finance events, bindings and tombstones stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Retention {
    /// Days, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub operations_max_age_days: Option<u32>,
    /// How many at most, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub operations_max_count: Option<u64>,
    /// Days of deliveries that have ended, dead ones included; 30 by default. The same event is a
    /// new one afterwards.
    #[schemars(range(min = 1))]
    pub deliveries_max_age_days: Option<u32>,
    /// Days of extraction jobs that have ended; 90 by default.
    #[schemars(range(min = 1))]
    pub jobs_max_age_days: Option<u32>,
    /// Days of events of sessions and tools; 90 by default.
    #[schemars(range(min = 1))]
    pub events_max_age_days: Option<u32>,
    /// Days of the texts of review items that are decided; 90 by default. The decisions stay.
    #[schemars(range(min = 1))]
    pub review_texts_max_age_days: Option<u32>,
    /// Days of cost events; 800 by default. Their sums stay.
    #[schemars(range(min = 1))]
    pub cost_events_max_age_days: Option<u32>,
    /// Days of the activity log; 800 by default.
    #[schemars(range(min = 1))]
    pub activity_max_age_days: Option<u32>,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            operations_max_age_days: None,
            operations_max_count: None,
            deliveries_max_age_days: Some(30),
            jobs_max_age_days: Some(90),
            events_max_age_days: Some(90),
            review_texts_max_age_days: Some(90),
            cost_events_max_age_days: Some(800),
            activity_max_age_days: Some(800),
        }
    }
}

impl Retention {
    /// The first field that is 0, which would keep nothing.
    pub fn zero(&self) -> Option<&'static str> {
        let fields = [
            ("operationsMaxAgeDays", self.operations_max_age_days.map(u64::from)),
            ("operationsMaxCount", self.operations_max_count),
            ("deliveriesMaxAgeDays", self.deliveries_max_age_days.map(u64::from)),
            ("jobsMaxAgeDays", self.jobs_max_age_days.map(u64::from)),
            ("eventsMaxAgeDays", self.events_max_age_days.map(u64::from)),
            ("reviewTextsMaxAgeDays", self.review_texts_max_age_days.map(u64::from)),
            ("costEventsMaxAgeDays", self.cost_events_max_age_days.map(u64::from)),
            ("activityMaxAgeDays", self.activity_max_age_days.map(u64::from)),
        ];
        fields.into_iter().find(|(_, most)| *most == Some(0)).map(|(field, _)| field)
    }
}

/// The remains of an erased company.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tombstone {
    /// Which company.
    pub company_id: CompanyId,
    /// When it was erased.
    pub erased_at: Timestamp,
    /// By whom.
    pub erased_by: Principal,
    /// Records that providers were told to forget and did, by binding.
    pub forgotten: BTreeMap<String, u64>,
    /// Data that providers did not forget, a sentence each. It must be removed at their own
    /// systems.
    pub not_forgotten: Vec<String>,
    /// Bindings whose provider has not confirmed it and that somebody gave up by name, and who.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub abandoned: BTreeMap<String, Principal>,
    /// Whether everything is gone: false while a provider has not confirmed that it has forgotten
    /// its records.
    pub is_complete: bool,
    /// Keys of the store that were removed; 0 while the erasure is not complete.
    pub removed_keys: u64,
}

/// A tombstone with its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Erased {
    /// The tombstone.
    #[serde(flatten)]
    pub tombstone: Tombstone,
    /// Ed25519 over the tombstone's compact JSON without this field and the next one, in hex.
    pub signature: String,
    /// The host's public key, in hex.
    pub public_key: String,
}

/// Settings and tombstones of companies, cached in memory.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) retention: RwLock<HashMap<CompanyId, Retention>>,
    pub(crate) erased: RwLock<HashMap<CompanyId, Arc<Erased>>>,
    /// Companies that are being imported. Nobody else can use them meanwhile.
    pub(crate) importing: RwLock<HashSet<CompanyId>>,
}

/// A company is being imported until this is dropped, also where the caller gives the import up.
pub struct ImportGuard<'a> {
    settings: &'a Settings,
    company: CompanyId,
}

impl Drop for ImportGuard<'_> {
    fn drop(&mut self) {
        self.settings.importing.write().remove(&self.company);
    }
}

impl Settings {
    /// Begins the import of a company. `None` if it is being imported already.
    pub(crate) fn begin_import(&self, company: &CompanyId) -> Option<ImportGuard<'_>> {
        let is_first = self.importing.write().insert(company.clone());
        is_first.then(|| ImportGuard { settings: self, company: company.clone() })
    }

    pub(crate) async fn open(store: &dyn Store) -> Result<Self, StoreError> {
        let settings = Self::default();
        let mut rows = store::scan_all(store, Table::Companies, b"");
        while let Some((key, retention)) = rows.next_row("retention").await? {
            if let Some(company) = store::company_of(&key) {
                settings.retention.write().insert(company, retention);
            }
        }
        settings.reload_erased(store).await?;
        Ok(settings)
    }

    /// Reads the tombstones again.
    pub(crate) async fn reload_erased(&self, store: &dyn Store) -> Result<(), StoreError> {
        let mut rows = store::scan_all(store, Table::Host, TOMBSTONE);
        while let Some((_, erased)) = rows.next_row::<Erased>("tombstone").await? {
            if store.is_home(&erased.tombstone.company_id) {
                self.erased.write().insert(erased.tombstone.company_id.clone(), Arc::new(erased));
            }
        }
        Ok(())
    }
}
