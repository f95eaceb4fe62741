//! What each call does.

use memhost_claude_mem::ClaudeMem;
use memhost_sdk::testing::http::sent;
use memhost_sdk::testing::{self, capture, forget, list, query, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Browse, Correction, Health, Provider};
use serde_json::json;

use super::{open, server};

fn agent(name: &str) -> Scope {
    Scope { agent_id: Some(name.to_owned()), ..Scope::company("company") }
}

fn text_of(mem: &mut ClaudeMem, id: &str) -> Option<String> {
    mem.get_record(id.to_owned(), scope()).unwrap().snippet.map(|found| found.text)
}

#[test]
fn a_record_comes_back_as_it_was_written() {
    let server = server::start();
    let mut mem = open(json!({}));
    let record = RecordWrite {
        text: "  The gate is green\n".to_owned(),
        summary: Some("gate".to_owned()),
        metadata: Some(r#"{"topic":"gate","n":1.50}"#.to_owned()),
        created_at: Some("2026-01-01T00:00:00Z".to_owned()),
        expires_at: Some("2030-01-01T12:00:00Z".to_owned()),
        ..RecordWrite::default()
    };
    let request = UpsertRequest {
        source: Some(testing::source()),
        records: vec![record.clone()],
        ..upsert("Op", &[])
    };
    let id = mem.upsert_records(request).unwrap().records.remove(0);
    assert_eq!((id.as_str(), server.borrow().texts()), ("1", vec!["The gate is green"]));
    let title = server.borrow().observations[&1]["title"].as_str().unwrap().to_owned();
    assert!(title.starts_with("gate [_4fp-0 "), "{title}");
    assert_eq!(server.borrow().observations[&1]["project"], "memhost-company");
    let found = mem.get_record(id.clone(), scope()).unwrap().snippet.unwrap();
    assert_eq!((&found.text, &found.summary), (&record.text, &record.summary));
    assert_eq!((&found.metadata, &found.created_at), (&record.metadata, &record.created_at));
    assert_eq!((found.source, found.scope), (Some(testing::source()), Some(scope())));
    assert_eq!(found.expires_at, record.expires_at);
    assert_eq!(found.updated_at.as_deref(), Some("2026-11-23T18:00:01.500Z"));
    let hit = mem.query(query("gate")).unwrap().snippets.remove(0);
    assert_eq!((hit.id, hit.score), (id, Score::None));
    assert_eq!(
        mem.check_health().unwrap().summary,
        "claude-mem 13.25.3 answers at http://127.0.0.1:37777"
    );
}

#[test]
fn each_word_of_a_question_is_looked_for_and_rare_ones_count_more() {
    server::start();
    let mut mem = open(json!({}));
    let texts: Vec<_> = (0..20)
        .map(|n| format!("The door {n} is shut"))
        .chain(["The gate is green".to_owned()])
        .collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    mem.upsert_records(upsert("op", &texts)).unwrap();
    let found = mem
        .query(QueryRequest { top_k: 2, ..query("Is the GATE shut? \"open\"") })
        .unwrap()
        .snippets;
    assert_eq!(found[0].text, "The gate is green");
    assert_eq!(found.len(), 2);
    let long = "gate ".repeat(4_000);
    assert_eq!(mem.query(query(&long)).unwrap().snippets.len(), 1);
    assert!(mem.query(query("?!")).unwrap().snippets.is_empty());
    let before = sent().len();
    open(json!({"semantic": true})).query(query("is the gate shut")).unwrap();
    assert_eq!(
        sent().len(),
        before + 1,
        "a worker that searches by meaning gets the whole question"
    );
    let recent = mem
        .query(QueryRequest { intent: Intent::AgentPreamble, top_k: 1, ..query("") })
        .unwrap()
        .snippets;
    assert_eq!(recent[0].text, "The gate is green");
}

#[test]
fn what_takes_the_place_of_a_record_keeps_its_id() {
    let server = server::start();
    let mut mem = open(json!({}));
    let own = mem.capture(capture("op", "one")).unwrap().records.remove(0);
    let given = RecordWrite {
        id: Some("fact".to_owned()),
        text: "two".to_owned(),
        ..RecordWrite::default()
    };
    mem.upsert_records(UpsertRequest { records: vec![given.clone()], ..upsert("op-2", &[]) })
        .unwrap();
    for (text, id) in
        [("three", &own), ("four", &own), ("four", &own), ("five", &"fact".to_owned())]
    {
        let patch =
            Patch::Replacement(RecordWrite { text: text.to_owned(), ..RecordWrite::default() });
        let request =
            CorrectRequest { operation_id: text.to_owned(), id: id.clone(), scope: scope(), patch };
        let corrected = mem.correct(request).unwrap();
        assert_eq!((&corrected.record_id, corrected.superseded), (id, None));
        assert_eq!(text_of(&mut mem, id).as_deref(), Some(text));
    }
    assert_eq!(server.borrow().texts(), ["four", "five"], "what was there before is deleted");
    let mut ids: Vec<_> =
        mem.list_records(list(None, 10)).unwrap().items.into_iter().map(|item| item.id).collect();
    ids.sort();
    assert_eq!(ids, ["1", "fact"]);
    // The same text with other metadata is another observation.
    let other =
        RecordWrite { metadata: Some(r#"{"n":1}"#.to_owned()), text: "five".to_owned(), ..given };
    mem.upsert_records(UpsertRequest { records: vec![other], ..upsert("op-3", &[]) }).unwrap();
    let found = mem.get_record("fact".to_owned(), scope()).unwrap().snippet.unwrap();
    assert_eq!((found.metadata.as_deref(), server.borrow().texts().len()), (Some(r#"{"n":1}"#), 2));
    let effects =
        mem.forget(forget(vec![own.clone(), "fact".to_owned(), own], scope())).unwrap().outcomes;
    let effects: Vec<_> = effects.into_iter().map(|outcome| outcome.effect).collect();
    assert_eq!(effects, [ForgetEffect::Hard, ForgetEffect::Hard, ForgetEffect::NotFound]);
    assert!(server.borrow().observations.is_empty());
}

#[test]
fn a_missing_record_is_none_and_another_project_is_not_touched() {
    let server = server::start();
    let other = server.borrow_mut().put("other", &json!({"narrative": "secret"})).to_string();
    let mut mem = open(json!({}));
    for id in ["nobody", "99", "0", "01", "-1", "1.0", "", &other] {
        assert!(text_of(&mut mem, id).is_none());
        let outcomes = mem.forget(forget(vec![id.to_owned()], scope())).unwrap().outcomes;
        assert_eq!(outcomes[0].effect, ForgetEffect::NotFound, "{id}");
    }
    assert!(mem.query(query("secret")).unwrap().snippets.is_empty());
    assert_eq!(server.borrow().texts(), ["secret"]);
    let mut named = open(json!({"project": "other"}));
    assert_eq!(named.query(query("secret")).unwrap().snippets[0].text, "secret");
}

#[test]
fn observations_of_others_are_records() {
    let server = server::start();
    let seen = json!({
        "title": "Gate", "narrative": "It is locked", "facts": "[\"a fact\",\"another\"]",
        "metadata": "{\"a\":1}",
    });
    server.borrow_mut().put("memhost-company", &seen);
    let mut mem = open(json!({}));
    let found = mem.list_records(list(None, 10)).unwrap().items.remove(0);
    assert_eq!(found.text, "Gate\n\nIt is locked\n\n- a fact\n- another");
    assert_eq!(
        (found.summary.as_deref(), found.metadata.as_deref()),
        (Some("Gate"), Some(r#"{"a":1}"#))
    );
    assert_eq!(found.created_at.as_deref(), Some("2026-11-23T18:00:01.500Z"));
}

#[test]
fn partitions_and_companies_are_separate() {
    server::start();
    let mut mem = open(json!({}));
    let id = mem
        .capture(CaptureRequest { scope: agent("a"), ..capture("op", "of a") })
        .unwrap()
        .records
        .remove(0);
    mem.capture(CaptureRequest { scope: Scope::company("company"), ..capture("op-2", "of all") })
        .unwrap();
    let count = |mem: &mut ClaudeMem, scope: Scope| {
        let found =
            mem.query(QueryRequest { scope: scope.clone(), ..query("of") }).unwrap().snippets.len();
        (found, mem.list_records(ListRequest { scope, ..list(None, 10) }).unwrap().items.len())
    };
    assert_eq!(count(&mut mem, agent("a")), (2, 2));
    assert_eq!(count(&mut mem, agent("b")), (1, 1));
    assert_eq!(count(&mut mem, Scope::company("company")), (2, 2));
    assert!(mem.get_record(id, agent("b")).unwrap().snippet.is_none());
    assert_eq!(
        count(&mut open(json!({})), Scope::company("other")),
        (0, 0),
        "another company has another project"
    );
}

#[test]
fn a_list_goes_on_while_others_write() {
    server::start();
    let mut mem = open(json!({}));
    for part in 0..25 {
        let texts: Vec<_> = (0..10).map(|n| format!("record {part} {n}")).collect();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        mem.upsert_records(upsert(&format!("op-{part}"), &texts)).unwrap();
    }
    let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = mem.list_records(list(cursor, 60)).unwrap();
        seen.extend(page.items.into_iter().map(|item| item.id.parse::<u64>().unwrap()));
        pages += 1;
        mem.capture(capture(&format!("late-{pages}"), "late")).unwrap();
        match page.continuation {
            Continuation::Next(next) => cursor = Some(next),
            other => break assert_eq!(other, Continuation::End),
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, (1..=250).collect::<Vec<_>>());
}

#[test]
fn the_tree_is_the_timeline() {
    let server = server::start();
    let mut mem = open(json!({}));
    for (n, name) in ["a", "b", "a"].into_iter().enumerate() {
        let request = capture(&format!("op-{n}"), &format!("text {n}\nmore"));
        mem.capture(CaptureRequest { scope: agent(name), ..request }).unwrap();
    }
    server.borrow_mut().put("other", &json!({"narrative": "secret"}));
    let children = |mem: &mut ClaudeMem, path: &str| {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = mem.list_children(path.to_owned(), agent("a"), cursor, 1).unwrap();
            assert!(page.nodes.len() <= 1);
            all.extend(page.nodes);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return all;
            }
        }
    };
    let paths = |nodes: Vec<Node>| {
        nodes.into_iter().map(|node| (node.path, node.label)).collect::<Vec<_>>()
    };
    let node = |path: &str, label: &str| (path.to_owned(), label.to_owned());
    assert_eq!(paths(children(&mut mem, "")), [node("3", "text 2"), node("1", "text 0")]);
    assert_eq!(paths(children(&mut mem, "3")), [node("3/1", "text 0")]);
    for gone in ["99", "2", "4", "nowhere", "3/1"] {
        let error = mem.list_children(gone.to_owned(), agent("a"), None, 10).unwrap_err();
        assert!(matches!(error, Error::NotFound(_)), "{gone}: {error:?}");
    }
}

#[test]
fn a_worker_that_is_too_old_is_not_healthy() {
    let server = server::start();
    let mut mem = open(json!({}));
    for version in ["13.24.22", "12.0.0", "13.24.23-rc.1"] {
        version.clone_into(&mut server.borrow_mut().version);
        let refused = format!("{:?}", mem.check_health().unwrap_err());
        for said in [version, "13.24.23 or later", "update claude-mem"] {
            assert!(refused.contains(said), "{version}: {refused}");
        }
    }
    for version in ["13.24.23", "13.30.0", "14.0.0"] {
        version.clone_into(&mut server.borrow_mut().version);
        assert!(mem.check_health().unwrap().summary.starts_with(&format!("claude-mem {version}")));
    }
}
