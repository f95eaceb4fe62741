//! Costs and budgets: cost events, finance events, budgets. Amounts are whole microcents.

mod budgets;
mod evaluation;
mod events;
mod fact_figures;
mod ledger;
mod sums;
mod trim;

pub use evaluation::{Evaluation, EvaluationReport};
pub use events::CostEventPage;
pub(crate) use fact_figures::{Counted, FactFigures, Figures};
pub use ledger::LedgerError;
pub(crate) use ledger::{Ledger, MayCost, budget_key};
pub use sums::{GroupBy, Sums, SumsQuery, SumsRow, SumsView};
pub(crate) use trim::cost_events as trim_cost_events;
