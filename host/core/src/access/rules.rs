//! What can be allowed, and which role may do it.

use memhost_types::{OperationKind, Role};

/// Something that a caller may be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// A memory operation.
    Operate(OperationKind),
    /// Delivering a hook.
    Deliver,
    /// Sending events of sessions and tools.
    Emit,
    /// Asking which binding answers.
    Resolve,
    /// Reading anything of a company.
    View,
    /// Changing bindings, targets, secrets, budgets, reviews, jobs, deliveries and tokens of a company.
    Administer,
    /// Setting grants and limits.
    Grant,
    /// Exporting or importing a company as a whole.
    Move,
    /// Erasing a company.
    Erase,
    /// What belongs to no company: plugins, metrics, the store.
    Host,
}

impl Act {
    /// The roles that may do this, in a company that they reach.
    pub fn roles(self) -> impl Iterator<Item = Role> {
        Role::ALL.iter().copied().filter(move |role| allows(*role, self))
    }
}

/// Whether a role may do something, in a company that it reaches.
pub(crate) fn allows(role: Role, act: Act) -> bool {
    match role {
        Role::Operator => true,
        Role::CompanyAdministrator => match act {
            Act::Operate(_) | Act::Deliver | Act::Emit | Act::Resolve | Act::View | Act::Administer => true,
            // The operator decides what providers may reach and use, and where a company is.
            Act::Grant | Act::Move | Act::Erase | Act::Host => false,
        },
        Role::Agent => match act {
            // These are for the company's administrator.
            Act::Operate(kind) => {
                !matches!(kind, OperationKind::Review | OperationKind::Export | OperationKind::Import)
            }
            act => matches!(act, Act::Deliver | Act::Emit | Act::Resolve),
        },
        Role::Auditor => match act {
            // An auditor looks at records. It takes none away.
            Act::Operate(kind) => !kind.is_write() && kind != OperationKind::Export,
            act => matches!(act, Act::View | Act::Resolve),
        },
    }
}
