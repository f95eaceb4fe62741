//! Costs and budgets. Amounts are whole microcents.
//!
//! This module owns the rows of the tables `CostEvents`, `FinanceEvents` and `Budgets`, and reads
//! `CostOrder` and `Sums`, which the store writes with each operation.

mod budgets;
mod cost_events;
mod evaluation;
mod finance_events;
mod import;
mod ledger;
mod outgoing;
mod rows;
mod sums;

#[cfg(test)]
mod tests;

pub use self::budgets::Exceeded;
pub use self::cost_events::{CostEventPage, OldestFirst};
pub use self::evaluation::{Evaluation, EvaluationReport};
pub use self::import::{BillingRow, import_sums};
pub use self::ledger::{BillingError, BudgetChange, Charged, Ledger, MayCost};
pub use self::sums::{GroupBy, Sums, SumsQuery, SumsRow, SumsView};
