//! Compaction of a store that is in use.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::*;
use crate::{Store, company_key};

const SECRET: &[u8] = b"the word is quetzalcoatl-5519";

fn put(store: &SledStore, key: &[u8], value: Option<&[u8]>) {
    let change = Change::always(
        Table::Reviews,
        company_key(&company("acme"), key),
        value.map(<[u8]>::to_vec),
    );
    assert!(block_on(crate::write(store, &[change])).unwrap());
}

fn rows(store: &SledStore) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (mut all, mut from) = (BTreeMap::new(), None);
    loop {
        let page = block_on(store.scan(Table::Reviews, b"", from.as_deref(), 1_000)).unwrap();
        all.extend(page.entries);
        match page.next {
            Some(next) => from = Some(next),
            None => return all,
        }
    }
}

/// The files below a directory that contain some bytes.
fn with_bytes(directory: &Path, wanted: &[u8]) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(with_bytes(&path, wanted)),
            path if std::fs::read(&path)
                .unwrap()
                .windows(wanted.len())
                .any(|window| window == wanted) =>
            {
                found.push(path);
            }
            _ => {}
        }
    }
    found
}

fn stores(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter(|name| name.to_lowercase().starts_with("store")).collect();
    names.sort();
    names
}

#[test]
fn what_was_removed_is_in_no_file_after_a_compaction_and_everything_else_is_there() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let storage = Blocking::open(&store, b"acme\0aaaaaaaaaaaaaaaa", size(1 << 30, 1_000_000));
    let long = [SECRET, &vec![b'x'; 600_000]].concat();
    for n in 0..200_u32 {
        put(&store, &n.to_be_bytes(), Some(&[SECRET, &n.to_be_bytes()].concat()));
        let made = operation(&store, "acme", Some("ada"), OperationKind::Query, Outcome::Succeeded);
        block_on(store.write_operation(Arc::new(made), Vec::new())).unwrap();
        let entry = StorageEntry { key: n.to_be_bytes().to_vec(), value: SECRET.to_vec() };
        storage.apply(vec![StorageWrite::Put(entry)]).unwrap();
    }
    storage
        .apply(vec![StorageWrite::Put(StorageEntry { key: b"long".to_vec(), value: long })])
        .unwrap();
    for n in 0..200_u32 {
        put(&store, &n.to_be_bytes(), (n % 2 == 0).then_some(b"harmless".as_slice()));
        storage.apply(vec![StorageWrite::Delete(n.to_be_bytes().to_vec())]).unwrap();
    }
    storage.apply(vec![StorageWrite::Delete(b"long".to_vec())]).unwrap();
    block_on(store.commit()).unwrap();
    assert!(!with_bytes(directory.path(), SECRET).is_empty(), "sled keeps what was removed");
    let before = rows(&store);
    for round in 1..=2 {
        let done = block_on(store.compact(Box::new(|| false))).unwrap().unwrap();
        assert!(done.bytes_after > 0);
        assert_eq!(with_bytes(directory.path(), SECRET), Vec::<std::path::PathBuf>::new());
        assert_eq!(stores(directory.path()), ["STORE".to_owned(), format!("store.{round}")]);
        assert_eq!(rows(&store), before);
        put(&store, b"later", Some(b"written after it"));
        put(&store, b"later", None);
    }
    let mine = OperationFilter { agent_id: Some("ada".to_owned()), ..OperationFilter::default() };
    assert_eq!(all(&store, "acme", &mine, 70).len(), 200);
    assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
    assert!(storage.scan(b"", None, 0).unwrap().entries.is_empty());
    storage
        .apply(vec![StorageWrite::Put(StorageEntry { key: b"k".to_vec(), value: b"v".to_vec() })])
        .unwrap();
    put(&store, b"last", Some(b"one"));
    let before = rows(&store);
    drop((storage, store));
    // What a compaction that was cut short has left.
    std::fs::create_dir(directory.path().join("store.9")).unwrap();
    let store = open(directory.path());
    assert_eq!(stores(directory.path()), ["store"]);
    assert_eq!(rows(&store), before);
    assert_eq!(all(&store, "acme", &mine, 70).len(), 200);
    let storage = Blocking::open(&store, b"acme\0aaaaaaaaaaaaaaaa", size(1 << 30, 1_000_000));
    assert_eq!(storage.get(b"k").unwrap().as_deref(), Some(b"v".as_slice()));
}

#[test]
fn what_is_written_during_a_compaction_is_there_afterwards() {
    let directory = TempDir::new().unwrap();
    let store = Arc::new(open(directory.path()));
    for n in 0..2_000_u32 {
        let change = Change::always(
            Table::Reviews,
            company_key(&company("acme"), &n.to_be_bytes()),
            Some(vec![7; 900]),
        );
        drop(block_on(store.transact(&[change])).unwrap());
    }
    let (ended, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let writers: Vec<_> = (0..4_u32)
        .map(|writer| {
            let (store, ended, count) =
                (Arc::clone(&store), Arc::clone(&ended), Arc::clone(&count));
            std::thread::spawn(move || {
                let mut model = BTreeMap::new();
                for n in 0_u32.. {
                    if ended.load(Ordering::Relaxed) {
                        break;
                    }
                    let key = company_key(
                        &company("acme"),
                        &[&(n % 700).to_be_bytes()[..], &[writer as u8]].concat(),
                    );
                    let value = (n % 5 != 0).then(|| n.to_be_bytes().to_vec());
                    let change = Change::always(Table::Reviews, key.clone(), value.clone());
                    assert!(block_on(crate::write(&*store, &[change])).unwrap());
                    model.insert(key, value);
                    let made = operation(
                        &*store,
                        "acme",
                        Some("bob"),
                        OperationKind::Capture,
                        Outcome::Succeeded,
                    );
                    block_on(store.write_operation(Arc::new(made), Vec::new())).unwrap();
                    count.fetch_add(1, Ordering::Relaxed);
                }
                model
            })
        })
        .collect();
    for _ in 0..3 {
        assert!(block_on(store.compact(Box::new(|| false))).unwrap().is_some());
    }
    ended.store(true, Ordering::Relaxed);
    let models: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
    let written = count.load(Ordering::Relaxed) as usize;
    let check = |store: &SledStore| {
        let found = rows(store);
        for (key, value) in models.iter().flatten() {
            assert_eq!(found.get(key), value.as_ref(), "{key:?}");
        }
        let mine =
            OperationFilter { agent_id: Some("bob".to_owned()), ..OperationFilter::default() };
        assert_eq!(all(store, "acme", &mine, 500).len(), written);
    };
    check(&store);
    drop(store);
    let store = open(directory.path());
    check(&store);
    assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
}

#[test]
fn a_compaction_that_is_stopped_changes_nothing() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    for n in 0..6_000_u32 {
        let change = Change::always(
            Table::Reviews,
            company_key(&company("acme"), &n.to_be_bytes()),
            Some(vec![7; 900]),
        );
        drop(block_on(store.transact(&[change])).unwrap());
    }
    assert!(block_on(store.compact(Box::new(|| true))).unwrap().is_none());
    assert_eq!(stores(directory.path()), ["store"]);
    assert_eq!(rows(&store).len(), 6_000);
}
