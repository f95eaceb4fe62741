//! Bodies of text with questions, none of them the one that the defaults were chosen on, and how
//! well a ranking finds their answers. Used by the test and by the example of the same name.

use std::collections::{BTreeSet, HashMap};

use super::models;
use memhost_local_markdown::LocalMarkdown;
use memhost_sdk::types::{
    CaptureRequest, HookContext, HookKind, QueryRequest, Scope, SourceKind, SourceRef,
};
use memhost_sdk::{Provider, testing};
use serde::Deserialize;
use serde_json::{Value, json};

/// As many answers as the widest measure looks at.
pub(crate) const TOP: usize = 10;

/// Records and questions.
pub(crate) struct Body {
    pub(crate) name: String,
    pub(crate) records: Vec<Text>,
    pub(crate) questions: Vec<Question>,
}

/// A record as it is captured.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Text {
    pub(crate) id: String,
    pub(crate) text: String,
    session: Option<String>,
    issue: Option<String>,
    document: Option<String>,
    speaker: Option<String>,
    at: Option<String>,
    kind: Option<String>,
}

/// A question, and the records that answer it.
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) relevant: BTreeSet<String>,
}

/// Averages over the questions, 0 to 1.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scores {
    pub recall_3: f64,
    pub recall_10: f64,
    pub(crate) mrr: f64,
}

/// The memory of a small company: conversations with long answers beside short turns, notes,
/// comments, documents.
pub(crate) fn work() -> Body {
    body("a company's work", include_str!("work.jsonl"), include_str!("work-questions.jsonl"))
}

/// This project's documents as they were in November 2026, a record for each section and for each
/// paragraph of the contract. They are a copy, so that a change of a document does not change what
/// the test measures.
pub(crate) fn documents() -> Body {
    body(
        "the project's documents",
        include_str!("documents.jsonl"),
        include_str!("documents-questions.jsonl"),
    )
}

/// A body in the form of those here.
pub(crate) fn body(name: &str, records: &str, questions: &str) -> Body {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line {
        question: String,
        relevant: BTreeSet<String>,
    }
    let questions = lines::<Line>(questions).into_iter();
    let questions =
        questions.map(|line| Question { text: line.question, relevant: line.relevant }).collect();
    Body { name: name.to_owned(), records: lines(records), questions }
}

/// Notes, and questions that ask for them in other words. `misleading`: beside notes that have
/// words of the questions and answer none of them.
pub(crate) fn paraphrases(misleading: bool) -> Body {
    let name = if misleading { "in other words, beside misleading ones" } else { "in other words" };
    let mut body = Body { name: name.to_owned(), records: Vec::new(), questions: Vec::new() };
    for (number, (text, question)) in paraphrase_lines().into_iter().enumerate() {
        if question.is_none() && !misleading {
            continue;
        }
        let id = number.to_string();
        body.questions
            .extend(question.map(|text| Question { text, relevant: [id.clone()].into() }));
        body.records.push(Text { id, text, ..Text::default() });
    }
    body
}

fn paraphrase_lines() -> Vec<(String, Option<String>)> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line {
        text: String,
        question: Option<String>,
    }
    lines::<Line>(include_str!("paraphrases.jsonl"))
        .into_iter()
        .map(|line| (line.text, line.question))
        .collect()
}

fn lines<T: for<'de> Deserialize<'de>>(text: &str) -> Vec<T> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// How the provider does with a ranking, `{}` for the defaults.
pub(crate) fn measure(body: &Body, ranking: &Value) -> Scores {
    measure_with(None, body, ranking)
}

/// The same where the binding has a model.
pub(crate) fn measure_with(model: Option<models::Model>, body: &Body, ranking: &Value) -> Scores {
    let directory = tempfile::tempdir().unwrap();
    let config = json!({"durable": false, "checkMs": 60_000, "ranking": ranking});
    let mut provider: LocalMarkdown = testing::open_in(directory.path(), config).unwrap();
    if let Some(model) = model {
        testing::embed_with("model", models::DIMENSIONS, model);
    }
    let ids: HashMap<String, usize> = body
        .records
        .iter()
        .zip(0..)
        .map(|(text, number)| (write_capture(&mut provider, text), number))
        .collect();
    if model.is_some() {
        models::run_jobs(&mut provider);
    }
    score(body, |question| {
        let top_k = u32::try_from(TOP).unwrap();
        let found =
            provider.query(QueryRequest { top_k, ..testing::query(question) }).unwrap().snippets;
        found.iter().map(|snippet| ids[&snippet.id]).collect()
    })
}

/// Averages for whatever answers the numbers of records, best first.
#[allow(clippy::cast_precision_loss, reason = "counts for averages")]
pub(crate) fn score(body: &Body, mut ask: impl FnMut(&str) -> Vec<usize>) -> Scores {
    let mut sums = Scores::default();
    for question in &body.questions {
        let found = ask(&question.text);
        let is_hit = |number: &usize| question.relevant.contains(&body.records[*number].id);
        let hits = |k: usize| found.iter().take(k).filter(|number| is_hit(number)).count() as f64;
        // No ranking can have more than k answers among the first k.
        let most = |k: usize| question.relevant.len().min(k) as f64;
        sums.recall_3 += hits(3) / most(3);
        sums.recall_10 += hits(TOP) / most(TOP);
        sums.mrr += found.iter().position(is_hit).map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0));
    }
    let count = body.questions.len() as f64;
    Scores {
        recall_3: sums.recall_3 / count,
        recall_10: sums.recall_10 / count,
        mrr: sums.mrr / count,
    }
}

fn write_capture(provider: &mut LocalMarkdown, text: &Text) -> String {
    let hook = text.at.as_ref().map(|at| HookContext {
        hook_kind: HookKind::ManualCapture,
        triggered_at: at.clone(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    });
    let metadata: serde_json::Map<String, Value> =
        [("speaker", &text.speaker), ("kind", &text.kind)]
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), Value::String(value.clone()?))))
            .collect();
    let request = CaptureRequest {
        scope: Scope { session_key: text.session.clone(), ..testing::scope() },
        source: SourceRef {
            kind: SourceKind::ExternalDocument,
            issue_id: text.issue.clone(),
            document_key: text.document.clone(),
            ..testing::source()
        },
        hook,
        metadata: Some(Value::Object(metadata).to_string()),
        ..testing::capture(&format!("capture {}", text.id), &text.text)
    };
    provider.capture(request).unwrap().records.remove(0)
}
