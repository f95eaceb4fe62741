//! Finding by words: whole records and passages, pairs of words, parts of names, and what records
//! get from those beside them.

use memhost_sdk::types::*;
use memhost_sdk::{Explain, Provider, testing};
use serde_json::json;

use super::Home;

/// A text in which each word is in another passage.
fn spread(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("{word} {} ", "and so it went for a good while ".repeat(8)))
        .collect()
}

/// The first record for a question, with the defaults and without one of the weights.
fn with_and_without(weight: &str, records: &[(&str, String)], question: &str) -> [String; 2] {
    [json!({}), json!({"ranking": {weight: 0}})].map(|config| {
        let mut home = Home::with(&config);
        records.iter().for_each(|(id, text)| home.put(id, text));
        home.provider.query(testing::query(question)).unwrap().snippets[0].id.clone()
    })
}

#[test]
fn a_record_may_have_the_words_of_a_question_in_different_passages() {
    let mut records = vec![
        ("whole", spread(&["kestrel", "harbour", "ledger", "walnut"])),
        ("part", spread(&["kestrel harbour", "nothing", "nobody", "never"])),
    ];
    for other in ["kestrel", "harbour", "ledger", "walnut"] {
        records.push((other, spread(&[other, "different", "matters", "besides"])));
    }
    assert_eq!(
        with_and_without("record", &records, "kestrel harbour ledger walnut"),
        ["whole", "part"]
    );
}

#[test]
fn words_that_stand_together_in_the_question_should_in_the_record() {
    // All of them have the same words; stop words between them do not count.
    let records = [
        (
            "table",
            "The glass is on the garden table, and the door of the red house is open.".to_owned(),
        ),
        (
            "door",
            "The house is open, and on the table the red one has glass of the garden door."
                .to_owned(),
        ),
    ];
    let [first, without] = with_and_without("pairs", &records, "the garden door of glass");
    let [other, also_without] =
        with_and_without("pairs", &records, "the garden table, the red house");
    assert_eq!((&*first, &*other), ("door", "table"));
    assert_eq!(without, also_without);
}

#[test]
fn names_are_found_by_their_parts() {
    let mut home = Home::new();
    home.keep(&["fn readUserName(id) { ask(id) }", "fn close(id) { drop(id) }"]);
    assert_eq!(home.ask("user name"), ["fn readUserName(id) { ask(id) }"]);
    assert_eq!(home.ask("readusername"), ["fn readUserName(id) { ask(id) }"]);
}

#[test]
fn the_beginning_of_a_text_counts_more() {
    let mut home = Home::new();
    let rest = "which was a long story with many persons in it who came and went and never said \
                much about anything";
    home.put("behind", &format!("{rest}, {rest} zebras"));
    home.put("first", &format!("zebras {rest}, {rest}"));
    let found = home.provider.query(testing::query("zebra")).unwrap().snippets;
    assert_eq!(found[0].id, "first");
}

/// A part of the score of each record.
fn parts(home: &mut Home, question: &str) -> impl Fn(&str, &str) -> f64 + use<> {
    let hits = home.provider.explain_query(testing::query(question)).unwrap().hits;
    move |id, part| {
        let hit =
            hits.iter().find(|hit| hit.id == id).unwrap_or_else(|| panic!("{id} is not found"));
        hit.contributions.iter().find(|one| one.name == part).map_or(0.0, |part| part.value)
    }
}

fn say(home: &mut Home, scope: Scope, issue: Option<&str>, id: &str, text: &str) {
    let source = SourceRef { issue_id: issue.map(str::to_owned), ..testing::source() };
    home.provider.capture(CaptureRequest { scope, source, ..testing::capture(id, text) }).unwrap();
}

#[test]
fn comments_of_an_issue_get_less_from_those_beside_them_than_turns() {
    let mut home = Home::new();
    for (name, issue) in [("turn", None), ("comment", Some("PAP-7"))] {
        let scope = || Scope {
            session_key: issue.is_none().then(|| "chat".to_owned()),
            ..testing::scope()
        };
        say(
            &mut home,
            scope(),
            issue,
            &format!("{name}-hit"),
            "What did the vet say about the rabbit?",
        );
        say(&mut home, scope(), issue, &format!("{name}-beside"), "It must rest.");
    }
    let of = parts(&mut home, "what did the vet say about the rabbit");
    for part in ["neighbours", "session"] {
        let (turn, comment) = (of("turn-beside", part), of("comment-beside", part));
        assert!((turn - 4.0 * comment).abs() < 1e-6 && comment > 0.0, "{part}: {turn} {comment}");
    }
}

#[test]
fn weak_hits_give_little_and_strong_ones_get_little() {
    let mut home = Home::new();
    for (session, hit) in
        [("strong", "The vet looked at the rabbit's ear"), ("weak", "The vet is closed")]
    {
        let scope = || Scope { session_key: Some(session.to_owned()), ..testing::scope() };
        say(&mut home, scope(), None, &format!("{session}-hit"), hit);
        say(&mut home, scope(), None, &format!("{session}-beside"), "It must rest.");
    }
    let scope = || Scope { session_key: Some("twice".to_owned()), ..testing::scope() };
    say(&mut home, scope(), None, "twice-1", "The vet looked at the rabbit's ear");
    say(&mut home, scope(), None, "twice-2", "The vet looked at the rabbit's ear");
    let question = "the rabbit's ear, the vet";
    let of = parts(&mut home, question);
    // By the square of their scores.
    let share = of("weak-hit", "words") / of("strong-hit", "words");
    let [strong, weak] = ["strong-beside", "weak-beside"].map(|id| of(id, "neighbours"));
    assert!(share < 0.7 && weak < 1.05 * share * share * strong, "{share} {strong} {weak}");
    assert!(
        of("twice-1", "neighbours") < 0.05 * strong,
        "{} {strong}",
        of("twice-1", "neighbours")
    );
}
