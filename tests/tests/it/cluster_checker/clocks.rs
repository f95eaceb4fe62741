//! Clocks are set by five minutes, forward and back: those of single hosts, and that of the
//! database.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use memhost_postgres::testing::{self, OwnServer};
use rustix::process::Signal;
use tokio::runtime::Builder;

use super::promoted::Stops;
use super::{CLIENTS, CLIENTS_OF_ONE, HOSTS, Noted, compare, order, work};
use crate::cluster::{Cluster, Host, listening};
use crate::cluster_homes::{captured, company, found, spread, wait_for};

const NOW: &str = "+0s";
const FORWARD: &str = "+300s";
const BACK: &str = "-300s";

/// The library that gives a program another time, which a file says. None where it is not
/// installed.
fn library(name: &str) -> Option<String> {
    let all = std::fs::read_dir("/usr/lib").unwrap();
    let path = |entry: std::io::Result<std::fs::DirEntry>| {
        Some(entry.ok()?.path().join("faketime").join(name)).filter(|path| path.exists())
    };
    let found = all.filter_map(path).next();
    if found.is_none() {
        assert!(
            std::env::var_os("MEMHOST_TESTS_NEED_TOOLS").is_none(),
            "libfaketime is not installed: type `apt-get install faketime`"
        );
        eprintln!("skipped: libfaketime is not installed; `apt-get install faketime` installs it");
    }
    Some(found?.display().to_string())
}

/// A clock that others follow.
struct Clock(PathBuf);

impl Clock {
    fn new(directory: &Path, name: &str) -> Self {
        let clock = Self(directory.join(name));
        clock.set(NOW);
        clock
    }

    /// Sets it, by so much away from the machine's.
    fn set(&self, away: &str) {
        // It is never seen half written.
        let next = self.0.with_extension("next");
        std::fs::write(&next, away).unwrap();
        std::fs::rename(&next, &self.0).unwrap();
    }

    /// What lets a program follow it. Clocks that nobody can set go on.
    fn variables(&self, library: &str) -> Vec<(&'static str, String)> {
        let file = self.0.display().to_string();
        let on = || "1".to_owned();
        vec![
            ("LD_PRELOAD", library.to_owned()),
            ("FAKETIME_TIMESTAMP_FILE", file),
            ("FAKETIME_NO_CACHE", on()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", on()),
            ("DONT_FAKE_MONOTONIC", on()),
            ("NO_FAKE_STAT", on()),
        ]
    }
}

#[test]
fn nothing_moves_and_no_time_falls_when_clocks_are_set() {
    let (Some(of_server), Some(of_host)) =
        (library("libfaketime.so.1"), library("libfaketimeMT.so.1"))
    else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    // The server runs as another user.
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), readable).unwrap();
    let clock = |name: &str| Clock::new(directory.path(), name);
    let (of_database, clocks) = (clock("database"), HOSTS.map(clock));
    let variables = of_database.variables(&of_server);
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let Some(server) = OwnServer::start(&[], &variables) else { return };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(server.sql("CREATE DATABASE memory"));
    let cluster = Cluster::on(server.address("memory"));
    let mut hosts: Vec<Host> = HOSTS
        .iter()
        .zip(&clocks)
        .map(|(name, clock)| {
            let mut command = cluster.command(name);
            command.envs(clock.variables(&of_host));
            listening(command)
        })
        .collect();
    spread(&hosts[0], 3);
    let client = runtime.block_on(testing::client(&cluster.database));
    let times = || {
        let sql = "SELECT extract(epoch FROM clock_timestamp())::bigint";
        runtime.block_on(client.query_one(sql, &[])).unwrap().get::<_, i64>(0)
    };
    let homes = || {
        let sql = "SELECT company, host::text, token FROM homes WHERE company < 0 ORDER BY 1";
        let rows = runtime.block_on(client.query(sql, &[])).unwrap();
        let home = |row: &tokio_postgres::Row| {
            (row.get::<_, i64>(0), row.get::<_, String>(1), row.get::<_, i64>(2))
        };
        rows.iter().map(home).collect::<Vec<_>>()
    };
    let urls = RwLock::new(hosts.iter().map(|host| host.url.clone()).collect());
    let (noted, stop) = (Mutex::new(Noted::default()), AtomicBool::new(false));
    let acknowledged = || noted.lock().unwrap().sent.values().filter(|is_done| **is_done).count();
    std::thread::scope(|scope| {
        let _stops = Stops(&stop);
        for number in 0..CLIENTS {
            let (urls, noted, stop) = (&urls, &noted, &stop);
            scope.spawn(move || work(number, urls, noted, stop));
        }
        let before = homes();
        clocks[0].set(FORWARD);
        clocks[1].set(BACK);
        for away in [NOW, BACK, FORWARD] {
            let time = times();
            of_database.set(away);
            let moved = times().abs_diff(time);
            assert_eq!(moved > 250, away != NOW, "the database's time has moved by {moved} s");
            // The leases of all hosts have ended or been renewed by their new times.
            let (count, begun) = (acknowledged(), Instant::now());
            wait_for("hosts have had the time to move groups, and still write", || {
                begun.elapsed() > Duration::from_millis(3_500) && acknowledged() > count + CLIENTS
            });
            assert_eq!(homes(), before, "{away}");
        }
    });
    runtime.block_on(order(&cluster.database, CLIENTS_OF_ONE));
    compare(&noted.into_inner().unwrap(), &hosts[0]);
    // A host that ends just when the database's clock is set back keeps its lease no longer.
    let mut last = hosts.pop().unwrap();
    last.signal(Signal::KILL);
    of_database.set(NOW);
    last.child.wait().unwrap();
    let begun = Instant::now();
    spread(&hosts[0], 2);
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    // A host that joins now has not seen the later time.
    let _third = cluster.start("c");
    spread(&hosts[0], 3);
    for number in 0..CLIENTS {
        captured(&hosts[0], &company(number), "The clocks are in the tower");
        assert_eq!(found(&hosts[1], &company(number), "tower"), 1);
    }
    runtime.block_on(order(&cluster.database, CLIENTS_OF_ONE));
}
