//! Runs the benchmark: creates a binding for each conversation, captures each turn, and asks each
//! question.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::metrics::Tally;
use super::{Category, Conversation, EvalError, Latency, Scores, Turn};
use memhost_core::{Caller, CreateBinding, Service, ServiceError};
use memhost_types::{
    BindingKey, BindingLimits, BindingPolicy, CaptureMode, CaptureRequest, CompanyId, Grants,
    HookContext, HookKind, IdError, Intent, Job, JobFilter, JobStatus, JsonObject, Pages,
    ProviderKey, QueryRequest, Scope, SourceKind, SourcePayload, SourceRef, TextId, VersionChoice,
};

/// The results requested for each question: the most that any measure uses.
const TOP_K: u32 = 20;

/// The subject of an evaluation.
#[derive(Debug, Clone)]
pub struct EvalOptions {
    /// Which provider.
    pub provider: ProviderKey,
    /// Its configuration.
    pub config: JsonObject,
}

/// The progress of a run.
#[derive(Debug, Clone, Copy)]
pub enum Progress {
    /// A turn was captured.
    Captured,
    /// A question was asked.
    Asked,
}

/// The outcome of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// Which provider.
    pub provider: ProviderKey,
    /// The retrieval measures.
    #[serde(flatten)]
    pub scores: Scores,
    /// The latency of queries, from the caller's side.
    pub query: Latency,
    /// The latency of captures, from the caller's side.
    pub capture: Latency,
    /// For each conversation and question the ranked ids of turns.
    #[serde(skip)]
    pub run: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

/// Captures every conversation into a binding of its own and asks every question.
///
/// # Errors
/// At the first operation that fails.
pub async fn run(
    service: &Service,
    conversations: &[Conversation],
    options: &EvalOptions,
    mut progress: impl FnMut(Progress),
) -> Result<Evaluation, EvalError> {
    let caller = Caller::operator();
    let company: CompanyId = id("company", "evaluation")?;
    // The evaluation has a data directory of its own, so the provider gets all permissions that it
    // requests.
    let plugins = service.control().plugins().admitted;
    let chosen = plugins
        .iter()
        .find(|plugin| plugin.inspection.description.provider_key == options.provider);
    let grants = chosen.map(|plugin| {
        let asked = plugin
            .inspection
            .description
            .permissions
            .iter()
            .map(|request| request.resolved(&options.config));
        Grants::all_of(&asked.collect::<Vec<_>>())
    });
    let mut tally = Tally::default();
    let (mut captures, mut queries) = (Vec::new(), Vec::new());
    let mut ranked: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for (number, conversation) in conversations.iter().enumerate() {
        let key: BindingKey = id("binding key", &format!("conversation-{number}"))?;
        let binding = CreateBinding {
            key: key.clone(),
            provider_key: options.provider.clone(),
            config: options.config.clone(),
            version: VersionChoice::default(),
            grants: grants.clone(),
            limits: BindingLimits::default(),
            policy: BindingPolicy::default(),
            default: false,
        };
        let made = service.control().create_binding(&caller, &company, binding).await;
        made.map_err(|error| operation("making a binding", error))?;
        for turn in &conversation.turns {
            let request = capture(&company, &key, &conversation.sample_id, turn);
            let started = Instant::now();
            let answer = service.operations().capture(&caller, request).await;
            answer.map_err(|error| operation(&format!("capturing {}", turn.id), error))?;
            captures.push(started.elapsed());
            progress(Progress::Captured);
        }
        settled(service, &company, &key).await?;
        for question in &conversation.questions {
            let request = query(&company, &key, &question.text);
            let started = Instant::now();
            let bundle = service.operations().query(&caller, request).await;
            let bundle =
                bundle.map_err(|error| operation(&format!("asking `{}`", question.text), error))?;
            queries.push(started.elapsed());
            let ids: Vec<String> = bundle
                .snippets
                .into_iter()
                .filter_map(|snippet| snippet.source.and_then(|source| source.external_ref))
                .collect();
            tally.add(Category::new(question.category), &question.evidence, &ids);
            let of_sample = ranked.entry(conversation.sample_id.clone()).or_default();
            of_sample.insert(question.index.to_string(), ids);
            progress(Progress::Asked);
        }
    }
    Ok(Evaluation {
        provider: options.provider.clone(),
        scores: tally.averages(),
        query: Latency::of(queries),
        capture: Latency::of(captures),
        run: ranked,
    })
}

/// Waits until the jobs of all captures have finished.
async fn settled(
    service: &Service,
    company: &CompanyId,
    key: &BindingKey,
) -> Result<(), EvalError> {
    let filter = JobFilter { binding_key: Some(key.clone()), ..JobFilter::default() };
    let is_unfinished = |job: &Job| matches!(job.status, JobStatus::Queued | JobStatus::Running);
    let mut pages = Pages::default();
    while let Some(cursor) = pages.next() {
        let page = service.control().jobs(company, &filter, cursor.as_deref(), Some(100)).await;
        let page = page.map_err(|error| operation("waiting for jobs", error))?;
        if page.items.iter().any(is_unfinished) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            pages = Pages::default();
        } else {
            pages.go_on(page.next_cursor);
        }
    }
    Ok(())
}

/// The turn's text is the content; who spoke and when is provenance.
fn capture(company: &CompanyId, key: &BindingKey, sample: &str, turn: &Turn) -> CaptureRequest {
    let metadata = JsonObject::from_iter([("speaker".to_owned(), turn.speaker.clone().into())]);
    CaptureRequest {
        binding_key: Some(key.clone()),
        scope: Scope {
            session_key: Some(format!("session_{}", turn.session)),
            ..Scope::company(company.clone())
        },
        source: SourceRef {
            external_ref: Some(turn.id.clone()),
            ..SourceRef::new(SourceKind::ExternalDocument, company.clone())
        },
        payload: SourcePayload { text: Some(turn.text.clone()), ..SourcePayload::default() },
        hook: Some(HookContext {
            hook_kind: HookKind::ManualCapture,
            hook_id: format!("{sample}-{}", turn.id),
            triggered_at: turn.at,
            actor_agent_id: None,
            heartbeat_run_id: None,
            asserted_by: None,
        }),
        mode: CaptureMode::CaptureRecord,
        metadata: Some(metadata),
        visibility: None,
        replaces_source: false,
    }
}

fn query(company: &CompanyId, key: &BindingKey, text: &str) -> QueryRequest {
    QueryRequest {
        binding_key: Some(key.clone()),
        scope: Scope::company(company.clone()),
        query: text.to_owned(),
        top_k: Some(TOP_K),
        intent: Intent::Answer,
        metadata_filter: None,
        token_budget: None,
        filter: None,
    }
}

fn id<T: TextId>(what: &str, text: &str) -> Result<T, EvalError> {
    T::parse(text)
        .map_err(|error: IdError| EvalError::Id { what: what.to_owned(), message: error.problem })
}

fn operation(what: &str, error: ServiceError) -> EvalError {
    EvalError::Operation { what: what.to_owned(), error: Box::new(error) }
}
