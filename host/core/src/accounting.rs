//! What was spent, and how much may be: cost events, finance events, budgets. Amounts are whole microcents.

mod budgets;
mod ledger;

pub use budgets::{Exceeded, Spending};
pub use ledger::{Ledger, LedgerError};
