//! Who sees what.

use memhost_sdk::types::*;
use memhost_sdk::{Correction, Profile, Provider, Transfer, testing};
use serde_json::{Value, json};

use super::{Home, refusal, texts};

fn write(home: &mut Home, scope: &Scope, kind: &str, text: &str) -> String {
    let operation = home.operation();
    let record = RecordWrite {
        text: text.to_owned(),
        metadata: Some(json!({"kind": kind}).to_string()),
        ..RecordWrite::default()
    };
    let request = UpsertRequest {
        scope: scope.clone(),
        records: vec![record],
        ..testing::upsert(&operation, &[])
    };
    home.provider.upsert_records(request).unwrap().records.remove(0)
}

fn seen(home: &mut Home, scope: &Scope) -> Vec<String> {
    let request = ListRequest { scope: scope.clone(), ..testing::list(None, 100) };
    let mut all = texts(home.provider.list_records(request).unwrap().items);
    all.sort();
    all
}

fn company() -> Scope {
    Scope::company("company")
}

fn of(agent: &str) -> Scope {
    Scope { agent_id: Some(agent.to_owned()), ..company() }
}

#[test]
fn the_contracts_partitions_hold_for_every_call() {
    let mut home = Home::new();
    let set = |field: fn(&mut Scope) -> &mut Option<String>, value: &str| {
        let mut scope = company();
        *field(&mut scope) = Some(value.to_owned());
        scope
    };
    let fields: [fn(&mut Scope) -> &mut Option<String>; 3] =
        [|scope| &mut scope.agent_id, |scope| &mut scope.subject_id, |scope| &mut scope.namespace];
    for field in fields {
        let (own, other) = (set(field, "one"), set(field, "two"));
        let id = write(&mut home, &own, "profile", "secret parking");
        assert_eq!(seen(&mut home, &own), ["secret parking"]);
        assert_eq!(seen(&mut home, &company()), ["secret parking"]);
        assert!(seen(&mut home, &other).is_empty());
        let query = QueryRequest { scope: other.clone(), ..testing::query("parking") };
        assert!(home.provider.query(query).unwrap().snippets.is_empty());
        assert_eq!(home.provider.get_record(id.clone(), other.clone()).unwrap().snippet, None);
        let record =
            RecordWrite { id: Some(id.clone()), text: "x".into(), ..RecordWrite::default() };
        let request = UpsertRequest {
            scope: other.clone(),
            records: vec![record],
            ..testing::upsert("op", &[])
        };
        assert_eq!(refusal(home.provider.upsert_records(request)).0, "records.0.id");
        let forgotten = home.provider.forget(testing::forget(vec![id.clone()], other)).unwrap();
        assert_eq!(forgotten.outcomes[0].effect, ForgetEffect::NotFound);
        home.provider.forget(testing::forget(vec![id], own)).unwrap();
    }
}

#[test]
fn project_memory_follows_the_project_and_user_memory_does_not() {
    let mut home = Home::new();
    let project = |name: &str| Scope { project_id: Some(name.to_owned()), ..of("ada") };
    for kind in memhost_taxonomy::Kind::ALL {
        write(&mut home, &project("p"), kind.name(), kind.name());
    }
    assert_eq!(seen(&mut home, &project("p")).len(), 11);
    assert_eq!(seen(&mut home, &of("ada")).len(), 11);
    assert_eq!(
        seen(&mut home, &project("q")),
        ["constraint", "fact", "goal", "hypothesis", "preference", "profile", "todo"]
    );
}

#[test]
fn the_same_words_of_two_agents_are_two_items() {
    let mut home = Home::new();
    for agent in ["ada", "bob"] {
        let request = CaptureRequest { scope: of(agent), ..home.residue("I prefer tea.") };
        let job = home.provider.capture(request).unwrap().jobs.remove(0).provider_job_id;
        home.run(&job);
    }
    assert_eq!(seen(&mut home, &company()).len(), 2);
    assert_eq!(seen(&mut home, &of("ada")).len(), 1);
}

fn project(name: &str) -> Scope {
    Scope { project_id: Some(name.to_owned()), ..company() }
}

/// A candidate as the document has it.
fn candidate(kind: &str, scope_type: &Value, scope_id: &Value) -> Value {
    json!({"kind": kind, "confidence": 0.9, "scope_type": scope_type, "scope_id": scope_id})
}

fn offer(home: &mut Home, scope: &Scope, metadata: &Value) -> Result<String, Error> {
    let operation = home.operation();
    let record = RecordWrite {
        text: "Answers are to be concise".to_owned(),
        metadata: Some(metadata.to_string()),
        ..RecordWrite::default()
    };
    let request = UpsertRequest {
        scope: scope.clone(),
        records: vec![record],
        ..testing::upsert(&operation, &[])
    };
    Ok(home.provider.upsert_records(request)?.records.remove(0))
}

#[test]
fn a_candidate_of_one_project_never_shows_in_another() {
    let mut home = Home::new();
    let id =
        offer(&mut home, &project("a"), &candidate("preference", &json!("project"), &json!("a")))
            .unwrap();
    assert_eq!(seen(&mut home, &project("a")).len(), 1);
    let other = project("b");
    assert!(seen(&mut home, &other).is_empty());
    let ask = |scope: &Scope, intent| QueryRequest {
        scope: scope.clone(),
        intent,
        ..testing::query("concise answers")
    };
    for intent in [Intent::Answer, Intent::AgentPreamble] {
        let found = home.provider.query(ask(&other, intent)).unwrap().snippets;
        assert!(found.is_empty(), "{found:?}");
    }
    assert_eq!(home.provider.get_record(id.clone(), other.clone()).unwrap().snippet, None);
    assert_eq!(home.provider.get_profile(other.clone()).unwrap().summary, None);
    let forgotten = home.provider.forget(testing::forget(vec![id.clone()], other.clone())).unwrap();
    assert_eq!(forgotten.outcomes[0].effect, ForgetEffect::NotFound);
    // It says so, also after a correction that does not, and after a move to another host.
    let patch = RecordWrite {
        text: "Answers are to be short".to_owned(),
        metadata: Some(json!({"kind": "preference"}).to_string()),
        ..RecordWrite::default()
    };
    let operation = home.operation();
    let correct = CorrectRequest {
        operation_id: operation,
        scope: project("a"),
        id: id.clone(),
        patch: Patch::Replacement(patch),
    };
    home.provider.correct(correct).unwrap();
    let lines = home.provider.export_records(company(), None).unwrap().lines;
    let mut home = Home::new();
    home.provider.import_records(testing::import(company(), lines)).unwrap();
    assert!(seen(&mut home, &other).is_empty());
    let shown = home.provider.get_record(id, project("a")).unwrap().snippet.unwrap();
    let shown = super::metadata(&shown);
    assert_eq!((&shown["scopeType"], &shown["scopeId"]), (&json!("project"), &json!("a")));
    assert_eq!(shown.get("scope_type"), None);
}

#[test]
fn a_candidate_names_no_scope_beside_that_of_the_request() {
    let mut home = Home::new();
    let (in_a, nowhere) = (project("a"), company());
    for (scope, of_type, id, field) in [
        (&in_a, json!("project"), json!("b"), "scope_id"),
        (&nowhere, json!("project"), json!("a"), "scope_id"),
        (&nowhere, json!("project"), json!(null), "scope_type"),
        (&in_a, json!("track"), json!("a"), "scope_type"),
        (&in_a, json!(7), json!("a"), "scope_type"),
        (&in_a, json!("project"), json!(7), "scope_id"),
        (&in_a, json!("global"), json!("a"), "scope_id"),
        (&in_a, json!(null), json!("b"), "scope_id"),
    ] {
        let refused = refusal(offer(&mut home, scope, &candidate("preference", &of_type, &id)));
        assert_eq!(refused.0, format!("records.0.metadata.{field}"), "{}", refused.1);
    }
    assert!(seen(&mut home, &company()).is_empty(), "none of them is there");
    // What is global is still no wider than its kind and its request.
    offer(&mut home, &in_a, &candidate("note", &json!("global"), &json!(null))).unwrap();
    assert!(seen(&mut home, &project("b")).is_empty());
    offer(&mut home, &in_a, &candidate("preference", &json!("global"), &json!(null))).unwrap();
    assert_eq!(seen(&mut home, &project("b")).len(), 1);
}

#[test]
fn what_is_extracted_of_material_of_one_project_stays_there() {
    let mut home = Home::new();
    for (name, metadata) in [("a", json!({"scopeType": "project"})), ("c", json!({}))] {
        let request = home.residue("I prefer short answers.");
        let request = CaptureRequest {
            scope: project(name),
            metadata: Some(metadata.to_string()),
            ..request
        };
        let job = home.provider.capture(request).unwrap().jobs.remove(0).provider_job_id;
        assert_eq!(home.run(&job).len(), 1);
        let there = seen(&mut home, &project("b")).len();
        assert_eq!(there, usize::from(name == "c"), "a preference is everywhere else");
    }
    assert_eq!(seen(&mut home, &project("a")).len(), 2, "both are there");
}
