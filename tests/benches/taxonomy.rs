//! The rules of `taxonomy` on labelled sentences: precision and recall of each kind, beside the
//! floor of one cue word a kind, on the half that the rules were written with and on the one that
//! they have not seen.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use std::collections::BTreeSet;
use std::time::Instant;

use memhost_sdk::types::{CaptureMode, CaptureRequest, Intent, JobStatus, QueryRequest};
use memhost_sdk::{Extraction, Provider, testing};
use memhost_taxonomy::{Kind, Taxonomy, extract, pii_level};
use memhost_tests::measure::{show, table};

/// The floor: what a kind is most plainly known by. The first that is there says what the sentence
/// is.
const CUES: [(Kind, &str); 11] = [
    (Kind::KeywordSet, "keywords"),
    (Kind::Note, "note"),
    (Kind::Todo, "need to"),
    (Kind::Decision, "decided"),
    (Kind::Constraint, "must"),
    (Kind::Preference, "prefer"),
    (Kind::Goal, "goal"),
    (Kind::Hypothesis, "might"),
    (Kind::Project, "project"),
    (Kind::Profile, "i am"),
    (Kind::Fact, "was"),
];

type Labelled = Vec<(String, BTreeSet<Kind>)>;

fn labelled(half: &str) -> Labelled {
    let path =
        memhost_tests::repository().join(format!("plugins/taxonomy/tests/labelled/{half}.jsonl"));
    let lines = std::fs::read_to_string(path).unwrap();
    let line = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let kinds = value["kinds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|kind| Kind::parse(kind.as_str().unwrap()).unwrap());
        (value["text"].as_str().unwrap().to_owned(), kinds.collect())
    };
    lines.lines().map(line).collect()
}

/// What counts: candidates that reach the threshold of their kind.
fn approved(text: &str) -> BTreeSet<Kind> {
    extract(text)
        .into_iter()
        .filter(|found| found.confidence >= found.kind.threshold())
        .map(|found| found.kind)
        .collect()
}

/// What counts or waits.
fn found(text: &str) -> BTreeSet<Kind> {
    extract(text)
        .into_iter()
        .filter(|found| found.confidence >= 0.5)
        .map(|found| found.kind)
        .collect()
}

fn floor(text: &str) -> BTreeSet<Kind> {
    let text = text.to_lowercase().replace("i'm", "i am");
    CUES.iter().find(|(_, cue)| text.contains(cue)).map(|(kind, _)| *kind).into_iter().collect()
}

/// Right ones, found ones and labelled ones, of one kind or of all.
fn count(
    half: &Labelled,
    read: fn(&str) -> BTreeSet<Kind>,
    kind: Option<Kind>,
) -> (usize, usize, usize) {
    let of = |kinds: BTreeSet<Kind>| -> BTreeSet<Kind> {
        kinds.into_iter().filter(|one| kind.is_none_or(|kind| kind == *one)).collect()
    };
    half.iter().fold((0, 0, 0), |(right, all, wanted), (text, kinds)| {
        let (found, kinds) = (of(read(text)), of(kinds.clone()));
        (right + found.intersection(&kinds).count(), all + found.len(), wanted + kinds.len())
    })
}

fn share(part: usize, whole: usize) -> String {
    #[allow(clippy::cast_precision_loss, reason = "counts of sentences")]
    let share = part as f64 / whole as f64;
    if whole == 0 { "–".to_owned() } else { format!("{share:.2} ({part}/{whole})") }
}

fn measure(half: &str) {
    let sentences = labelled(half);
    let row = |name: &str, kind: Option<Kind>| {
        let (right, all, wanted) = count(&sentences, approved, kind);
        let (cue_right, cue_all, cue_wanted) = count(&sentences, floor, kind);
        let (kept_right, kept_all, kept_wanted) = count(&sentences, found, kind);
        vec![
            name.to_owned(),
            share(right, all),
            share(right, wanted),
            share(kept_right, kept_all),
            share(kept_right, kept_wanted),
            share(cue_right, cue_all),
            share(cue_right, cue_wanted),
        ]
    };
    let mut rows: Vec<Vec<String>> =
        Kind::ALL.into_iter().map(|kind| row(kind.name(), Some(kind))).collect();
    rows.push(row("all", None));
    let nothing = sentences.iter().filter(|(_, kinds)| kinds.is_empty()).count();
    table(
        &format!(
            "taxonomy, half `{half}`: {} sentences, {nothing} of them nothing to remember",
            sentences.len()
        ),
        &[
            "kind",
            "precision",
            "recall",
            "precision with pending",
            "recall with pending",
            "floor precision",
            "floor recall",
        ],
        &rows,
    );
}

/// Raw data of each sort behind every labelled sentence, through captures, jobs and answers.
fn leaks(half: &str) -> (usize, usize) {
    const RAW: [&str; 5] = [
        "ann@example.org",
        "+49 30 1234567",
        "4111 1111 1111 1111",
        "AKIAIOSFODNN7EXAMPLE",
        "12 Baker Street",
    ];
    let mut provider = testing::open::<Taxonomy>(serde_json::json!({})).unwrap();
    for (number, (text, _)) in labelled(half).into_iter().enumerate() {
        let text = if number % 2 == 0 {
            text
        } else {
            format!("{} {}.", text.trim_end_matches('.'), RAW[number % 5])
        };
        let request = CaptureRequest {
            mode: CaptureMode::CaptureResidue,
            ..testing::capture(&number.to_string(), &text)
        };
        for job in provider.capture(request).unwrap().jobs {
            while provider.run_job(job.provider_job_id.clone()).unwrap().job.status
                != JobStatus::Succeeded
            {}
        }
    }
    let mut answered = provider.list_records(testing::list(None, 1_000)).unwrap().items;
    let everything =
        QueryRequest { intent: Intent::AgentPreamble, top_k: 1_000, ..testing::query("") };
    answered.extend(provider.query(everything).unwrap().snippets);
    let raw = |text: &str| pii_level(text) == 2 || RAW.iter().any(|raw| text.contains(raw));
    let bad = answered
        .iter()
        .filter(|item| raw(&item.text) || raw(item.metadata.as_deref().unwrap_or_default()));
    (bad.count(), answered.len())
}

fn main() {
    measure("dev");
    measure("unseen");
    let rows: Vec<Vec<String>> = ["dev", "unseen"]
        .into_iter()
        .map(|half| {
            let (bad, all) = leaks(half);
            vec![half.to_owned(), all.to_string(), bad.to_string()]
        })
        .collect();
    table(
        "taxonomy: approved items with raw personal data (level 2)",
        &["half", "answered", "of level 2"],
        &rows,
    );
    let text: String = labelled("dev").into_iter().map(|(text, _)| text + "\n").collect();
    let count = text.lines().count();
    let started = Instant::now();
    let candidates = extract(&text).len();
    let first = started.elapsed();
    let started = Instant::now();
    for _ in 0..10 {
        extract(&text);
    }
    let sentence = started.elapsed() / 10 / u32::try_from(count).unwrap();
    table(
        "taxonomy: reading sentences, natively",
        &["sentences", "candidates", "first time, with the rules made ready", "one sentence"],
        &[vec![count.to_string(), candidates.to_string(), show(first), show(sentence)]],
    );
}
