//! The ledger: cost events are written in one step with their operation. A budget is checked before
//! a call, and what the call cost is counted before its answer.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use crate::money::budgets::{self, Exceeded, Spending};
use memhost_ports::{Clock, new_id};
use memhost_store::{self as store, Change, Found, Store, StoreError, Table, TableWrite};
use memhost_types::{
    BindingKey, Budget, BudgetState, BudgetView, CompanyId, CostEvent, CostEventFilter, FieldError,
    FinanceEvent, Microcents, NewFinanceEvent, Operation, Period, SetBudget,
};

/// Why a call of the ledger failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LedgerError {
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

/// What every company spends and may spend. What was spent is a counter in memory, read from the
/// sums once; a store for several hosts reports the cost events of other hosts, so that each host
/// counts them (`Coordination` in the store).
pub(crate) struct Ledger {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    budgets: RwLock<HashMap<CompanyId, Vec<Budget>>>,
    spending: Mutex<HashMap<CompanyId, Spending>>,
}

/// Whether a call may cost something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MayCost {
    /// No budget stops it.
    Nothing,
    /// Its provider reaches no other system. It costs something if it has cost something this
    /// month.
    IfItDidBefore,
    /// A budget stops it.
    Something,
}

/// What an operation cost.
#[derive(Debug, Default)]
pub(crate) struct Charged {
    /// One for each use that is billed directly.
    pub events: Vec<CostEvent>,
    /// To be written in one step with the operation's record.
    pub writes: Vec<TableWrite>,
    /// Budgets whose state has changed.
    pub turned: Vec<BudgetView>,
}

/// The key of a budget's row, after the company.
pub(crate) fn budget_key(binding: Option<&BindingKey>, period: Period) -> String {
    format!("{}\0{period}", binding.map_or("", |key| key.as_str()))
}

impl Ledger {
    /// Reads all budgets.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let budgets = RwLock::new(Self::read(&*store, b"").await?);
        Ok(Self { store, clock, budgets, spending: Mutex::default() })
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

    /// Whether a binding may spend: the budget that is used up and is reset last, if there is one.
    ///
    /// # Errors
    /// Where what was spent before cannot be read.
    pub(crate) async fn check(
        &self,
        company: &CompanyId,
        binding: &BindingKey,
        costs: MayCost,
    ) -> Result<Option<Exceeded>, StoreError> {
        // Also without a budget: what is spent from here on is counted for a budget that is set
        // later.
        self.load(company).await?;
        let budgets = self.budgets.read();
        let Some(budgets) = budgets.get(company) else { return Ok(None) };
        let now = self.clock.now();
        let mut spending = self.spending.lock();
        let Some(spending) = spending.get_mut(company) else { return Ok(None) };
        spending.turn(now);
        let is_free = match costs {
            MayCost::Nothing => true,
            MayCost::IfItDidBefore => spending.of_binding(binding) == Microcents::default(),
            MayCost::Something => false,
        };
        if is_free {
            return Ok(None);
        }
        let of_binding =
            |budget: &&Budget| budget.binding_key.as_ref().is_none_or(|key| key == binding);
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
    /// The cost counts in memory even if the record cannot be written: it was spent, and until a
    /// restart the budgets know it.
    ///
    /// This call does not wait, so that nothing comes between a provider's answer and its record.
    ///
    /// # Errors
    /// Where an event cannot be encoded.
    pub(crate) fn charge(&self, operation: &Operation) -> Result<Charged, StoreError> {
        let events = CostEvent::of(operation);
        if events.is_empty() {
            return Ok(Charged::default());
        }
        let (company, now) = (&operation.company_id, self.clock.now());
        let budgets = self.budgets.read();
        let budgets = budgets.get(company).map_or(&[][..], Vec::as_slice);
        let mut turned = Vec::new();
        // Without an entry, the sums are read later, and they contain this operation then.
        if let Some(spending) = self.spending.lock().get_mut(company) {
            spending.turn(now);
            let states = |spending: &Spending| -> Vec<BudgetState> {
                budgets
                    .iter()
                    .map(|budget| budgets::view(budget, spending.of(budget), now).state)
                    .collect()
            };
            let before = states(spending);
            events.iter().for_each(|event| spending.count_event(event));
            for ((budget, before), after) in budgets.iter().zip(before).zip(states(spending)) {
                if before != after {
                    turned.push(budgets::view(budget, spending.of(budget), now));
                    let binding = budget.binding_key.as_ref().map_or("", |key| key.as_str());
                    let (period, state) = (budget.period.as_str(), after.as_str());
                    tracing::warn!(%company, binding, period, state, "the state of a budget has \
                        changed");
                }
            }
        }
        let write = |(index, event): (usize, &CostEvent)| {
            let mut key = store::newest_first(company, operation.id.uuid());
            key.extend(u32::try_from(index).unwrap_or(u32::MAX).to_be_bytes());
            Ok(TableWrite::new(Table::CostEvents, key, Some(store::encode("cost event", event)?)))
        };
        let writes = events.iter().enumerate().map(write).collect::<Result<_, StoreError>>()?;
        Ok(Charged { events, writes, turned })
    }

    /// Reads what a company has spent, unless it is known already. Must come before an operation
    /// that may cost something is run: the sums that are read here do not contain that operation,
    /// and [`Ledger::charge`] counts it afterwards.
    async fn load(&self, company: &CompanyId) -> Result<(), StoreError> {
        if self.spending.lock().contains_key(company) {
            return Ok(());
        }
        let now = self.clock.now();
        // Operations that have ended are in the sums, whether or not they are on disk.
        let rows =
            self.store.rollups(company, Period::Month.start(now), Period::Day.start(now)).await?;
        let rows = rows.into_iter().map(|(key, sums)| (key, sums.cost));
        // If two tasks read at the same time, the first one counts: operations are already counted
        // on top of it.
        self.spending.lock().entry(company.clone()).or_insert_with(|| Spending::new(now, rows));
        Ok(())
    }

    /// The change that sets a budget, or removes it. The budget counts once the change was made and
    /// passed to [`Ledger::apply`].
    ///
    /// # Errors
    /// Where a field is not valid.
    pub(crate) fn set_budget(
        &self,
        company: &CompanyId,
        binding: Option<&BindingKey>,
        period: Period,
        set: Option<SetBudget>,
    ) -> Result<(Option<Budget>, Option<Budget>, Change), LedgerError> {
        let before = self.budget(company, binding, period);
        let after = match set {
            None if before.is_none() => {
                return Err(LedgerError::NoBudget { binding: binding.cloned(), period });
            }
            None => None,
            Some(set) => {
                if !(0.0..=1.0).contains(&set.warn_share) {
                    let message = format!("is {}; 0 to 1 is allowed", set.warn_share);
                    return Err(FieldError::new("warnShare", message).into());
                }
                let (company_id, binding_key) = (company.clone(), binding.cloned());
                Some(Budget { company_id, binding_key, period, set, set_at: self.clock.now() })
            }
        };
        let name = budget_key(binding, period);
        let new = after.as_ref().map(|budget| store::encode("budget", budget)).transpose()?;
        let key = store::company_key(company, name.as_bytes());
        Ok((before, after, Change::always(Table::Budgets, key, new)))
    }

    /// Updates the cache with a budget that was written.
    pub(crate) fn apply(
        &self,
        company: &CompanyId,
        binding: Option<&BindingKey>,
        period: Period,
        after: Option<Budget>,
    ) {
        let mut all = self.budgets.write();
        let budgets = all.entry(company.clone()).or_default();
        budgets.retain(|budget| budget.binding_key.as_ref() != binding || budget.period != period);
        budgets.extend(after);
        if budgets.is_empty() {
            all.remove(company);
        }
    }

    /// Reads a company's budgets again, after somebody else wrote them.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub(crate) async fn reload(&self, company: &CompanyId) -> Result<(), StoreError> {
        let found = Self::read(&*self.store, &store::company_key(company, b"")).await?;
        let mut all = self.budgets.write();
        all.remove(company);
        all.extend(found);
        Ok(())
    }

    /// Counts what an operation of another process cost. Nothing is counted while it is unknown
    /// what the company has spent: the sums, which are read then, contain it.
    pub(crate) fn count(&self, event: &CostEvent) {
        if let Some(spending) = self.spending.lock().get_mut(&event.company_id) {
            spending.turn(self.clock.now());
            spending.count_event(event);
        }
    }

    fn budget(
        &self,
        company: &CompanyId,
        binding: Option<&BindingKey>,
        period: Period,
    ) -> Option<Budget> {
        let all = self.budgets.read();
        let own =
            |budget: &&Budget| budget.binding_key.as_ref() == binding && budget.period == period;
        all.get(company)?.iter().find(own).cloned()
    }

    /// A company's budgets with what was spent, those of the whole company first.
    ///
    /// # Errors
    /// Where what was spent cannot be read.
    pub(crate) async fn budgets(&self, company: &CompanyId) -> Result<Vec<BudgetView>, StoreError> {
        self.load(company).await?;
        let now = self.clock.now();
        let mut budgets = self.budgets.read().get(company).cloned().unwrap_or_default();
        budgets.sort_by(|a, b| (&a.binding_key, a.period).cmp(&(&b.binding_key, b.period)));
        let mut spending = self.spending.lock();
        let spending = spending.entry(company.clone()).or_insert_with(|| Spending::new(now, []));
        spending.turn(now);
        Ok(budgets.iter().map(|budget| budgets::view(budget, spending.of(budget), now)).collect())
    }

    /// Removes an erased company from the cache.
    pub(crate) fn forget(&self, company: &CompanyId) {
        self.budgets.write().remove(company);
        self.spending.lock().remove(company);
    }

    /// One page of a company's cost events, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub(crate) async fn cost_events(
        &self,
        company: &CompanyId,
        filter: &CostEventFilter,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<CostEvent>, StoreError> {
        let (prefix, table) = (store::company_key(company, b""), (Table::CostEvents, "cost event"));
        store::matching(&*self.store, table, &prefix, from, limit, |event| filter.matches(event))
            .await
    }

    /// Whether a company has the cost event of this id. An id does not say where its event is: they
    /// are read until it is found.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub(crate) async fn has_cost_event(
        &self,
        company: &CompanyId,
        id: Uuid,
    ) -> Result<bool, StoreError> {
        let prefix = store::company_key(company, b"");
        let mut events = store::scan_all(&*self.store, Table::CostEvents, &prefix);
        while let Some((_, event)) = events.next_row::<CostEvent>("cost event").await? {
            if event.id == id {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The change that enters a flat charge.
    ///
    /// # Errors
    /// Where a field is not valid.
    pub(crate) fn finance_event(
        &self,
        company: &CompanyId,
        by: &str,
        entered: NewFinanceEvent,
    ) -> Result<(FinanceEvent, Change), LedgerError> {
        entered.check()?;
        let event = FinanceEvent {
            id: new_id(&*self.clock),
            company_id: company.clone(),
            entered,
            created_by: by.to_owned(),
            created_at: self.clock.now(),
        };
        let (key, new) =
            (store::newest_first(company, event.id), store::encode("finance event", &event)?);
        Ok((event, Change::insert(Table::FinanceEvents, key, new)))
    }

    /// One page of a company's finance events, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub(crate) async fn finance_events(
        &self,
        company: &CompanyId,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<FinanceEvent>, StoreError> {
        let prefix = store::company_key(company, b"");
        store::matching(
            &*self.store,
            (Table::FinanceEvents, "finance event"),
            &prefix,
            from,
            limit,
            |_| true,
        )
        .await
    }
}
