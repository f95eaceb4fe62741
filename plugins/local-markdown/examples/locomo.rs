//! How well questions about long conversations find their evidence: recall, hit rate, nDCG and MRR
//! on a file in the form of LoCoMo (Maharana et al. 2024), which is not part of this project.
//!
//! `cargo run --release --example locomo -- FILE [RANKING_JSON]`

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measuring tool may stop at the first mistake"
)]
#![allow(clippy::cast_precision_loss, reason = "counts for averages")]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use memhost_local_markdown::LocalMarkdown;
use memhost_sdk::types::{
    CaptureRequest, HookContext, HookKind, Intent, QueryRequest, Scope, SourceKind, SourceRef,
};
use memhost_sdk::{Provider, testing};
use serde_json::{Value, json};

const TOP: usize = 20;
const CATEGORIES: [(u64, &str); 5] =
    [(1, "multi-hop"), (2, "temporal"), (3, "open-domain"), (4, "single-hop"), (0, "overall")];

#[derive(Default)]
struct Sums {
    questions: f64,
    recall: [f64; 3],
    hit: f64,
    ndcg: f64,
    mrr: f64,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("usage: locomo FILE [RANKING_JSON]");
    let ranking: Value =
        arguments.next().map_or(json!({}), |text| serde_json::from_str(&text).expect("JSON"));
    let conversations: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(file).expect("a readable file"))
            .expect("JSON");
    let mut sums: BTreeMap<u64, Sums> = BTreeMap::new();
    for conversation in &conversations {
        measure(conversation, &ranking, &mut sums);
    }
    println!("{:<12} {:>5}  R@5   R@10  R@20  hit@10 nDCG@10 MRR", "category", "n");
    for (category, name) in CATEGORIES {
        let Some(sums) = sums.get(&category) else { continue };
        let share = |sum: f64| 100.0 * sum / sums.questions;
        let [five, ten, twenty] = sums.recall.map(share);
        println!(
            "{name:<12} {:>5}  {five:>4.1}  {ten:>4.1}  {twenty:>4.1}  \
             {:>4.1}   {:>4.1}    {:>4.1}",
            sums.questions,
            share(sums.hit),
            share(sums.ndcg),
            share(sums.mrr)
        );
    }
}

fn measure(conversation: &Value, ranking: &Value, sums: &mut BTreeMap<u64, Sums>) {
    let directory = tempfile::tempdir().unwrap();
    let config = json!({"durable": false, "ranking": ranking});
    let mut provider: LocalMarkdown = testing::open_in(directory.path(), config).unwrap();
    let turns = load(&mut provider, &conversation["conversation"]);
    for question in conversation["qa"].as_array().unwrap() {
        let category = question["category"].as_u64().unwrap();
        let evidence: BTreeSet<String> = question["evidence"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .flat_map(|entry| entry.split([' ', ';', ',']))
            .map(|id| id.replace("D:", "D").trim_matches(['(', ')']).to_owned())
            .filter(|id| turns.values().any(|turn| turn == id))
            .collect();
        if category == 5 || evidence.is_empty() {
            continue;
        }
        let found = provider
            .query(QueryRequest {
                scope: Scope::company("c"),
                query: question["question"].as_str().unwrap().to_owned(),
                top_k: TOP as u32,
                intent: Intent::Answer,
                metadata_filter: None,
                token_budget: None,
            })
            .unwrap();
        let is_hit: Vec<bool> =
            found.snippets.iter().map(|hit| evidence.contains(&turns[&hit.id])).collect();
        for key in [category, 0] {
            add(sums.entry(key).or_default(), &is_hit, evidence.len());
        }
    }
}

fn add(sums: &mut Sums, is_hit: &[bool], relevant: usize) {
    let hits = |k: usize| is_hit.iter().take(k).filter(|hit| **hit).count() as f64;
    let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    sums.questions += 1.0;
    for (sum, k) in sums.recall.iter_mut().zip([5, 10, TOP]) {
        *sum += hits(k) / relevant as f64;
    }
    sums.hit += f64::from(hits(10) > 0.0);
    let ideal: f64 = (0..relevant.min(10)).map(gain).sum();
    sums.ndcg +=
        (0..is_hit.len().min(10)).filter(|rank| is_hit[*rank]).map(gain).sum::<f64>() / ideal;
    sums.mrr += is_hit.iter().position(|hit| *hit).map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0));
}

/// Captures every turn and answers which record is which turn.
fn load(provider: &mut LocalMarkdown, conversation: &Value) -> HashMap<String, String> {
    let mut turns = HashMap::new();
    for session in 1.. {
        let Some(said) = conversation[format!("session_{session}")].as_array() else {
            if session > 50 {
                break;
            }
            continue;
        };
        let at =
            time(conversation[format!("session_{session}_date_time")].as_str().unwrap_or_default());
        for turn in said {
            let name = turn["dia_id"].as_str().unwrap();
            let mut text = turn["text"].as_str().unwrap_or_default().to_owned();
            if let Some(caption) = turn["blip_caption"].as_str() {
                text.push_str(&format!(" [shares image: {caption}]"));
            }
            let request = CaptureRequest {
                scope: Scope {
                    session_key: Some(format!("session_{session}")),
                    ..Scope::company("c")
                },
                source: SourceRef {
                    kind: SourceKind::ExternalDocument,
                    external_ref: Some(name.to_owned()),
                    ..testing::source()
                },
                hook: Some(HookContext {
                    hook_kind: HookKind::ManualCapture,
                    triggered_at: at.clone(),
                    actor_agent_id: None,
                    heartbeat_run_id: None,
                }),
                metadata: Some(json!({"speaker": turn["speaker"]}).to_string()),
                ..testing::capture(&format!("capture {name}"), &text)
            };
            let ids = provider.capture(request).unwrap().records;
            turns.insert(ids[0].clone(), name.to_owned());
        }
    }
    turns
}

/// `1:56 pm on 8 May, 2023` as RFC 3339.
fn time(text: &str) -> String {
    let read = jiff::civil::DateTime::strptime("%I:%M %p on %d %B, %Y", text);
    let read = read.unwrap_or_else(|error| panic!("`{text}` is no date: {error}"));
    read.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp().to_string()
}
