//! What the tests of this crate share: a store, companies, bindings and builds without a component.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use semver::Version;

use crate::activity::{ActivityLog, CompanyRegister};
use crate::bindings::{Bindings, NewBinding};
use crate::plugins::Build;
use memhost_ports::{Clock, SystemClock};
use memhost_store::{Change, MemoryStore, Store, StoreError, Table};
use memhost_types::{
    Binding, BindingId, BindingLimits, BindingPolicy, CompanyId, Digest, Grants, JsonObject,
    PermissionRequest, Principal, VersionChoice,
};

/// A clock that goes on by a millisecond whenever it is asked, so that ids order as they are made.
#[derive(Default)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let ms = 1_800_000_000_000 + self.0.fetch_add(1, Ordering::Relaxed);
        Timestamp::from_millisecond(ms).unwrap()
    }

    fn random(&self) -> u128 {
        SystemClock.random()
    }
}

/// Companies as a set, with a row for each in the table `Host`.
#[derive(Default)]
pub(crate) struct Known(Mutex<HashSet<CompanyId>>);

impl CompanyRegister for Known {
    fn has(&self, company: &CompanyId) -> bool {
        self.0.lock().contains(company)
    }

    fn change(
        &self,
        company: &CompanyId,
        _: &Principal,
        _: Timestamp,
    ) -> Result<Change, StoreError> {
        Ok(Change::always(Table::Host, known_key(company), Some(Vec::new())))
    }

    fn add(&self, company: &CompanyId) {
        self.0.lock().insert(company.clone());
    }
}

pub(crate) fn known_key(company: &CompanyId) -> Vec<u8> {
    [b"known\0", company.as_str().as_bytes()].concat()
}

/// One process on a store that several may share.
pub(crate) struct Process {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) activity: Arc<ActivityLog>,
    pub(crate) bindings: Bindings,
}

impl Process {
    pub(crate) async fn on(store: &Arc<dyn Store>) -> Self {
        let (store, clock) = (Arc::clone(store), Arc::new(Ticking::default()) as Arc<dyn Clock>);
        let known = Arc::new(Known::default());
        let log = ActivityLog::new(Arc::clone(&store), Arc::clone(&clock), known);
        let activity = Arc::new(log);
        let opened = Bindings::open(Arc::clone(&store), clock, Arc::clone(&activity)).await;
        Self { store, activity, bindings: opened.unwrap() }
    }

    /// Makes a binding, as the company's default or not.
    pub(crate) async fn make(&self, company: &str, key: &str, make_default: bool) -> Arc<Binding> {
        let new = NewBinding { make_default, ..new_binding(key) };
        self.bindings.create(&Principal::Operator, &id(company), new).await.unwrap()
    }
}

pub(crate) fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

/// A process on a store of its own.
pub(crate) async fn process() -> Process {
    Process::on(&store()).await
}

pub(crate) fn id(company: &str) -> CompanyId {
    company.parse().unwrap()
}

pub(crate) fn new_binding(key: &str) -> NewBinding {
    NewBinding {
        key: key.parse().unwrap(),
        provider_key: "local-markdown".parse().unwrap(),
        config: JsonObject::new(),
        version: VersionChoice::default(),
        grants: Grants::default(),
        reviewed: Vec::new(),
        limits: BindingLimits::default(),
        policy: BindingPolicy::default(),
        make_default: false,
        id: None,
    }
}

/// The binding `a` of `acme`, with the defaults.
pub(crate) fn binding() -> Binding {
    let new = new_binding("a");
    Binding {
        id: BindingId(uuid::Uuid::nil()),
        goes_on_as: None,
        company_id: id("acme"),
        key: new.key,
        provider_key: new.provider_key,
        version: new.version,
        config: new.config,
        enabled: true,
        grants: new.grants,
        reviewed: new.reviewed,
        limits: new.limits,
        policy: new.policy,
        requested: None,
        revision: 1,
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
    }
}

/// A build without a component.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FakeBuild {
    pub(crate) version: Version,
    pub(crate) digest: Digest,
    pub(crate) is_present: bool,
    pub(crate) written: (i64, i64),
    pub(crate) requests: Vec<PermissionRequest>,
}

impl FakeBuild {
    pub(crate) fn new(version: &str) -> Self {
        Self {
            version: version.parse().unwrap(),
            digest: Digest::of(version.as_bytes()),
            is_present: true,
            written: (1, 0),
            requests: Vec::new(),
        }
    }
}

impl Build for FakeBuild {
    fn digest(&self) -> Digest {
        self.digest
    }

    fn version(&self) -> &Version {
        &self.version
    }

    fn is_present(&self) -> bool {
        self.is_present
    }

    fn written(&self) -> (i64, i64) {
        self.written
    }

    fn described_requests(&self) -> &[PermissionRequest] {
        &self.requests
    }
}
