//! Who sees what.

use memhost_sdk::types::*;
use memhost_sdk::{Provider, testing};
use serde_json::json;

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
