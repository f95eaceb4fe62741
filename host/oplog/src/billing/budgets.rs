//! What was spent in the present day and month, in memory, and the budgets. A call is admitted
//! while its budget is not used up, and its cost is counted before its answer. Only calls that were
//! admitted before can exceed a budget.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;

use memhost_types::{
    BindingId, BindingKey, Budget, BudgetState, BudgetView, CostEvent, Microcents, Period,
    RollupKey,
};

/// A budget that is used up.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the {} of {} cents a {} is used up: {} cents were spent; it opens again at {resets_at}, \
         or raise it with `memhost budget update`",
    budget.binding_key.as_ref().map_or_else(|| "company's \
        budget".to_owned(), |key| format!("budget of the binding `{key}`")),
    cents(budget.set.limit), budget.period, cents(*spent))]
pub struct Exceeded {
    /// Which.
    pub budget: Budget,
    /// Its spending.
    pub spent: Microcents,
    /// When the next period begins.
    pub resets_at: Timestamp,
}

/// An amount for people.
#[allow(clippy::cast_precision_loss, reason = "for people")]
fn cents(amount: Microcents) -> String {
    format!("{}", amount.0 as f64 / 1e6)
}

#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    day: u64,
    month: u64,
}

/// A binding by its key and its id: another one of the same key has spent nothing of its own.
pub(super) type Spender = (Option<BindingKey>, Option<BindingId>);

/// The spending of one company in the present day and month, by binding.
#[derive(Debug)]
pub(super) struct Spending {
    day: Date,
    month: Date,
    by_binding: HashMap<Spender, Spent>,
}

impl Spending {
    /// From the sums of the present month.
    pub(super) fn new(
        now: Timestamp,
        rows: impl IntoIterator<Item = (RollupKey, Microcents)>,
    ) -> Self {
        let (day, month) = (Period::Day.start(now), Period::Month.start(now));
        let mut spending = Self { day, month, by_binding: HashMap::new() };
        for (key, cost) in rows {
            spending.count(key.day, (key.binding_key, key.binding_id), cost);
        }
        spending
    }

    /// Counts what was spent on a day.
    fn count(&mut self, day: Date, binding: Spender, cost: Microcents) {
        let spent = self.by_binding.entry(binding).or_default();
        if day == self.day {
            spent.day = spent.day.saturating_add(cost.0);
        }
        if day.first_of_month() == self.month {
            spent.month = spent.month.saturating_add(cost.0);
        }
    }

    pub(super) fn count_event(&mut self, event: &CostEvent) {
        let spender = (event.binding_key.clone(), event.binding_id);
        self.count(Period::Day.start(event.occurred_at), spender, event.cost);
    }

    /// A new day, or a new month, begins with nothing spent.
    pub(super) fn turn(&mut self, now: Timestamp) {
        let (day, month) = (Period::Day.start(now), Period::Month.start(now));
        if day != self.day {
            self.day = day;
            self.by_binding.values_mut().for_each(|spent| spent.day = 0);
        }
        if month != self.month {
            self.month = month;
            self.by_binding.values_mut().for_each(|spent| spent.month = 0);
        }
    }

    /// The spending of a binding in the present month.
    pub(super) fn of_binding(&self, binding: &Spender) -> Microcents {
        Microcents(self.by_binding.get(binding).map_or(0, |spent| spent.month))
    }

    /// The spending of a budget.
    pub(super) fn of(&self, budget: &Budget) -> Microcents {
        let period = |spent: &Spent| match budget.period {
            Period::Day => spent.day,
            Period::Month => spent.month,
        };
        let sum = match &budget.binding_key {
            Some(key) => {
                self.by_binding.get(&(Some(key.clone()), budget.binding_id)).map_or(0, period)
            }
            None => self.by_binding.values().map(period).fold(0, u64::saturating_add),
        };
        Microcents(sum)
    }
}

/// A budget with what was spent of it.
pub(super) fn view(budget: &Budget, spent: Microcents, now: Timestamp) -> BudgetView {
    #[allow(clippy::cast_precision_loss, reason = "a share that somebody chose by eye")]
    let is_near = spent.0 as f64 >= budget.set.limit.0 as f64 * budget.set.warn_share;
    let state = match spent >= budget.set.limit {
        true => BudgetState::Stopped,
        false if is_near => BudgetState::Warning,
        false => BudgetState::Open,
    };
    BudgetView { spent, state, resets_at: budget.period.end(now), budget: budget.clone() }
}
