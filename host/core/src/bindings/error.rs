//! Why calls about bindings fail.

use memhost_store::StoreError;
use memhost_types::{AgentId, BindingKey, CompanyId};

/// Why a binding was not made, changed or found.
#[derive(Debug, thiserror::Error)]
pub enum BindingError {
    /// The key is in use.
    #[error("the company {company} has a binding `{key}` already; choose another key or change that one")]
    Exists {
        /// Whose.
        company: CompanyId,
        /// Which key.
        key: BindingKey,
    },
    /// There is no such binding.
    #[error("the company {company} has no binding `{key}`; `memhost binding list` shows those that it has")]
    NotFound {
        /// Whose.
        company: CompanyId,
        /// Which key.
        key: BindingKey,
    },
    /// No binding answers for this agent.
    #[error("no binding answers for {}the company {company}: it has no default; make one with `memhost binding create --default`",
        agent.as_ref().map(|agent| format!("agent {agent} of ")).unwrap_or_default())]
    NoDefault {
        /// Whose.
        company: CompanyId,
        /// For which agent.
        agent: Option<AgentId>,
    },
    /// It is not at the revision that the caller knows.
    #[error(
        "the binding `{key}` has revision {found} and not {expected}: it was changed meanwhile; look again and repeat"
    )]
    Stale {
        /// Which.
        key: BindingKey,
        /// The revision that the caller knows.
        expected: u64,
        /// Its revision.
        found: u64,
    },
    /// Somebody else changed the same thing at the same time.
    #[error("the bindings of the company {company} were changed by somebody else meanwhile; look again and repeat")]
    Conflict {
        /// Whose.
        company: CompanyId,
    },
    /// Somebody else changed something of the host at the same time.
    #[error("the {what} was changed by somebody else meanwhile; look again and repeat")]
    Changed {
        /// What.
        what: &'static str,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
