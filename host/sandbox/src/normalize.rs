//! Checks a provider's answer like a request from the internet, before anything else reads it. Its
//! record ids become handles with the provider key that the host knows.
//!
//! A list is answered although some of it is wrong: a record, a node or a job that the host cannot
//! show is left out, and a part of it that it can do without, such as its score. Both are noted.
//! What an answer says once is refused where it is wrong, such as the record that was asked for.

use std::any::Any;
use std::cell::RefCell;

use jiff::Timestamp;

use super::answer::{CaptureAnswer, ForgetAnswer, ListAnswer, QueryAnswer, RecordsAnswer};
use super::contract::{provider as wire, types as wit};
use super::convert;
use super::error::CallError;
use memhost_types::{
    AgentId, CompanyId, ExtractionJob, ForgetEffect, ForgetOutcome, JobStatus, JsonObject,
    Microcents, ProviderKey, RecordHandle, RecordId, Scope, ScoreKind, Snippet, SourceRef, TextId,
    Usage, cut_message, limits, repair_surrogates,
};

/// As much of an id as a message shows, in bytes.
const SHOWN_BYTES: usize = 128;
/// A million cents, in microcents: no call costs more.
const MAX_COST: u64 = 1_000_000_000_000;

/// An answer that was checked, or [`CallError::BadAnswer`].
pub(super) type Checked<T> = Result<T, CallError>;

pub(super) fn bad<T>(message: impl Into<String>) -> Checked<T> {
    Err(CallError::BadAnswer(message.into()))
}

/// How many bytes the records of an answer have. Answers without a list of records are short.
pub(super) fn size_of_records(answer: &dyn Any) -> usize {
    let query = answer.downcast_ref().map(|answer: &wire::ContextBundle| &answer.snippets);
    let list = || answer.downcast_ref().map(|answer: &wit::ListPage| &answer.items);
    let length =
        |found: &wit::Snippet| found.text.len() + found.metadata.as_ref().map_or(0, String::len);
    query.or_else(list).map_or(0, |found| found.iter().map(length).sum())
}

/// Checks one answer of a provider.
pub(super) struct Normalize {
    provider_key: ProviderKey,
    /// What was left out of the answer, a sentence each.
    left_out: RefCell<Vec<String>>,
}

impl Normalize {
    pub(super) fn new(provider_key: ProviderKey) -> Self {
        Self { provider_key, left_out: RefCell::default() }
    }

    /// What was left out of the answer, a sentence each.
    pub(super) fn into_left_out(self) -> Vec<String> {
        self.left_out.into_inner()
    }

    fn note(&self, what: String) {
        self.left_out.borrow_mut().push(what);
    }

    /// Checks the items of a list, without those that are wrong. `name` says what an item is.
    pub(super) fn sound<T, U>(
        &self,
        name: impl Fn(&T) -> String,
        items: Vec<T>,
        check: impl Fn(T) -> Checked<U>,
    ) -> Vec<U> {
        let mut sound = Vec::with_capacity(items.len());
        for item in items {
            let name = name(&item);
            match check(item) {
                Ok(item) => sound.push(item),
                Err(error) => self.note(format!("{name} is left out: {}", problem(error))),
            }
        }
        sound
    }

    /// A part of a record, or nothing where it is wrong.
    fn part<T>(&self, record: &str, name: &str, checked: Checked<Option<T>>) -> Option<T> {
        checked.unwrap_or_else(|error| {
            let record = shown(record);
            self.note(format!("the {name} of record {record} is left out: {}", problem(error)));
            None
        })
    }

    /// A summary, cut where it is too long.
    pub(super) fn summary(&self, of: &str, summary: Option<String>) -> Option<String> {
        let mut summary = summary?;
        if summary.len() > limits::MAX_SUMMARY_BYTES {
            let (had, most) = (summary.len(), limits::MAX_SUMMARY_BYTES);
            summary.truncate(summary.floor_char_boundary(most));
            self.note(format!("{of} is cut: it is {had} bytes; at most {most} are allowed"));
        }
        Some(summary)
    }

    pub(super) fn capture(&self, answer: wire::CaptureResponse) -> Checked<CaptureAnswer> {
        count("records", answer.records.len(), limits::MAX_ITEMS)?;
        count("jobs", answer.jobs.len(), limits::MAX_ITEMS)?;
        Ok(CaptureAnswer {
            records: self.handles(&answer.records)?,
            jobs: answer.jobs.into_iter().map(job).collect::<Checked<_>>()?,
            usage: usages(answer.usage)?,
        })
    }

    pub(super) fn upsert(
        &self,
        answer: wire::UpsertResponse,
        asked: usize,
    ) -> Checked<RecordsAnswer> {
        if answer.records.len() != asked {
            return bad(format!(
                "it answers {} record ids for {asked} records",
                answer.records.len()
            ));
        }
        Ok(RecordsAnswer {
            records: self.handles(&answer.records)?,
            usage: usages(answer.usage)?,
            rest: None,
        })
    }

    pub(super) fn query(
        &self,
        answer: wire::ContextBundle,
        top_k: u32,
        company: &CompanyId,
    ) -> Checked<QueryAnswer> {
        count("snippets", answer.snippets.len(), top_k as usize)?;
        Ok(QueryAnswer {
            snippets: self.snippets(answer.snippets, company),
            profile_summary: self.summary("the summary of the answer", answer.profile_summary),
            usage: usages(answer.usage)?,
        })
    }

    pub(super) fn list(
        &self,
        answer: wit::ListPage,
        limit: u32,
        company: &CompanyId,
    ) -> Checked<ListAnswer> {
        count("items", answer.items.len(), limit as usize)?;
        let (next, truncated) = match answer.continuation {
            wit::Continuation::End => (None, false),
            wit::Continuation::CannotContinue => (None, true),
            wit::Continuation::Next(cursor) => {
                text_size("continuation", &cursor, limits::MAX_PROVIDER_CURSOR_BYTES)?;
                (Some(cursor), false)
            }
        };
        let items = self.snippets(answer.items, company);
        Ok(ListAnswer { items, next, truncated, usage: usages(answer.usage)? })
    }

    pub(super) fn get(
        &self,
        answer: wire::GetResponse,
        asked: &str,
        company: &CompanyId,
    ) -> Checked<(Option<Snippet>, Vec<Usage>)> {
        if answer.snippet.as_ref().is_some_and(|snippet| snippet.id != asked) {
            return bad("it answers another record than the one asked for");
        }
        let snippet = answer.snippet.map(|snippet| self.snippet(snippet, company)).transpose()?;
        Ok((snippet, usages(answer.usage)?))
    }

    pub(super) fn forget(
        &self,
        answer: wire::ForgetResponse,
        asked: &[String],
    ) -> Checked<ForgetAnswer> {
        if !answer.outcomes.iter().map(|outcome| &outcome.id).eq(asked) {
            return bad("its outcomes are not one for each id of the request, in its order");
        }
        let outcomes = answer
            .outcomes
            .into_iter()
            .map(|outcome| {
                Ok(ForgetOutcome {
                    handle: self.handle(outcome.id)?,
                    effect: match outcome.effect {
                        wire::ForgetEffect::Hard => ForgetEffect::Hard,
                        wire::ForgetEffect::Soft => ForgetEffect::Soft,
                        wire::ForgetEffect::HistoryKept => ForgetEffect::HistoryKept,
                        wire::ForgetEffect::NotFound => ForgetEffect::NotFound,
                    },
                })
            })
            .collect::<Checked<_>>()?;
        Ok(ForgetAnswer { outcomes, usage: usages(answer.usage)?, rest: None })
    }

    pub(super) fn handles(&self, ids: &[String]) -> Checked<Vec<RecordHandle>> {
        ids.iter().map(|id| self.handle(id.clone())).collect()
    }

    pub(super) fn handle(&self, id: String) -> Checked<RecordHandle> {
        match RecordId::try_from(id) {
            Ok(id) => {
                Ok(RecordHandle { provider_key: self.provider_key.clone(), provider_record_id: id })
            }
            Err(error) => bad(format!("a record id {}", error.problem)),
        }
    }

    fn snippets(&self, snippets: Vec<wit::Snippet>, company: &CompanyId) -> Vec<Snippet> {
        let mut sound = Vec::with_capacity(snippets.len());
        for snippet in snippets {
            // Named only where it is wrong: most are not, and a name is a copy.
            match self.snippet_or_its_id(snippet, company) {
                Ok(snippet) => sound.push(snippet),
                Err((id, error)) => {
                    let id = id.map(|id| format!(" {}", shown(id.as_str()))).unwrap_or_default();
                    self.note(format!("record{id} is left out: {}", problem(error)));
                }
            }
        }
        sound
    }

    /// The record that was asked for, which cannot be left out.
    ///
    /// # Errors
    /// [`CallError::BadRecord`].
    pub(super) fn snippet(&self, snippet: wit::Snippet, company: &CompanyId) -> Checked<Snippet> {
        self.snippet_or_its_id(snippet, company)
            .map_err(|(_, error)| CallError::BadRecord(problem(error)))
    }

    fn snippet_or_its_id(
        &self,
        snippet: wit::Snippet,
        company: &CompanyId,
    ) -> Result<Snippet, (Option<RecordId>, CallError)> {
        let handle = self.handle(snippet.id).map_err(|error| (None, error))?;
        let id = handle.provider_record_id.as_str();
        let needed = text_size("text", &snippet.text, limits::MAX_TEXT_BYTES)
            .and_then(|()| snippet.scope.map(|found| scope(found, company)).transpose());
        let scope = match needed {
            Ok(scope) => scope,
            Err(error) => return Err((Some(handle.provider_record_id), error)),
        };
        let (score, score_kind) = match snippet.score {
            wit::Score::None => (None, None),
            wit::Score::Similarity(value) => (Some(value), Some(ScoreKind::Similarity)),
            wit::Score::Rank(value) => (Some(value), Some(ScoreKind::Rank)),
        };
        let score = self.part(id, "score", score.map(unit).transpose());
        let from = snippet.source.map(|found| source(found, company)).transpose();
        let at = |name: &str, text| self.part(id, name, time(name, text));
        let checked = Snippet {
            score,
            score_kind: score.and(score_kind),
            summary: match snippet.summary {
                None => None,
                summary => self.summary(&format!("the summary of record {}", shown(id)), summary),
            },
            source: self.part(id, "source", from.map(Option::flatten)),
            metadata: self.part(id, "metadata", json("metadata", snippet.metadata)),
            created_at: at("createdAt", snippet.created_at),
            updated_at: at("updatedAt", snippet.updated_at),
            expires_at: at("expiresAt", snippet.expires_at),
            text: snippet.text,
            scope,
            claimed_source: None,
            written_by: None,
            happened_at: None,
            corrected: None,
            // Last: the other fields name it where something is wrong.
            handle,
        };
        Ok(checked)
    }
}

/// What is wrong, without the words around it.
fn problem(error: CallError) -> String {
    match error {
        CallError::BadAnswer(problem) => problem,
        other => other.to_string(),
    }
}

/// An id of a provider as a message shows it.
fn shown(id: &str) -> String {
    format!("{:?}", &id[..id.floor_char_boundary(SHOWN_BYTES)])
}

fn unit(value: f64) -> Checked<f64> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        bad(format!("a score is {value}; 0 to 1 is allowed"))
    }
}

pub(super) fn count(field: &str, found: usize, max: usize) -> Checked<()> {
    if found > max {
        bad(format!("`{field}` has {found} elements; at most {max} were asked for"))
    } else {
        Ok(())
    }
}

pub(super) fn text_size(field: &str, text: &str, max: usize) -> Checked<()> {
    if text.len() > max {
        bad(format!("`{field}` is {} bytes; at most {max} are allowed", text.len()))
    } else {
        Ok(())
    }
}

pub(super) fn name(field: &'static str, text: String) -> Checked<String> {
    text_size(field, &text, limits::MAX_RECORD_ID_BYTES)?;
    Ok(text)
}

fn optional_name(field: &'static str, text: Option<String>) -> Checked<Option<String>> {
    text.map(|text| name(field, text)).transpose()
}

/// None: one of a kind that a newer host has given.
fn source(source: wit::SourceRef, company: &CompanyId) -> Checked<Option<SourceRef>> {
    if source.company_id != company.as_str() {
        return bad("a source belongs to another company");
    }
    let Some(kind) = convert::source_kind(&source.kind) else { return Ok(None) };
    Ok(Some(SourceRef {
        kind,
        company_id: company.clone(),
        issue_id: optional_name("source.issueId", source.issue_id)?,
        comment_id: optional_name("source.commentId", source.comment_id)?,
        document_key: optional_name("source.documentKey", source.document_key)?,
        run_id: optional_name("source.runId", source.run_id)?,
        activity_id: optional_name("source.activityId", source.activity_id)?,
        external_ref: optional_name("source.externalRef", source.external_ref)?,
        // The contract has no such field: a provider cannot say it.
        asserted_by: None,
    }))
}

fn scope(scope: wit::Scope, company: &CompanyId) -> Checked<Scope> {
    if scope.company_id != company.as_str() {
        return bad("the scope of a record belongs to another company");
    }
    let agent = |field: &str, id: Option<String>| match id.map(|id| AgentId::parse(&id)).transpose()
    {
        Ok(id) => Ok(id),
        Err(error) => bad(format!("`{field}` {}", error.problem)),
    };
    Ok(Scope {
        company_id: company.clone(),
        agent_id: agent("scope.agentId", scope.agent_id)?,
        actor_agent_id: agent("scope.actorAgentId", scope.actor_agent_id)?,
        project_id: optional_name("scope.projectId", scope.project_id)?,
        issue_id: optional_name("scope.issueId", scope.issue_id)?,
        run_id: optional_name("scope.runId", scope.run_id)?,
        subject_id: optional_name("scope.subjectId", scope.subject_id)?,
        session_key: optional_name("scope.sessionKey", scope.session_key)?,
        namespace: optional_name("scope.namespace", scope.namespace)?,
    })
}

fn json(field: &str, text: Option<String>) -> Checked<Option<JsonObject>> {
    let Some(text) = text else { return Ok(None) };
    text_size(field, &text, limits::MAX_JSON_BYTES)?;
    // serde_json itself refuses more than 128 levels.
    match serde_json::from_slice(&repair_surrogates(text.as_bytes())) {
        Ok(object) => Ok(Some(object)),
        Err(error) => bad(format!("`{field}` is not a JSON object: {error}")),
    }
}

fn time(field: &str, text: Option<String>) -> Checked<Option<Timestamp>> {
    match text.map(|text| text.parse()).transpose() {
        Ok(time) => Ok(time),
        Err(error) => bad(format!("`{field}` is not a time in RFC 3339: {error}")),
    }
}

pub(super) fn job(job: wit::ExtractionJob) -> Checked<ExtractionJob> {
    Ok(ExtractionJob {
        provider_job_id: name("providerJobId", job.provider_job_id)?,
        status: match job.status {
            wit::JobStatus::Queued => JobStatus::Queued,
            wit::JobStatus::Running => JobStatus::Running,
            wit::JobStatus::Succeeded => JobStatus::Succeeded,
            wit::JobStatus::Failed => JobStatus::Failed,
            wit::JobStatus::Cancelled => JobStatus::Cancelled,
        },
        hook_kind: job.hook_kind.map(convert::hook_kind),
        // The operation that the job belongs to has its source; a provider's copy of it is not
        // needed.
        source: None,
        record_count: job.record_count,
        error: job.error.map(cut_message),
        is_retryable: job.is_retryable
            && matches!(job.status, wit::JobStatus::Failed | wit::JobStatus::Cancelled),
        submitted_at: time("submittedAt", job.submitted_at)?,
        started_at: time("startedAt", job.started_at)?,
        finished_at: time("finishedAt", job.finished_at)?,
    })
}

pub(super) fn usages(usage: Vec<wit::Usage>) -> Checked<Vec<Usage>> {
    count("usage", usage.len(), limits::MAX_ITEMS)?;
    usage.into_iter().map(self::usage).collect()
}

pub(super) fn usage(usage: wit::Usage) -> Checked<Usage> {
    if let Some(cost) = usage.cost_microcents.filter(|cost| *cost > MAX_COST) {
        return bad(format!("a cost is {cost} microcents; at most {MAX_COST} are allowed"));
    }
    Ok(Usage {
        provider: name("usage.provider", usage.provider)?,
        biller: optional_name("usage.biller", usage.biller)?,
        model: optional_name("usage.model", usage.model)?,
        billing_type: usage.billing_type.as_ref().map(convert::billing_type),
        attribution_mode: usage.attribution_mode.as_ref().and_then(convert::attribution_mode),
        input_tokens: usage.input_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        output_tokens: usage.output_tokens,
        embedding_tokens: usage.embedding_tokens,
        cost: usage.cost_microcents.map(Microcents),
        latency_ms: usage.latency_ms,
        details: json("usage.details", usage.details)?,
    })
}
