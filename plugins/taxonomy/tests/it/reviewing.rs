//! What waits, and what a person makes of it.

use memhost_sdk::types::*;
use memhost_sdk::{Review, testing};
use serde_json::json;

use super::{Home, metadata, refusal, texts};

fn edit(text: &str, metadata: Option<serde_json::Value>) -> Decision {
    let metadata = metadata.map(|metadata| metadata.to_string());
    Decision::Edit(RecordWrite { text: text.to_owned(), metadata, ..RecordWrite::default() })
}

#[test]
fn waiting_items_appear_only_in_review() {
    let mut home = Home::new();
    let ids = home.learn("Maybe I prefer tea.");
    let waiting = home.pending();
    assert_eq!((waiting.len(), &waiting[0].id), (1, &ids[0]));
    assert_eq!(metadata(&waiting[0])["status"], "pending");
    assert_eq!(metadata(&waiting[0])["adjustments"], json!({"hedged": -0.25}));
    assert!(home.list().is_empty() && home.get(&ids[0]).is_none() && home.ask("tea").is_empty());
}

#[test]
fn an_approved_item_is_returned_and_keeps_the_rules_confidence() {
    let mut home = Home::new();
    let id = home.learn("Maybe I prefer tea.").remove(0);
    let answered = home.decide(&id, Decision::Approve).unwrap().unwrap();
    assert_eq!(home.get(&id).as_ref(), Some(&answered));
    let told = metadata(&answered);
    assert_eq!(
        (&told["confidence"], &told["ruleConfidence"], &told["status"]),
        (&json!(1.0), &json!(0.59), &json!("approved"))
    );
    assert_eq!(
        home.decide(&id, Decision::Approve).unwrap().unwrap(),
        answered,
        "the same decision answers the same"
    );
    let (field, message) = refusal(home.decide(&id, Decision::Reject));
    assert!(field == "decision" && message.contains("approved already"), "{message}");
}

#[test]
fn a_rejected_item_is_gone_and_does_not_come_back() {
    let mut home = Home::new();
    let id = home.learn("Maybe I prefer tea.").remove(0);
    assert_eq!(home.decide(&id, Decision::Reject).unwrap(), None);
    assert_eq!(home.decide(&id, Decision::Reject).unwrap(), None);
    refusal(home.decide(&id, Decision::Approve));
    assert!(home.learn("Maybe I prefer tea.").is_empty());
    home.restart();
    assert!(home.pending().is_empty() && home.list().is_empty() && home.get(&id).is_none());
}

#[test]
fn an_edited_item_is_returned_in_its_new_form() {
    let mut home = Home::new();
    let id = home.learn("Maybe I prefer tea.").remove(0);
    let decision = || edit("Prefers green tea", Some(json!({"kind": "preference", "cups": 2})));
    let answered = home.decide(&id, decision()).unwrap().unwrap();
    assert_eq!(
        (answered.text.as_str(), &metadata(&answered)["cups"]),
        ("Prefers green tea", &json!(2))
    );
    assert_eq!(home.decide(&id, decision()).unwrap().unwrap(), answered);
    refusal(home.decide(&id, edit("Prefers black tea", None)));
    home.learn("Maybe I prefer tea.");
    assert_eq!(
        texts(home.list()),
        ["Prefers green tea"],
        "said again, it stays what the person made of it"
    );
}

#[test]
fn approving_raw_personal_data_keeps_it_redacted() {
    let mut home = Home::with(json!({"workflow": "strict"}));
    let id = home
        .put("Ann is at ann@example.org", json!({"kind": "fact", "card": "4111 1111 1111 1111"}))
        .unwrap();
    let waiting = home.pending().remove(0);
    assert_eq!(waiting.text, "Ann is at ann@example.org", "the person sees what it is about");
    assert_eq!(
        (&metadata(&waiting)["piiRisk"], &metadata(&waiting)["approvedText"]),
        (&json!(2), &json!("Ann is at [EMAIL]"))
    );
    let approved = home.decide(&id, Decision::Approve).unwrap().unwrap();
    assert_eq!(approved.text, "Ann is at [EMAIL]");
    assert_eq!(
        (&metadata(&approved)["piiRisk"], &metadata(&approved)["card"]),
        (&json!(1), &json!("[CARD]"))
    );
}

#[test]
fn an_edit_that_still_holds_raw_personal_data_is_refused() {
    let mut home = Home::with(json!({"workflow": "strict"}));
    let id = home.put("Ann is at ann@example.org", json!({})).unwrap();
    let (field, message) = refusal(home.decide(&id, edit("Ann: bob@example.org", None)));
    assert!(field == "decision.text" && message.contains("[EMAIL]"), "{message}");
    refusal(home.decide(&id, edit("Ann", Some(json!({"mail": "ann@example.org"})))));
    assert_eq!(home.pending().len(), 1, "it still waits");
    assert_eq!(
        home.decide(&id, edit("Ann has an address", None)).unwrap().unwrap().text,
        "Ann has an address"
    );
}

#[test]
fn the_oldest_comes_first_page_by_page() {
    let mut home = Home::new();
    for n in 0..5 {
        memhost_taxonomy::fix(Some(format!("2026-03-04T10:00:0{}Z", 9 - n).parse().unwrap()));
        home.put(&format!("number {n}"), json!({"confidence": 0.1})).unwrap();
    }
    let (mut listed, mut cursor) = (Vec::new(), None);
    loop {
        let page = home.provider.list_pending(testing::scope(), cursor, 2).unwrap();
        listed.extend(texts(page.items));
        match page.continuation {
            Continuation::Next(next) => cursor = Some(next),
            _ => break,
        }
    }
    assert_eq!(listed, ["number 4", "number 3", "number 2", "number 1", "number 0"]);
    let bad = home.provider.list_pending(testing::scope(), Some("x".to_owned()), 2);
    assert_eq!(refusal(bad).0, "cursor");
}

#[test]
fn another_agent_cannot_decide() {
    let mut home = Home::new();
    let id = home.learn("Maybe I prefer tea.").remove(0);
    let scope = Scope { agent_id: Some("bob".to_owned()), ..testing::scope() };
    assert!(home.provider.list_pending(scope.clone(), None, 10).unwrap().items.is_empty());
    assert!(matches!(home.provider.decide(id, scope, Decision::Approve), Err(Error::NotFound(_))));
}

#[test]
fn candidates_below_the_minimum_are_dropped() {
    let mut home = Home::with(json!({"rejectBelow": 0.7}));
    assert!(home.learn("Maybe I prefer tea.").is_empty());
    assert!(home.pending().is_empty());
}

#[test]
fn the_documents_diagram_approves_from_0_60_and_the_strict_workflow_by_its_table() {
    let kinds = |home: &mut Home| {
        for (kind, confidence) in
            [("profile", 0.60), ("hypothesis", 0.59), ("todo", 0.58), ("note", 0.599)]
        {
            home.put(kind, json!({"kind": kind, "confidence": confidence})).unwrap();
        }
        texts(home.list())
    };
    let mut home = Home::new();
    assert_eq!(kinds(&mut home), ["profile"]);
    let band = |item: &Snippet| metadata(item)["confidenceBand"].clone();
    assert_eq!(band(&home.list()[0]), "moderate");
    assert!(home.pending().iter().all(|item| band(item) == "low"));
    let mut strict = Home::with(json!({"workflow": "strict"}));
    let mut found = kinds(&mut strict);
    found.sort();
    assert_eq!(found, ["hypothesis", "todo"]);
}
