//! Erasing a company beside others.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ThreadId};
use std::time::Instant;

use parking_lot::Mutex;

use super::*;
use crate::{DiskSeam, DiskStep, company_key};

/// Stops a thread at one of its writes, says so, and waits until it may go on.
struct Stop {
    thread: Box<dyn Fn() -> bool + Send + Sync>,
    writes_left: Mutex<usize>,
    reached: Mutex<Sender<()>>,
    go_on: Mutex<Receiver<()>>,
}

impl DiskSeam for Stop {
    fn step(&self, step: DiskStep) -> io::Result<()> {
        if matches!(step, DiskStep::Write) && (self.thread)() {
            let mut left = self.writes_left.lock();
            *left = left.wrapping_sub(1);
            if *left == 0 {
                self.reached.lock().send(()).unwrap();
                self.go_on.lock().recv().unwrap();
            }
        }
        Ok(())
    }
}

/// A store that stops such a thread at its write of this number; how to know of it, and how to let
/// it go on.
fn stopping(
    directory: &TempDir,
    number: usize,
    thread: impl Fn() -> bool + Send + Sync + 'static,
) -> (SledStore, Receiver<()>, Sender<()>) {
    let (reached, is_reached) = channel();
    let (go_on, may_go_on) = channel();
    let (reached, go) = (Mutex::new(reached), Mutex::new(may_go_on));
    let stop =
        Stop { thread: Box::new(thread), writes_left: Mutex::new(number), reached, go_on: go };
    let options = SledOptions { seam: Some(Arc::new(stop)), ..SledOptions::default() };
    (SledStore::open(directory.path(), options).unwrap(), is_reached, go_on)
}

fn write(store: &SledStore, name: &str) {
    let made = operation(store, name, None, OperationKind::Query, Outcome::Succeeded);
    block_on(store.write_operation(Arc::new(made), Vec::new())).unwrap();
}

/// What is left of a company anywhere.
fn left(store: &SledStore, name: &str) -> usize {
    let prefix = format!("{name}\0");
    store.trees.all().map(|(_, tree)| tree.scan_prefix(&prefix).count()).sum()
}

#[test]
fn others_write_while_a_large_company_is_erased() {
    let directory = TempDir::new().unwrap();
    let main: ThreadId = thread::current().id();
    let is_own = |name: Option<&str>| name.is_some_and(|name| name.starts_with("memhost"));
    let of_erasure = move || thread::current().id() != main && !is_own(thread::current().name());
    let (store, is_reached, go_on) = stopping(&directory, 2, of_erasure);
    for some in (0..5_000_u32).collect::<Vec<_>>().chunks(1_000) {
        let row = |number: &u32| {
            let key = company_key(&company("large"), &number.to_be_bytes());
            Change::always(Table::Events, key, Some(vec![7; 200]))
        };
        drop(block_on(store.transact(&some.iter().map(row).collect::<Vec<_>>())).unwrap());
    }
    thread::scope(|scope| {
        let erased = scope.spawn(|| block_on(store.erase_company(&company("large"))).unwrap());
        is_reached.recv().unwrap();
        // The erasure does not go on before this is on disk.
        write(&store, "small");
        go_on.send(()).unwrap();
        assert_eq!(erased.join().unwrap(), 5_000);
    });
    assert_eq!(
        (left(&store, "large"), all(&store, "small", &OperationFilter::default(), 9)),
        (0, vec![1])
    );
}

#[test]
fn what_is_being_indexed_leaves_nothing_of_an_erased_company() {
    let directory = TempDir::new().unwrap();
    // Sums, then chunks, then how far the index is: by then the operation is no longer known as one
    // that waits.
    let (store, is_reached, go_on) =
        stopping(&directory, 3, || thread::current().name() == Some("memhost-index"));
    write(&store, "acme");
    is_reached.recv().unwrap();
    thread::scope(|scope| {
        let erased = scope.spawn(|| block_on(store.erase_company(&company("acme"))).unwrap());
        // An erasure that does not wait for the index ends by then, and what the index writes next
        // stays.
        let until = Instant::now() + Duration::from_millis(300);
        while !erased.is_finished() && Instant::now() < until {
            thread::yield_now();
        }
        go_on.send(()).unwrap();
        assert!(erased.join().unwrap() > 0);
    });
    indexed(&store);
    assert_eq!(left(&store, "acme"), 0);
}

#[test]
fn a_company_with_an_operation_in_progress_is_erased_too() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    write(&store, "acme");
    // Its record never comes.
    store.take_sequence(&company("acme")).unwrap();
    assert!(block_on(store.erase_company(&company("acme"))).unwrap() > 0);
    assert_eq!(left(&store, "acme"), 0);
}
