//! The operation record: what memory work happened, for whom, why, and how it ended.

mod alike;
mod derived;
mod filter;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::alike::Alike;
pub use self::derived::{EXPLORER, is_mcp};
pub use self::filter::OperationFilter;
use super::named::named;
use super::{
    AttributionMode, BindingId, BindingKey, CompanyId, ExtractionJob, HookContext, OperationId,
    OutgoingTo, Principal, ProviderKey, RecordHandle, Scope, SourceRef, Usage, Visibility, limits,
};

macro_rules! define_kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal, $effect:ident,
        [
            $(
                $route:literal $method:ident($request:ty) -> $response:ty, $id:literal,
                $about:literal
            )?
        ],
        $did:literal, $wanted:literal;)+) => {
        named!(
            /// What was asked of a provider: the plan's operation types, and what the host does
            /// beside them.
            OperationKind, "kind" { $($(#[$doc])* $kind = $name,)+ }
        );

        impl OperationKind {
            fn effect(self) -> Effect {
                match self { $(Self::$kind => Effect::$effect,)+ }
            }

            /// The last part of its route on the runtime plane. `None` if a client does not ask
            /// for it there.
            pub fn route(self) -> Option<&'static str> {
                match self {
                    $(Self::$kind => [$($route.trim_start_matches('/'))?].first().copied(),)+
                }
            }

            /// The phrase after a name: `captured content`.
            pub fn did(self) -> &'static str {
                match self { $(Self::$kind => $did,)+ }
            }

            /// The phrase after "to": `capture content`.
            pub fn wanted(self) -> &'static str {
                match self { $(Self::$kind => $wanted,)+ }
            }
        }
    };
}

/// The effect of an operation on the records of a provider.
#[derive(PartialEq, Eq)]
enum Effect {
    Read,
    Write,
    Neither,
}

/// For each kind: its name in JSON, its effect, and two phrases for people: what somebody did, and
/// what somebody wanted to do. Between them, if a client asks for it on the runtime plane: the
/// route below `/runtime/v1/companies/{company}`, the service's function with its request and
/// answer, and the operation's id and summary in the OpenAPI document. `$with` is a macro that
/// takes the rows.
#[doc(hidden)]
#[macro_export]
macro_rules! operation_kinds {
    ($with:ident) => {
        $with! {
            /// Something that happened was taken in.
            Capture = "capture", Write, [
                "/capture" capture(memhost_types::CaptureRequest) ->
                    memhost_types::CaptureResponse,
                "capture", "Hand something that happened to the provider"
            ], "captured content", "capture content";
            /// Curated records were written.
            RecordUpsert = "record_upsert", Write, [
                "/records" upsert(memhost_types::UpsertRequest) ->
                    memhost_types::UpsertResponse, "upsertRecords", "Write curated records"
            ], "wrote records", "write records";
            /// Something was looked for.
            Query = "query", Read, [
                "/query" query(memhost_types::QueryRequest) ->
                    memhost_types::ContextBundle, "query", "Find the records that fit, best first"
            ], "searched", "search";
            /// Records were listed.
            List = "list", Read, [
                "/list" list(memhost_types::ListRequest) ->
                    memhost_types::ListPage, "listRecords", "List records, page by page"
            ], "listed records", "list records";
            /// One record was read.
            Get = "get", Read, [
                "/get" get(memhost_types::GetRequest) ->
                    memhost_types::GetResponse, "getRecord", "Read one record"
            ], "read a record", "read a record";
            /// A query was run again to be told how.
            Explain = "explain", Read, [
                "/explain" explain(memhost_types::QueryRequest) ->
                    memhost_types::Explanation, "explainQuery", "Explain how a query is answered"
            ], "explained a query", "explain a query";
            /// The provider's own tree was looked at.
            Browse = "browse", Read, [
                "/browse" browse(memhost_types::BrowseRequest) ->
                    memhost_types::BrowsePage, "browse", "Read the provider's own tree of records"
            ], "browsed the provider's tree", "browse the provider's tree";
            /// Records were made unreachable.
            Forget = "forget", Write, [
                "/forget" forget(memhost_types::ForgetRequest) ->
                    memhost_types::ForgetResponse, "forget", "Make records unreachable"
            ], "forgot records", "forget records";
            /// A record was corrected.
            Correct = "correct", Write, [
                "/correct" correct(memhost_types::CorrectRequest) ->
                    memhost_types::CorrectResponse, "correct", "Correct a record"
            ], "corrected a record", "correct a record";
            /// A person's decision about what a provider itself holds was carried out.
            Review = "review", Write, [],
                "reviewed records at the provider", "review records at the provider";
            /// Everything that a binding holds was read, in the provider's own lines.
            Export = "export", Read, [
                "/export" export_records(memhost_types::ExportRequest) ->
                    memhost_types::ExportPage, "exportRecords", "Export all records, page by page"
            ], "exported records", "export records";
            /// Lines of an export were taken in.
            Import = "import", Write, [
                "/import" import_records(memhost_types::ImportRequest) ->
                    memhost_types::ImportResponse, "importRecords", "Import the lines of an export"
            ], "imported records", "import records";
            /// A provider was given time for a job that a capture had left.
            Extraction = "extraction", Write, [], "ran a job", "run a job";
            /// A provider was asked whether the system behind it can be reached.
            Health = "health", Neither, [],
                "checked a provider's health", "check a provider's health";
            /// Something was asked of the host that is no memory operation. Only its refusal is
            /// recorded here: what was changed is in the activity log.
            Control = "control", Neither, [], "called the host", "call the host";
        }
    };
}

operation_kinds!(define_kinds);

impl OperationKind {
    /// Whether it only reads what a provider holds.
    pub fn is_read(self) -> bool {
        self.effect() == Effect::Read
    }

    /// Whether it changes what a provider holds: such an operation leaves its intent before the
    /// provider is called.
    pub fn is_write(self) -> bool {
        self.effect() == Effect::Write
    }

    /// The most handles that its record keeps of the records that were written, returned or
    /// forgotten. What a write did is looked up by record, so that every record of one request is
    /// named.
    pub fn recorded_handles(self) -> usize {
        if self.is_write() { limits::MAX_ITEMS } else { limits::MAX_RECORDED_HANDLES }
    }
}

named!(
    /// How an operation ended.
    Outcome, "outcome" {
        /// The provider works on a write.
        InProgress = "in_progress",
        /// As asked.
        Succeeded = "succeeded",
        /// The provider said no, its answer was not acceptable, or the host failed after the
        /// provider had answered.
        Failed = "failed",
        /// The host said no before the provider was called.
        Refused = "refused",
        /// The host keeps a capture and will deliver it later: a budget is used up, or a person
        /// must look at it first.
        Held = "held",
        /// The provider did not answer in time.
        TimedOut = "timed_out",
        /// The provider crashed or ran into a limit.
        Trapped = "trapped",
        /// The host ended, or the caller went away, before the operation was complete. A write may
        /// have happened.
        Interrupted = "interrupted",
    }
);

named!(
    /// The kind of an operation's error: the contract's cases, then the host's own.
    OperationErrorCode, "code" {
        /// The request can never succeed as it is.
        InvalidRequest = "invalid_request",
        /// The thing named does not exist in this scope.
        NotFound = "not_found",
        /// This provider does not do that.
        Unsupported = "unsupported",
        /// The system behind the provider refused its credentials.
        Unauthorized = "unauthorized",
        /// Too fast.
        RateLimited = "rate_limited",
        /// Not now.
        Unavailable = "unavailable",
        /// A limit on stored things is reached.
        QuotaExceeded = "quota_exceeded",
        /// The provider failed.
        Internal = "internal",
        /// No binding answers for this company, agent or key.
        NoBinding = "no_binding",
        /// The caller's token does not allow this.
        Forbidden = "forbidden",
        /// The company was erased.
        CompanyErased = "company_erased",
        /// Its source or its scope was forgotten, or something newer took its place, after it
        /// happened.
        Outdated = "outdated",
        /// A budget is used up.
        BudgetExceeded = "budget_exceeded",
        /// A person must look at it first.
        ReviewRequired = "review_required",
        /// The binding is disabled.
        BindingDisabled = "binding_disabled",
        /// The binding's provider is not loaded.
        ProviderMissing = "provider_missing",
        /// The binding's provider is being admitted.
        ProviderLoading = "provider_loading",
        /// Too many calls run or wait.
        Busy = "busy",
        /// The provider failed several times in a row, and gets no calls for a while.
        CircuitOpen = "circuit_open",
        /// The call's time was up.
        TimedOut = "timed_out",
        /// The provider crashed.
        Trapped = "trapped",
        /// The provider used more than its limits allow.
        LimitExceeded = "limit_exceeded",
        /// The provider's answer breaks the contract.
        BadAnswer = "bad_answer",
        /// The host ended, or the caller went away, before the operation was complete.
        Interrupted = "interrupted",
        /// The disk of the host is almost full.
        DiskFull = "disk_full",
        /// The store of the host cannot be reached now, or another host serves the company by now.
        StoreUnavailable = "store_unavailable",
        /// The host itself failed.
        Host = "host",
    }
);

/// Why an operation did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationError {
    /// The kind of failure.
    pub code: OperationErrorCode,
    /// What happened, to which thing, and what to do next.
    pub message: String,
    /// The request's field at fault, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Milliseconds until another try makes sense.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

/// A line that a guest logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// `error`, `warn`, `info`, `debug`, `trace`, or `stdout` and `stderr` for lines without a
    /// level.
    pub level: String,
    /// The line without its level.
    pub text: String,
}

/// One memory operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Finds the record; carries its number in the company's log.
    pub id: OperationId,
    /// The company.
    pub company_id: CompanyId,
    /// The kind of operation.
    pub kind: OperationKind,
    /// How it ended.
    pub outcome: Outcome,
    /// The principal that asked, such as `operator`.
    pub principal: Principal,
    /// The binding that was resolved or named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    /// The same binding, also when another one has its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_id: Option<BindingId>,
    /// The provider that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_key: Option<ProviderKey>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_version: Option<String>,
    /// The scope of the operation.
    pub scope: Scope,
    /// Where the memory came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRef>,
    /// The delivery that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookContext>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended; absent while it is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Microseconds from the beginning to the provider's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
    /// Microseconds of it in the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_us: Option<u64>,
    /// The readers of a written record; absent: everybody in the company.
    #[serde(default, skip_serializing_if = "Visibility::is_company")]
    pub visibility: Visibility,
    /// How many records were written, returned or forgotten.
    pub record_count: u32,
    /// The first of them, at most 100; of a write at most 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<RecordHandle>,
    /// Extraction that goes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<ExtractionJob>,
    /// The usage that the provider reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
    /// The requests that were sent for it, by origin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outgoing: Vec<OutgoingTo>,
    /// Where its cost is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribution_mode: Option<AttributionMode>,
    /// The cost events of the operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cost_event_ids: Vec<Uuid>,
    /// Why it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<OperationError>,
    /// The guest's log, at most 8 KiB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LogLine>,
    /// Records that the request says it builds on: `citedRecords` in its metadata.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cited: Vec<RecordHandle>,
    /// The request, if the binding's policy keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<PayloadSnapshot>,
    /// How many refusals of one token, minute and reason this record stands for; absent for one.
    /// They are the same in everything that a filter or a sum looks at. The other fields are those
    /// of the first; what has the principal `other tokens` shows only what all have in common.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 2))]
    pub count: u64,
}

fn one() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

/// The request, as far as the binding's policy keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PayloadSnapshot {
    /// The request as JSON, or its beginning.
    pub text: String,
    /// How long it was as a whole, in bytes.
    pub bytes: u64,
}

/// One page of the operation log, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationPage {
    /// At most as many as asked for.
    pub items: Vec<Operation>,
    /// Where the next page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl OperationErrorCode {
    /// Whether the provider was not even asked, for a reason that passes: that is no failed
    /// attempt.
    pub fn is_a_wait(self) -> bool {
        matches!(
            self,
            Self::BindingDisabled
                | Self::Busy
                | Self::CircuitOpen
                | Self::DiskFull
                | Self::ProviderLoading
                | Self::StoreUnavailable
        )
    }

    /// Whether the host itself put work off: nothing was tried, so nothing has failed.
    pub fn puts_off(self) -> bool {
        self.is_a_wait() || matches!(self, Self::BudgetExceeded)
    }

    /// Whether the same request may succeed later, as `error` in `wit/types.wit` says it of a
    /// provider's.
    pub fn is_worth_another_try(self) -> bool {
        !matches!(
            self,
            Self::InvalidRequest
                | Self::NotFound
                | Self::Unsupported
                | Self::Unauthorized
                | Self::QuotaExceeded
                | Self::NoBinding
                | Self::Forbidden
                | Self::CompanyErased
                | Self::Outdated
        )
    }
}
