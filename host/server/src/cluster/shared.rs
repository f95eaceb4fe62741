//! What a host among several does with requests at the moment, and what its addresses share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use tokio::sync::{Semaphore, watch};
use uuid::Uuid;

use super::hop::Key;
use super::peers::Peers;
use super::whose::Whose;
use crate::ServerOptions;
use crate::bodies::Bodies;
use crate::routes::{Surfaces, router_of};
use memhost_core::{Group, Membership, Service, Term};
use memhost_http::AdminToken;

/// What this host does with requests about a group.
pub(super) enum Role {
    /// It serves them.
    Serves(Arc<Serving>),
    /// It passes them on.
    Follows {
        /// To the host with this id.
        host: Uuid,
        name: String,
        peer_url: Option<String>,
    },
    /// No home is known.
    Waits,
}

/// The routes of a group whose home this host is.
pub(super) struct Serving {
    pub(super) term: Term,
    pub(super) service: Arc<Service>,
    all: Router,
    runtime: Router,
    control: Router,
    /// Requests that are being answered.
    answering: AtomicUsize,
    /// Whether nothing more is begun, because another host is to take over.
    is_closed: AtomicBool,
}

/// A request, until it is answered.
pub(super) struct Answering(Arc<Serving>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Answering {
    /// The same request in another place, such as work that goes on when its client has gone.
    pub(super) fn also(&self) -> Self {
        self.0.answering.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(&self.0))
    }

    pub(super) fn serving(&self) -> &Arc<Serving> {
        &self.0
    }
}

impl Serving {
    pub(super) fn new(
        term: Term,
        service: Arc<Service>,
        token: &AdminToken,
        (options, bodies): (&ServerOptions, &Bodies),
    ) -> Self {
        let router =
            |surfaces| router_of(surfaces, Arc::clone(&service), token.clone(), options, bodies);
        Self {
            term,
            all: router(Surfaces::All),
            runtime: router(Surfaces::Runtime),
            control: router(Surfaces::Control),
            service,
            answering: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
        }
    }

    pub(super) fn router(&self, surfaces: Surfaces) -> Router {
        match surfaces {
            Surfaces::All => self.all.clone(),
            Surfaces::Runtime => self.runtime.clone(),
            Surfaces::Control => self.control.clone(),
        }
    }

    /// Begins to answer a request. `None`: nothing more is begun.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Answering> {
        // Counted first: who gives the group away looks at the count after it has said so.
        self.answering.fetch_add(1, Ordering::SeqCst);
        let begun = Answering(Arc::clone(self));
        (!self.is_closed.load(Ordering::SeqCst)).then_some(begun)
    }

    /// Begins nothing more.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// Begins requests again: the group stays here.
    pub(super) fn reopen(&self) {
        self.is_closed.store(false, Ordering::SeqCst);
    }

    pub(super) fn is_answering(&self) -> bool {
        self.answering.load(Ordering::SeqCst) > 0
    }
}

/// What the addresses of a host share.
pub(super) struct Shared {
    pub(super) membership: Arc<Membership>,
    /// The role of this host for each group.
    pub(super) roles: [watch::Sender<Arc<Role>>; Group::COUNT],
    pub(super) key: Key,
    pub(super) peers: Peers,
    pub(super) whose: Whose,
    pub(super) token: AdminToken,
    pub(super) options: ServerOptions,
    pub(super) bodies: Bodies,
    /// Room for bodies that are kept for another try, in KiB.
    pub(super) kept: Arc<Semaphore>,
}

impl Shared {
    /// The role for a group.
    pub(super) fn role(&self, group: Group) -> &watch::Sender<Arc<Role>> {
        &self.roles[group.number()]
    }

    /// The groups that this host serves.
    pub(super) fn served(&self) -> Vec<Arc<Serving>> {
        let role = |role: &watch::Sender<Arc<Role>>| match &**role.borrow() {
            Role::Serves(serving) => Some(Arc::clone(serving)),
            _ => None,
        };
        self.roles.iter().filter_map(role).collect()
    }
}
