//! What the pipeline fails with. Edges map it to their own codes.

use std::path::PathBuf;

use crate::access::AccessError;
use crate::access::Denied;
use crate::bindings::BindingError;
use crate::host::vault::VaultError;
use crate::money::LedgerError;
use crate::plugins::PluginError;
use crate::review::ReviewError;
use crate::work::hooks::HookError;
use crate::work::jobs::JobError;
use memhost_embeddings::EmbeddingsError;
use memhost_sandbox::{AdmissionError, CallError};
use memhost_store::StoreError;
use memhost_types::{CompanyId, FieldError, OperationError, OperationErrorCode, OperationId, Outcome, ProviderError};

/// Why a host did not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory could not be prepared.
    #[error("{action} {path} failed: {message}; choose a directory that this user may write, with --data-dir")]
    Directory {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The bindings could not be read.
    #[error(transparent)]
    Binding(#[from] BindingError),
    /// The tokens could not be read.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The engine could not be started.
    #[error("the sandbox could not be started: {0}")]
    Sandbox(#[from] AdmissionError),
    /// The embedding model or its endpoint will not do.
    #[error(transparent)]
    Embeddings(#[from] EmbeddingsError),
    /// Secrets cannot be read or kept.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// Secrets are stored, and the key that opens them is not there.
    #[error(
        "the vault key {path} is gone, and secrets are encrypted with it; restore it from a backup, or make a new one with `openssl rand -hex 32`, readable by its owner only, and set the secrets again"
    )]
    VaultKeyGone {
        /// Where it should be.
        path: PathBuf,
    },
    /// The plugins could not be read.
    #[error("the plugins could not be read: {0}")]
    Plugins(#[from] PluginError),
}

/// Why a request was not answered as asked.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// An operation ended without success; its record says the same.
    #[error("{}{}", error.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default(), error.message)]
    Operation {
        /// Where it is recorded.
        operation_id: OperationId,
        /// How it ended.
        outcome: Outcome,
        /// Why.
        error: OperationError,
    },
    /// The caller may not, and has no company in whose log that could stand.
    #[error(transparent)]
    Denied(Denied),
    /// A control-plane request has a field that will not do.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A provider does not accept a configuration.
    #[error("the provider does not accept the configuration: {}", errors.iter().map(|(pointer, message)| format!("{}: {message}", if pointer.is_empty() { "config" } else { pointer })).collect::<Vec<_>>().join("; "))]
    Config {
        /// JSON Pointer and message, each.
        errors: Vec<(String, String)>,
    },
    /// There is no such provider.
    #[error("no provider `{key}` is loaded; `memhost plugin list` shows those that are")]
    NoProvider {
        /// Its key.
        key: String,
    },
    /// There is no such version of a provider.
    #[error(
        "no build of the provider `{key}` is there for a binding that {choice}; `memhost plugin list` shows those that are"
    )]
    NoVersion {
        /// Its key.
        key: String,
        /// What is asked for.
        choice: String,
    },
    /// The host itself failed.
    #[error("the host failed: {0}")]
    Host(String),
    /// There is no such operation.
    #[error("the company has no operation {id}")]
    NoOperation {
        /// Its id.
        id: OperationId,
    },
    /// The company was erased.
    #[error("the company {company} was erased; nothing is kept for it any more")]
    Erased {
        /// Which.
        company: CompanyId,
    },
    /// The company is on its way into this host.
    #[error("the company {company} is being taken in; try again when that is done")]
    Importing {
        /// Which.
        company: CompanyId,
    },
    /// There is no such secret.
    #[error("the company has no secret `{name}`; `memhost secret list` shows those that are set")]
    NoSecret {
        /// Its name.
        name: String,
    },
    /// The vault failed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// Something about bindings.
    #[error(transparent)]
    Binding(#[from] BindingError),
    /// Something about tokens.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Something about hooks.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// Something about jobs.
    #[error(transparent)]
    Job(#[from] JobError),
    /// Something about reviews.
    #[error(transparent)]
    Review(#[from] ReviewError),
    /// Something about money.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The provider failed during a control-plane request.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The operation could not be recorded; therefore nothing was done, or nothing of it is shown.
    #[error("the operation could not be recorded, so it was not done: {0}")]
    Audit(#[source] StoreError),
    /// The provider did what was asked, and the disk did not take it.
    #[error(
        "the provider did it, but it is not known to be on disk, and operation {operation_id} will be shown as interrupted: {error}; then look for the records and repeat it if they are missing"
    )]
    Unrecorded {
        /// Where its intent is recorded.
        operation_id: OperationId,
        /// What the store said.
        #[source]
        error: StoreError,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an operation is not a success, before it is written down.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) outcome: Outcome,
    pub(crate) error: OperationError,
}

impl Refusal {
    pub(crate) fn new(code: OperationErrorCode, message: impl Into<String>) -> Self {
        let error = OperationError { code, message: message.into(), field: None, retry_after_ms: None };
        Self { outcome: Outcome::Refused, error }
    }
}

impl From<&Denied> for Refusal {
    fn from(denied: &Denied) -> Self {
        let mut refusal = Self::new(OperationErrorCode::Forbidden, denied.to_string());
        refusal.error.field = denied.field.map(str::to_owned);
        refusal
    }
}

impl From<FieldError> for Refusal {
    fn from(field: FieldError) -> Self {
        let mut refusal = Self::new(OperationErrorCode::InvalidRequest, field.message);
        refusal.error.field = Some(field.field);
        refusal
    }
}

impl From<BindingError> for Refusal {
    fn from(error: BindingError) -> Self {
        let code = match error {
            BindingError::Store(_) => OperationErrorCode::Host,
            _ => OperationErrorCode::NoBinding,
        };
        Self::new(code, error.to_string())
    }
}

impl From<&CallError> for Refusal {
    fn from(call: &CallError) -> Self {
        use OperationErrorCode as Code;
        let (outcome, code) = match call {
            CallError::Provider(error) => return error.into(),
            CallError::Busy { .. } | CallError::NoInstance { .. } | CallError::Retired => {
                (Outcome::Refused, Code::Busy)
            }
            CallError::NoInterface(_) => (Outcome::Refused, Code::Unsupported),
            CallError::TimedOut { .. } => (Outcome::TimedOut, Code::TimedOut),
            CallError::LimitExceeded { .. } => (Outcome::Trapped, Code::LimitExceeded),
            CallError::Trapped { .. } => (Outcome::Trapped, Code::Trapped),
            CallError::BadAnswer(_) => (Outcome::Failed, Code::BadAnswer),
        };
        Self { outcome, ..Self::new(code, call.to_string()) }
    }
}

impl From<&ProviderError> for Refusal {
    fn from(error: &ProviderError) -> Self {
        use OperationErrorCode as Code;
        let (code, field, retry_after_ms) = match error {
            ProviderError::InvalidRequest { field, .. } => (Code::InvalidRequest, field.clone(), None),
            ProviderError::NotFound(_) => (Code::NotFound, None, None),
            ProviderError::Unsupported(_) => (Code::Unsupported, None, None),
            ProviderError::Unauthorized(_) => (Code::Unauthorized, None, None),
            ProviderError::RateLimited { retry_after_ms, .. } => (Code::RateLimited, None, *retry_after_ms),
            ProviderError::Unavailable { retry_after_ms, .. } => (Code::Unavailable, None, *retry_after_ms),
            ProviderError::QuotaExceeded(_) => (Code::QuotaExceeded, None, None),
            ProviderError::Internal(_) => (Code::Internal, None, None),
        };
        let message = match error {
            ProviderError::InvalidRequest { message, .. } => message.clone(),
            other => other.to_string(),
        };
        Self { outcome: Outcome::Failed, error: OperationError { code, message, field, retry_after_ms } }
    }
}
