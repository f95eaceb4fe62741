//! The defaults of the ranking on text that they were not chosen on. `cargo run --release --example quality` prints
//! the same figures.

mod baseline;
pub(crate) mod bodies;

use memhost_local_markdown::Ranking;
use serde_json::{Value, json};

use bodies::{Body, Scores, documents, measure, work};

/// What a weight may cost, in MRR, on a body of text that has no use for it.
const TOLERANCE: f64 = 0.02;

fn floor(body: &Body, most_behind: f64) -> Scores {
    let (plain, ours) = (baseline::measure(body), measure(body, &json!({})));
    println!("{}: plain BM25 {plain:?}, defaults {ours:?}", body.name);
    assert!(ours.mrr >= plain.mrr - most_behind, "{}: MRR {:.3}, plain BM25 {:.3}", body.name, ours.mrr, plain.mrr);
    assert!(ours.recall_10 >= plain.recall_10 - most_behind, "{}: {ours:?}, plain BM25 {plain:?}", body.name);
    ours
}

#[test]
fn conversations_notes_comments_and_documents_are_found_better_than_by_plain_words() {
    let body = work();
    let known = |id: &String| body.records.iter().any(|record| record.id == *id);
    assert!(body.questions.iter().all(|question| question.relevant.iter().all(known)));
    let ours = floor(&body, 0.0);
    assert!(ours.mrr >= 0.8 && ours.recall_3 >= 0.85, "{ours:?}");
}

#[test]
fn sections_of_documents_are_found_better_than_by_plain_words() {
    let body = documents();
    assert!(body.questions.len() >= 30, "write questions for the documents as they are now");
    let ours = floor(&body, 0.0);
    assert!(ours.mrr >= 0.6 && ours.recall_3 >= 0.65, "{ours:?}");
}

/// A weight may be of no use to some text. It must not harm it.
#[test]
fn no_weight_harms_text_that_has_no_use_for_it() {
    for body in [work(), documents()] {
        let ours = measure(&body, &json!({}));
        for name in
            json!(Ranking::default()).as_object().unwrap().keys().filter(|name| !["k1", "b"].contains(&&***name))
        {
            let without = measure(&body, &Value::Object([(name.clone(), json!(0))].into_iter().collect()));
            println!("{} without {name}: {without:?}", body.name);
            assert!(ours.mrr >= without.mrr - TOLERANCE, "{} without {name}: {without:?}; with {ours:?}", body.name);
        }
    }
}
