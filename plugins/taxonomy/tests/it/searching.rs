//! Queries, lists, and the summary.

use memhost_sdk::types::*;
use memhost_sdk::{Explain, Profile, Provider, testing};
use serde_json::{Value, json};

use super::{Home, metadata, refusal};

fn filled() -> Home {
    let mut home = Home::new();
    for (kind, text) in [
        ("note", "The deploy script prints a warning"),
        ("constraint", "Never deploy on Fridays"),
        ("preference", "Prefers short answers"),
        ("profile", "Works as a data engineer"),
        ("hypothesis", "The deploy may fail on Mondays"),
        ("decision", "We chose Postgres"),
    ] {
        home.put(text, json!({"kind": kind})).unwrap();
    }
    home
}

#[test]
fn scores_decrease_and_are_the_product_of_their_parts() {
    let mut home = filled();
    let found = home.provider.query(testing::query("deploys")).unwrap().snippets;
    let kinds: Vec<_> = found.iter().map(|item| metadata(item)["kind"].clone()).collect();
    assert_eq!(kinds, ["constraint", "note", "hypothesis"]);
    let told = home.provider.explain_query(testing::query("deploys")).unwrap();
    for (hit, item) in told.hits.iter().zip(&found) {
        assert_eq!(hit.id, item.id);
        let product: f64 = hit.contributions.iter().map(|part| part.value).product();
        let Score::Rank(score) = item.score else { panic!("{:?}", item.score) };
        assert!((product - score).abs() < 1e-9 && (0.0..=1.0).contains(&score));
    }
    let query: Value = serde_json::from_str(&told.query).unwrap();
    assert_eq!(query["stems"], json!(["deploy"]));
}

#[test]
fn every_spelling_of_a_word_and_words_with_particles_are_found() {
    let mut home = Home::new();
    for (text, question) in [
        ("The office is in İstanbul", "istanbul"),
        ("Die Straße ist gesperrt", "STRASSE"),
        ("gal\u{327}a un maize", "gaļa"),
        ("사용자는 회의를 싫어한다", "회의"),
        ("ทีมงานประชุมทุกวันจันทร์", "ประชุม"),
        ("金曜日はデプロイしない", "金曜日"),
    ] {
        home.put(text, json!({"kind": "note"})).unwrap();
        let found = home.provider.query(testing::query(question)).unwrap().snippets;
        assert!(found.first().is_some_and(|first| first.text == text), "{question}: {found:?}");
    }
}

#[test]
fn without_a_question_a_preamble_has_rules_first() {
    let mut home = filled();
    let preamble =
        |top_k| QueryRequest { intent: Intent::AgentPreamble, top_k, ..testing::query("") };
    let found = home.provider.query(preamble(10)).unwrap().snippets;
    let kinds: Vec<_> = found.iter().map(|item| metadata(item)["kind"].clone()).collect();
    assert_eq!(kinds, ["constraint", "preference", "profile", "decision", "note", "hypothesis"]);
    assert_eq!(home.provider.query(preamble(2)).unwrap().snippets.len(), 2);
    for intent in [Intent::Answer, Intent::Browse] {
        assert!(
            home.provider
                .query(QueryRequest { intent, ..preamble(10) })
                .unwrap()
                .snippets
                .is_empty()
        );
    }
}

#[test]
fn filters_apply_to_lists_and_queries() {
    let mut home = filled();
    home.put("with a room", json!({"kind": "note", "room": {"n": 4}})).unwrap();
    let mut count = |filter: Value| {
        let request =
            ListRequest { metadata_filter: Some(filter.to_string()), ..testing::list(None, 100) };
        home.provider.list_records(request).unwrap().items.len()
    };
    assert_eq!(count(json!({"kind": "note"})), 2);
    assert_eq!(count(json!({"room": {"n": 4}})), 1);
    assert_eq!(count(json!({"room": {}})), 0);
    assert_eq!(count(json!({"status": "pending"})), 0);
    let bad = QueryRequest { metadata_filter: Some("[".to_owned()), ..testing::query("x") };
    assert_eq!(refusal(home.provider.query(bad)).0, "metadataFilter");
}

#[test]
fn a_list_is_complete_while_others_write() {
    let mut home = filled();
    let before: Vec<String> = home.list().into_iter().map(|item| item.id).collect();
    let (mut listed, mut cursor) = (Vec::new(), None);
    loop {
        let page = home.provider.list_records(testing::list(cursor, 2)).unwrap();
        listed.extend(page.items.into_iter().map(|item| item.id));
        home.put("something else", json!({})).unwrap();
        match page.continuation {
            Continuation::Next(next) => cursor = Some(next),
            _ => break,
        }
    }
    assert!(before.iter().all(|id| listed.iter().filter(|other| *other == id).count() == 1));
    assert_eq!(
        refusal(home.provider.list_records(testing::list(Some("x".to_owned()), 2))).0,
        "cursor"
    );
}

#[test]
fn the_summary_has_rules_preferences_and_profile() {
    let mut home = Home::new();
    assert_eq!(home.provider.get_profile(testing::scope()).unwrap().summary, None);
    home = filled();
    home.put("Prefers\nvery   long answers!", json!({"kind": "preference", "confidence": 0.1}))
        .unwrap();
    assert_eq!(
        home.provider.get_profile(testing::scope()).unwrap().summary.unwrap(),
        "Constraints: Never deploy on Fridays\nPreferences: Prefers short answers\nProfile: Works \
         as a data engineer"
    );
}
