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

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that a role may do, by name.
    fn of(role: Role) -> Vec<&'static str> {
        let acts = Act::ALL.iter().filter(|act| allows(role, **act));
        let mut names: Vec<_> = acts.map(|act| act.as_str()).collect();
        names.sort_unstable();
        names
    }

    fn all_but(without: &[&str]) -> Vec<&'static str> {
        of(Role::Operator).into_iter().filter(|name| !without.contains(name)).collect()
    }

    #[test]
    fn an_operator_may_do_everything() {
        assert_eq!(of(Role::Operator).len(), Act::ALL.len());
    }

    #[test]
    fn an_administrator_does_not_decide_what_providers_reach_nor_where_a_company_is() {
        let operators = ["grant", "move", "erase", "monitor", "host"];
        assert_eq!(of(Role::CompanyAdministrator), all_but(&operators));
    }

    #[test]
    fn an_agent_uses_memory_and_neither_reviews_nor_moves_it() {
        let administrators = ["review", "export", "import", "view", "administer"];
        let others = ["grant", "move", "erase", "monitor", "host"];
        assert_eq!(of(Role::Agent), all_but(&[&administrators[..], &others].concat()));
    }

    #[test]
    fn an_auditor_looks_and_changes_nothing() {
        let looks = of(Role::Auditor);
        for changes in ["capture", "record_upsert", "forget", "correct", "export", "administer"] {
            assert!(!looks.contains(&changes), "{changes}");
        }
        for reads in ["query", "list", "get", "view", "resolve"] {
            assert!(looks.contains(&reads), "{reads}");
        }
        assert!(looks.iter().all(|name| of(Role::CompanyAdministrator).contains(name)));
    }

    #[test]
    fn a_monitor_only_watches() {
        assert_eq!(of(Role::Monitor), ["monitor"]);
    }

    #[test]
    fn an_integration_has_memory_traffic_only() {
        for act in Act::ALL {
            let is_review = *act == Act::Operate(OperationKind::Review);
            assert_eq!(allows(Role::Integration, *act), act.is_runtime() && !is_review, "{act}");
        }
    }

    #[test]
    fn the_roles_of_a_right_are_those_that_have_it() {
        let of = |act| roles(act).collect::<Vec<_>>();
        assert_eq!(of(Act::Host), [Role::Operator]);
        assert_eq!(of(Act::Monitor), [Role::Operator, Role::Monitor]);
        assert_eq!(of(Act::Administer), [Role::Operator, Role::CompanyAdministrator]);
        let readers = [
            Role::Operator,
            Role::CompanyAdministrator,
            Role::Agent,
            Role::Auditor,
            Role::Integration,
        ];
        assert_eq!(of(Act::Operate(OperationKind::Query)), readers);
    }
}
