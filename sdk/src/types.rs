//! The contract's types, as generated from `wit/`, under one roof. Their documentation is the contract's.

pub use crate::bindings::browse::exports::paperclip::memory::browse::{Node, NodePage};
pub use crate::bindings::correction::exports::paperclip::memory::correction::{CorrectRequest, CorrectResponse, Patch};
pub use crate::bindings::explain::exports::paperclip::memory::explain::{Contribution, Explanation, HitTrace};
pub use crate::bindings::extraction::exports::paperclip::memory::extraction::{JobPage, JobResult};
pub use crate::bindings::profile::exports::paperclip::memory::profile::ProfileResponse;
pub use crate::bindings::provider::exports::paperclip::memory::provider::{
    Capabilities, CaptureMode, CaptureRequest, CaptureResponse, ConfigError, ContextBundle, Description, ForgetEffect,
    ForgetOutcome, ForgetResponse, GetResponse, HttpPermission, ListRequest, Permission, PermissionRequest,
    UpsertRequest, UpsertResponse,
};
pub use crate::bindings::provider::paperclip::memory::types::{
    AttributionMode, BillingType, Continuation, Error, ExtractionJob, HookContext, HookKind, Intent, InvalidRequest,
    JobStatus, ListPage, QueryRequest, RecordWrite, RetryLater, Scope, Score, Snippet, SourceKind, SourcePayload,
    SourceRef, Usage,
};
pub use crate::bindings::review::exports::paperclip::memory::review::Decision;
pub use crate::bindings::transfer::exports::paperclip::memory::transfer::{Chunk, ImportReport};

/// The provider's own name for one record: unique within the binding, at most 512 bytes.
pub type RecordId = String;
