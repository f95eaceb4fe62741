//! The roles of callers.

use super::named::named;

named!(
    /// The role of a caller. `host/docs/roles.md` has the permissions of each.
    Role, "role" {
        /// Runs the host: everything, for every company.
        Operator = "operator",
        /// Runs one company's memory: its bindings, secrets, budgets, reviews and tokens.
        CompanyAdministrator = "company_administrator",
        /// Works in one company: memory operations in its own scope.
        Agent = "agent",
        /// Looks at one company: everything that changes nothing.
        Auditor = "auditor",
        /// Watches the host: its health and metrics, and nothing of a company.
        Monitor = "monitor",
        /// A gateway in front of one company: memory traffic for the agent, run or person that each
        /// request names.
        Integration = "integration",
    }
);
