//! Partitions keep records apart in every call.

use memhost_sdk::types::*;
use memhost_sdk::{Provider, testing};

use super::Home;

type Set = fn(&mut Scope, Option<String>);

const FIELDS: [(&str, Set); 3] = [
    ("agent", |scope, value| scope.agent_id = value),
    ("subject", |scope, value| scope.subject_id = value),
    ("namespace", |scope, value| scope.namespace = value),
];

fn scoped(set: Set, value: Option<&str>) -> Scope {
    let mut scope = Scope::company("company");
    set(&mut scope, value.map(str::to_owned));
    scope
}

fn write(id: &str, text: &str) -> RecordWrite {
    RecordWrite { id: Some(id.to_owned()), text: text.to_owned(), ..RecordWrite::default() }
}

/// What each call says of the record `id` in a scope: found by query, list, get.
fn sees(home: &mut Home, scope: &Scope) -> [bool; 3] {
    let query = QueryRequest { scope: scope.clone(), ..testing::query("zebra") };
    let list = ListRequest { scope: scope.clone(), ..testing::list(None, 100) };
    [
        home.provider.query(query).unwrap().snippets.iter().any(|snippet| snippet.id == "id"),
        home.provider.list_records(list).unwrap().items.iter().any(|snippet| snippet.id == "id"),
        home.provider.get_record("id".to_owned(), scope.clone()).unwrap().snippet.is_some(),
    ]
}

#[test]
fn a_record_is_not_seen_from_another_partition() {
    for (name, set) in FIELDS {
        let mut home = Home::new();
        home.write("op", vec![write("id", "a zebra")], scoped(set, Some("one")));
        for restart in [false, true] {
            if restart {
                home.restart();
            }
            assert_eq!(sees(&mut home, &scoped(set, Some("one"))), [true; 3], "{name}");
            assert_eq!(sees(&mut home, &scoped(set, None)), [true; 3], "{name}");
            assert_eq!(sees(&mut home, &scoped(set, Some("two"))), [false; 3], "{name}");
        }
        let foreign = scoped(set, Some("two"));
        let forgotten = home
            .provider
            .forget(testing::forget(vec!["id".to_owned()], foreign.clone()))
            .unwrap()
            .outcomes;
        assert_eq!(forgotten[0].effect, ForgetEffect::NotFound, "{name}");
        let overwrite = UpsertRequest {
            scope: foreign,
            records: vec![write("new", "x"), write("id", "taken")],
            ..testing::upsert("op2", &[])
        };
        let refused = home.provider.upsert_records(overwrite).unwrap_err();
        assert!(
            matches!(
                &refused,
                Error::InvalidRequest(
                    InvalidRequest { field: Some(field), .. }
                ) if field == "records.1.id",
            ),
            "{refused:?}"
        );
        assert_eq!(home.files().len(), 1, "none of the call's records is written");
        assert_eq!(sees(&mut home, &scoped(set, Some("one"))), [true; 3], "{name}");
    }
}

#[test]
fn a_record_without_the_field_is_visible_to_all() {
    for (_, set) in FIELDS {
        let mut home = Home::new();
        home.write("op", vec![write("id", "a zebra")], scoped(set, None));
        assert_eq!(sees(&mut home, &scoped(set, Some("any"))), [true; 3]);
    }
}

#[test]
fn a_partition_changed_by_hand_applies_at_once() {
    let mut home = Home::new();
    home.write("op", vec![write("id", "a zebra")], scoped(FIELDS[1].1, Some("one")));
    let file = home.files().remove(0);
    let content = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, content.replace(r#""subjectId":"one""#, r#""subjectId":"two!""#))
        .unwrap();
    assert_eq!(sees(&mut home, &scoped(FIELDS[1].1, Some("one"))), [false; 3]);
    assert_eq!(sees(&mut home, &scoped(FIELDS[1].1, Some("two!"))), [true; 3]);
}

#[test]
fn neighbours_in_another_partition_stay_there() {
    let mut home = Home::new();
    let session = |agent: &str| Scope {
        agent_id: Some(agent.to_owned()),
        session_key: Some("s".to_owned()),
        ..Scope::company("company")
    };
    home.write("a", vec![write("question", "what of the zebra")], session("one"));
    home.write("b", vec![write("answer", "it is hidden")], session("two"));
    let query = QueryRequest { scope: session("one"), ..testing::query("zebra") };
    let found = home.provider.query(query).unwrap().snippets;
    assert_eq!(found.iter().map(|snippet| snippet.id.as_str()).collect::<Vec<_>>(), ["question"]);
}
