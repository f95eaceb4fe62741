//! A PostgreSQL of one test, which ends it, lets it fall silent or promotes its standby.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};

use super::{Server, as_user, client, directory, does, initialize, made, programs, run};

/// A server that one test has for itself.
pub struct OwnServer(Server);

impl OwnServer {
    /// A new, empty one, with settings such as `wal_level=replica` and variables of its
    /// environment. None where no PostgreSQL is installed.
    ///
    /// # Panics
    /// Where a tool is needed and missing.
    pub fn start(settings: &[&str], variables: &[(&str, &str)]) -> Option<Self> {
        let directory = own_directory()?;
        initialize(&directory);
        Some(Self(run(directory, settings, variables)))
    }

    /// A standby of this server, which must have been asked something.
    ///
    /// # Panics
    /// Where it cannot be made.
    pub fn standby(&self) -> Self {
        self.standby_in(own_directory().unwrap())
    }

    /// A standby of this server at the address of another one, which is ended.
    ///
    /// # Panics
    /// Where it cannot be made.
    pub fn standby_in_place_of(&self, former: &mut Self) -> Self {
        former.end();
        self.standby_in(made(former.0.directory.clone()))
    }

    fn standby_in(&self, directory: PathBuf) -> Self {
        does(
            as_user(&programs().unwrap().join("pg_basebackup"))
                .args(["--no-sync", "--checkpoint=fast", "--write-recovery-conf", "-U", "memhost"])
                .arg("-h")
                .arg(&self.0.directory)
                .arg("-D")
                .arg(directory.join("data")),
        );
        Self(run(directory, &[], &[]))
    }

    /// The directory of its socket, as it stands in an address.
    pub fn socket(&self) -> String {
        self.0.directory.display().to_string().replace('/', "%2F")
    }

    /// The address of one of its databases.
    pub fn address(&self, database: &str) -> String {
        format!("postgres://memhost@{}/{database}", self.socket())
    }

    /// Does something as its superuser.
    ///
    /// # Panics
    /// Where it fails.
    pub async fn sql(&self, sql: &str) {
        client(&self.address("postgres")).await.batch_execute(sql).await.unwrap();
    }

    /// Waits until something is so.
    ///
    /// # Panics
    /// Where it is not within half a minute.
    pub async fn until(&self, condition: &str) {
        let client = client(&self.address("postgres")).await;
        let sql = format!("SELECT coalesce(({condition}), false)");
        for _ in 0..600 {
            if client.query_one(&sql, &[]).await.unwrap().get(0) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("not within half a minute: {condition}");
    }

    /// Ends all its processes at once, as a failing machine does.
    pub fn kill(&self) {
        // Whoever is stopped first begins no other one.
        self.signal(Signal::STOP);
        self.signal(Signal::KILL);
    }

    /// Lets it say nothing any more, as a cut network does.
    pub fn fall_silent(&self) {
        self.signal(Signal::STOP);
    }

    /// Sends a signal to the first of its processes, and then to the others.
    fn signal(&self, signal: Signal) {
        let lines = std::fs::read_to_string(self.0.directory.join("data/postmaster.pid"));
        let Some(first) = lines.ok().and_then(|lines| lines.lines().next()?.parse::<i32>().ok())
        else {
            return;
        };
        // A process has its parent's id in the second field behind its name.
        let is_child = |id: &i32| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            rest.split_whitespace().nth(1).and_then(|parent| parent.parse().ok()) == Some(first)
        };
        let send = |id| Pid::from_raw(id).map(|id| kill_process(id, signal));
        // Before the children lose their parent.
        let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            entry.ok()?.file_name().to_str()?.parse::<i32>().ok().filter(is_child)
        });
        let children: Vec<i32> = all.collect();
        for id in std::iter::once(first).chain(children) {
            let _ = send(id);
        }
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.end();
    }
}

impl OwnServer {
    /// Ends it, and removes its directory.
    fn end(&mut self) {
        // Once its shell has its input closed, it removes the directory and ends.
        let Some(input) = self.0.process.stdin.take() else { return };
        self.kill();
        drop(input);
        let _ = self.0.process.wait();
    }
}

fn own_directory() -> Option<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    directory(&format!("-{}", NUMBER.fetch_add(1, Ordering::Relaxed)))
}
