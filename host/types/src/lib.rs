//! The plan's types, ids, limits and cursors. Knows no storage, no HTTP and no wasmtime; every
//! other crate uses it.
//!
//! JSON is camelCase with the plan's field names. Requests refuse unknown fields; answers leave
//! absent fields out.

mod about;
mod access;
mod act;
mod activity;
mod binding;
mod bounds;
mod cost;
mod cursor;
mod delivery;
mod event;
mod explained;
mod failure;
mod field_error;
pub mod foreign;
mod forget_scope;
mod host_view;
mod ids;
mod job;
mod json_text;
pub mod limits;
mod named;
mod operation;
mod origin;
mod outgoing;
mod pages;
mod permission;
mod policy;
mod principal;
mod provenance;
mod provenance_text;
mod record;
mod request;
mod response;
mod review;
mod role;
mod rollup;
pub mod schema;
mod secret;
mod source;
mod usage;
mod version;
mod visibility;
mod whose;
mod words;

pub use about::About;
pub use access::{FoundToken, NewToken, Token, TokenId};
pub use act::Act;
pub use activity::{Activity, ActivityAction, ActivityPage};
pub use binding::{Binding, BindingLimits, Limit, LimitUnit, RequestedGrants, Target};
pub use bounds::check_json;
pub use cost::{
    Budget, BudgetState, BudgetView, CostEvent, CostEventFilter, CostStatus, Direction,
    FinanceEvent, ListOrder, NewFinanceEvent, Period, SetBudget,
};
pub use cursor::{CursorError, CursorKey, QueryDigest};
pub use delivery::{
    ContextBlock, DEFAULT_HYDRATE_MS, DEFAULT_TOKEN_BUDGET, Delivery, DeliveryFilter,
    DeliveryStatus, HookEvent, HookReceipt, NotTaken, Recall, Recalled,
};
pub use event::{Event, EventFilter, EventType, NewEvent};
pub use explained::{ExplainedOperation, RecordFate, ReturnedRecord};
pub use failure::{ProviderError, Refusal, STORE_UNAVAILABLE, cut_message};
pub use field_error::FieldError;
pub use forget_scope::{ForgetScopeRequest, ForgottenScope};
pub use host_view::HostView;
pub use ids::{
    AgentId, BindingId, BindingKey, CompanyId, DeliveryId, IdError, OperationId, ProviderKey,
    RecordId, TextId, check_id,
};
pub use ipnet::IpNet;
pub use job::{Job, JobFilter, JobId, JobRunner};
pub use json_text::repair_surrogates;
pub use operation::{
    Alike, EXPLORER, LogLine, Operation, OperationError, OperationErrorCode, OperationFilter,
    OperationKind, OperationPage, Outcome, PayloadSnapshot, is_mcp,
};
pub use origin::{Host, Origin, OriginError, Scheme, Target as HttpTarget};
pub use outgoing::{
    CallUsage, NOT_GRANTED, OTHER_ORIGINS, Outgoing, OutgoingCounts, OutgoingReport, OutgoingRow,
    OutgoingTo,
};
pub use pages::Pages;
pub use permission::{
    AskedOrigin, Declarations, Exception, Grants, HostWork, HttpGrant, HttpPermission, Permission,
    PermissionRequest, ProviderCapabilities, ProviderDescription, Unresolved, unreviewed,
};
pub use policy::{
    BindingPolicy, BindingRetention, HookSubscription, McpPolicy, OnBudget, PiiPolicy,
    ReviewPolicy, Sharing, Snapshots, SubscribedWhen, default_hooks,
};
pub use principal::{ActsFor, Principal, Writer, check_token_name};
pub use provenance::{HookContext, HookKind, Scope, SourceKind, SourcePayload, SourceRef, Turn};
pub use record::{JsonObject, RecordHandle, texts_in};
pub use request::*;
pub use response::*;
pub use review::{
    Decision, HeldChange, HeldRecord, ReviewDecision, ReviewFilter, ReviewHolder, ReviewId,
    ReviewItem, ReviewStatus, ReviewSubject,
};
pub use role::Role;
pub use rollup::{Counts, Latencies, Rollup, RollupKey};
pub use secret::{SecretUse, SecretUseError};
pub use source::{
    ForgottenAt, ForgottenSources, MAX_SOURCE_RECORDS, MAX_SOURCES, Replacement, SourceRecord,
    SourceRecords, SourceSelector, SourcesRequest,
};
pub use usage::{AttributionMode, BillingType, Microcents, Usage};
pub use version::{
    Digest, DigestError, PluginChange, PluginOutcome, RejectedVersion, ServingVersion,
    VersionChoice,
};
pub use visibility::Visibility;
pub use whose::{RecordFilter, RecordRow};
pub use words::{counted, nearest, without_place};
