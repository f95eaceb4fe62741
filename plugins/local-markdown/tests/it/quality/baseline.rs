//! What the provider is measured against: plain BM25 over whole records, with the same stemmer and
//! stop words.

use std::collections::HashMap;

use memhost_sdk::words::is_function_word;
use rust_stemmers::{Algorithm, Stemmer};

use super::bodies::{Body, Scores, TOP, score};

/// The constants that search engines begin with (Lucene, SQLite).
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// How plain BM25 does.
#[allow(clippy::cast_precision_loss, reason = "counts for a formula")]
pub(crate) fn measure(body: &Body) -> Scores {
    let stemmer = Stemmer::create(Algorithm::English);
    let records: Vec<HashMap<String, f64>> =
        body.records.iter().map(|record| counts(&stemmer, &record.text)).collect();
    let length = |record: &HashMap<String, f64>| record.values().sum::<f64>();
    let average = records.iter().map(length).sum::<f64>() / records.len() as f64;
    score(body, |question| {
        let words = counts(&stemmer, question);
        let idf = |word: &String| {
            let having = records.iter().filter(|record| record.contains_key(word)).count() as f64;
            (1.0 + (records.len() as f64 - having + 0.5) / (having + 0.5)).ln()
        };
        let weights: Vec<(&String, f64)> = words.keys().map(|word| (word, idf(word))).collect();
        let of = |record: &HashMap<String, f64>| {
            let norm = K1 * (1.0 - B + B * length(record) / average);
            let part = |(word, idf): &(&String, f64)| {
                let count = record.get(*word).copied().unwrap_or(0.0);
                idf * count * (K1 + 1.0) / (count + norm)
            };
            weights.iter().map(part).sum::<f64>()
        };
        let mut found: Vec<(usize, f64)> =
            records.iter().map(of).enumerate().filter(|(_, s)| *s > 0.0).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.into_iter().take(TOP).map(|(number, _)| number).collect()
    })
}

fn counts(stemmer: &Stemmer, text: &str) -> HashMap<String, f64> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut counts = HashMap::new();
    // As in the provider: in small letters `may` could be the month.
    for word in words.filter(|word| *word == "may" || !is_function_word(word)) {
        *counts.entry(stemmer.stem(word).into_owned()).or_insert(0.0) += 1.0;
    }
    counts
}
