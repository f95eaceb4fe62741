//! Which role may do what.

use memhost_types::{Act, OperationKind, Role};

/// The roles that may do something, in a company that they reach.
pub fn roles(act: Act) -> impl Iterator<Item = Role> {
    Role::ALL.iter().copied().filter(move |role| allows(*role, act))
}

/// Whether a role may do something, in a company that it reaches.
pub(crate) fn allows(role: Role, act: Act) -> bool {
    match role {
        Role::Operator => true,
        Role::CompanyAdministrator => match act {
            Act::Operate(_)
            | Act::Deliver
            | Act::Emit
            | Act::Resolve
            | Act::View
            | Act::Administer => true,
            // The operator decides what providers may reach and use, and where a company is.
            Act::Grant | Act::Move | Act::Erase | Act::Monitor | Act::Host => false,
        },
        Role::Agent => match act {
            // These are for the company's administrator.
            Act::Operate(kind) => !matches!(
                kind,
                OperationKind::Review | OperationKind::Export | OperationKind::Import
            ),
            act => matches!(act, Act::Deliver | Act::Emit | Act::Resolve),
        },
        Role::Auditor => match act {
            // An auditor looks at records. It takes none away.
            Act::Operate(kind) => !kind.is_write() && kind != OperationKind::Export,
            act => matches!(act, Act::View | Act::Resolve),
        },
        Role::Monitor => act == Act::Monitor,
        // Memory traffic only. Reviews are decided on the control plane.
        Role::Integration => act.is_runtime() && act != Act::Operate(OperationKind::Review),
    }
}
