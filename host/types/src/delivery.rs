//! Hooks: what Paperclip tells of, and what became of it at each binding.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::about::{About, Wanted};
use super::bounds::{check_bytes, check_context_id, check_json, check_page};
use super::named::named;
use super::{
    AgentId, BindingId, BindingKey, CaptureMode, CompanyId, DeliveryId, ExtractionJob, FieldError,
    HookContext, HookKind, JsonObject, OperationError, OperationId, Principal, RecordHandle, Scope,
    Snippet, SourcePayload, SourceRef, Visibility, limits,
};

/// Something memory-relevant that happened. `hookId` tells one event from another: what is
/// delivered again under the same id is answered as it was the first time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HookEvent {
    /// The kind of hook.
    #[schemars(with = "super::schema::OutsideId")]
    pub hook_kind: HookKind,
    /// The same for every delivery of one event: 1 to 128 bytes.
    #[schemars(with = "super::schema::OutsideId")]
    pub hook_id: String,
    /// When it happened; a time after its arrival counts as the arrival. This decides which of two
    /// events is newer, and not the arrival: an event that comes late is not captured if its source
    /// or its scope was forgotten after it happened, or if its source was replaced by an event that
    /// happened later.
    pub triggered_at: Timestamp,
    /// The agent whose action triggered it.
    #[serde(default)]
    pub actor_agent_id: Option<AgentId>,
    /// The run that it belongs to.
    #[serde(default)]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub heartbeat_run_id: Option<String>,
    /// Only this binding, whether or not it subscribes to the kind.
    #[serde(default)]
    pub binding_key: Option<BindingKey>,
    /// The scope of the hook.
    pub scope: Scope,
    /// Where the material comes from. Needed by every kind but `pre_run_hydrate`.
    #[serde(default)]
    pub source: Option<SourceRef>,
    /// The material. Needed by every kind but `pre_run_hydrate`.
    #[serde(default)]
    pub payload: Option<SourcePayload>,
    /// The mode of the capture.
    #[serde(default)]
    pub mode: CaptureMode,
    /// Free-form.
    #[serde(default)]
    #[schemars(transform = super::schema::free_json)]
    pub metadata: Option<JsonObject>,
    /// The readers of the resulting records; absent: as the binding's policy says.
    #[serde(default)]
    pub visibility: Option<Visibility>,
    /// Whether it takes the place of what came from the same source before, such as an earlier
    /// revision of a document: that is forgotten once a record of this counts. Needs the right to
    /// forget, and takes what the caller could forget.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces_source: bool,
    /// The subject of the run; `pre_run_hydrate` only, and required there.
    #[serde(default)]
    #[schemars(length(max = super::limits::MAX_QUERY_BYTES))]
    pub query: Option<String>,
    /// How many records at most; `pre_run_hydrate` only. 1 to 1,000; 10 where absent.
    #[serde(default)]
    #[schemars(transform = super::schema::top_k)]
    pub top_k: Option<u32>,
    /// How many tokens the context may have, 1 to 100,000; `pre_run_hydrate` only. 500 where
    /// absent.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100000))]
    pub token_budget: Option<u32>,
    /// How long recall may take, 1 to 30,000 milliseconds; `pre_run_hydrate` only. 2,000 where
    /// absent.
    #[serde(default)]
    #[schemars(range(min = 1, max = 30000))]
    pub deadline_ms: Option<u32>,
    /// How long to wait for what becomes of a capture, 0 to 30,000 milliseconds. 0 where absent:
    /// the answer says that it was taken, durably, and the rest goes on in the background.
    #[serde(default)]
    #[schemars(range(min = 0, max = 30000))]
    pub wait_ms: Option<u32>,
}

/// `tokenBudget` where an event has none.
pub const DEFAULT_TOKEN_BUDGET: u32 = 500;
/// `deadlineMs` where an event has none.
pub const DEFAULT_HYDRATE_MS: u32 = 2_000;

impl HookEvent {
    /// Checks what needs nothing but the event itself.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Result<(), FieldError> {
        super::check_id("hookId", &self.hook_id)?;
        super::check_id("hookKind", self.hook_kind.as_str())?;
        check_context_id("heartbeatRunId", self.heartbeat_run_id.as_deref())?;
        self.scope.check()?;
        // Whether or not the kind needs them: what comes with an event is stored with its
        // deliveries.
        self.source.as_ref().map_or(Ok(()), |source| source.check(&self.scope))?;
        self.payload.as_ref().map_or(Ok(()), SourcePayload::check)?;
        check_json("metadata", self.metadata.as_ref())?;
        self.query
            .as_ref()
            .map_or(Ok(()), |query| check_bytes("query", query, limits::MAX_QUERY_BYTES))?;
        check_page("topK", self.top_k)?;
        let range = |field: &str, value: Option<u32>, min: u32, max: u32| match value {
            Some(value) if !(min..=max).contains(&value) => {
                Err(FieldError::new(field, format!("is {value}; {min} to {max} are allowed")))
            }
            _ => Ok(()),
        };
        range("waitMs", self.wait_ms, 0, 30_000)?;
        range("deadlineMs", self.deadline_ms, 1, 30_000)?;
        range("tokenBudget", self.token_budget, 1, 100_000)?;
        let missing = |field: &str| {
            let kind = self.hook_kind.as_str();
            Err(FieldError::new(field, format!("is missing; a hook of the kind `{kind}` needs it")))
        };
        match (self.hook_kind == HookKind::PreRunHydrate, &self.query, &self.source, &self.payload)
        {
            (true, None, ..) => missing("query"),
            (false, _, None, _) => missing("source"),
            (false, _, _, None) => missing("payload"),
            _ => Ok(()),
        }
    }

    /// The context that goes with the call.
    pub fn context(&self) -> HookContext {
        HookContext {
            hook_kind: self.hook_kind.clone(),
            hook_id: self.hook_id.clone(),
            triggered_at: self.triggered_at,
            actor_agent_id: self.actor_agent_id.clone(),
            heartbeat_run_id: self.heartbeat_run_id.clone(),
            asserted_by: None,
        }
    }
}

named!(
    /// How far a delivery is.
    DeliveryStatus, "status" {
        /// It is durable, and will be tried.
        Pending = "pending",
        /// A person must look at it first.
        Held = "held",
        /// The provider took it.
        Delivered = "delivered",
        /// Recall was answered without all that there is, or with nothing: `recall.degraded` says
        /// why.
        Degraded = "degraded",
        /// The host no longer tries it. It can be replayed.
        Dead = "dead",
        /// It will not be captured: a person gave it up, its source or its scope was forgotten, or
        /// a newer revision of its source was taken.
        Discarded = "discarded",
    }
);

/// One event on its way to one binding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// Orders deliveries by time.
    pub id: DeliveryId,
    /// The company.
    pub company_id: CompanyId,
    /// To which binding.
    pub binding_id: BindingId,
    /// Its key when the event came.
    pub binding_key: BindingKey,
    /// The event.
    pub hook: HookContext,
    /// The principal that sent it.
    pub principal: Principal,
    /// The scope of the hook.
    pub scope: Scope,
    /// Where the material comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRef>,
    /// The material; removed with the metadata once it is delivered, since the provider has it
    /// then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<SourcePayload>,
    /// The mode of the capture.
    #[serde(default)]
    pub mode: CaptureMode,
    /// Free-form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    /// The readers of the resulting records, if the event names them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// Whether it takes the place of what came from the same source before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces_source: bool,
    /// Whether that is everybody's: its sender is neither an agent nor a person. Otherwise the
    /// private records of others stay.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces_of_everybody: bool,
    /// How far it is.
    pub status: DeliveryStatus,
    /// How often it was tried.
    pub attempts: u32,
    /// When it came.
    pub received_at: Timestamp,
    /// When it is tried next; absent if it is not tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The first attempt. Later ones tell the provider the same id, so that it takes the event
    /// once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<OperationId>,
    /// The last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation_id: Option<OperationId>,
    /// The records that there are because of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<RecordHandle>,
    /// Extraction that goes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<ExtractionJob>,
    /// Which records recall found, without their text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<Recalled>,
    /// Why the last attempt did not succeed, or why it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<OperationError>,
}

/// What `pre_run_hydrate` found at one binding. Recall never fails a run: where something went
/// wrong, there are no snippets, and `degraded` says why. It is answered and not kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recall {
    /// Best first.
    pub snippets: Vec<Snippet>,
    /// A summary of the scope as a whole.
    pub profile_summary: Option<String>,
    /// Why there is nothing, or why something is missing.
    pub degraded: Option<String>,
}

/// The stored part of recall: the handles of the records, without their text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recalled {
    /// The first of them, at most 100, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<RecordHandle>,
    /// How many there were.
    pub record_count: u32,
    /// Those of `records` that the token budget left out of the block.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<RecordHandle>,
    /// Whether the provider's summary of the scope was included.
    pub has_profile_summary: bool,
    /// Why there is nothing, or why something is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
}

impl Recalled {
    /// What is stored of a recall, some of whose records do not fit the block: `omitted` are their
    /// places.
    pub fn of(recall: &Recall, omitted: &[usize]) -> Self {
        let handles: Vec<RecordHandle> = recall
            .snippets
            .iter()
            .take(limits::MAX_RECORDED_HANDLES)
            .map(|snippet| snippet.handle.clone())
            .collect();
        Self {
            omitted: omitted.iter().filter_map(|&place| handles.get(place).cloned()).collect(),
            records: handles,
            record_count: u32::try_from(recall.snippets.len()).unwrap_or(u32::MAX),
            has_profile_summary: recall.profile_summary.is_some(),
            degraded: recall.degraded.clone(),
        }
    }
}

/// The block of text for the start of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextBlock {
    /// Markdown; empty where nothing was found.
    pub text: String,
    /// About how many tokens it has. The estimate is meant to be too high.
    pub tokens: u32,
    /// How many it may have.
    pub token_budget: u32,
    /// How many snippets are in it.
    pub included: u32,
    /// How many did not fit.
    pub omitted: u32,
    /// Why something is missing, a sentence a binding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
}

/// The state of an event.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookReceipt {
    /// The event.
    pub hook_id: String,
    /// Whether it had been delivered before: then this is what became of it.
    pub is_duplicate: bool,
    /// One for each binding that takes it, the one that the scope resolves to first.
    pub deliveries: Vec<Delivery>,
    /// Set where no binding takes it: the event is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_taken: Option<NotTaken>,
    /// For `pre_run_hydrate`: what to put before the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextBlock>,
}

/// Why an event was not kept.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotTaken {
    /// The operation that has the reason.
    pub operation_id: OperationId,
    /// A sentence: which bindings there are, and why each does not take it.
    pub reason: String,
}

/// Which deliveries to show. Every field that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names are those of the delivery's fields")]
pub struct DeliveryFilter {
    pub status: Option<DeliveryStatus>,
    pub binding_key: Option<BindingKey>,
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub hook_kind: Option<HookKind>,
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub hook_id: Option<String>,
    /// The agent of the scope, or else whose action triggered it.
    pub agent_id: Option<AgentId>,
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub issue_id: Option<String>,
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub run_id: Option<String>,
    /// Came at this moment or later.
    pub since: Option<Timestamp>,
    /// Came before this moment.
    pub until: Option<Timestamp>,
}

impl Delivery {
    /// What it is about.
    pub fn about(&self) -> About<'_> {
        About::of(&self.scope, self.source.as_ref(), Some(&self.hook))
    }

    /// When its event happened: what its sender says, but not later than it came.
    pub fn happened_at(&self) -> Timestamp {
        self.hook.triggered_at.min(self.received_at)
    }
}

impl DeliveryFilter {
    /// Checks the length of ids.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Result<(), FieldError> {
        check_context_id("issueId", self.issue_id.as_deref())?;
        check_context_id("runId", self.run_id.as_deref())?;
        self.hook_kind
            .as_ref()
            .map_or(Ok(()), |kind| super::check_id("hookKind", kind.as_str()))?;
        self.hook_id.as_ref().map_or(Ok(()), |id| super::check_id("hookId", id))
    }

    /// Whether a delivery matches.
    pub fn matches(&self, delivery: &Delivery) -> bool {
        self.status.is_none_or(|wanted| delivery.status == wanted)
            && self.binding_key.as_ref().is_none_or(|wanted| delivery.binding_key == *wanted)
            && self.hook_kind.as_ref().is_none_or(|wanted| delivery.hook.hook_kind == *wanted)
            && self.hook_id.as_ref().is_none_or(|wanted| delivery.hook.hook_id == *wanted)
            && delivery.about().is(Wanted {
                agent: self.agent_id.as_ref().map(AgentId::as_str),
                issue: self.issue_id.as_deref(),
                run: self.run_id.as_deref(),
                project: None,
            })
            && self.since.is_none_or(|since| delivery.received_at >= since)
            && self.until.is_none_or(|until| delivery.received_at < until)
    }
}
