//! Times queries of tantivy over the records and the questions of the benchmark `recall`, and
//! prints `p50_ns p99_ns`: `peer-tantivy RECORDS`. The index is in memory, in one segment, and each
//! answer has the texts of the ten best.

use std::time::Instant;

use tantivy::collector::TopDocs;
use tantivy::query::QueryParser;
use tantivy::schema::{STORED, Schema, TEXT, Value};
use tantivy::{Index, TantivyDocument, doc};

/// How many queries are timed.
const QUERIES: usize = 300;

/// The same as in `tests/benches/recall.rs`.
fn word(state: &mut u64) -> String {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    let rank = ((*state % 1_000_000) as f64 / 1e6).powi(4) * 50_000.0;
    format!("word{}", rank as u64)
}

fn words(state: &mut u64, count: usize) -> String {
    (0..count).map(|_| word(state)).collect::<Vec<_>>().join(" ")
}

fn main() -> tantivy::Result<()> {
    let Some(records) = std::env::args().nth(1).and_then(|count| count.parse::<usize>().ok())
    else {
        eprintln!("usage: peer-tantivy RECORDS");
        std::process::exit(2);
    };
    let mut schema = Schema::builder();
    let text = schema.add_text_field("text", TEXT | STORED);
    let index = Index::create_in_ram(schema.build());
    let mut writer = index.writer_with_num_threads(1, 500 << 20)?;
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..records {
        writer.add_document(doc!(text => words(&mut state, 50)))?;
    }
    writer.commit()?;
    let searcher = index.reader()?.searcher();
    let parser = QueryParser::for_index(&index, vec![text]);
    let (mut all, mut questions) = (Vec::with_capacity(QUERIES), 0_u64);
    for number in 0..QUERIES + QUERIES / 10 {
        questions = questions.wrapping_add(0x9e37_79b9_7f4a_7c15) | 1;
        let question = words(&mut { questions }, 6);
        let started = Instant::now();
        let query = parser.parse_query(&question)?;
        let found = searcher.search(&query, &TopDocs::with_limit(10).order_by_score())?;
        let mut answer = Vec::with_capacity(found.len());
        for (score, address) in found {
            let stored: TantivyDocument = searcher.doc(address)?;
            let text = stored.get_first(text).and_then(|value| value.as_str()).map(str::to_owned);
            answer.push((score, text));
        }
        let took = started.elapsed().as_nanos();
        assert!(!answer.is_empty(), "every question has answers");
        if number >= QUERIES / 10 {
            all.push(took);
        }
    }
    all.sort_unstable();
    println!("{} {}", all[all.len() / 2], all[all.len() * 99 / 100]);
    Ok(())
}
