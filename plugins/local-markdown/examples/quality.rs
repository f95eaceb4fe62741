//! The ranking on text that its defaults were not chosen on, beside plain BM25 and with each weight
//! halved, doubled and left out; with models that know nothing, and with words that do.
//!
//! `cargo run --release --example quality`
//!
//! `cargo run --release --example quality -- [RANKING_JSON] FILE.records.jsonl…`: on other bodies,
//! such as those of `tests/recall/bodies`, with the ranking given or the defaults.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    unreachable_pub,
    missing_docs,
    reason = "a measuring tool"
)]

#[path = "../tests/it/quality/baseline.rs"]
mod baseline;
#[path = "../tests/it/quality/bodies.rs"]
mod bodies;
#[path = "../tests/it/quality/models.rs"]
mod models;

use bodies::{Scores, body, documents, measure, measure_with, paraphrases, work};
use memhost_local_markdown::Ranking;
use serde_json::{Value, json};

fn main() {
    let (files, rankings): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| !argument.starts_with('{'));
    if !files.is_empty() {
        return others(&files, &rankings);
    }
    for body in [work(), documents()] {
        println!(
            "{}: {} records, {} questions",
            body.name,
            body.records.len(),
            body.questions.len()
        );
        println!("{:<32} R@3   R@10  MRR", "");
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
        for (name, model) in models::IGNORANT {
            row(&format!("model: {name}"), measure_with(Some(model), &body, &json!({})));
        }
        println!();
    }
    for misleading in [false, true] {
        let body = paraphrases(misleading);
        println!(
            "{}: {} records, {} questions",
            body.name,
            body.records.len(),
            body.questions.len()
        );
        for (name, ranking) in [
            ("words", json!({"meaning": 0})),
            ("meaning", json!({"words": 0})),
            ("both", json!({})),
        ] {
            row(name, measure_with(Some(models::understands), &body, &ranking));
        }
        println!();
    }
}

fn others(files: &[String], rankings: &[String]) {
    for file in files {
        let read = |file: &str| std::fs::read_to_string(file).expect("a readable file");
        let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".records.jsonl");
        let body = body(name, &read(file), &read(&file.replace(".records.", ".questions.")));
        println!("{name}: {} records, {} questions", body.records.len(), body.questions.len());
        row("plain BM25", baseline::measure(&body));
        row("defaults", measure(&body, &json!({})));
        for ranking in rankings {
            row(ranking, measure(&body, &serde_json::from_str(ranking).expect("JSON")));
        }
    }
}

fn row(name: &str, scores: Scores) {
    let [three, ten, mrr] =
        [scores.recall_3, scores.recall_10, scores.mrr].map(|share| share * 100.0);
    println!("{name:<32} {three:>4.1}  {ten:>4.1}  {mrr:>4.1}");
}
