//! Who may enter a company, what it may keep, and what ends it: without an engine, a directory or a
//! plugin.

use std::sync::Arc;

use ed25519_dalek::SigningKey;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use memhost_access::{Act, Caller, Tokens};
use memhost_oplog::{Audit, Oplog, OplogOptions, Told};
use memhost_ports::Clock;
use memhost_queues::{Deliveries, Jobs, Reviews};
use memhost_records::Records;
use memhost_registry::{ActivityLog, CompanyRegister};
use memhost_store::{MemoryStore, OperationLog as _, Store, StoreError};
use memhost_types::{
    CompanyId, CursorKey, EventFilter, NewEvent, OperationFilter, OperationId, OperationKind,
};

/// A clock that stands still until it is set. What it calls random is a number that grows.
struct TestClock(Mutex<(Timestamp, u128)>);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.0.lock().0
    }

    fn random(&self) -> u128 {
        let mut now = self.0.lock();
        now.1 += 1;
        now.1 << 48 | now.1
    }
}

struct Room {
    store: Arc<MemoryStore>,
    clock: Arc<TestClock>,
    tenancy: Tenancy,
}

impl Room {
    async fn new() -> Self {
        Self::on(MemoryStore::default(), true).await
    }

    async fn on(store: MemoryStore, zero_config: bool) -> Self {
        let noon = Timestamp::constant(1_773_144_000, 0);
        let clock = Arc::new(TestClock(Mutex::new((noon, 0))));
        Self::open(Arc::new(store), clock, zero_config).await
    }

    async fn open(store: Arc<MemoryStore>, clock: Arc<TestClock>, zero_config: bool) -> Self {
        let (rows, time) = (Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&clock) as Arc<_>);
        let time: Arc<dyn Clock> = time;
        let known = Arc::new(KnownCompanies::open(&*rows).await.unwrap());
        let register = Arc::clone(&known) as Arc<dyn CompanyRegister>;
        let records = Arc::new(Records::open(Arc::clone(&rows), time.now()).await.unwrap());
        let options = OplogOptions {
            audit: Audit::default(),
            compact_after: std::time::Duration::from_secs(60),
        };
        let oplog = Oplog::open(
            Arc::clone(&rows),
            Arc::clone(&time),
            Arc::clone(&records),
            Told::new(Arc::clone(&time), false),
            options,
        );
        let parts = TenancyParts {
            oplog: oplog.await.unwrap(),
            activity: Arc::new(ActivityLog::new(Arc::clone(&rows), Arc::clone(&time), register)),
            deliveries: Arc::new(Deliveries::new(Arc::clone(&rows), Arc::clone(&time))),
            jobs: Arc::new(Jobs::new(Arc::clone(&rows), Arc::clone(&time))),
            reviews: Arc::new(Reviews::open(Arc::clone(&rows)).await.unwrap()),
            tokens: Arc::new(Tokens::open(Arc::clone(&rows), Arc::clone(&time)).await.unwrap()),
            store: rows,
            clock: time,
            known,
            records,
            cursors: CursorKey::new([7; 32]),
            signing: SigningKey::from_bytes(&[9; 32]),
            session_key: [8; 32],
            zero_config,
        };
        Self { store, clock, tenancy: Tenancy::open(parts).await.unwrap() }
    }

    /// The same store, opened again.
    async fn reopened(&self) -> Self {
        Self::open(Arc::clone(&self.store), Arc::clone(&self.clock), true).await
    }

    async fn agent(&self, company: &CompanyId) -> String {
        let request = json!({"name": "ada", "role": "agent", "agentId": "ada"});
        let request = serde_json::from_value(request).unwrap();
        let made = self.tenancy.create_token(&Caller::operator(), Some(company), request).await;
        serde_json::to_value(made.unwrap()).unwrap()["value"].as_str().unwrap().to_owned()
    }

    async fn caller(&self, token: &str) -> Option<Caller> {
        match self.tenancy.authenticate(token).await.unwrap() {
            Authentication::Caller(caller) => Some(caller),
            Authentication::Refused => None,
        }
    }

    async fn refusals(&self, company: &CompanyId) -> usize {
        let page = self.store.operations(company, &OperationFilter::default(), None, 100).await;
        page.unwrap().operations.len()
    }

    fn tombstone(&self, company: &CompanyId, is_complete: bool) -> Tombstone {
        serde_json::from_value(json!({
            "companyId": company, "erasedAt": self.clock.now(), "erasedBy": "operator",
            "forgotten": {}, "notForgotten": [], "isComplete": is_complete, "removedKeys": 0,
        }))
        .unwrap()
    }
}

fn company(name: &str) -> CompanyId {
    name.parse().unwrap()
}

fn event(id: &str, project: &str) -> NewEvent {
    serde_json::from_value(json!({
        "eventId": id, "projectId": project, "sessionId": "s", "agentKind": "a",
        "type": "session.started",
    }))
    .unwrap()
}

#[tokio::test]
async fn the_first_write_of_an_operator_makes_a_company_and_a_read_makes_none() {
    let (room, acme, operator) = (Room::new().await, company("acme"), Caller::operator());
    let enter = async |kind| room.tenancy.enter(&operator, kind, (&acme, false), Ok(())).await;
    let unknown = enter(OperationKind::Query).await.unwrap_err();
    assert!(matches!(unknown, ServiceError::UnknownCompany { .. }), "{unknown}");
    assert!(!room.tenancy.is_known(&acme));
    enter(OperationKind::Capture).await.unwrap();
    assert_eq!(room.tenancy.companies(), std::slice::from_ref(&acme));
    enter(OperationKind::Query).await.unwrap();
    assert_eq!(room.reopened().await.tenancy.companies(), [acme]);
}

#[tokio::test]
async fn a_write_that_names_a_binding_or_is_not_valid_makes_no_company() {
    let (room, acme, operator) = (Room::new().await, company("acme"), Caller::operator());
    let kind = OperationKind::Capture;
    assert!(room.tenancy.enter(&operator, kind, (&acme, true), Ok(())).await.is_err());
    let wrong = Err(memhost_types::FieldError::new("scope", "is wrong"));
    assert!(room.tenancy.enter(&operator, kind, (&acme, false), wrong).await.is_err());
    assert!(room.tenancy.companies().is_empty());
    let closed = Room::on(MemoryStore::default(), false).await;
    assert!(closed.tenancy.enter(&operator, kind, (&acme, false), Ok(())).await.is_err());
}

#[tokio::test]
async fn a_near_name_is_told_to_an_operator_only() {
    let (room, acme) = (Room::new().await, company("acme"));
    room.tenancy.make_company(&Caller::operator(), &acme).await.unwrap();
    let ada = room.caller(&room.agent(&acme).await).await.unwrap();
    let near = |caller: &Caller| match room.tenancy.unknown(caller, &company("acne")) {
        ServiceError::UnknownCompany { near, .. } => near,
        other => panic!("{other}"),
    };
    assert_eq!(near(&Caller::operator()).as_deref(), Some("acme"));
    assert_eq!(near(&ada), None);
}

#[tokio::test]
async fn what_a_caller_may_not_do_is_in_the_log_of_its_own_company() {
    let (room, acme, other) = (Room::new().await, company("acme"), company("other"));
    for name in [&acme, &other] {
        room.tenancy.make_company(&Caller::operator(), name).await.unwrap();
    }
    let ada = room.caller(&room.agent(&acme).await).await.unwrap();
    let refused = room.tenancy.allow(&ada, Act::Administer, Some(&other)).await.unwrap_err();
    assert!(matches!(refused, ServiceError::Operation { .. }), "{refused}");
    assert_eq!((room.refusals(&acme).await, room.refusals(&other).await), (1, 0));
}

#[tokio::test]
async fn a_revoked_token_is_refused_and_its_use_is_in_the_log() {
    let (room, acme) = (Room::new().await, company("acme"));
    room.tenancy.make_company(&Caller::operator(), &acme).await.unwrap();
    let token = room.agent(&acme).await;
    assert!(room.caller(&token).await.is_some() && room.caller("none of ours").await.is_none());
    let id = room.tenancy.tokens(Some(&acme))[0].id;
    room.tenancy.revoke_token(&Caller::operator(), Some(&acme), id).await.unwrap();
    assert!(room.caller(&token).await.is_none());
    assert_eq!(room.refusals(&acme).await, 1);
    assert!(room.reopened().await.caller(&token).await.is_none());
}

#[tokio::test]
async fn an_erased_company_stays_closed_and_its_tombstone_is_signed() {
    let (room, acme, operator) = (Room::new().await, company("acme"), Caller::operator());
    room.tenancy.make_company(&operator, &acme).await.unwrap();
    room.tenancy.write_tombstone(&room.tombstone(&acme, false), true).await.unwrap();
    assert_eq!(room.tenancy.erasing(), std::slice::from_ref(&acme));
    assert_eq!(room.tenancy.cut_erasures().await.unwrap(), std::slice::from_ref(&acme));
    // Only the erasure goes on.
    room.tenancy.allow(&operator, Act::Erase, Some(&acme)).await.unwrap();
    assert!(room.tenancy.allow(&operator, Act::View, Some(&acme)).await.is_err());
    let erased = room.tenancy.write_tombstone(&room.tombstone(&acme, true), false).await.unwrap();
    assert_eq!((erased.signature.len(), erased.public_key.len()), (128, 64));
    let again = room.reopened().await;
    assert!(again.tenancy.cut_erasures().await.unwrap().is_empty());
    assert!(again.tenancy.is_erasure_complete(&acme) && again.tenancy.companies().is_empty());
    let made = again.tenancy.make_company(&operator, &acme).await.unwrap_err();
    assert!(made.to_string().contains("and is not used again on this host"), "{made}");
}

#[tokio::test]
async fn a_company_that_is_being_imported_is_closed_until_the_guard_is_dropped() {
    let (room, acme, operator) = (Room::new().await, company("acme"), Caller::operator());
    room.tenancy.make_company(&operator, &acme).await.unwrap();
    let ada = room.caller(&room.agent(&acme).await).await.unwrap();
    let guard = room.tenancy.begin_import(&acme).unwrap();
    assert!(room.tenancy.begin_import(&acme).is_none(), "one at a time");
    let closed = room.tenancy.allow(&operator, Act::View, Some(&acme)).await.unwrap_err();
    assert!(matches!(closed, ServiceError::Importing { .. }), "{closed}");
    // Numbers of imported operations are their own: a refusal may take none.
    let denied = room.tenancy.allow(&ada, Act::Administer, Some(&acme)).await.unwrap_err();
    assert!(matches!(denied, ServiceError::Importing { .. }), "{denied}");
    assert_eq!(room.refusals(&acme).await, 0);
    drop(guard);
    room.tenancy.allow(&operator, Act::View, Some(&acme)).await.unwrap();
}

#[tokio::test]
async fn a_full_company_may_forget_and_its_operator_may_go_on() {
    let (room, acme, operator) =
        (Room::on(MemoryStore::with_quota(600), true).await, company("acme"), Caller::operator());
    room.tenancy.make_company(&operator, &acme).await.unwrap();
    let ada = room.caller(&room.agent(&acme).await).await.unwrap();
    for number in 0..4 {
        let made = room.tenancy.emit(&operator, &acme, vec![event(&format!("e{number}"), "p")]);
        drop(made.await);
    }
    let check = |caller: &Caller, kind| room.tenancy.check_quota(caller, kind, &acme);
    let full = check(&ada, OperationKind::Capture).unwrap_err();
    assert!(matches!(full, StoreError::CompanyFull { .. }), "{full}");
    check(&operator, OperationKind::Forget).unwrap();
    check(&Caller::worker(), OperationKind::Capture).unwrap();
    assert!(room.tenancy.company_usage(&acme).unwrap().held_bytes > 600);
}

#[tokio::test]
async fn an_event_is_accepted_once_and_a_cursor_belongs_to_its_list() {
    let (room, acme, operator) = (Room::new().await, company("acme"), Caller::operator());
    room.tenancy.make_company(&operator, &acme).await.unwrap();
    let first = room.tenancy.emit(&operator, &acme, vec![event("e1", "p")]).await.unwrap();
    let again = room.tenancy.emit(&operator, &acme, vec![event("e1", "p")]).await.unwrap();
    assert_eq!(first[0].id, again[0].id);
    let twice = vec![event("e2", "p"), event("e2", "p")];
    assert!(room.tenancy.emit(&operator, &acme, twice).await.is_err());
    room.tenancy.emit(&operator, &acme, vec![event("e3", "p"), event("e4", "q")]).await.unwrap();
    let filter = |fields| serde_json::from_value::<EventFilter>(fields).unwrap();
    let all = filter(json!({}));
    let page = room.tenancy.events(&acme, &all, None, Some(2)).await.unwrap();
    assert_eq!(page.items.len(), 2);
    let cursor = page.next_cursor.as_deref();
    let rest = room.tenancy.events(&acme, &all, cursor, Some(2)).await.unwrap();
    assert_eq!((rest.items.len(), rest.next_cursor.is_some()), (1, false));
    let of_p = filter(json!({"projectId": "p"}));
    assert!(room.tenancy.events(&acme, &of_p, cursor, Some(2)).await.is_err());
    assert!(room.tenancy.events(&company("other"), &all, cursor, Some(2)).await.is_err());
    assert_eq!(room.tenancy.events(&acme, &of_p, None, None).await.unwrap().items.len(), 2);
}

#[tokio::test]
async fn retention_removes_old_events_and_keeps_those_of_another_company() {
    let (room, operator) = (Room::new().await, Caller::operator());
    let (acme, other) = (company("acme"), company("other"));
    for name in [&acme, &other] {
        room.tenancy.make_company(&operator, name).await.unwrap();
        room.tenancy.emit(&operator, name, vec![event("e1", "p")]).await.unwrap();
    }
    room.clock.0.lock().0 += SignedDuration::from_hours(25);
    room.tenancy.emit(&operator, &acme, vec![event("e2", "p")]).await.unwrap();
    let zero = Retention { events_max_age_days: Some(0), ..Retention::default() };
    assert!(room.tenancy.set_retention(&operator, &acme, zero).await.is_err());
    let day = Retention { events_max_age_days: Some(1), ..Retention::default() };
    room.tenancy.set_retention(&operator, &acme, day).await.unwrap();
    let all = EventFilter::default();
    let count = async |name| room.tenancy.events(name, &all, None, None).await.unwrap().items.len();
    assert_eq!((count(&acme).await, count(&other).await), (1, 1));
    assert_eq!(room.reopened().await.tenancy.retention(&acme), day);
    // The event is a new one now.
    let anew = room.tenancy.emit(&operator, &acme, vec![event("e1", "p")]).await.unwrap();
    assert_eq!((anew[0].received_at, count(&acme).await), (room.clock.now(), 2));
}

/// With such a code a key would be free again.
#[test]
fn what_a_provider_has_done_is_no_failure_that_passes() {
    let gone = || StoreError::Unavailable { action: "writing", message: "gone".to_owned() };
    let company = company("acme");
    for error in [ServiceError::Audit(gone()), StoreError::NotHome { company }.into()] {
        assert!(error.is_store_unavailable(), "{error}");
    }
    let operation_id = OperationId::new(0, 1, 1);
    let done = ServiceError::Unrecorded { operation_id, error: gone() };
    assert!(!done.is_store_unavailable());
}
