//! Hosts on one database: their leases, and who leads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use memhost_postgres::{
    Agreed, Group, Home, JoinOptions, LEASE, Membership, OpenError, PostgresOptions, PostgresStore,
    Term,
};
use memhost_store::suite::{block_on, company, operation, row};
use memhost_store::{OperationLog, StoreError, Table, Tables, Transacted};
use memhost_types::{OperationKind, Outcome};

use crate::proxy::{Proxy, Trouble};
use crate::server;
use crate::steps::wait_for_locks;

fn host_key(value: &str) -> Agreed {
    let advice = "name it with --host-key-file";
    Agreed { name: "host key", value: value.to_owned(), before: None, advice }
}

fn options(name: &str) -> JoinOptions {
    JoinOptions {
        place: uuid::Uuid::new_v4(),
        name: name.to_owned(),
        peer_url: Some(format!("http://{name}:1")),
        version: "1".to_owned(),
        token: "same".to_owned(),
        agreed: vec![host_key("same")],
    }
}

pub(crate) async fn join(address: &str, name: &str) -> Membership {
    let host = Membership::join(address, options(name)).await.unwrap();
    host.begin();
    host
}

/// A company in the group of `acme`.
pub(crate) const OTHER: &str = "other-8";

/// The group of `acme`, and of [`OTHER`].
pub(crate) fn group() -> Group {
    let group = Group::of(&company("acme"));
    assert_eq!(Group::of(&company(OTHER)), group);
    group
}

/// Waits until a host sees a home of the group that fits.
pub(crate) async fn until(host: &Membership, fits: impl Fn(&Home) -> bool) -> Home {
    let mut seen = host.seen();
    let at = group().number();
    let found = seen.wait_for(|seen| seen.homes[at].as_ref().is_some_and(&fits));
    let found = tokio::time::timeout(Duration::from_secs(20), found).await.unwrap().unwrap();
    found.homes[at].clone().unwrap()
}

/// Looks after each heartbeat whether something is so.
pub(crate) async fn heartbeats_until(host: &Membership, is_so: impl Fn() -> bool) {
    let mut seen = host.seen();
    let looking = async {
        while !is_so() {
            seen.changed().await.unwrap();
        }
    };
    let looked = tokio::time::timeout(Duration::from_secs(20), looking).await;
    assert!(looked.is_ok(), "it is not so after 20 s");
}

pub(crate) async fn open(address: &str, term: Term) -> PostgresStore {
    let (address, term) = (address.to_owned(), Some(term));
    let options = PostgresOptions { address, term, ..PostgresOptions::default() };
    PostgresStore::open(options).await.unwrap()
}

pub(crate) fn event(name: &str, text: &[u8]) -> memhost_store::Change {
    row(name, Table::Events, b"a", Some(text))
}

/// Lets nobody reach a database until the leases of all hosts have ended.
async fn outage(address: &str, hosts: [&Membership; 2]) {
    let direct = server::direct(address);
    let (base, name) = direct.rsplit_once('/').unwrap();
    let admin = server::client(&format!("{base}/postgres")).await;
    let allow = async |may: bool| {
        let sql = format!(
            "ALTER DATABASE {name} ALLOW_CONNECTIONS {may}; SELECT pg_terminate_backend(pid) \
             FROM pg_stat_activity WHERE datname = '{name}'"
        );
        admin.batch_execute(&sql).await.unwrap();
    };
    allow(false).await;
    let begun = Instant::now();
    while hosts.iter().any(|host| host.lease().is_held()) {
        assert!(begun.elapsed() < LEASE * 2, "a lease lasts without the database");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    allow(true).await;
}

#[test]
fn one_host_leads_and_another_one_follows_when_it_has_left() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let (first, second) = (join(&address, "first").await, join(&address, "second").await);
        let term = first.take(group()).await.unwrap().unwrap();
        let leader = until(&second, |leader| leader.token == term.token).await;
        assert_eq!((leader.name.as_deref(), leader.is_me), (Some("first"), false));
        assert!(!second.should_take(group()));
        assert!(
            second.take(group()).await.unwrap().is_none(),
            "the first one's lease has not ended"
        );
        let hosts = second.hosts().await.unwrap();
        let shown: Vec<_> = hosts.iter().map(|host| (host.name.as_str(), host.groups)).collect();
        assert_eq!(shown, [("first", 1), ("second", 0)]);

        first.leave().await;
        assert!(!first.lease().is_held());
        until(&second, |leader| leader.name.is_none()).await;
        assert!(second.should_take(group()), "it need not wait for the end of a lease");
        let next = second.take(group()).await.unwrap().unwrap();
        assert!(next.token > term.token);
        second.leave().await;
    });
}

/// What a former leader still writes is refused, whatever it writes: rows of companies that the new
/// one has not touched, of companies that are new, and the host's own.
#[test]
fn a_host_that_was_replaced_writes_nothing() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let (first, second) = (join(&address, "first").await, join(&address, "second").await);
        let old = open(&address, first.take(group()).await.unwrap().unwrap()).await;
        let write = |store: &PostgresStore, change| {
            let store = store.clone();
            async move { memhost_store::write(&store, &[change]).await }
        };
        write(&old, event("acme", b"1")).await.unwrap();
        let own = |text: &[u8]| {
            memhost_store::Change::always(Table::Host, b"mark".to_vec(), Some(text.to_vec()))
        };
        write(&old, own(b"1")).await.unwrap();
        until(&second, |leader| !leader.is_me).await;
        first.leave().await;
        until(&second, |leader| leader.name.is_none()).await;
        let new = open(&address, second.take(group()).await.unwrap().unwrap()).await;

        let refused = write(&old, event("acme", b"2")).await;
        assert!(matches!(refused, Err(StoreError::NotHome { .. })), "{refused:?}");
        let refused = write(&old, event(OTHER, b"2")).await;
        assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
        let refused = write(&old, own(b"2")).await;
        assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
        // Nor does it take a company back.
        let refused = write(&old, event("acme", b"2")).await;
        assert!(refused.is_err(), "{refused:?}");
        let key = memhost_store::company_key(&company("acme"), b"a");
        assert_eq!(new.get(Table::Events, &key).await.unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(new.get(Table::Host, b"mark").await.unwrap().as_deref(), Some(&b"1"[..]));
        write(&new, event("acme", b"3")).await.unwrap();
        write(&new, event(OTHER, b"3")).await.unwrap();
        write(&new, own(b"3")).await.unwrap();
        second.leave().await;
    });
}

/// The same process may lead again: what its first term has left in flight does not count as what
/// the second one writes.
#[test]
fn a_host_that_leads_again_has_a_new_term() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let host = join(&address, "host").await;
        let database = host.connect(&address, (2, 4)).await.unwrap();
        let open = async |term| {
            let (term, database) = (Some(term), Some(Arc::clone(&database)));
            let options = PostgresOptions { term, database, ..PostgresOptions::default() };
            PostgresStore::open(options).await.unwrap()
        };
        let first = host.take(group()).await.unwrap().unwrap();
        let old = open(first).await;
        for number in 0..5 {
            memhost_store::write(&old, &[event("acme", &[number])]).await.unwrap();
        }
        until(&host, |leader| leader.is_me).await;
        assert!(host.should_take(group()));
        let second = host.take(group()).await.unwrap().unwrap();
        assert!(second.token > first.token);
        let new = open(second).await;
        memhost_store::write(&new, &[event("acme", b"new")]).await.unwrap();
        assert!(memhost_store::write(&old, &[event("acme", b"old")]).await.is_err());
        let key = memhost_store::company_key(&company("acme"), b"a");
        assert_eq!(new.get(Table::Events, &key).await.unwrap().as_deref(), Some(&b"new"[..]));
        host.leave().await;
    });
}

/// A lane writes what several groups have. What an earlier term has left there is not written
/// beside what a later one writes.
#[test]
fn what_an_earlier_term_left_in_a_lane_is_not_written_with_a_later_one() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let host = join(&address, "host").await;
        let database = host.connect(&address, (1, 4)).await.unwrap();
        let open = async |group| {
            let term = Some(host.take(group).await.unwrap().unwrap());
            let database = Some(Arc::clone(&database));
            let options = PostgresOptions { term, database, ..PostgresOptions::default() };
            PostgresStore::open(options).await.unwrap()
        };
        let other = "a";
        assert_ne!(Group::of(&company(other)), group());
        let (busy, old) = (open(Group::of(&company(other))).await, open(group()).await);
        memhost_store::write(&busy, &[event(other, b"1")]).await.unwrap();
        memhost_store::write(&old, &[event("acme", b"1")]).await.unwrap();
        until(&host, |home| home.is_me).await;
        // The lane waits for a row of the other group.
        let client = server::client(&address).await;
        client
            .batch_execute(
                "BEGIN; SELECT 1 FROM entries e JOIN companies c ON c.id = e.company \
                 WHERE c.name = 'a' FOR UPDATE OF e",
            )
            .await
            .unwrap();
        let queue =
            async |store: &PostgresStore, change| match store.transact(&[change]).await.unwrap() {
                Transacted::Done(commit) => Some(commit),
                Transacted::Conflict(_) => None,
            };
        let waits = queue(&busy, event(other, b"2")).await.unwrap();
        wait_for_locks(&server::client(&address).await, 1).await;
        let late = queue(&old, event("acme", b"old")).await.unwrap();
        let new = open(group()).await;
        // It does not load the company, which would wait for the lane.
        let mark = |text: &[u8]| {
            memhost_store::Change::always(Table::Host, b"mark".to_vec(), Some(text.to_vec()))
        };
        let timely = queue(&new, mark(b"new")).await.unwrap();
        client.batch_execute("COMMIT").await.unwrap();
        waits.await.unwrap();
        timely.await.unwrap();
        assert!(late.await.is_err(), "an earlier term has written");
        let key = memhost_store::company_key(&company("acme"), b"a");
        assert_eq!(new.get(Table::Events, &key).await.unwrap().as_deref(), Some(&b"1"[..]));
        host.leave().await;
    });
}

/// Who has given a group away does not take it back by what it saw before.
#[test]
fn a_group_that_was_given_away_goes_to_the_other_host() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let (first, second) = (join(&address, "first").await, join(&address, "second").await);
        let term = first.take(group()).await.unwrap().unwrap();
        until(&first, |home| home.is_me).await;
        until(&second, |home| home.token == term.token).await;
        assert!(first.lease().holds(term) && !second.should_take(group()));
        first.give(term).await.unwrap();
        assert!(!first.lease().holds(term), "the other one may write from here on");
        // It has not seen that yet.
        assert!(first.take(group()).await.unwrap().is_none());
        until(&second, |home| home.name.is_none()).await;
        // One that is to leave takes nothing, so it is the other one's.
        first.begin_to_leave();
        let mut seen = second.seen();
        seen.wait_for(|seen| seen.others.iter().any(|other| other.is_leaving)).await.unwrap();
        assert!(!first.should_take(group()) && second.should_take(group()));
        let next = second.take(group()).await.unwrap().unwrap();
        assert!(next.token > term.token + 1);
        first.leave().await;
        second.leave().await;
    });
}

/// Hosts that are drained take groups only where no other host does.
/// Hosts whose leases have all ended at a time see each other one after the other: who is assigned
/// to a group is known when all of them are there.
#[test]
fn a_host_whose_lease_had_ended_gives_nothing_away_until_it_has_seen_all_others() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let (first, second) = (join(&address, "first").await, join(&address, "second").await);
        let gives = || Group::all().any(|group| first.should_give(group));
        heartbeats_until(&first, gives).await;
        outage(&address, [&first, &second]).await;
        assert!(!gives(), "its lease has ended");
        heartbeats_until(&first, || first.lease().is_held()).await;
        assert!(!gives(), "it has just begun again");
        heartbeats_until(&first, gives).await;
        first.leave().await;
        second.leave().await;
    });
}

#[test]
fn a_drained_host_takes_nothing_while_another_one_is_there() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let first = join(&address, "first").await;
        let drained = async |host: &Membership, is_draining| {
            assert!(first.drain(host.id(), is_draining).await.unwrap());
            let begun = Instant::now();
            while host.must_leave() != is_draining {
                assert!(begun.elapsed() < Duration::from_secs(10));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        drained(&first, true).await;
        assert!(first.should_take(group()), "there is no other one");
        let second = join(&address, "second").await;
        let mut seen = first.seen();
        seen.wait_for(|seen| seen.others.iter().any(|other| !other.is_leaving)).await.unwrap();
        let mut seen = second.seen();
        seen.wait_for(|seen| seen.others.iter().any(|other| other.is_draining)).await.unwrap();
        assert!(!first.should_take(group()) && second.should_take(group()));
        drained(&first, false).await;
        assert!(!first.drain(uuid::Uuid::nil(), true).await.unwrap(), "there is no such host");
        first.leave().await;
        second.leave().await;
    });
}

/// A host that ends without a word is replaced when its lease has ended, by one that has kept its
/// own; operations that it had begun are interrupted.
#[test]
fn a_host_whose_lease_has_ended_is_replaced() {
    let Some(address) = server::runtime().block_on(server::database()) else { return };
    let (second, term, begun) = server::runtime().block_on(async {
        let (first, second) = (join(&address, "first").await, join(&address, "second").await);
        let term = first.take(group()).await.unwrap().unwrap();
        until(&second, |leader| leader.token == term.token).await;
        let store = open(&address, term).await;
        let begun = tokio::task::spawn_blocking(move || {
            let begun =
                operation(&store, "acme", None, OperationKind::Capture, Outcome::InProgress);
            block_on(store.write_operation(Arc::new(begun.clone()), Vec::new())).unwrap();
            begun
        });
        let begun = begun.await.unwrap();
        // Its row stays, as that of a process that was killed.
        let client = server::client(&address).await;
        let sql = "CREATE FUNCTION kept() RETURNS trigger LANGUAGE plpgsql AS \
                   'BEGIN IF OLD.name = ''first'' THEN RETURN NULL; END IF; RETURN OLD; END'; \
                   CREATE TRIGGER kept BEFORE DELETE ON hosts FOR EACH ROW EXECUTE FUNCTION kept()";
        client.batch_execute(sql).await.unwrap();
        first.leave().await;
        (second, term, begun)
    });
    server::runtime().block_on(async {
        let ended = Instant::now();
        let late = until(&second, |leader| leader.is_late).await;
        assert!(late.name.is_some() && second.should_take(group()));
        assert!(ended.elapsed() < LEASE + Duration::from_secs(2), "{:?}", ended.elapsed());
        let next = second.take(group()).await.unwrap().unwrap();
        assert!(next.token > term.token);
        let store = open(&address, next).await;
        let found = store.operation(&company("acme"), begun.id).await.unwrap().unwrap();
        assert_eq!(found.outcome, Outcome::Interrupted);
        second.leave().await;
    });
}

/// After an outage of the database all leases have ended: whoever leads goes on, because the others
/// wait for a whole term.
#[test]
fn an_outage_of_the_database_moves_nothing() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let (first, second) = (join(&address, "first").await, join(&address, "second").await);
        let term = first.take(group()).await.unwrap().unwrap();
        until(&second, |leader| leader.token == term.token).await;
        outage(&address, [&first, &second]).await;
        assert!(!second.should_take(group()));
        let end = Instant::now() + LEASE + Duration::from_secs(1);
        let (mut is_back, mut seen) = (false, second.seen());
        while Instant::now() < end {
            seen.changed().await.unwrap();
            let leader = seen.borrow_and_update().homes[group().number()].clone();
            assert!(!second.should_take(group()), "{leader:?}");
            is_back |= leader.is_some_and(|leader| !leader.is_late);
        }
        assert!(is_back && first.lease().is_held());
        first.leave().await;
        second.leave().await;
    });
}

#[test]
fn a_host_that_cannot_be_beside_the_others_does_not_join() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let first = join(&address, "first").await;
        let other_key = JoinOptions { agreed: vec![host_key("another")], ..options("second") };
        let refused = Membership::join(&address, other_key).await.err().unwrap();
        assert!(matches!(refused, OpenError::Differs { .. }), "{refused}");
        assert!(refused.to_string().contains("--host-key-file"), "{refused}");
        let (same, alone) = (options("first"), JoinOptions { peer_url: None, ..options("second") });
        for unreachable in [same, alone] {
            let refused = Membership::join(&address, unreachable).await.err().unwrap();
            assert!(matches!(refused, OpenError::Alone { .. }), "{refused}");
            assert!(refused.to_string().contains("another host, first,"), "{refused}");
        }
        let other_token = JoinOptions { token: "another".to_owned(), ..options("second") };
        let refused = Membership::join(&address, other_token).await.err().unwrap();
        assert!(matches!(refused, OpenError::OtherToken { .. }), "{refused}");
        assert_eq!(first.hosts().await.unwrap().len(), 1, "who was refused is in no list");
        first.leave().await;
    });
}

/// A host that stops in the middle of a transaction keeps its locks: the one that takes over does
/// not wait for it for long.
#[test]
fn a_transaction_that_a_paused_host_has_left_open_is_ended() {
    let Some(address) = server::runtime().block_on(server::database()) else { return };
    server::runtime().block_on(async {
        let (first, second) = (join(&address, "first").await, join(&address, "second").await);
        let proxy = Proxy::start(&address);
        let store = open(&proxy.address, first.take(group()).await.unwrap().unwrap()).await;
        memhost_store::write(&store, &[event("acme", b"1")]).await.unwrap();
        until(&second, |leader| !leader.is_me).await;
        // Somebody has the row, so the transaction of the first one waits in the middle.
        let client = server::client(&address).await;
        client.batch_execute("BEGIN; SELECT 1 FROM entries FOR UPDATE").await.unwrap();
        let written = store.transact(&[event("acme", b"2")]).await.unwrap();
        let Transacted::Done(commit) = written else { panic!() };
        wait_for_locks(&server::client(&address).await, 1).await;
        proxy.set(Trouble::Silence);
        client.batch_execute("COMMIT").await.unwrap();
        first.leave().await;
        until(&second, |leader| leader.name.is_none()).await;
        let begun = Instant::now();
        assert!(second.take(group()).await.unwrap().is_some());
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        proxy.set(Trouble::None);
        assert!(commit.await.is_err(), "what was in flight was not written");
        second.leave().await;
    });
}

/// A connection that is silent and not broken holds no host up for ever.
#[test]
fn a_host_whose_take_over_gets_no_answer_tries_again() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let (first, second) = (join(&address, "first").await, join(&address, "second").await);
        first.take(group()).await.unwrap().unwrap();
        until(&second, |leader| !leader.is_me).await;
        first.leave().await;
        until(&second, |leader| leader.name.is_none()).await;
        let client = server::client(&address).await;
        client
            .batch_execute("BEGIN; SELECT 1 FROM homes WHERE company < 0 FOR UPDATE")
            .await
            .unwrap();
        let begun = Instant::now();
        let refused = second.take(group()).await;
        assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        client.batch_execute("COMMIT").await.unwrap();
        // What was asked before may be done by now: it leads then, without a term.
        let mut term = None;
        while term.is_none() {
            assert!(begun.elapsed() < Duration::from_secs(25), "it does not lead");
            second.seen().changed().await.unwrap();
            term = second.take(group()).await.unwrap();
        }
        second.leave().await;
    });
}

#[test]
fn hosts_that_start_together_on_an_empty_database_make_one_schema() {
    server::runtime().block_on(async {
        for _ in 0..3 {
            let Some(address) = server::database().await else { return };
            let joining = ["a", "b", "c", "d"].map(|name| {
                let address = address.clone();
                tokio::spawn(async move { Membership::join(&address, options(name)).await })
            });
            for host in joining {
                host.await.unwrap().unwrap().leave().await;
            }
        }
    });
}

/// A database that is slow is not asked by ever more connections.
#[test]
fn a_heartbeat_that_waits_has_one_connection() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let host = join(&address, "slow").await;
        let gate = server::client(&address).await;
        gate.batch_execute("BEGIN; LOCK TABLE hosts").await.unwrap();
        // Several heartbeats have failed when the lease ends.
        while host.lease().is_held() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                   AND pid <> pg_backend_pid()";
        let count: i64 = gate.query_one(sql, &[]).await.unwrap().get(0);
        assert!(count <= 2, "{count} connections wait");
        gate.batch_execute("ROLLBACK").await.unwrap();
        host.leave().await;
    });
}
