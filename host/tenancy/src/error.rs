//! Why a request failed. The crates above map these errors to their own codes.

use std::fmt::Display;

use jiff::Timestamp;

use memhost_access::{AccessError, Denied};
use memhost_oplog::OplogError;
use memhost_oplog::billing::BillingError;
use memhost_queues::{BackgroundError, ReviewError};
use memhost_registry::BindingError;
use memhost_registry::secrets::{SetSecretError, VaultError};
use memhost_sandbox::CallError;
use memhost_store::StoreError;
use memhost_types::{
    BindingKey, CompanyId, FieldError, OperationError, OperationErrorCode, OperationId, Outcome,
    Principal, Refusal, foreign,
};

/// The text between a missing thing and the advice: the nearest name, if there is one.
fn or_near(near: Option<&str>) -> String {
    near.map_or_else(|| ";".to_owned(), |near| format!("; did you mean `{near}`?"))
}

/// Why nothing can be done in a company.
fn of_erased(company: &CompanyId, is_complete: bool, by: &Principal, at: Timestamp) -> String {
    match is_complete {
        true => format!(
            "the id {company} was erased here by {by} on {} and is not used again on this host; \
             import it on another one",
            at.strftime("%Y-%m-%d")
        ),
        false => format!(
            "the erasure of the company {company} is not complete, and nothing else can be done in \
             it; `memhost company \
             delete --company {company} --confirm {company}` goes on with it"
        ),
    }
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ServiceError {
    /// An operation ended without success; its record says the same.
    #[error(
        "{}{}", error.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default(),
        error.message
    )]
    Operation { operation_id: OperationId, outcome: Outcome, error: OperationError },
    /// The caller may not do this, and has no company in whose log the refusal could be recorded.
    #[error(transparent)]
    Denied(Denied),
    /// A field of a control-plane request is not valid.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The errors are pairs of a JSON Pointer and a message.
    #[error("the provider does not accept the configuration: \
             {}", errors.iter().map(|(pointer, message)| format!("{}: \
                 {message}", if pointer.is_empty() { "config" } else { pointer }))
        .collect::<Vec<_>>().join("; "))]
    Config { errors: Vec<(String, String)> },
    #[error(
        "no provider `{key}` is loaded{} `memhost plugin list` shows those that are, and why a \
         file was refused",
        or_near(near.as_deref())
    )]
    NoProvider { key: String, near: Option<String> },
    #[error(
        "no build of the provider `{key}` is there for a binding that {choice}; `memhost plugin \
         list` shows those that are"
    )]
    NoVersion { key: String, choice: String },
    /// It may be among the plugins that are being compiled.
    #[error(
        "no provider `{key}` is loaded yet, and the host is still compiling plugins; try again in \
         a few seconds"
    )]
    ProviderLoading { key: String },
    #[error("the host failed: {0}")]
    Host(String),
    #[error("the company has no operation {id}")]
    NoOperation { id: OperationId },
    #[error(
        "this host has no company `{shown}`{} `memhost company list` shows those that it has, and \
         `memhost company create \
         --company {shown}` makes it",
        or_near(near.as_deref()),
        shown = foreign::visible(company.as_str())
    )]
    UnknownCompany { company: CompanyId, near: Option<String> },
    #[error("{}", of_erased(company, *is_complete, by, *at))]
    Erased { company: CompanyId, is_complete: bool, by: Principal, at: Timestamp },
    /// The company is closed, and its bindings and secrets are still there.
    #[error(
        "the erasure of {company} is not complete: {reasons}; erase the company again when the \
         provider answers, or give up \
         what it has with `memhost company delete --confirm {company}{}`",
        bindings.iter().map(|key| format!(" --abandon {key}")).collect::<String>()
    )]
    NotForgotten { company: CompanyId, bindings: Vec<String>, reasons: String },
    /// Found before anything was closed.
    #[error(
        "nothing was erased, and the company {company} is open as before: {reasons}; mend that and \
         erase it again, or give up \
         what such a provider has with `memhost company delete --company {company} --confirm \
         {company}{}`",
        bindings.iter().map(|key| format!(" --abandon {key}")).collect::<String>()
    )]
    CannotForget { company: CompanyId, bindings: Vec<String>, reasons: String },
    #[error("the company cannot be exported, because its binding `{key}` cannot be read: {error}")]
    NotExported { key: BindingKey, error: Box<ServiceError> },
    #[error("the company {company} is being imported or restored; try again when that has ended")]
    Importing { company: CompanyId },
    #[error("this token follows {most} streams of events already; end one of them first")]
    TooManyStreams { most: usize },
    #[error("the company has no secret `{name}`; `memhost secret list` shows those that are set")]
    NoSecret { name: String },
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Binding(#[from] BindingError),
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Work(#[from] BackgroundError),
    #[error(transparent)]
    Review(#[from] ReviewError),
    #[error(transparent)]
    Billing(#[from] BillingError),
    /// The provider failed during a control-plane request.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The intent could not be recorded, and the provider was not called; or a read could not be
    /// recorded, and its answer is not shown.
    #[error("{}", OplogError::NotRecorded(.0.clone()))]
    Audit(#[source] StoreError),
    /// The provider did what was asked, and the completion could not be recorded.
    #[error("{}", OplogError::Unrecorded { operation_id: *operation_id, error: error.clone() })]
    Unrecorded {
        operation_id: OperationId,
        #[source]
        error: StoreError,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The disk is almost full, found where no operation runs.
    #[error("{0}")]
    DiskFull(String),
    /// The company's quota is used up, found where no operation runs.
    #[error("{0}")]
    CompanyFull(String),
}

impl ServiceError {
    /// Whether the disk is almost full: the same request succeeds when there is room again.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::DiskFull(_))
            || matches!(self.of_store(), Some(StoreError::DiskFull { .. }))
    }

    /// Whether the host keeps as much of the company as it may: other companies are not concerned.
    pub fn is_company_full(&self) -> bool {
        matches!(self, Self::CompanyFull(_))
            || matches!(self.of_store(), Some(StoreError::CompanyFull { .. }))
    }

    /// Whether the store cannot be reached now, or another host serves the company by now, and no
    /// provider has done anything: the same request may succeed a moment later.
    pub fn is_store_unavailable(&self) -> bool {
        !matches!(self, Self::Unrecorded { .. })
            && matches!(
                self.of_store(),
                Some(StoreError::NotHome { .. } | StoreError::Unavailable { .. })
            )
    }

    /// Whether the company was erased, maybe while this was done.
    pub fn is_erased(&self) -> bool {
        matches!(self, Self::Erased { .. })
            || matches!(self.of_store(), Some(StoreError::Erased { .. }))
    }

    /// The error of the store behind this one.
    fn of_store(&self) -> Option<&StoreError> {
        match self {
            Self::Audit(error)
            | Self::Unrecorded { error, .. }
            | Self::Store(error)
            | Self::Binding(BindingError::Store(error))
            | Self::Access(AccessError::Store(error))
            | Self::Work(BackgroundError::Store(error))
            | Self::Review(ReviewError::Store(error))
            | Self::Billing(BillingError::Store(error)) => Some(error),
            _ => None,
        }
    }

    /// The host itself failed.
    pub fn host(error: impl Display) -> Self {
        Self::Host(error.to_string())
    }
}

impl From<SetSecretError> for ServiceError {
    fn from(error: SetSecretError) -> Self {
        match error {
            SetSecretError::Field(error) => Self::Field(error),
            SetSecretError::NotFound { name } => Self::NoSecret { name },
            SetSecretError::Vault(error) => Self::Vault(error),
            SetSecretError::Store(error) => Self::Store(error),
        }
    }
}

/// Where no operation runs, what would refuse one is the host's own failure.
impl From<Refusal> for ServiceError {
    fn from(refusal: Refusal) -> Self {
        match refusal.error.code {
            OperationErrorCode::DiskFull => Self::DiskFull(refusal.error.message),
            OperationErrorCode::QuotaExceeded => Self::CompanyFull(refusal.error.message),
            _ => Self::Host(refusal.error.message),
        }
    }
}

impl From<OplogError> for ServiceError {
    fn from(error: OplogError) -> Self {
        match error {
            OplogError::Ended { operation_id, outcome, error } => {
                Self::Operation { operation_id, outcome, error }
            }
            OplogError::NotRecorded(error) => Self::Audit(error),
            OplogError::Unrecorded { operation_id, error } => {
                Self::Unrecorded { operation_id, error }
            }
            OplogError::Store(error) => Self::Store(error),
        }
    }
}
