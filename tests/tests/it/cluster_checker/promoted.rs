//! The primary of the database ends or falls silent while clients write, and its standby is
//! promoted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use memhost_postgres::testing::{self, OwnServer};
use rustix::process::Signal;
use tokio::runtime::{Builder, Runtime};

use super::{CLIENTS, CLIENTS_OF_ONE, COMPANIES, HOSTS, Noted, compare, order, seconds, work};
use crate::cluster::{Cluster, Host, send, with};
use crate::cluster_homes::{
    capture, capture_path, captured, company, found, query, query_path, spread, wait_for,
};

/// How long a usual round takes, about.
const SECONDS_OF_ROUND: u64 = 12;
/// The database's timeline, as tokens of groups have it.
const TIMELINE: &str = "SELECT ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))\
                        ::bit(32)::bigint";

/// A primary with a database for hosts, and a standby.
struct Pair {
    primary: OwnServer,
    standby: OwnServer,
    /// What hosts are told: both of them.
    address: String,
    runtime: Runtime,
}

impl Pair {
    /// None where no PostgreSQL is installed.
    fn new() -> Option<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let primary = OwnServer::start(&[], &[])?;
        runtime.block_on(primary.sql("CREATE DATABASE memory"));
        let standby = primary.standby();
        let (one, other) = (primary.socket(), standby.socket());
        let address =
            format!("postgres://memhost@{one},{other}/memory?target_session_attrs=read-write");
        Some(Self { primary, standby, address, runtime })
    }

    /// From here on nothing is acknowledged that the standby does not have.
    fn synchronous(&self) {
        self.runtime.block_on(async {
            self.primary.until("SELECT count(*) = 1 FROM pg_stat_replication").await;
            self.primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'").await;
            self.primary.sql("SELECT pg_reload_conf()").await;
            self.primary.until("SELECT sync_state = 'sync' FROM pg_stat_replication").await;
        });
    }

    fn promote(&self) {
        self.runtime.block_on(self.standby.sql("SELECT pg_promote()"));
    }

    /// Waits until every group has a home that took it on the timeline of a server.
    fn until_taken(&self, server: &OwnServer) {
        let client = self.runtime.block_on(testing::client(&server.address("memory")));
        let old =
            format!("SELECT count(*) FROM homes WHERE company < 0 AND token >> 32 < ({TIMELINE})");
        wait_for("every group is taken again", || {
            self.runtime.block_on(client.query_one(&old, &[])).unwrap().get::<_, i64>(0) == 0
        });
    }
}

/// A standby that was synchronous has what was acknowledged. It becomes the primary of the next
/// round, with a standby of its own in the place of the former one.
#[test]
fn what_was_acknowledged_is_there_after_a_standby_was_promoted() {
    let Some(mut pair) = Pair::new() else { return };
    let cluster = Cluster::on(pair.address.clone());
    let hosts: Vec<Host> = HOSTS.iter().map(|name| cluster.start(name)).collect();
    let urls = RwLock::new(hosts.iter().map(|host| host.url.clone()).collect());
    let (noted, stop) = (Mutex::new(Noted::default()), AtomicBool::new(false));
    let acknowledged = || noted.lock().unwrap().sent.values().filter(|is_done| **is_done).count();
    let more = |count: usize| {
        let before = acknowledged();
        wait_for("more is acknowledged", || acknowledged() >= before + count);
    };
    std::thread::scope(|scope| {
        let _stops = Stops(&stop);
        for number in 0..CLIENTS {
            let (urls, noted, stop) = (&urls, &noted, &stop);
            scope.spawn(move || work(number, urls, noted, stop));
        }
        for round in 0..seconds(2 * SECONDS_OF_ROUND) / SECONDS_OF_ROUND {
            pair.synchronous();
            more(30);
            let begun = Instant::now();
            match round % 2 {
                0 => pair.primary.fall_silent(),
                _ => pair.primary.kill(),
            }
            pair.promote();
            pair.until_taken(&pair.standby);
            more(CLIENTS);
            let took = begun.elapsed();
            eprintln!("promoted, and written again after {took:?}");
            // A connection to a server that is silent is not waited for.
            assert!(took < Duration::from_secs(12), "{took:?}");
            let standby = pair.standby.standby_in_place_of(&mut pair.primary);
            let former = std::mem::replace(&mut pair.standby, standby);
            pair.primary = former;
        }
    });
    pair.runtime.block_on(order(&pair.primary.address("memory"), CLIENTS_OF_ONE));
    compare(&noted.into_inner().unwrap(), &hosts[0]);
}

/// Lets clients end, also where the test has failed.
pub(super) struct Stops<'a>(pub(super) &'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A standby that was behind lacks something that was acknowledged: writes, companies, and who took
/// a group over. No host answers from what it has in memory of that.
#[test]
fn what_a_standby_had_not_received_is_nowhere_after_it_was_promoted() {
    let Some(pair) = Pair::new() else { return };
    let cluster = Cluster::on(pair.address.clone());
    let (first, mut second) = (cluster.start("a"), cluster.start("b"));
    for number in 0..COMPANIES {
        captured(&first, &company(number), &format!("The kept item{number} is in the archive"));
    }
    spread(&first, 2);
    let has_all = "SELECT pg_current_wal_lsn() = replay_lsn FROM pg_stat_replication";
    pair.runtime.block_on(async {
        pair.primary.until(has_all).await;
        pair.standby.sql("ALTER SYSTEM SET primary_conninfo = ''").await;
        pair.standby.sql("SELECT pg_reload_conf()").await;
        pair.primary.until("SELECT count(*) = 0 FROM pg_stat_replication").await;
    });
    // One host has all groups by now, which the standby does not know.
    second.signal(Signal::KILL);
    second.child.wait().unwrap();
    for number in 0..=COMPANIES {
        captured(&first, &company(number), &format!("The lost item{number} is in the archive"));
        assert_eq!(found(&first, &company(number), "lost"), 1);
    }
    pair.primary.kill();
    pair.promote();
    pair.until_taken(&pair.standby);
    let begun = Instant::now();
    for number in (0..=COMPANIES).rev() {
        let name = company(number);
        let asked = query(&name, "archive");
        match send(&first.url, &query_path(&name), Some(&asked), None).expect("no answer") {
            (200, answer) => {
                assert_eq!(with(&answer, "lost"), 0, "{answer}");
                assert_eq!(with(&answer, "kept"), usize::from(number < COMPANIES), "{answer}");
            }
            // The last company was lost.
            (status, answer) => assert!(status == 404 && number == COMPANIES, "{status} {answer}"),
        }
    }
    // Another company has the number that the lost one had, perhaps.
    for number in [COMPANIES + 1, COMPANIES, 0] {
        let name = company(number);
        let text = capture(&name, &format!("The new item{number} is in the archive"));
        first.fine(&capture_path(&name), Some(&text));
        assert_eq!(found(&first, &name, "new"), 1, "{name}");
        assert_eq!(found(&first, &name, "lost"), 0, "{name}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    // The numbers of operations go on where the standby was.
    let database = pair.standby.address("memory");
    pair.runtime.block_on(order(&database, 0));
}
