//! What each call does.

use memhost_openviking::OpenViking;
use memhost_sdk::testing::http::sent;
use memhost_sdk::testing::{self, capture, forget, list, query, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Browse, Correction, Erasure, Health, Provider};
use serde_json::json;

use super::{open, server};

fn agent(name: &str) -> Scope {
    Scope { agent_id: Some(name.to_owned()), ..Scope::company("company") }
}

#[test]
fn a_record_comes_back_as_it_was_written() {
    let server = server::start();
    let mut viking = open(json!({}));
    let record = RecordWrite {
        text: "  The gate is green\n".to_owned(),
        summary: Some("gate".to_owned()),
        metadata: Some(r#"{"topic":"gate","Owner":"Ada=Bob","n":1.50}"#.to_owned()),
        created_at: Some("2026-01-01T00:00:00Z".to_owned()),
        expires_at: Some("2030-01-01T12:00:00Z".to_owned()),
        ..RecordWrite::default()
    };
    let request = UpsertRequest {
        source: Some(testing::source()),
        records: vec![record.clone()],
        ..upsert("Op=1", &[])
    };
    let id = viking.upsert_records(request).unwrap().records.remove(0);
    assert_eq!(id, "memories/memhost/_4fp_3d1-0.md");
    assert_eq!(server.borrow().texts(), ["The gate is green"], "OpenViking sees the text alone");
    let found = viking.get_record(id.clone(), scope()).unwrap().snippet.unwrap();
    assert_eq!(
        (found.id.as_str(), &found.text, &found.summary),
        (id.as_str(), &record.text, &record.summary)
    );
    assert_eq!((&found.metadata, &found.created_at), (&record.metadata, &record.created_at));
    assert_eq!((found.source, found.scope), (Some(testing::source()), Some(scope())));
    assert_eq!(found.expires_at, record.expires_at);
    let hit = viking.query(query("gate")).unwrap().snippets.remove(0);
    assert_eq!((hit.id, hit.score), (id, Score::Similarity(0.9)));
    let filter =
        |json: &str| QueryRequest { metadata_filter: Some(json.to_owned()), ..query("gate") };
    assert_eq!(viking.query(filter(r#"{"Owner":"Ada=Bob"}"#)).unwrap().snippets.len(), 1);
    assert!(viking.query(filter(r#"{"Owner":"ada=bob"}"#)).unwrap().snippets.is_empty());
    assert_eq!(
        viking.list_records(list(None, 10)).unwrap().items[0].updated_at.as_deref(),
        Some("2026-11-23T17:34:04Z")
    );
    assert!(
        sent().iter().all(|sent| sent.header("x-api-key") == Some("{{secret:OPENVIKING_API_KEY}}"))
    );
}

#[test]
fn an_id_that_the_host_gave_is_one_file_however_long() {
    let server = server::start();
    let mut viking = open(json!({}));
    for (given, text) in
        [("Ä/../b".repeat(60), "one"), ("fact".to_owned(), "two"), ("Fact".to_owned(), "three")]
    {
        let record = |text: &str| RecordWrite {
            id: Some(given.clone()),
            text: text.to_owned(),
            ..RecordWrite::default()
        };
        for text in ["before", text] {
            let request = UpsertRequest { records: vec![record(text)], ..upsert(text, &[]) };
            assert_eq!(viking.upsert_records(request).unwrap().records, [given.as_str()]);
        }
        testing::lose_storage();
        let request = UpsertRequest { records: vec![record(text)], ..upsert("again", &[]) };
        viking.upsert_records(request).unwrap();
        assert_eq!(viking.get_record(given.clone(), scope()).unwrap().snippet.unwrap().text, text);
    }
    let mut texts: Vec<_> = server.borrow().texts().into_iter().map(str::to_owned).collect();
    texts.sort();
    assert_eq!(texts, ["one", "three", "two"]);
    assert!(server.borrow().files.keys().all(|path| path.split('/').all(|part| part.len() <= 203)));
}

#[test]
fn a_missing_record_is_none_and_no_id_leads_elsewhere() {
    let server = server::start();
    server.borrow_mut().put("sessions/s/messages.jsonl", "secret");
    let mut viking = open(json!({}));
    for id in [
        "nobody",
        "memories/a.md",
        "../sessions/s/messages.jsonl",
        "memories/../sessions/s/messages.md",
        "memories/.x.md",
    ] {
        assert!(viking.get_record(id.to_owned(), scope()).unwrap().snippet.is_none());
        let forgotten = viking.forget(forget(vec![id.to_owned()], scope())).unwrap();
        assert_eq!(forgotten.outcomes[0].effect, ForgetEffect::NotFound);
    }
    assert_eq!(server.borrow().texts(), ["secret"]);
    assert!(sent().iter().all(|sent| !sent.body["target_uri"].to_string().contains("sessions")));
}

#[test]
fn memories_of_others_are_found_and_a_file_without_its_tag_is_not() {
    let server = server::start();
    server.borrow_mut().put("memories/preferences/ada/tea.md", "Ada likes tea.");
    server.borrow_mut().put("memories/memhost/half.md", "Half a tea.");
    server.borrow_mut().put("memories/lost.md", "A tea that is not in the index.");
    server.borrow_mut().lost.push("memories/lost.md".to_owned());
    let mut viking = open(json!({}));
    let found = viking.query(query("tea")).unwrap().snippets;
    assert_eq!(
        found.iter().map(|found| found.id.as_str()).collect::<Vec<_>>(),
        ["memories/preferences/ada/tea.md"]
    );
    assert_eq!(viking.list_records(list(None, 10)).unwrap().items.len(), 1);
    let patch = Patch::Replacement(RecordWrite {
        text: "Ada likes coffee.".to_owned(),
        ..RecordWrite::default()
    });
    let request = CorrectRequest {
        operation_id: "op".to_owned(),
        id: found[0].id.clone(),
        scope: scope(),
        patch,
    };
    viking.correct(request).unwrap();
    assert_eq!(
        server.borrow().files["memories/preferences/ada/tea.md"].content,
        "Ada likes coffee."
    );
}

#[test]
fn partitions_are_separate() {
    server::start();
    let mut viking = open(json!({}));
    let id = viking
        .capture(CaptureRequest { scope: agent("a"), ..capture("op", "of a") })
        .unwrap()
        .records
        .remove(0);
    viking
        .capture(CaptureRequest { scope: Scope::company("company"), ..capture("op-2", "of all") })
        .unwrap();
    let count = |viking: &mut OpenViking, scope: Scope| {
        let found = viking
            .query(QueryRequest { scope: scope.clone(), ..query("of") })
            .unwrap()
            .snippets
            .len();
        let listed =
            viking.list_records(ListRequest { scope, ..list(None, 10) }).unwrap().items.len();
        (found, listed)
    };
    assert_eq!(count(&mut viking, agent("a")), (2, 2));
    assert_eq!(count(&mut viking, agent("b")), (1, 1));
    assert_eq!(count(&mut viking, Scope::company("company")), (2, 2));
    assert_eq!(count(&mut viking, Scope::company("other")), (0, 0));
    assert!(viking.get_record(id.clone(), agent("b")).unwrap().snippet.is_none());
    assert_eq!(
        viking.forget(forget(vec![id], agent("b"))).unwrap().outcomes[0].effect,
        ForgetEffect::NotFound
    );
}

#[test]
fn a_list_goes_on_where_it_was() {
    server::start();
    let mut viking = open(json!({}));
    for part in 0..13 {
        let texts: Vec<_> = (0..10).map(|n| format!("record {part} {n}")).collect();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        viking.upsert_records(upsert(&format!("op-{part:02}"), &texts)).unwrap();
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = viking.list_records(list(cursor, 30)).unwrap();
        seen.extend(page.items.into_iter().map(|item| item.id));
        match page.continuation {
            Continuation::Next(next) => cursor = Some(next),
            other => break assert_eq!(other, Continuation::End),
        }
    }
    assert_eq!(seen.len(), 130);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 130);
}

#[test]
fn the_tree_is_that_of_the_files() {
    let server = server::start();
    server.borrow_mut().put("memories/preferences/ada/tea.md", "Ada likes tea.");
    let mut viking = open(json!({}));
    let own = viking
        .capture(CaptureRequest { scope: agent("a"), ..capture("op", "of a\nline") })
        .unwrap()
        .records;
    let children = |viking: &mut OpenViking, path: &str, scope: Scope| {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = viking.list_children(path.to_owned(), scope.clone(), cursor, 1).unwrap();
            assert!(page.nodes.len() <= 1);
            all.extend(page.nodes);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return all;
            }
        }
    };
    let labels = |nodes: &[Node]| nodes.iter().map(|node| node.label.clone()).collect::<Vec<_>>();
    assert_eq!(labels(&children(&mut viking, "", agent("a"))), ["memories", "peers"]);
    assert_eq!(labels(&children(&mut viking, "memories", agent("a"))), ["memhost", "preferences"]);
    let nodes = children(&mut viking, "memories/memhost", agent("a"));
    assert_eq!(
        (labels(&nodes), nodes[0].record_id.as_ref(), nodes[0].has_children),
        (vec!["of a".to_owned()], own.first(), false)
    );
    assert!(children(&mut viking, "memories/memhost", agent("b")).is_empty());
    assert_eq!(
        labels(&children(&mut viking, "memories/preferences/ada", agent("b"))),
        ["Ada likes tea."]
    );
    assert!(children(&mut viking, "peers", agent("a")).is_empty());
    for path in ["nowhere", "memories/nowhere", "sessions", "memories/../sessions", "memories//"] {
        let gone = viking.list_children(path.to_owned(), scope(), None, 10).unwrap_err();
        assert!(matches!(gone, Error::NotFound(_)), "{path}: {gone:?}");
    }
}

#[test]
fn a_text_is_whole_where_openviking_could_not_read_it() {
    let server = server::start();
    let mut viking = open(json!({}));
    let id = viking.capture(capture("op", "The gate is green.")).unwrap().records.remove(0);
    server.borrow_mut().tells_less = true;
    assert_eq!(viking.get_record(id, scope()).unwrap().snippet.unwrap().text, "The gate is green.");
    assert_eq!(viking.query(query("gate")).unwrap().snippets[0].text, "The gate is green.");
}

#[test]
fn a_file_that_stays_is_not_told_as_forgotten() {
    let server = server::start();
    let mut viking = open(json!({}));
    let id = viking.capture(capture("op", "one")).unwrap().records.remove(0);
    server.borrow_mut().keeps_files = true;
    let error = viking.forget(forget(vec![id.clone()], scope())).unwrap_err();
    assert!(format!("{error:?}").contains("still there"), "{error:?}");
    // Nor by the next call, for which it is not in the index.
    viking.forget(forget(vec![id.clone()], scope())).unwrap_err();
    server.borrow_mut().keeps_files = false;
    assert_eq!(
        viking.forget(forget(vec![id], scope())).unwrap().outcomes[0].effect,
        ForgetEffect::Hard
    );
}

#[test]
fn forgetting_reads_back_and_a_company_is_forgotten_at_once() {
    let server = server::start();
    let mut viking = open(json!({}));
    let id = viking.capture(capture("op", "one")).unwrap().records.remove(0);
    viking.capture(capture("op-2", "two")).unwrap();
    let effect = |viking: &mut OpenViking| {
        viking.forget(forget(vec![id.clone()], scope())).unwrap().outcomes[0].effect
    };
    assert_eq!(effect(&mut viking), ForgetEffect::Hard);
    assert_eq!(effect(&mut viking), ForgetEffect::NotFound);
    server.borrow_mut().sessions.insert("memhost-op".to_owned(), Vec::new());
    let request = |scope: Scope| ForgetScopeRequest { operation_id: "op-3".to_owned(), scope };
    assert!(matches!(viking.forget_scope(request(agent("a"))), Err(Error::Unsupported(_))));
    assert_eq!(
        viking.forget_scope(request(Scope::company("company"))).unwrap().extent,
        Extent::Hard
    );
    assert!(server.borrow().files.is_empty() && server.borrow().sessions.is_empty());
    assert!(viking.list_records(list(None, 10)).unwrap().items.is_empty());
    assert_eq!(
        viking.check_health().unwrap().summary,
        "OpenViking answers at http://127.0.0.1:1933, user u"
    );
}
