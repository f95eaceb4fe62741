//! The defaults of the ranking on text that they were not chosen on. `cargo run --release --example
//! quality` prints the same figures.

mod baseline;
pub(crate) mod bodies;
pub(crate) mod models;

use memhost_local_markdown::Ranking;
use serde_json::{Value, json};

use bodies::{Body, Scores, documents, measure, measure_with, paraphrases, work};

/// What a weight may cost, in MRR, on a body of text that has no use for it.
const TOLERANCE: f64 = 0.02;
/// The same for the whole record's score. It costs the first place of some questions about a detail
/// of a section, and on texts that are asked for as a whole it gains more than that (decision
/// 0081). Recall must not fall.
const TOLERANCE_RECORD: f64 = 0.07;

fn floor(body: &Body, most_behind: f64) -> Scores {
    let (plain, ours) = (baseline::measure(body), measure(body, &json!({})));
    println!("{}: plain BM25 {plain:?}, defaults {ours:?}", body.name);
    assert!(
        ours.mrr >= plain.mrr - most_behind,
        "{}: MRR {:.3}, plain BM25 {:.3}",
        body.name,
        ours.mrr,
        plain.mrr
    );
    assert!(
        ours.recall_10 >= plain.recall_10 - most_behind,
        "{}: {ours:?}, plain BM25 {plain:?}",
        body.name
    );
    ours
}

#[test]
fn the_defaults_beat_plain_bm25_on_a_companys_work() {
    let body = work();
    let known = |id: &String| body.records.iter().any(|record| record.id == *id);
    assert!(body.questions.iter().all(|question| question.relevant.iter().all(known)));
    let ours = floor(&body, 0.0);
    assert!(ours.mrr >= 0.8 && ours.recall_3 >= 0.85, "{ours:?}");
}

#[test]
fn the_defaults_beat_plain_bm25_on_documents() {
    let body = documents();
    assert!(body.questions.len() >= 30, "only {} questions", body.questions.len());
    let ours = floor(&body, 0.0);
    assert!(ours.mrr >= 0.6 && ours.recall_3 >= 0.65, "{ours:?}");
}

/// A weight may be of no use to some text. It must not harm it.
#[test]
fn no_weight_harms_text_that_does_not_need_it() {
    for body in [work(), documents()] {
        let ours = measure(&body, &json!({}));
        for name in json!(Ranking::default())
            .as_object()
            .unwrap()
            .keys()
            .filter(|name| !["k1", "b"].contains(&&***name))
        {
            let without =
                measure(&body, &Value::Object([(name.clone(), json!(0))].into_iter().collect()));
            println!("{} without {name}: {without:?}", body.name);
            let tolerance = if name == "record" { TOLERANCE_RECORD } else { TOLERANCE };
            assert!(
                ours.mrr >= without.mrr - tolerance,
                "{} without {name}: {without:?}; with {ours:?}",
                body.name
            );
            assert!(
                ours.recall_10 >= without.recall_10 - TOLERANCE,
                "{} without {name}: {without:?}",
                body.name
            );
        }
    }
}

/// A model that tells nothing of anything must not cost anything.
#[test]
fn a_model_without_information_does_no_harm() {
    for body in [work(), documents()] {
        let words = measure(&body, &json!({}));
        for (name, model) in models::IGNORANT {
            let both = measure_with(Some(model), &body, &json!({}));
            println!("{} with a model that is {name}: {both:?}, without {words:?}", body.name);
            assert!(
                both.mrr >= words.mrr && both.recall_10 >= words.recall_10,
                "{} {name}: {both:?}",
                body.name
            );
        }
    }
}

/// And where words tell nothing, they must not cost anything.
#[test]
fn words_without_information_do_no_harm() {
    for (misleading, mrr) in [(false, 1.0), (true, 0.95)] {
        let body = paraphrases(misleading);
        let legs = [json!({"meaning": 0}), json!({"words": 0}), json!({})];
        let [words, meaning, both] =
            legs.map(|ranking| measure_with(Some(models::understands), &body, &ranking));
        println!("{}: words {words:?}, meaning {meaning:?}, both {both:?}", body.name);
        assert!(
            words.mrr < 0.3 && meaning.mrr > 0.9,
            "the body is not what it says: {words:?} {meaning:?}"
        );
        assert!(
            both.recall_3 >= meaning.recall_3 && both.recall_10 >= meaning.recall_10,
            "{both:?}, not {meaning:?}"
        );
        // A note with a question's very words may come before the one that means it, and no
        // further.
        assert!(both.mrr >= meaning.mrr * mrr, "{both:?}, meaning alone {meaning:?}");
    }
}
