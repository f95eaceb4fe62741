//! Costs and budgets: cost events, finance events, budgets. Amounts are whole microcents.

mod budgets;
mod evaluation;
mod ledger;
mod sums;

pub use evaluation::{Evaluation, EvaluationReport};
pub(crate) use ledger::Ledger;
pub use ledger::LedgerError;
pub use sums::{GroupBy, Sums, SumsQuery, SumsRow, SumsView};
