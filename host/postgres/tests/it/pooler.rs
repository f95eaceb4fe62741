//! A database behind a pooler in transaction mode: each transaction of a connection may run in
//! another session of the server.

use std::sync::Arc;

use memhost_postgres::testing::{POOLED, UNPREPARED};
use memhost_postgres::{Group, JoinOptions, Membership, OpenError, PostgresOptions, PostgresStore};
use memhost_store::suite::{company, row};
use memhost_store::{OperationLog, StoreError, Table, Tables, Transacted};
use memhost_types::{OperationFilter, Outcome};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::server;
use crate::steps::{attack, done, op, opened, wrote};

/// All sessions that the pooler has in a database, each in a transaction that goes on.
async fn all_sessions(pooled: &str) -> Vec<Client> {
    let mut sessions = Vec::new();
    for _ in 0..POOLED {
        let pooled = pooled.trim_end_matches(&format!("?{UNPREPARED}"));
        let (client, connection) =
            tokio_postgres::connect(pooled, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("BEGIN").await.unwrap();
        sessions.push(client);
    }
    sessions
}

/// Settings of a session, but for the name that PgBouncer gives it.
const SET_IN_SESSION: &str = "SELECT name || ' = ' || setting FROM pg_settings \
                              WHERE source = 'session' AND name <> 'application_name'";

async fn said(session: &Client, sql: &str) -> Vec<String> {
    let rows = session.simple_query(sql).await.unwrap();
    let text = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    rows.iter().filter_map(text).collect()
}

fn options() -> JoinOptions {
    JoinOptions {
        name: "a".to_owned(),
        peer_url: Some("http://a:1".to_owned()),
        version: "1".to_owned(),
        place: uuid::Uuid::new_v4(),
        token: "same".to_owned(),
        agreed: Vec::new(),
    }
}

attack!(a_host_that_prepares_statements_is_told_at_its_start_that_it_cannot, address, {
    let Some(pooled) = server::by_pooler(&address) else { return };
    let joined = Membership::join(&pooled, options()).await.map(|_| ());
    let error = joined.unwrap_err();
    assert!(matches!(error, OpenError::Pooled { .. }), "{error}");
    assert!(error.to_string().contains("prepared=false"), "{error}");
    // What that has left in a session of the pooler is in nobody's way.
    let store = opened(&format!("{pooled}?{UNPREPARED}"), 4).await;
    wrote(&store, "acme").await;
});

attack!(a_host_leaves_nothing_in_the_sessions_of_a_pooler, address, {
    let Some(pooled) = server::by_pooler(&address) else { return };
    let pooled = format!("{pooled}?{UNPREPARED}");
    let before: Vec<_> = {
        let sessions = all_sessions(&pooled).await;
        said(&sessions[0], SET_IN_SESSION).await
    };
    let host = Membership::join(&pooled, options()).await.unwrap();
    host.begin();
    let group = Group::of(&company("acme"));
    let term = host.take(group).await.unwrap().unwrap();
    let options = PostgresOptions {
        address: pooled.clone(),
        term: Some(term),
        database: Some(host.connect(&pooled, (4, 8)).await.unwrap()),
        ..PostgresOptions::default()
    };
    let store = PostgresStore::open(options).await.unwrap();
    let acme = company("acme");
    for _ in 0..20 {
        wrote(&store, "acme").await;
        let filter = OperationFilter { agent_id: Some("a".to_owned()), ..Default::default() };
        store.operations(&acme, &filter, None, 10).await.unwrap();
        store.scan(Table::Events, b"", None, 10).await.unwrap();
    }
    store.trim_operations(&acme, 10).await.unwrap();
    host.hosts().await.unwrap();
    host.give(term).await.unwrap();
    host.leave().await;
    drop(store);
    for session in all_sessions(&pooled).await {
        let left = said(&session, "SELECT statement FROM pg_prepared_statements").await;
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(said(&session, SET_IN_SESSION).await, before);
    }
});

attack!(commits_are_synchronous_where_somebody_else_has_changed_a_session, address, {
    let Some(pooled) = server::by_pooler(&address) else { return };
    let store = opened(&format!("{pooled}?{UNPREPARED}"), 4).await;
    let client = server::client(&address).await;
    let see = "CREATE TABLE seen (setting text); \
               CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; \
               END $$; \
               CREATE TRIGGER see BEFORE INSERT ON operations FOR EACH ROW EXECUTE FUNCTION see()";
    client.batch_execute(see).await.unwrap();
    wrote(&store, "acme").await;
    for session in all_sessions(&pooled).await {
        session.batch_execute("SET synchronous_commit = off; COMMIT").await.unwrap();
    }
    wrote(&store, "acme").await;
    let rows = client.query("SELECT setting FROM seen", &[]).await.unwrap();
    let seen: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(seen, ["on", "on"]);
});

// More connections want a session than there are: they take turns.
attack!(more_writers_and_readers_than_sessions_all_get_an_answer, address, {
    let Some(pooled) = server::by_pooler(&address) else { return };
    let store = opened(&format!("{pooled}?{UNPREPARED}"), 8).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..16 {
        let store = store.clone();
        tasks.spawn(async move {
            let name = format!("company-{number}");
            for _ in 0..20 {
                let made = wrote(&store, &name).await;
                let found = store.operation(&company(&name), made.id).await.unwrap();
                assert_eq!(found, Some(made));
            }
        });
    }
    tasks.join_all().await;
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
               AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let sessions: i64 = server::client(&address).await.query_one(sql, &[]).await.unwrap().get(0);
    assert!(usize::try_from(sessions).unwrap() <= POOLED, "{sessions} sessions");
});

// A session that forgets what was prepared is like another one.
attack!(a_lost_statement_is_told_with_what_to_do, address, {
    let store = opened(&server::direct(&address), 1).await;
    done(&store, &[row("acme", Table::Events, b"a", Some(b"1"))]).await;
    let made = op(&store, "acme", Outcome::Succeeded).await;
    let client = server::client(&address).await;
    let forget = "CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS \
                  $$ BEGIN EXECUTE 'DEALLOCATE ALL'; RETURN NEW; END $$; \
                  CREATE TRIGGER forget BEFORE INSERT ON entries FOR EACH ROW \
                  WHEN (NEW.key = 'forget') EXECUTE FUNCTION forget()";
    client.batch_execute(forget).await.unwrap();
    let forgets = row("acme", Table::Events, b"forget", Some(b"1"));
    let Transacted::Done(commit) = store.transact(&[forgets]).await.unwrap() else { panic!() };
    let _ = commit.await;
    let error = store.write_operation(Arc::new(made), Vec::new()).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("prepared=false"), "{error}");
});
