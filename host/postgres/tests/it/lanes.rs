//! Lanes: what waits in them, what they give up, and whom they hold up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use memhost_postgres::{PostgresOptions, PostgresStore};
use memhost_store::suite::{company, put, row, size};
use memhost_store::{
    Change, Expected, Maintenance, OperationLog, Partitions, StoreError, Table, TableWrite, Tables,
    Transacted, company_key, next_sequence,
};
use memhost_types::{OperationFilter, Outcome};
use tokio::task::JoinSet;

use crate::proxy::{Proxy, Trouble};
use crate::server;
use crate::steps::{attack, done, hold_up, op, opened, summed, wait_for_locks, wrote};

// Random bytes, which the index cannot compress.
attack!(a_long_key_takes_the_writes_of_no_other_company, address, {
    let store = opened(&address, 1).await;
    let innocent = op(&store, "innocent", Outcome::Succeeded).await;
    let mut random = Vec::new();
    while random.len() < 4_000 {
        random.extend_from_slice(uuid_bytes(random.len()).as_slice());
    }
    drop(store.get(Table::Events, &company_key(&company("hostile"), b"a")).await.unwrap());
    done(&store, &[row("hostile", Table::Events, b"a", Some(b"1"))]).await;
    let gate = hold_up(&store, &address, "gate").await;
    let hostile = store.transact(&[row("hostile", Table::Events, &random, Some(b"1"))]).await;
    let innocent = store.write_operation(Arc::new(innocent), Vec::new());
    gate.batch_execute("COMMIT").await.unwrap();
    let hostile = match hostile {
        Ok(Transacted::Done(commit)) => commit.await,
        _ => Ok(()),
    };
    innocent.await.unwrap();
    hostile.unwrap();
});

fn uuid_bytes(seed: usize) -> Vec<u8> {
    let mut state = seed as u64 ^ 0x9e37_79b9_7f4a_7c15;
    (0..64)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

attack!(a_slow_read_of_one_company_does_not_hold_up_the_writes_of_others, address, {
    let store = opened(&address, 1).await;
    let mut storages = Vec::new();
    for name in ["slow", "other"] {
        wrote(&store, name).await;
        let partition = company_key(&company(name), b"aaaaaaaaaaaaaaaa");
        storages.push(store.binding_storage(&partition, size(1_000, 10)).await.unwrap());
    }
    let client = server::client(&address).await;
    let watching = server::client(&address).await;
    client.batch_execute("BEGIN; LOCK TABLE operations IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let reading = tokio::spawn({
        let store = store.clone();
        async move {
            let filter = OperationFilter { keeps_text: true, ..OperationFilter::default() };
            store.operations(&company("slow"), &filter, None, 10).await
        }
    });
    wait_for_locks(&watching, 1).await;
    storages[0].apply(vec![put(b"k", b"v")]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    storages[1].apply(vec![put(b"k", b"v")]).await.unwrap();
    let sql = "SELECT count(*) FROM entries WHERE kind = 100";
    let mut count = 0;
    for _ in 0..300 {
        count = watching.query_one(sql, &[]).await.unwrap().get::<_, i64>(0);
        if count == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    client.batch_execute("COMMIT").await.unwrap();
    reading.await.unwrap().unwrap();
    assert_eq!(count, 2, "the other company's write waited for the reader");
});

// A committed row leaves memory with the readers that began before its commit, and whoever compares
// it may be asking the database for other rows then.
attack!(a_row_that_leaves_memory_while_it_is_compared_is_not_missed, address, {
    let store = opened(&address, 1).await;
    wrote(&store, "acme").await;
    let partition = company_key(&company("acme"), b"aaaaaaaaaaaaaaaa");
    let storage = store.binding_storage(&partition, size(1_000, 10)).await.unwrap();
    let (early, late) = (server::client(&address).await, server::client(&address).await);
    let watching = server::client(&address).await;
    early.batch_execute("BEGIN; LOCK TABLE operations IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let reading = tokio::spawn({
        let store = store.clone();
        async move {
            let filter = OperationFilter { keeps_text: true, ..OperationFilter::default() };
            store.operations(&company("acme"), &filter, None, 10).await
        }
    });
    wait_for_locks(&watching, 1).await;
    storage.apply(vec![put(b"k", b"v")]).await.unwrap();
    let sql = "SELECT 1 FROM entries WHERE kind = 100";
    while watching.query(sql, &[]).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    late.batch_execute("BEGIN; LOCK TABLE entries IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let swapping =
        tokio::spawn(async move { storage.compare_and_swap(b"k", None, Some(b"w")).await });
    wait_for_locks(&watching, 2).await;
    early.batch_execute("COMMIT").await.unwrap();
    reading.await.unwrap().unwrap();
    late.batch_execute("COMMIT").await.unwrap();
    assert!(!swapping.await.unwrap().unwrap(), "it was compared with nothing");
});

attack!(what_cannot_be_written_within_ten_seconds_is_given_up, address, {
    let store = opened(&address, 1).await;
    let innocent = op(&store, "innocent", Outcome::Succeeded).await;
    let gate = hold_up(&store, &address, "gate").await;
    let written = store.write_operation(Arc::new(innocent), Vec::new());
    let ended = tokio::time::timeout(Duration::from_secs(25), written).await;
    gate.batch_execute("COMMIT").await.unwrap();
    assert!(ended.is_ok(), "it is neither written nor given up after 25 seconds");
});

attack!(a_row_beside_an_operation_is_not_overwritten_by_an_earlier_one, address, {
    let store = opened(&address, 4).await;
    // Companies 1 and 2 have different lanes.
    for name in ["one", "two"] {
        done(&store, &[row(name, Table::Events, b"a", Some(b"0"))]).await;
    }
    let key = |text: &str| Change {
        table: Table::Bindings,
        key: text.as_bytes().to_vec(),
        expected: Expected::Anything,
        new: Some(b"old".to_vec()),
    };
    let made = op(&store, "one", Outcome::Succeeded).await;
    let gate = hold_up(&store, &address, "two").await;
    let transacted =
        store.transact(&[key("host"), row("two", Table::Events, b"a", Some(b"1"))]).await.unwrap();
    let Transacted::Done(older) = transacted else { panic!() };
    let beside = TableWrite::new(Table::Bindings, b"host".to_vec(), Some(b"new".to_vec()));
    let newer = store.write_operation(Arc::new(made), vec![beside]);
    // It cannot follow the row that waits in another lane, so it is refused as a whole.
    assert!(matches!(newer.await, Err(StoreError::Corrupt { .. })));
    gate.batch_execute("COMMIT").await.unwrap();
    older.await.unwrap();
    let found = store.get(Table::Bindings, b"host").await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&found), "old");
});

attack!(one_connection_for_reading_is_enough, address, {
    let options = PostgresOptions { address, lanes: 1, readers: 1, ..Default::default() };
    let store = PostgresStore::open(options).await.unwrap();
    done(&store, &[row("acme", Table::Events, b"a", Some(b"0"))]).await;
    let mut tasks = Vec::new();
    let steps = Arc::new(AtomicUsize::new(0));
    for task in 0..8 {
        let (store, steps) = (store.clone(), Arc::clone(&steps));
        tasks.push(tokio::spawn(async move {
            for n in 0..50 {
                steps.fetch_add(1, Ordering::Relaxed);
                let change = row("acme", Table::Events, &[task, n], Some(b"1"));
                drop(store.transact(&[change]).await.unwrap());
                let key = company_key(&company("acme"), b"a");
                store.get(Table::Events, &key).await.unwrap();
                let name = format!("new-{task}-{n}");
                next_sequence(&store, &company(&name)).await.unwrap();
            }
        }));
    }
    let all = async {
        for task in tasks {
            task.await.unwrap();
        }
    };
    let count = || steps.load(Ordering::Relaxed);
    if tokio::time::timeout(Duration::from_secs(15), all).await.is_err() {
        let before = count();
        tokio::time::sleep(Duration::from_secs(5)).await;
        panic!("{before} of 400 steps were made in 15 seconds, and {} in 20", count());
    }
});

attack!(what_waits_is_bounded_in_bytes, address, {
    let store = opened(&address, 1).await;
    let storage =
        store.binding_storage(b"acme\0aaaaaaaaaaaaaaaa", size(1 << 40, 1 << 30)).await.unwrap();
    let gate = hold_up(&store, &address, "gate").await;
    let mut taken = 0;
    let writing = async {
        for n in 0..24_u8 {
            let writes = (0..3).map(|m| put(&[n, m], &vec![n; 4 << 20])).collect();
            storage.apply(writes).await.unwrap();
            taken += 12;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(5), writing).await;
    gate.batch_execute("COMMIT").await.unwrap();
    assert!(ended.is_err(), "{taken} MiB were taken while nothing was written");
});

attack!(a_commit_that_arrives_late_is_counted_once, address, {
    let proxy = Proxy::start(&address);
    let store = opened(&proxy.address, 1).await;
    wrote(&store, "acme").await;
    let made = op(&store, "acme", Outcome::Succeeded).await;
    proxy.set(Trouble::LateCommit);
    store.write_operation(Arc::new(made), Vec::new()).await.unwrap();
    assert_eq!(proxy.trouble(), Trouble::None, "no commit came");
    assert_eq!((summed(&store, "acme").await, store.verify().await.unwrap()), (2, vec![]));
});

attack!(a_server_that_does_not_answer_is_given_up_within_ten_seconds, address, {
    let proxy = Proxy::start(&address);
    let store = opened(&proxy.address, 1).await;
    wrote(&store, "acme").await;
    let made = op(&store, "acme", Outcome::Succeeded).await;
    proxy.set(Trouble::Silence);
    let written = store.write_operation(Arc::new(made), Vec::new());
    let ended = tokio::time::timeout(Duration::from_secs(25), written).await;
    let ended = ended.expect("it is neither written nor given up after 25 seconds");
    assert!(matches!(ended, Err(StoreError::Unavailable { .. })), "{ended:?}");
    proxy.set(Trouble::None);
    wrote(&store, "acme").await;
});

attack!(questions_to_a_server_that_does_not_answer_fail_within_ten_seconds, address, {
    let proxy = Proxy::start(&address);
    let store = opened(&proxy.address, 1).await;
    done(&store, &[row("acme", Table::Events, b"a", Some(b"1"))]).await;
    let key = row("acme", Table::Events, b"a", None).key;
    proxy.set(Trouble::Silence);
    // More than there are connections: some wait for one.
    let questions: JoinSet<_> = (0..20)
        .map(|_| {
            let (store, key) = (store.clone(), key.clone());
            async move { store.get(Table::Events, &key).await }
        })
        .collect();
    let answers = tokio::time::timeout(Duration::from_secs(25), questions.join_all()).await;
    for answer in answers.expect("some questions have no end") {
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
    }
    proxy.set(Trouble::None);
    assert_eq!(store.get(Table::Events, &key).await.unwrap().as_deref(), Some(b"1".as_slice()));
});

attack!(a_row_that_waits_in_another_lane_is_not_overtaken, address, {
    let store = opened(&address, 4).await;
    // Companies 1 and 2 have different lanes.
    for name in ["one", "two"] {
        done(&store, &[row(name, Table::Events, b"a", Some(b"0"))]).await;
    }
    let key = |new: &[u8]| Change {
        table: Table::Host,
        key: b"key".to_vec(),
        expected: Expected::Anything,
        new: Some(new.to_vec()),
    };
    let gate = hold_up(&store, &address, "two").await;
    let change = [key(b"older"), row("two", Table::Events, b"a", Some(b"1"))];
    let Transacted::Done(older) = store.transact(&change).await.unwrap() else { panic!() };
    let newer = tokio::spawn({
        let store = store.clone();
        let change = [key(b"newer"), row("one", Table::Events, b"a", Some(b"1"))];
        async move { done(&store, &change).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    gate.batch_execute("COMMIT").await.unwrap();
    older.await.unwrap();
    newer.await.unwrap();
    let found = store.get(Table::Host, b"key").await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&found), "newer");
});

attack!(a_row_that_the_database_refuses_takes_the_writes_of_no_other_company, address, {
    let store = opened(&address, 1).await;
    done(&store, &[row("hostile", Table::Events, b"a", Some(b"1"))]).await;
    let innocent = op(&store, "innocent", Outcome::Succeeded).await;
    let client = server::client(&address).await;
    let trigger = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
                   $$ BEGIN RAISE EXCEPTION 'not this one'; END $$; \
                   CREATE TRIGGER refuse BEFORE INSERT ON entries FOR EACH ROW \
                   WHEN (NEW.key = 'poison') EXECUTE FUNCTION refuse()";
    client.batch_execute(trigger).await.unwrap();
    let gate = hold_up(&store, &address, "gate").await;
    let hostile = row("hostile", Table::Events, b"poison", Some(b"1"));
    let Transacted::Done(hostile) = store.transact(&[hostile]).await.unwrap() else { panic!() };
    let innocent = store.write_operation(Arc::new(innocent), Vec::new());
    gate.batch_execute("COMMIT").await.unwrap();
    let refused = hostile.await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
    innocent.await.unwrap();
});
