//! All types of the contract, as generated from `wit/`. Their documentation is the contract's.

pub use crate::bindings::provider::exports::paperclip::memory::provider::{
    Capabilities, CaptureMode, CaptureRequest, CaptureResponse, ConfigError, ContextBundle,
    Declarations, Description, Exception, ForgetEffect, ForgetOutcome, ForgetRequest,
    ForgetResponse, GetResponse, HostWork, HttpPermission, ListRequest, Permission,
    PermissionRequest, UpsertRequest, UpsertResponse,
};
pub use crate::bindings::provider::paperclip::memory::types::{
    AttributionMode, BillingType, Continuation, Error, ExtractionJob, HookContext, HookKind,
    Intent, InvalidRequest, JobStatus, ListPage, QueryRequest, RecordWrite, RetryLater, Scope,
    Score, Snippet, SourceKind, SourcePayload, SourceRef, Turn, Usage,
};
pub use crate::optional::types::*;

/// The provider's own name for one record: unique within the binding, at most 512 bytes.
pub type RecordId = String;
