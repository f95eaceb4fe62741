//! What a host among several is at the moment, and what its addresses share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use tokio::sync::{Semaphore, watch};
use uuid::Uuid;

use super::hop::Key;
use super::peers::Peers;
use crate::ServerOptions;
use crate::bodies::Bodies;
use crate::routes::Surfaces;
use memhost_core::{Membership, Service};

/// What this host does with requests.
pub(super) enum Role {
    /// It serves them.
    Leads(Leads),
    /// It passes them on.
    Follows {
        /// To the host with this id.
        host: Uuid,
        name: String,
        peer_url: Option<String>,
    },
    /// Nobody is known to lead.
    Waits,
}

/// A request of another host, until it is answered.
pub(super) struct ForHost<'a>(&'a Shared);

impl Drop for ForHost<'_> {
    fn drop(&mut self) {
        self.0.for_hosts.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    /// Begins to answer another host. `None`: nothing more is begun.
    pub(super) fn begin_for_host(&self) -> Option<ForHost<'_>> {
        // Counted first: who leaves looks at the count after it has said so.
        self.for_hosts.fetch_add(1, Ordering::SeqCst);
        let begun = ForHost(self);
        (!self.is_leaving.load(Ordering::SeqCst)).then_some(begun)
    }
}

/// The routes of the host that leads.
pub(super) struct Leads {
    pub(super) token: i64,
    pub(super) service: Arc<Service>,
    pub(super) all: Router,
    pub(super) runtime: Router,
    pub(super) control: Router,
}

impl Leads {
    pub(super) fn router(&self, surfaces: Surfaces) -> Router {
        match surfaces {
            Surfaces::All => self.all.clone(),
            Surfaces::Runtime => self.runtime.clone(),
            Surfaces::Control => self.control.clone(),
        }
    }
}

/// What the addresses of a host share.
pub(super) struct Shared {
    pub(super) membership: Arc<Membership>,
    pub(super) role: watch::Sender<Arc<Role>>,
    pub(super) key: Key,
    pub(super) peers: Peers,
    pub(super) options: ServerOptions,
    pub(super) bodies: Bodies,
    /// Room for bodies that are kept for another try, in KiB.
    pub(super) kept: Arc<Semaphore>,
    /// Whether nothing more is begun for other hosts.
    pub(super) is_leaving: AtomicBool,
    /// Requests of other hosts that are being answered.
    pub(super) for_hosts: AtomicUsize,
}
