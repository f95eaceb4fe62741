//! The plan's types, ids, limits and cursors. Knows no storage, no HTTP and no wasmtime; every other room knows it.
//!
//! JSON is camelCase with the plan's field names. Requests refuse unknown fields; answers leave absent fields out.

mod activity;
mod binding;
mod clock;
mod cursor;
mod failure;
mod ids;
pub mod limits;
mod operation;
mod origin;
mod permission;
mod provenance;
mod request;
mod response;
mod rollup;
mod storage;
mod usage;
mod version;

pub use activity::{Activity, ActivityAction, ActivityPage};
pub use binding::{Binding, BindingLimits, Target};
pub use clock::{Clock, SystemClock, new_id};
pub use cursor::{CursorError, CursorKey, QueryDigest};
pub(crate) use failure::cut_message;
pub use failure::{FieldError, ProviderError};
pub use ids::{AgentId, BindingId, BindingKey, CompanyId, IdError, OperationId, ProviderKey, RecordId, TextId};
pub use operation::{
    LogLine, Operation, OperationError, OperationErrorCode, OperationFilter, OperationKind, OperationPage, Outcome,
    PayloadSnapshot,
};
pub use origin::{Host, Origin, OriginError, Scheme, Target as HttpTarget};
pub use permission::{
    Grants, HttpGrant, HttpPermission, Permission, PermissionRequest, ProviderCapabilities, ProviderDescription,
    unreviewed,
};
pub use provenance::{HookContext, HookKind, Scope, SourceKind, SourcePayload, SourceRef};
pub use request::{
    CaptureMode, CaptureRequest, CorrectRequest, CorrectionPatch, ForgetRequest, GetRequest, Intent, JsonObject,
    ListRequest, QueryRequest, RecordWrite, UpsertRequest,
};
pub use response::{
    CaptureResponse, ContextBundle, CorrectResponse, ExtractionJob, ForgetEffect, ForgetOutcome, ForgetResponse,
    GetResponse, JobStatus, ListPage, RecordHandle, ScoreKind, Snippet, UpsertResponse,
};
pub use rollup::{Latencies, Rollup, RollupKey};
pub use storage::{BindingStorage, StorageEntry, StorageError, StoragePage, StorageSize, StorageWrite};
pub use usage::{AttributionMode, BillingType, Microcents, Usage};
pub use version::{Digest, DigestError, KeptFrom, ServingVersion, VersionChoice};
