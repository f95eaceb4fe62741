//! How much is read for one page of the log.

use std::cell::Cell;

use super::super::query::{MOST_PASSED, MOST_PASSED_BYTES};
use super::named::{handle, naming};
use super::*;
use memhost_types::RecordHandle;

const MANY: usize = 2 * MOST_PASSED + 500;

fn filled(count: usize, handles: &[RecordHandle]) -> (TempDir, SledStore) {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let mut last = None;
    for _ in 0..count {
        let mut made = operation(&store, "acme", None, OperationKind::Query, Outcome::Succeeded);
        made.records = handles.to_vec();
        last = Some(store.write_operation(Arc::new(made), Vec::new()));
    }
    block_on(last.unwrap()).unwrap();
    indexed(&store);
    (directory, store)
}

/// How many numbers each page of a filter that matches nothing leaves behind.
fn left_behind(store: &SledStore, filter: &OperationFilter, count: usize) -> Vec<u64> {
    let (mut pages, mut before) = (Vec::new(), count as u64 + 1);
    loop {
        let page = block_on(store.operations(&company("acme"), filter, Some(before), 1)).unwrap();
        assert!(page.operations.is_empty());
        let next = page.next_before.unwrap_or(1);
        pages.push(before - next);
        before = next;
        if page.next_before.is_none() {
            return pages;
        }
    }
}

#[test]
fn a_filter_that_matches_nothing_reads_so_many_for_a_page_and_ends() {
    let (_directory, store) = filled(MANY, &[handle("p", "often")]);
    let most = MOST_PASSED as u64;
    assert_eq!(left_behind(&store, &naming("q", "often"), MANY), [most, most, 500]);
    assert_eq!(
        all(&store, "acme", &naming("p", "often"), 1_000).len(),
        MANY,
        "what matches is found as before"
    );
}

#[test]
fn long_operations_count_as_more() {
    let handles: Vec<RecordHandle> =
        (0..500).map(|number| handle("p", &format!("record {number}"))).collect();
    let (_directory, store) = filled(300, &handles);
    // About 256 bytes for each handle.
    let most = (MOST_PASSED_BYTES / (500 * 256)) as u64;
    let pages = left_behind(&store, &naming("q", "record 7"), 300);
    assert!(pages.len() == 3 && pages.iter().all(|read| *read <= most), "{pages:?}");
}

#[test]
fn a_page_by_time_is_whole_although_its_neighbours_are_read() {
    let (_directory, store) = filled(MANY, &[]);
    let at = |second: i64| Some(jiff::Timestamp::from_second(second).unwrap());
    let filter =
        OperationFilter { since: at(1_500), until: at(1_600), ..OperationFilter::default() };
    let page = block_on(store.operations(&company("acme"), &filter, None, 1_000)).unwrap();
    assert_eq!((page.operations.len(), page.next_before), (100, None));
}

#[test]
fn other_tasks_run_while_a_page_is_read() {
    let (_directory, store) = filled(1_000, &[handle("p", "often")]);
    let (acme, filter, turns, is_read) =
        (company("acme"), naming("q", "often"), Cell::new(0), Cell::new(false));
    let reading = async {
        store.operations(&acme, &filter, None, 1).await.unwrap();
        is_read.set(true);
    };
    let other = async {
        while !is_read.get() {
            turns.set(turns.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    block_on(async { tokio::join!(reading, other) });
    assert!(turns.get() > 5, "{} turns for another task", turns.get());
}
