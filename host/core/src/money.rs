//! Costs and budgets: cost events, finance events, budgets. Amounts are whole microcents.

mod budgets;
mod evaluation;
mod ledger;
mod sums;

pub use budgets::{Exceeded, Spending};
pub use evaluation::{Evaluation, EvaluationReport};
pub use ledger::{Ledger, LedgerError};
pub use sums::{GroupBy, Sums, SumsQuery, SumsRow, SumsView};
