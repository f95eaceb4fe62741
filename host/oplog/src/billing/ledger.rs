//! The ledger: what each company spends and may spend. A budget is checked before a call, and what
//! the call cost is counted before its answer.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::budgets::{self, Exceeded, Spending};
use super::rows::{self, budget_key};
use memhost_ports::Clock;
use memhost_store::{self as store, Change, Store, StoreError, Table, TableWrite};
use memhost_types::{
    Binding, BindingId, BindingKey, Budget, BudgetState, BudgetView, CompanyId, CostEvent,
    FieldError, Microcents, Operation, Period, SetBudget,
};

/// Why a call about costs or budgets failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum BillingError {
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error(
        "there is no {period} budget of {}; `memhost budget list` shows those that are set",
        binding.as_ref().map_or_else(|| "the company".to_owned(), |key| format!("the binding \
            `{key}`"))
    )]
    NoBudget { binding: Option<BindingKey>, period: Period },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The spending and the budgets of one company.
#[derive(Debug, Default)]
pub(super) struct Account {
    budgets: Vec<Budget>,
    /// `None`: the company's sums were not read yet.
    spending: Option<Spending>,
}

/// What every company spends and may spend. What was spent is a counter in memory, read from the
/// sums once: only the company's home adds to it.
///
/// Each company has its own lock, so no operation waits for another company's. The budgets stay
/// exact: everything that changes or compares the sums of a company does so under that lock. The
/// lock of the map is taken exclusively only when a company gets its account or loses it.
pub struct Ledger {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    accounts: RwLock<HashMap<CompanyId, Arc<Mutex<Account>>>>,
}

/// Whether a call may cost something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayCost {
    /// No budget stops it.
    Nothing,
    /// Its provider reaches no other system. It costs something if it has cost something this
    /// month.
    IfItDidBefore,
    /// A budget stops it.
    Something,
}

/// The cost of an operation.
#[derive(Debug, Default)]
pub struct Charged {
    /// One for each use that is billed directly.
    pub events: Vec<CostEvent>,
    /// To be written in one step with the operation's entry.
    pub writes: Vec<TableWrite>,
    /// Budgets whose state has changed.
    pub turned: Vec<BudgetView>,
}

/// A change of a budget. It counts once [`BudgetChange::change`] was written and the whole passed
/// to [`Ledger::apply`].
#[derive(Debug)]
pub struct BudgetChange {
    /// The budget before, if there was one.
    pub before: Option<Budget>,
    /// The budget from then on. `None`: it is removed.
    pub after: Option<Budget>,
    /// The change to write.
    pub change: Change,
    binding: Option<BindingKey>,
    period: Period,
}

impl Ledger {
    /// Reads all budgets.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub async fn open(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let account = |(company, budgets)| {
            (company, Arc::new(Mutex::new(Account { budgets, spending: None })))
        };
        let accounts = Self::read(&*store, b"").await?.into_iter().map(account).collect();
        Ok(Self { store, clock, accounts: RwLock::new(accounts) })
    }

    async fn read(
        store: &dyn Store,
        prefix: &[u8],
    ) -> Result<HashMap<CompanyId, Vec<Budget>>, StoreError> {
        let mut budgets: HashMap<CompanyId, Vec<Budget>> = HashMap::new();
        let mut rows = store::scan_all(store, Table::Budgets, prefix);
        while let Some((_, budget)) = rows.next_row::<Budget>("budget").await? {
            budgets.entry(budget.company_id.clone()).or_default().push(budget);
        }
        Ok(budgets)
    }

    pub(super) fn known(&self, company: &CompanyId) -> Option<Arc<Mutex<Account>>> {
        self.accounts.read().get(company).cloned()
    }

    fn account(&self, company: &CompanyId) -> Arc<Mutex<Account>> {
        let known = self.known(company);
        known.unwrap_or_else(|| {
            Arc::clone(self.accounts.write().entry(company.clone()).or_default())
        })
    }

    /// Whether a binding may spend: the budget that is used up and is reset last, if there is one.
    ///
    /// # Errors
    /// Where what was spent before cannot be read.
    pub async fn check(
        &self,
        company: &CompanyId,
        (binding, id): (&BindingKey, Option<BindingId>),
        costs: MayCost,
    ) -> Result<Option<Exceeded>, StoreError> {
        // Also without a budget: what is spent from here on is counted for a budget that is set
        // later.
        self.load(company).await?;
        let Some(account) = self.known(company) else { return Ok(None) };
        let mut account = account.lock();
        let Account { budgets, spending: Some(spending) } = &mut *account else { return Ok(None) };
        let now = self.clock.now();
        spending.turn(now);
        let is_free = match costs {
            MayCost::Nothing => true,
            MayCost::IfItDidBefore => {
                spending.of_binding(&(Some(binding.clone()), id)) == Microcents::default()
            }
            MayCost::Something => false,
        };
        if is_free {
            return Ok(None);
        }
        let of_binding = |budget: &&Budget| {
            let is_its = |key| key == binding && budget.binding_id == id;
            budget.binding_key.as_ref().is_none_or(is_its)
        };
        let views = budgets
            .iter()
            .filter(of_binding)
            .map(|budget| budgets::view(budget, spending.of(budget), now));
        let stopped = views.filter(|view| view.state == BudgetState::Stopped);
        Ok(stopped.max_by_key(|view| view.resets_at).map(|view| {
            let BudgetView { budget, spent, resets_at, .. } = view;
            Exceeded { budget, spent, resets_at }
        }))
    }

    /// Counts what an operation cost, and answers the cost events that are to be written with it.
    /// The cost counts in memory even if the operation cannot be written: it was spent, and until a
    /// restart the budgets know it.
    ///
    /// This call does not wait, so that nothing comes between a provider's answer and its entry.
    ///
    /// # Errors
    /// Where an event cannot be encoded.
    pub fn charge(&self, operation: &Operation) -> Result<Charged, StoreError> {
        let events = CostEvent::of(operation);
        if events.is_empty() {
            return Ok(Charged::default());
        }
        let turned = self.count_all(&operation.company_id, &events);
        let writes = rows::writes(operation, &events)?;
        Ok(Charged { events, writes, turned })
    }

    /// Answers the budgets whose state has changed with these events.
    fn count_all(&self, company: &CompanyId, events: &[CostEvent]) -> Vec<BudgetView> {
        // Without an account or its sums, the sums are read later, and they contain this operation
        // then.
        let Some(account) = self.known(company) else { return Vec::new() };
        let mut account = account.lock();
        let Account { budgets, spending: Some(spending) } = &mut *account else {
            return Vec::new();
        };
        let now = self.clock.now();
        spending.turn(now);
        let states = |spending: &Spending| -> Vec<BudgetView> {
            budgets.iter().map(|budget| budgets::view(budget, spending.of(budget), now)).collect()
        };
        let before = states(spending);
        events.iter().for_each(|event| spending.count_event(event));
        let after = states(spending).into_iter().zip(before);
        let turned = after.filter(|(after, before)| after.state != before.state);
        let turned: Vec<BudgetView> = turned.map(|(after, _)| after).collect();
        for BudgetView { budget, state, .. } in &turned {
            let binding = budget.binding_key.as_ref().map_or("", |key| key.as_str());
            let (period, state) = (budget.period.as_str(), state.as_str());
            tracing::warn!(%company, binding, period, state, "the state of a budget has changed");
        }
        turned
    }

    /// Reads what a company has spent, unless it is known already. Must come before an operation
    /// that may cost something is run: the sums that are read here do not contain that operation,
    /// and [`Ledger::charge`] counts it afterwards.
    async fn load(&self, company: &CompanyId) -> Result<(), StoreError> {
        if self.known(company).is_some_and(|account| account.lock().spending.is_some()) {
            return Ok(());
        }
        let now = self.clock.now();
        // Operations that have ended are in the sums, whether or not they are on disk.
        let rows =
            self.store.rollups(company, Period::Month.start(now), Period::Day.start(now)).await?;
        let rows = rows.into_iter().map(|(key, sums)| (key, sums.cost));
        // If two tasks read at the same time, the first one counts: operations are already counted
        // on top of it.
        self.account(company).lock().spending.get_or_insert_with(|| Spending::new(now, rows));
        Ok(())
    }

    /// Removes the budgets of a deleted binding: they belong to no other one of its key.
    ///
    /// # Errors
    /// Where they cannot be removed.
    pub async fn forget_binding(&self, binding: &Binding) -> Result<(), StoreError> {
        let company = &binding.company_id;
        let is_its = |budget: &Budget| {
            budget.binding_key.as_ref() == Some(&binding.key)
                && budget.binding_id == Some(binding.known_as())
        };
        let Some(account) = self.known(company) else { return Ok(()) };
        let own: Vec<Budget> =
            account.lock().budgets.iter().filter(|b| is_its(b)).cloned().collect();
        let gone = own.iter().map(|budget| {
            let key = budget_key(company, Some(&binding.key), budget.period);
            Change::always(Table::Budgets, key, None)
        });
        store::write(&*self.store, &gone.collect::<Vec<_>>()).await?;
        account.lock().budgets.retain(|budget| !is_its(budget));
        Ok(())
    }

    /// The change that sets a budget, or removes it. `binding`: its key, and its id where it is
    /// there.
    ///
    /// # Errors
    /// Where a field is not valid, or there is nothing to remove.
    pub fn set_budget(
        &self,
        company: &CompanyId,
        binding: Option<(&BindingKey, Option<BindingId>)>,
        period: Period,
        set: Option<SetBudget>,
    ) -> Result<BudgetChange, BillingError> {
        let (binding, binding_id) = binding.map_or((None, None), |(key, id)| (Some(key), id));
        let own =
            |budget: &&Budget| budget.binding_key.as_ref() == binding && budget.period == period;
        let before = self
            .known(company)
            .and_then(|account| account.lock().budgets.iter().find(own).cloned());
        let after = match set {
            None if before.is_none() => {
                return Err(BillingError::NoBudget { binding: binding.cloned(), period });
            }
            None => None,
            Some(set) => {
                check_warn_share(&set)?;
                let (company_id, binding_key) = (company.clone(), binding.cloned());
                let set_at = self.clock.now();
                Some(Budget { company_id, binding_key, binding_id, period, set, set_at })
            }
        };
        let new = after.as_ref().map(|budget| store::encode("budget", budget)).transpose()?;
        let key = budget_key(company, binding, period);
        let change = Change::always(Table::Budgets, key, new);
        Ok(BudgetChange { before, after, change, binding: binding.cloned(), period })
    }

    /// Lets a change of a budget that was written count.
    pub fn apply(&self, company: &CompanyId, written: BudgetChange) {
        let BudgetChange { after, binding, period, .. } = written;
        let account = self.account(company);
        let mut account = account.lock();
        account.budgets.retain(|budget| budget.binding_key != binding || budget.period != period);
        account.budgets.extend(after);
    }

    /// Reads a company's budgets again, after an import wrote them.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub async fn reload(&self, company: &CompanyId) -> Result<(), StoreError> {
        let mut found = Self::read(&*self.store, &store::company_key(company, b"")).await?;
        self.account(company).lock().budgets = found.remove(company).unwrap_or_default();
        Ok(())
    }

    /// A company's budgets with what was spent, those of the whole company first.
    ///
    /// # Errors
    /// Where what was spent cannot be read.
    pub async fn budgets(&self, company: &CompanyId) -> Result<Vec<BudgetView>, StoreError> {
        self.load(company).await?;
        let Some(account) = self.known(company) else { return Ok(Vec::new()) };
        let mut account = account.lock();
        let now = self.clock.now();
        let Account { budgets, spending } = &mut *account;
        let spending = spending.get_or_insert_with(|| Spending::new(now, []));
        spending.turn(now);
        let mut views: Vec<BudgetView> =
            budgets.iter().map(|budget| budgets::view(budget, spending.of(budget), now)).collect();
        views.sort_by(|a, b| {
            let place = |view: &BudgetView| (view.budget.binding_key.clone(), view.budget.period);
            place(a).cmp(&place(b))
        });
        Ok(views)
    }

    /// Removes an erased company from memory.
    pub fn forget(&self, company: &CompanyId) {
        self.accounts.write().remove(company);
    }
}

/// Checks the share of a budget from which it warns.
pub(super) fn check_warn_share(set: &SetBudget) -> Result<(), FieldError> {
    if (0.0..=1.0).contains(&set.warn_share) {
        return Ok(());
    }
    Err(FieldError::new("warnShare", format!("is {}; 0 to 1 is allowed", set.warn_share)))
}
