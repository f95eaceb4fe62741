//! Why changes of bindings, and of what else the activity log describes, fail.

use memhost_store::StoreError;
use memhost_types::{AgentId, BindingKey, CompanyId, OperationErrorCode, Refusal};

/// Why a binding was not made, changed or found.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum BindingError {
    #[error(
        "the company {company} has a binding `{key}` already; choose another key or change that one"
    )]
    Exists { company: CompanyId, key: BindingKey },
    #[error(
        "the company {company} has no binding `{key}`; `memhost binding list` shows those that it \
         has"
    )]
    NotFound { company: CompanyId, key: BindingKey },
    #[error("no binding answers for {}the company {company}: it has no default; make one with \
             `memhost binding create KEY --default`",
        agent.as_ref().map(|agent| format!("agent {agent} of ")).unwrap_or_default())]
    NoDefault { company: CompanyId, agent: Option<AgentId> },
    /// It does not have the revision that the caller expects.
    #[error(
        "the binding `{key}` has revision {found} and not {expected}: it was changed meanwhile; \
         look again and repeat"
    )]
    Stale { key: BindingKey, expected: u64, found: u64 },
    #[error(
        "the bindings of the company {company} were changed by somebody else meanwhile; look again \
         and repeat"
    )]
    Conflict { company: CompanyId },
    /// Something that belongs to no company.
    #[error("the {what} was changed by somebody else meanwhile; look again and repeat")]
    Changed { what: &'static str },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<BindingError> for Refusal {
    fn from(error: BindingError) -> Self {
        match error {
            BindingError::Store(error) => error.into(),
            error => Self::new(OperationErrorCode::NoBinding, error.to_string()),
        }
    }
}
