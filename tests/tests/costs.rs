//! What one warm query costs that a test can count: allocations, and calls to the system of the
//! thread that runs it. It has a program of its own because it has an allocator of its own.

#![allow(unsafe_code, reason = "an allocator that counts")]
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::process::Command;

use memhost_core::Audit;
use memhost_tests::{TestHost, caller, needed, query};
use memhost_types::BindingLimits;

/// Allocations of one warm query of five snippets with audit relaxed; those of the caller's request
/// are not counted. 11 are the texts and the list of the guest's answer.
const MOST_ALLOCATIONS: u64 = 27;
/// Their bytes. Half is the state of the operation, a third the snippets.
const MOST_BYTES: u64 = 17_000;
/// Calls to the system of 1,000 of them. They wake the thread of the log, once for a group of
/// records: a slow machine makes more of those. A call of each query would be 1,000.
const MOST_CALLS: usize = 500;
const QUERIES: usize = 1_000;

thread_local! {
    static COUNTED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Counts what each thread allocates.
struct Counting;

fn count(bytes: usize) {
    // A thread that ends has no counter any more.
    let _ = COUNTED.try_with(|counted| {
        let (count, sum) = counted.get();
        counted.set((count + 1, sum + bytes as u64));
    });
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs warm queries on this thread, and answers the least that one of them allocated: a guest that
/// is in the middle of a tick of the clock allocates more.
async fn least_allocated(count: usize) -> (u64, u64) {
    let host = TestHost::with(&["echo"], |options| options.audit = Audit::Relaxed).await.unwrap();
    host.bind("acme", "echo", BindingLimits::default()).await.unwrap();
    let (asks, operations) = (caller(), host.service().operations());
    let mut least = (u64::MAX, u64::MAX);
    for number in 0..count + 20 {
        if number == 20 {
            let _ = rustix::process::getppid();
        }
        let request = query("acme", "hello");
        let before = COUNTED.get();
        let found = operations.query(&asks, request).await;
        let after = COUNTED.get();
        assert_eq!(found.unwrap().snippets.len(), 5);
        if number >= 20 {
            least = least.min((after.0 - before.0, after.1 - before.1));
        }
    }
    let _ = rustix::process::getppid();
    least
}

/// The calls to the system between two of `getppid`, which mark the queries: nothing else asks for
/// it.
fn calls_to_the_system() -> Option<Vec<String>> {
    needed(Command::new("strace").arg("-V").output())?;
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut traced = Command::new("strace");
    traced.arg("-o").arg(file.path()).arg(std::env::current_exe().unwrap()).env(TRACED, "1");
    assert!(traced.status().unwrap().success());
    let text = std::fs::read_to_string(file.path()).unwrap();
    let mut lines = text.lines().map(|line| line.split('(').next().unwrap_or_default().to_owned());
    assert!(lines.any(|call| call == "getppid"), "the queries begin");
    Some(lines.take_while(|call| call != "getppid").collect())
}

const TRACED: &str = "MEMHOST_COSTS_TRACED";

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if std::env::var_os(TRACED).is_some() {
        runtime.block_on(least_allocated(QUERIES));
        return;
    }
    let (allocations, bytes) = runtime.block_on(least_allocated(100));
    println!("a warm query: {allocations} allocations of {bytes} bytes");
    assert!(allocations <= MOST_ALLOCATIONS, "{allocations} allocations");
    assert!(bytes <= MOST_BYTES, "{bytes} bytes");
    if let Some(calls) = calls_to_the_system() {
        println!("{QUERIES} warm queries: {} calls to the system", calls.len());
        let mut names: Vec<_> = calls.clone();
        names.sort();
        names.dedup();
        assert!(calls.len() <= MOST_CALLS, "{} calls to the system: {names:?}", calls.len());
    }
}
