//! The ranking, and the index beside a reckoning without one.

use std::collections::{BTreeMap, HashMap};

use memhost_cross_agent::CrossAgent;
use memhost_sdk::types::*;
use memhost_sdk::{Explain, Provider, testing};
use proptest::prelude::*;
use serde_json::json;

use crate::{ask, ids, open, project, put, score, with};

fn ago(days: i64) -> String {
    let then = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * days);
    then.to_string()
}

#[test]
fn recency_and_confidence_are_factors() {
    let mut provider = open();
    let scope = project("p");
    put(&mut provider, &scope, "new", "gate", &json!({}));
    put(&mut provider, &scope, "old", "gate", &json!({"updatedAt": ago(30)}));
    put(&mut provider, &scope, "unsure", "gate", &json!({"confidence": 0.5}));
    put(&mut provider, &scope, "both", "gate", &json!({"confidence": 0, "createdAt": ago(36_500)}));
    let found = ask(&mut provider, &scope, "gate", None);
    let scores: HashMap<&str, f64> =
        found.iter().map(|hit| (hit.id.as_str(), score(hit))).collect();
    for (id, wanted) in
        [("new", 1.0), ("old", 1.0 - 0.3 * 0.5), ("unsure", 0.75), ("both", 0.7 * 0.5)]
    {
        assert!((scores[id] - wanted).abs() < 1e-3, "{id}: {} and not {wanted}", scores[id]);
    }
    assert_eq!(
        found.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>(),
        ["new", "old", "unsure", "both"]
    );
    let request = QueryRequest { scope, ..testing::query("gate") };
    let told = provider.explain_query(request).unwrap();
    for (hit, trace) in found.iter().zip(told.hits) {
        assert_eq!(trace.id, hit.id);
        let part =
            |name: &str| trace.contributions.iter().find(|part| part.name == name).unwrap().value;
        assert!(
            (part("relevance") * part("recency") * part("confidence") - score(hit)).abs() < 1e-3
        );
    }
}

#[test]
fn weights_and_half_life_come_from_the_configuration() {
    let config = json!({"halfLifeDays": 1, "weights": {"recency": 1, "confidence": 0}});
    let mut provider = with(&config);
    put(
        &mut provider,
        &project("p"),
        "old",
        "gate",
        &json!({"updatedAt": ago(2), "confidence": 0}),
    );
    let found = ask(&mut provider, &project("p"), "gate", None);
    assert!((score(&found[0]) - 0.25).abs() < 1e-3, "{}", score(&found[0]));
}

/// The ids that the start of a run gets.
fn preamble(provider: &mut CrossAgent, query: &str, top_k: u32) -> Vec<String> {
    let start = QueryRequest {
        scope: project("p"),
        intent: Intent::AgentPreamble,
        top_k,
        ..testing::query(query)
    };
    provider.query(start).unwrap().snippets.into_iter().map(|hit| hit.id).collect()
}

#[test]
fn the_start_of_a_run_gets_what_fits_and_then_the_newest() {
    let mut provider = open();
    put(&mut provider, &project("p"), "old", "gate", &json!({"updatedAt": ago(90)}));
    put(&mut provider, &project("p"), "new", "door", &json!({}));
    put(&mut provider, &project("q"), "other", "door", &json!({}));
    assert_eq!(preamble(&mut provider, "", 10), ["new", "old"]);
    assert_eq!(preamble(&mut provider, "nothing of it", 10), ["new", "old"]);
    assert_eq!(preamble(&mut provider, "gate", 10), ["old", "new"]);
    assert!(ids(&mut provider, &project("p"), "nothing of it").is_empty());
    assert_eq!(
        ids(&mut provider, &project("p"), "gate"),
        ["old"],
        "a question gets what fits only"
    );
}

#[test]
fn what_a_conversation_left_does_not_displace_the_rest_at_the_start_of_a_run() {
    let mut provider = open();
    put(
        &mut provider,
        &project("p"),
        "branch",
        "Release branch is called harbor",
        &json!({"updatedAt": ago(3)}),
    );
    put(
        &mut provider,
        &project("p"),
        "unsure",
        "Backups run at 02:00 UTC",
        &json!({"confidence": 0.1}),
    );
    put(&mut provider, &project("p"), "sure", "The shop is closed at noon", &json!({}));
    let inferred = |tags: &[&str]| json!({"tags": tags, "confidence": 0.7, "source": "inferred"});
    put(&mut provider, &project("p"), "redis", "We decided to use Redis", &inferred(&["decision"]));
    put(
        &mut provider,
        &project("p"),
        "small",
        "I prefer small pull requests",
        &inferred(&["preference"]),
    );
    let query = "shop main: decisions, preferences, conventions, open tasks";
    let all = preamble(&mut provider, query, 10);
    assert_eq!(all.len(), 5, "{all:?}");
    assert_eq!(all[3..], ["branch", "unsure"], "the newest and surest of the rest first");
    assert_eq!(preamble(&mut provider, query, 4), all[..4], "no more than are asked for");
    // The scores say the order, and what they are made of.
    let start = QueryRequest {
        scope: project("p"),
        intent: Intent::AgentPreamble,
        top_k: 10,
        ..testing::query(query)
    };
    let found = provider.query(start.clone()).unwrap().snippets;
    assert!(found.windows(2).all(|pair| score(&pair[0]) >= score(&pair[1])), "{found:?}");
    for (hit, trace) in found.iter().zip(provider.explain_query(start).unwrap().hits) {
        let part =
            |name: &str| trace.contributions.iter().find(|part| part.name == name).unwrap().value;
        assert!(
            (part("relevance") * part("recency") * part("confidence") - score(hit)).abs() < 1e-6,
            "{trace:?}"
        );
    }
}

#[test]
fn a_common_word_is_left_out_among_many_items_only() {
    let mut provider = open();
    for (number, text) in
        ["heron", "heron", "heron server", "heron", "gate", "door", "shed"].iter().enumerate()
    {
        put(&mut provider, &project("p"), &format!("a{number}"), text, &json!({}));
    }
    assert_eq!(ids(&mut provider, &project("p"), "heron").len(), 4);
    let found = ids(&mut provider, &project("p"), "heron server");
    assert_eq!((found.len(), found[0].as_str()), (4, "a2"));
    // Most of a hundred items have the word, so it tells nothing.
    for number in 0..93 {
        put(&mut provider, &project("p"), &format!("b{number}"), "heron", &json!({}));
    }
    assert_eq!(ids(&mut provider, &project("p"), "heron server"), ["a2"]);
    assert_eq!(
        ids(&mut provider, &project("p"), "heron").len(),
        10,
        "unless there is no other word"
    );
}

#[test]
fn may_in_a_question_is_not_the_month() {
    let mut provider = open();
    put(
        &mut provider,
        &project("p"),
        "holiday",
        "Global: company holiday on 1 May",
        &json!({"visibility": "global"}),
    );
    put(&mut provider, &project("p"), "frozen", "Deployments are frozen on Fridays", &json!({}));
    assert_eq!(ids(&mut provider, &project("p"), "when may I deploy?"), ["frozen"]);
    assert_eq!(ids(&mut provider, &project("p"), "what is on in May?"), ["holiday"]);
}

#[test]
fn other_forms_tags_and_names_are_found() {
    let mut provider = open();
    put(
        &mut provider,
        &project("p"),
        "a",
        "We deployed memory_saved and sessionId",
        &json!({"tags": ["release train"]}),
    );
    for query in ["deploying", "trains", "saved", "session", "memory_saved"] {
        assert_eq!(ids(&mut provider, &project("p"), query), ["a"], "{query}");
    }
    assert!(ids(&mut provider, &project("p"), "?!").is_empty());
}

#[test]
fn nothing_fits_nonsense_in_ordinary_words() {
    let mut provider = open();
    for (id, text) in [
        ("gate", "The gate is red, and it is locked at night"),
        ("lunch", "What we eat is in the kitchen"),
        ("deploy", "Deployments are frozen on Fridays"),
        ("style", "I prefer short answers"),
        ("db", "Postgres is the database of the shop"),
    ] {
        put(&mut provider, &project("p"), id, text, &json!({}));
    }
    for nonsense in [
        "what is the weather in the Bahamas",
        "zzqx the blorf of wibble",
        "What is it?",
        "Who isn't on it",
    ] {
        assert_eq!(ids(&mut provider, &project("p"), nonsense), Vec::<String>::new(), "{nonsense}");
        let start = QueryRequest {
            scope: project("p"),
            intent: Intent::AgentPreamble,
            ..testing::query(nonsense)
        };
        assert_eq!(
            provider.query(start).unwrap().snippets.len(),
            5,
            "a run starts with the newest: {nonsense}"
        );
    }
    assert_eq!(ids(&mut provider, &project("p"), "what is in the kitchen"), ["lunch"]);
    // Another language has no list, so a word counts there.
    let mut german = with(&json!({"language": "german"}));
    put(&mut german, &project("p"), "was", "Er was hier", &json!({}));
    put(&mut german, &project("p"), "tee", "Tee", &json!({}));
    assert_eq!(ids(&mut german, &project("p"), "was"), ["was"]);
}

#[test]
fn a_score_says_how_much_of_the_question_is_there() {
    let mut provider = open();
    put(&mut provider, &project("p"), "gate", "red gate", &json!({}));
    put(&mut provider, &project("p"), "door", "green door", &json!({}));
    put(&mut provider, &project("p"), "shed", "blue shed", &json!({}));
    let best = |provider: &mut CrossAgent, query: &str| {
        score(&ask(provider, &project("p"), query, None)[0])
    };
    assert!((best(&mut provider, "the red gate") - 1.0).abs() < 1e-3);
    assert!((best(&mut provider, "gate or door") - 0.5).abs() < 1e-3, "half of it");
    assert!(
        best(&mut provider, "when does somebody paint the gate") < 0.25,
        "a word of four, and the others are rarer"
    );
}

/// An item as the reckoning has it.
#[derive(Debug, Clone)]
struct Plain {
    words: Vec<String>,
    project: Option<String>,
    is_global: bool,
    confidence: f64,
    days: i64,
}

/// BM25, recency and confidence, item by item, as README.md has the formula.
fn reckon(all: &BTreeMap<String, Plain>, asked: &str, query: &[String]) -> Vec<(String, f64)> {
    #[allow(clippy::cast_precision_loss)]
    let count = |number: usize| number as f64;
    let with = |word: &String| all.values().filter(|item| item.words.contains(word)).count();
    let average =
        (count(all.values().map(|item| item.words.len()).sum()) / count(all.len())).max(1.0);
    let mut words = query.to_vec();
    words.sort();
    words.dedup();
    // With so few items no word is left out.
    let sum = |item: &Plain| -> f64 {
        let weigh = |word: &String| {
            let often = count(item.words.iter().filter(|other| *other == word).count());
            let (all, with) = (count(all.len()), count(with(word)));
            let idf = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            idf * 2.2 * often / (often + 1.2 * (0.25 + 0.75 * count(item.words.len()) / average))
        };
        words.iter().map(weigh).sum()
    };
    let seen = |item: &Plain| {
        item.is_global || item.project.as_deref().is_none_or(|project| project == asked)
    };
    let found: Vec<(&String, &Plain, f64)> =
        all.iter().filter(|(_, item)| seen(item)).map(|(id, item)| (id, item, sum(item))).collect();
    let first = found.iter().max_by(|a, b| a.2.total_cmp(&b.2));
    let rarity = |word: &String| {
        let (all, with) = (count(all.len()), count(with(word)));
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    };
    let covered = |item: &Plain| -> f64 {
        words.iter().filter(|word| item.words.contains(word)).map(rarity).sum::<f64>()
            / words.iter().map(rarity).sum::<f64>()
    };
    let (most, coverage) = first.map_or((1.0, 1.0), |(_, item, sum)| (*sum, covered(item)));
    let mut scored: Vec<(String, f64)> = found
        .into_iter()
        .filter(|(.., sum)| *sum > 0.0)
        .map(|(id, item, sum)| {
            #[allow(clippy::cast_precision_loss)]
            let fresh = 0.5_f64.powf(item.days as f64 / 30.0);
            let factors = (1.0 - 0.3 * (1.0 - fresh)) * (1.0 - 0.5 * (1.0 - item.confidence));
            (id.clone(), sum / most * coverage * factors)
        })
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
    scored
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, Plain),
    Forget(u8),
    Reopen,
    Ask(u8, Vec<String>, u32),
}

fn words(most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec((0_u8..12).prop_map(|word| format!("w{word}")), 1..most)
}

fn step() -> impl Strategy<Value = Step> {
    let plain = (words(12), prop::option::of(0_u8..3), any::<bool>(), 0_u32..=10, 0_i64..200);
    let plain = plain.prop_map(|(words, project, is_global, confidence, days)| Plain {
        words,
        project: project.map(|project| format!("p{project}")),
        is_global,
        confidence: f64::from(confidence) / 10.0,
        days,
    });
    prop_oneof![
        6 => (0_u8..40, plain).prop_map(|(id, plain)| Step::Put(id, plain)),
        2 => (0_u8..40).prop_map(Step::Forget),
        1 => Just(Step::Reopen),
        4 => (0_u8..3, words(4), 1_u32..20).prop_map(
            |(project, words, top)| Step::Ask(project, words, top)
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn the_index_gives_the_same_ranking_as_the_formula(
        steps in prop::collection::vec(step(), 1..80)
    ) {
        let mut provider = open();
        let mut all: BTreeMap<String, Plain> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Put(id, plain) => {
                    let id = format!("i{id}");
                    let company = Scope::company("company");
                    // An id stays what it is; where it is seen is the write's.
                    provider.forget(testing::forget(vec![id.clone()], company.clone())).unwrap();
                    let scope = Scope { project_id: plain.project.clone(), ..company };
                    let visibility = if plain.is_global { "global" } else { "project" };
                    let metadata = json!({
                        "confidence": plain.confidence, "updatedAt": ago(plain.days),
                        "visibility": visibility,
                    });
                    put(&mut provider, &scope, &id, &plain.words.join(" "), &metadata);
                    all.insert(id, plain);
                }
                Step::Forget(id) => {
                    let id = format!("i{id}");
                    let outcome = provider
                        .forget(testing::forget(vec![id.clone()], Scope::company("company")))
                        .unwrap();
                    let was_there = all.remove(&id).is_some();
                    prop_assert_eq!(outcome.outcomes[0].effect == ForgetEffect::Hard, was_there);
                }
                Step::Reopen => provider = testing::reopen::<CrossAgent>().unwrap(),
                Step::Ask(asked, words, top) => {
                    let asked = format!("p{asked}");
                    let wanted = reckon(&all, &asked, &words);
                    let request = QueryRequest {
                        scope: project(&asked),
                        top_k: top,
                        ..testing::query(&words.join(" "))
                    };
                    let found = provider.query(request).unwrap().snippets;
                    prop_assert_eq!(found.len(), wanted.len().min(top as usize));
                    let by_id: HashMap<&String, f64> =
                        wanted.iter().map(|(id, score)| (id, *score)).collect();
                    for (hit, (_, at_this_place)) in found.iter().zip(&wanted) {
                        let own = by_id.get(&hit.id);
                        prop_assert!(
                            own.is_some_and(|own| (own - score(hit)).abs() < 1e-4),
                            "{hit:?} {own:?}",
                        );
                        // Equal ones may change places.
                        prop_assert!(
                            (at_this_place - score(hit)).abs() < 1e-4, "{hit:?} {at_this_place}",
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn every_spelling_of_a_word_and_words_without_spaces_are_found() {
    let (mut provider, scope) = (open(), project("p"));
    for (number, (text, question)) in [
        ("The office is in İstanbul", "istanbul"),
        ("Die Straße ist gesperrt", "STRASSE"),
        ("η ανάπτυξη", "αναπτυξη"),
        ("gal\u{327}a un maize", "gaļa"),
        ("사용자는 회의를 싫어한다", "회의"),
        ("ทีมงานประชุมทุกวันจันทร์", "ประชุม"),
        ("金曜日はデプロイしない", "デプロイ"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = number.to_string();
        put(&mut provider, &scope, &id, text, &json!({}));
        let found = ids(&mut provider, &scope, question);
        assert_eq!(found.first(), Some(&id), "{question}");
    }
}
