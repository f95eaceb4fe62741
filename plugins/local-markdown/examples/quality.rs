//! The ranking on text that its defaults were not chosen on, beside plain BM25 and with each weight halved, doubled and
//! left out.
//!
//! `cargo run --release --example quality`

#![allow(clippy::unwrap_used, clippy::expect_used, unreachable_pub, missing_docs, reason = "a measuring tool")]

#[path = "../tests/it/quality/baseline.rs"]
mod baseline;
#[path = "../tests/it/quality/bodies.rs"]
mod bodies;

use bodies::{Scores, documents, measure, work};
use memhost_local_markdown::Ranking;
use serde_json::{Value, json};

fn main() {
    for body in [work(), documents()] {
        println!("{}: {} records, {} questions", body.name, body.records.len(), body.questions.len());
        println!("{:<24} R@3   R@10  MRR", "");
        row("plain BM25", baseline::measure(&body));
        row("defaults", measure(&body, &json!({})));
        for (name, value) in json!(Ranking::default()).as_object().unwrap() {
            for (what, factor) in [("none", 0.0), ("half", 0.5), ("double", 2.0)] {
                let mut changed = value.as_f64().unwrap() * factor;
                if name != "k1" {
                    changed = changed.min(1.0);
                }
                let ranking = Value::Object([(name.clone(), json!(changed))].into_iter().collect());
                row(&format!("{name}: {what}"), measure(&body, &ranking));
            }
        }
        println!();
    }
}

fn row(name: &str, scores: Scores) {
    let [three, ten, mrr] = [scores.recall_3, scores.recall_10, scores.mrr].map(|share| share * 100.0);
    println!("{name:<24} {three:>4.1}  {ten:>4.1}  {mrr:>4.1}");
}
