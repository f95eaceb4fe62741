//! How long items live and how they age.

use memhost_sdk::types::*;
use memhost_sdk::{Explain, Provider, Transfer, testing};
use serde_json::json;

use super::{Home, metadata, texts};

fn at(time: &str) {
    memhost_taxonomy::fix(Some(time.parse().unwrap()));
}

#[test]
fn an_expired_todo_is_not_returned() {
    let mut home = Home::new();
    let ids = home.learn("I need to book a room by Friday.");
    let item = home.get(&ids[0]).unwrap();
    assert_eq!(
        metadata(&item)["expiresAt"],
        "2026-03-09T23:59:59Z",
        "Friday is the 6th, and three days of grace"
    );
    at("2026-03-09T23:00:00Z");
    assert_eq!(home.ask("room").len(), 1);
    at("2026-03-10T00:00:00Z");
    assert!(home.ask("room").is_empty() && home.list().is_empty() && home.get(&ids[0]).is_none());
    // Long behind it, it is gone for good: a later job cleans up.
    at("2026-06-01T00:00:00Z");
    home.learn("Note: nothing.");
    at("2026-03-05T00:00:00Z");
    assert!(home.get(&ids[0]).is_none());
}

#[test]
fn a_date_counts_from_when_it_was_said() {
    let mut home = Home::new();
    let mut request = home.residue("Remember to call Ann tomorrow.");
    request.hook = Some(HookContext {
        hook_kind: HookKind::ManualCapture,
        triggered_at: "2026-03-01T09:00:00Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    });
    let job = home.provider.capture(request).unwrap().jobs.remove(0).provider_job_id;
    let id = home.run(&job).remove(0);
    assert_eq!(metadata(&home.get(&id).unwrap())["expiresAt"], "2026-03-05T23:59:59Z");
}

#[test]
fn a_hypothesis_expires_unless_it_is_said_again() {
    let mut home = Home::new();
    home.learn("I suspect the sensor was miscalibrated.");
    at("2026-03-30T00:00:00Z");
    home.learn("I suspect the sensor was miscalibrated.");
    at("2026-04-20T00:00:00Z");
    assert_eq!(home.ask("sensor").len(), 1);
    at("2026-05-20T00:00:00Z");
    assert!(home.ask("sensor").is_empty());
    let mut lasting = Home::with(json!({"hypothesis": {"days": 0}}));
    lasting.learn("I suspect the sensor was miscalibrated.");
    at("2036-01-01T00:00:00Z");
    assert_eq!(lasting.ask("sensor").len(), 1);
}

#[test]
fn expires_at_ends_an_item() {
    let mut home = Home::new();
    home.put("a note on paper", json!({"expiresAt": "2026-03-05T00:00:00Z"})).unwrap();
    assert_eq!(home.ask("paper").len(), 1);
    at("2026-03-05T00:00:00Z");
    assert!(home.ask("paper").is_empty());
}

fn decay(home: &mut Home, question: &str) -> f64 {
    let told = home.provider.explain_query(testing::query(question)).unwrap();
    told.hits[0].contributions.iter().find(|part| part.name == "decay").unwrap().value
}

#[test]
fn a_fact_fades_and_a_use_counts_as_one() {
    let mut home = Home::new();
    home.put("The office has 40 desks", json!({"kind": "fact"})).unwrap();
    home.put("Always lock the office", json!({"kind": "constraint"})).unwrap();
    at("2026-05-03T10:00:00Z");
    assert!((decay(&mut home, "desks") - 0.5).abs() < 0.001, "sixty days");
    assert!((decay(&mut home, "desks") - 0.5).abs() < 0.001, "explaining is no use");
    home.ask("desks");
    assert!((decay(&mut home, "desks") - 1.0).abs() < 1e-9, "a use begins the half-life anew");
    at("2026-07-02T10:00:00Z");
    assert!(decay(&mut home, "desks") > 0.6, "and makes it longer");
    assert!((decay(&mut home, "lock") - 1.0).abs() < 1e-9, "rules do not fade");
}

#[test]
fn uses_are_written_with_the_next_write() {
    let mut home = Home::new();
    home.put("The office has 40 desks", json!({"kind": "fact"})).unwrap();
    at("2026-05-03T10:00:00Z");
    home.ask("desks");
    home.put("anything", json!({})).unwrap();
    home.restart();
    assert!((decay(&mut home, "desks") - 1.0).abs() < 1e-9);
    for _ in 0..3 {
        home.ask("desks");
    }
    // Some dozens of facts in use are written without any other write.
    for n in 0..40 {
        home.put(&format!("The shelf {n} holds 7 books"), json!({"kind": "fact"})).unwrap();
    }
    at("2026-07-02T10:00:00Z");
    home.provider.query(QueryRequest { top_k: 100, ..testing::query("shelf books") }).unwrap();
    home.restart();
    assert!((decay(&mut home, "shelf") - 1.0).abs() < 1e-9);
}

#[test]
fn a_hypothesis_ranks_after_a_fact() {
    let mut home = Home::new();
    home.put("The server is in Berlin", json!({"kind": "hypothesis"})).unwrap();
    home.put("The server is in Berlin", json!({"kind": "fact"})).unwrap();
    let found = home.provider.query(testing::query("server Berlin")).unwrap().snippets;
    let kinds: Vec<_> = found.iter().map(|item| metadata(item)["kind"].clone()).collect();
    assert_eq!(kinds, ["fact", "hypothesis"]);
    assert_eq!(texts(found).len(), 2);
}

#[test]
fn a_fact_ages_from_when_it_was_said() {
    let mut home = Home::new();
    let mut said = |text: &str, at: &str| {
        let mut request = home.residue(text);
        let triggered_at = at.to_owned();
        let hook_kind = HookKind::ManualCapture;
        request.hook = Some(HookContext {
            hook_kind,
            triggered_at,
            actor_agent_id: None,
            heartbeat_run_id: None,
        });
        let job = home.provider.capture(request).unwrap().jobs.remove(0).provider_job_id;
        home.run(&job).remove(0)
    };
    let old = said("The grant deadline is on 14 March.", "2025-12-04T10:00:00Z");
    let new = said("The visa deadline is on 14 March.", "2026-03-04T09:00:00Z");
    home.restart();
    assert_eq!(metadata(&home.get(&old).unwrap())["triggeredAt"], "2025-12-04T10:00:00Z");
    let told = home.provider.explain_query(testing::query("deadline")).unwrap();
    let decay = |id: &str| {
        let hit = told.hits.iter().find(|hit| hit.id == id).unwrap();
        hit.contributions.iter().find(|part| part.name == "decay").unwrap().value
    };
    assert!(
        decay(&new) > 0.99 && (decay(&old) - 0.354).abs() < 0.01,
        "90 days are one and a half half-lives: {}",
        decay(&old)
    );
}

#[test]
fn an_old_fact_comes_before_a_worse_match() {
    let mut home = Home::new();
    home.put("The museum visit for Alice is at nine", json!({"kind": "fact"})).unwrap();
    at("2027-06-04T10:00:00Z");
    home.put("The museum is in Basel", json!({"kind": "fact"})).unwrap();
    home.put("Alice has a new bicycle", json!({"kind": "fact"})).unwrap();
    let found =
        home.provider.explain_query(testing::query("when is the museum visit for Alice?")).unwrap();
    let first = found.hits[0].contributions.iter().find(|part| part.name == "decay").unwrap().value;
    assert!((first - 0.3).abs() < 1e-9, "{first}");
    assert_eq!(
        home.ask("when is the museum visit for Alice?")[0],
        "The museum visit for Alice is at nine"
    );
}

#[test]
fn of_two_faded_facts_the_newer_one_is_first() {
    let mut home = Home::new();
    for (day, text) in
        [("2026-03-04", "The deadline is on Monday"), ("2026-03-05", "The deadline is on Friday")]
    {
        at(&format!("{day}T10:00:00Z"));
        home.put(text, json!({"kind": "fact"})).unwrap();
    }
    at("2028-03-05T10:00:00Z");
    assert_eq!(home.ask("deadline"), ["The deadline is on Friday", "The deadline is on Monday"]);
}

#[test]
fn uses_are_shown_and_exported() {
    let mut home = Home::new();
    let id = home.put("The deadline is on Friday", json!({"kind": "fact"})).unwrap();
    assert_eq!(metadata(&home.get(&id).unwrap())["useCount"], 0);
    home.ask("deadline");
    home.ask("deadline");
    let told = metadata(&home.get(&id).unwrap());
    assert_eq!(
        (&told["useCount"], &told["lastUsedAt"]),
        (&json!(2), &json!("2026-03-04T10:00:00Z"))
    );
    let lines = home.provider.export_records(testing::scope(), None).unwrap().lines;
    let again = |home: &mut Home| {
        let request = ImportRequest {
            operation_id: "import".into(),
            scope: testing::scope(),
            lines: lines.clone(),
        };
        let report = home.provider.import_records(request).unwrap();
        (report.imported, report.unchanged)
    };
    assert_eq!(again(&mut home), (0, 1), "its own export changes nothing");
    let mut other = Home::new();
    assert_eq!(again(&mut other), (1, 0));
    other.restart();
    assert_eq!(metadata(&other.get(&id).unwrap())["useCount"], 2);
    assert_eq!(again(&mut other), (0, 1));
}
