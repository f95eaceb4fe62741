//! A standby that was promoted, a database whose timeline is another one, and commits that wait for
//! a standby.

use std::time::Duration;

use memhost_postgres::Group;
use memhost_postgres::testing::OwnServer;
use memhost_store::suite::company;
use memhost_store::{OperationLog as _, StoreError, Table, Tables as _};
use tokio::time::timeout;

use crate::hosts::{OTHER, event, group, heartbeats_until, join, open, until};
use crate::server;

fn is_elsewhere<T: std::fmt::Debug>(refused: &Result<T, StoreError>) {
    assert!(matches!(refused, Err(StoreError::NotHome { .. })), "{refused:?}");
}

/// The company is not even loaded.
fn is_not_loaded(refused: &Result<bool, StoreError>) {
    assert!(
        matches!(refused, Err(StoreError::Unavailable { action: "loading a company", .. })),
        "{refused:?}"
    );
}

/// The rows of a standby say that a host is a home that knows more than the standby. Whatever the
/// host writes before it has taken the group again is refused.
#[test]
fn nothing_is_written_in_a_term_of_the_timeline_before() {
    server::runtime().block_on(async {
        let Some(primary) = OwnServer::start(&[], &[]) else { return };
        primary.sql("CREATE DATABASE memory").await;
        let standby = primary.standby();
        let address =
            format!("postgres://memhost@{},{}/memory", primary.socket(), standby.socket());
        let host = join(&address, "host").await;
        let term = host.take(group()).await.unwrap().unwrap();
        // It sees no heartbeat.
        let store = open(&address, term).await;
        for name in ["acme", OTHER] {
            memhost_store::write(&store, &[event(name, b"1")]).await.unwrap();
        }
        let all = "SELECT pg_current_wal_lsn() = replay_lsn FROM pg_stat_replication";
        primary.until(all).await;
        primary.kill();
        standby.sql("SELECT pg_promote()").await;
        standby.until("SELECT NOT pg_is_in_recovery()").await;

        is_elsewhere(&store.trim_operations(&company("acme"), u64::MAX).await);
        is_elsewhere(&memhost_store::write(&store, &[event(OTHER, b"2")]).await);
        let mut names = (0..).map(|number| format!("third-{number}"));
        let third = names.find(|name| Group::of(&company(name)) == group()).unwrap();
        is_not_loaded(&memhost_store::write(&store, &[event(&third, b"2")]).await);

        until(&host, |home| home.is_me && home.token == term.token).await;
        heartbeats_until(&host, || !host.lease().is_home(term) && host.should_take(group())).await;
        let again = host.take(group()).await.unwrap().unwrap();
        assert!(again.token > term.token && again.token >> 32 == 2, "{again:?}");
        let store = open(&address, again).await;
        memhost_store::write(&store, &[event(OTHER, b"3")]).await.unwrap();
        host.leave().await;
    });
}

/// A database that was upgraded, or copied by `pg_dump`, begins with the first timeline again.
#[test]
fn a_timeline_that_has_fallen_is_as_good_as_one_that_has_risen() {
    server::runtime().block_on(async {
        for ago in [1_i64, -3] {
            let Some(address) = server::database().await else { return };
            let host = join(&address, "host").await;
            let mut term = host.take(group()).await.unwrap().unwrap();
            let timeline = term.token >> 32;
            // As if it had begun on another one.
            term.token -= ago << 32;
            let client = server::client(&address).await;
            let set = format!("UPDATE homes SET token = {} WHERE company < 0", term.token);
            client.batch_execute(&set).await.unwrap();
            let home = until(&host, |home| home.token == term.token).await;
            assert!(home.is_me && host.should_take(group()) && !host.lease().holds(term));
            is_not_loaded(
                &memhost_store::write(&open(&address, term).await, &[event("acme", b"1")]).await,
            );
            let again = host.take(group()).await.unwrap().unwrap();
            assert_eq!(again.token >> 32, timeline);
            assert!(host.lease().holds(again));
            let store = open(&address, again).await;
            let key = memhost_store::company_key(&company("acme"), b"a");
            assert_eq!(store.get(Table::Events, &key).await.unwrap(), None);
            memhost_store::write(&store, &[event("acme", b"2")]).await.unwrap();
            host.leave().await;
        }
    });
}

/// A connection can break while its commit waits for the standby. What the database has then is not
/// acknowledged before a standby has it, too.
#[test]
fn what_was_committed_without_an_answer_still_waits_for_the_standby() {
    server::runtime().block_on(async {
        let Some(primary) = OwnServer::start(&[], &[]) else { return };
        primary.sql("CREATE DATABASE memory").await;
        let host = join(&primary.address("memory"), "host").await;
        let term = host.take(group()).await.unwrap().unwrap();
        let store = open(&primary.address("memory"), term).await;
        memhost_store::write(&store, &[event("acme", b"1")]).await.unwrap();
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await;
        primary.sql("SELECT pg_reload_conf()").await;
        let change = [event("acme", b"2")];
        let mut writing = Box::pin(memhost_store::write(&store, &change));
        let waits = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep' \
                     AND application_name = 'memhost' AND query NOT LIKE '%hosts%'";
        tokio::select! {
            done = &mut writing => panic!("no standby has it: {done:?}"),
            () = primary.until(waits) => {}
        }
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE wait_event = 'SyncRep' AND application_name = 'memhost'";
        primary.sql(cut).await;
        let early = timeout(Duration::from_secs(2), &mut writing).await;
        assert!(early.is_err(), "no standby has it: {early:?}");
        primary.sql("ALTER SYSTEM RESET synchronous_standby_names").await;
        primary.sql("SELECT pg_reload_conf()").await;
        writing.await.unwrap();
        host.leave().await;
    });
}
