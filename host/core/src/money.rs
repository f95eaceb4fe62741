//! Costs and budgets: cost events, finance events, budgets. Amounts are whole microcents.

mod budgets;
mod evaluation;
mod ledger;
mod sums;

pub use evaluation::{Evaluation, EvaluationReport};
pub use ledger::LedgerError;
pub(crate) use ledger::{Ledger, MayCost, budget_key};
pub use sums::{GroupBy, Sums, SumsQuery, SumsRow, SumsView};
