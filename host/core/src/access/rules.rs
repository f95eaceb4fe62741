//! What each role may do: one table, read by everything else.

use crate::access::Act;
use memhost_types::{OperationKind, Role};

/// Whether a role may do something at all, in a company that it reaches.
pub(crate) fn allows(role: Role, act: Act) -> bool {
    match role {
        Role::Operator => true,
        Role::CompanyAdministrator => match act {
            Act::Operate(_) | Act::Deliver | Act::Emit | Act::Resolve | Act::View | Act::Administer => true,
            // The operator of the machine decides what providers may reach and use.
            Act::Grant | Act::Erase | Act::Host => false,
        },
        Role::Agent => match act {
            // The company's administrator decides reviews and moves whole bindings.
            Act::Operate(kind) => {
                !matches!(kind, OperationKind::Review | OperationKind::Export | OperationKind::Import)
            }
            act => matches!(act, Act::Deliver | Act::Emit | Act::Resolve),
        },
        Role::Auditor => match act {
            Act::Operate(kind) => !kind.is_write(),
            act => matches!(act, Act::View | Act::Resolve),
        },
    }
}
