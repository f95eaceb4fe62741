//! Costs and budgets of a company, for callers: lists, sums and evaluations, and changes with their
//! entries of the activity log.

use async_recursion::async_recursion as boxed;

use crate::Control;
use memhost_access::Caller;
use memhost_oplog::billing::{CostEventPage, EvaluationReport, OldestFirst, Sums, SumsQuery};
use memhost_registry::NewActivity;
use memhost_tenancy::Page;
use memhost_tenancy::ServiceError;
use memhost_types::{
    ActivityAction, BindingKey, BudgetView, CompanyId, CostEventFilter, Delivery, DeliveryFilter,
    DeliveryStatus, FieldError, FinanceEvent, Job, ListOrder, NewFinanceEvent, OperationErrorCode,
    OutgoingReport, Period, SetBudget,
};

impl Control {
    /// Sums over a company's operations. A key means the binding that has it now; where none has
    /// it, those that had it.
    ///
    /// # Errors
    /// Where the days are not valid or the sums cannot be read.
    #[boxed]
    pub async fn sums(&self, company: &CompanyId, query: &SumsQuery) -> Result<Sums, ServiceError> {
        let present =
            query.binding_key.as_ref().and_then(|key| self.bindings.get(company, key).ok());
        let query = SumsQuery {
            binding_id: query.binding_id.or(present.map(|binding| binding.known_as())),
            ..query.clone()
        };
        Ok(self.oplog.sums(company, &query).await?)
    }

    /// What left the host on some days, by origin, binding and provider.
    ///
    /// # Errors
    /// Where the days are not valid or the sums cannot be read.
    #[boxed]
    pub async fn outgoing(
        &self,
        company: &CompanyId,
        query: &SumsQuery,
    ) -> Result<OutgoingReport, ServiceError> {
        Ok(self.oplog.ledger.outgoing(company, query).await?)
    }

    /// How good memory was on some days.
    ///
    /// # Errors
    /// Where the days are not valid or the operations cannot be read.
    #[boxed]
    pub async fn evaluation(
        &self,
        company: &CompanyId,
        query: &SumsQuery,
    ) -> Result<EvaluationReport, ServiceError> {
        Ok(self.oplog.ledger.evaluation(company, query).await?)
    }

    /// One page of a company's cost events. Oldest first they are in the order in which they were
    /// written, so no event ever appears before a cursor that was answered.
    ///
    /// # Errors
    /// Where the cursor or the limit is not valid.
    #[boxed]
    pub async fn cost_events(
        &self,
        company: &CompanyId,
        filter: &CostEventFilter,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<CostEventPage, ServiceError> {
        filter.check()?;
        let page = self.tenancy.page_of("cost-events", company, filter, cursor, limit)?;
        let ledger = &self.oplog.ledger;
        if filter.order == ListOrder::Newest {
            let found = ledger.newest_cost_events(company, filter, page.from(), page.limit).await?;
            let Page { items, next_cursor } = self.tenancy.sealed(&page, found);
            let more = next_cursor.is_some();
            return Ok(CostEventPage { items, more, next_cursor, trimmed_before: None });
        }
        let after = match page.from() {
            None => 0,
            Some(bytes) => {
                let bytes = bytes
                    .try_into()
                    .map_err(|_| FieldError::new("cursor", "is of another list"))?;
                u64::from_be_bytes(bytes)
            }
        };
        let OldestFirst { events, through, more, trimmed_before } =
            ledger.oldest_cost_events(company, filter, after, page.limit).await?;
        let found = (events, Some(through.to_be_bytes().to_vec()));
        let Page { items, next_cursor } = self.tenancy.sealed(&page, found);
        Ok(CostEventPage { items, next_cursor, more, trimmed_before })
    }

    /// A company's budgets as they stand.
    ///
    /// # Errors
    /// Where what was spent cannot be read.
    #[boxed]
    pub async fn budgets(&self, company: &CompanyId) -> Result<Vec<BudgetView>, ServiceError> {
        Ok(self.oplog.ledger.budgets(company).await?)
    }

    /// Sets a budget, or removes it. Deliveries and jobs that wait for it are tried again.
    ///
    /// # Errors
    /// Where a field is not valid, there is no such binding, or there is nothing to remove.
    #[boxed]
    pub async fn set_budget(
        &self,
        caller: &Caller,
        company: &CompanyId,
        binding: Option<&BindingKey>,
        period: Period,
        set: Option<SetBudget>,
    ) -> Result<Vec<BudgetView>, ServiceError> {
        let id = match binding.filter(|_| set.is_some()) {
            Some(binding) => Some(self.bindings.get(company, binding)?.known_as()),
            None => None,
        };
        let ledger = &self.oplog.ledger;
        let of = binding.map(|binding| (binding, id));
        let change = ledger.set_budget(company, of, period, set)?;
        let subject = match binding {
            Some(binding) => format!("binding {binding}, per {period}"),
            None => format!("company, per {period}"),
        };
        let entry = NewActivity::new(caller.principal(), ActivityAction::BudgetChanged, subject);
        let entry = entry.with(change.before.as_ref(), change.after.as_ref());
        self.activity.record_with(company, entry, vec![change.change.clone()]).await?;
        ledger.apply(company, change);
        let all = self.budgets(company).await?;
        let is_it = |view: &&BudgetView| {
            view.budget.binding_key.as_ref() == binding && view.budget.period == period
        };
        if let Some(view) = all.iter().find(is_it) {
            self.oplog.feed.budget(view.clone());
        }
        self.hurry(company).await?;
        Ok(all)
    }

    /// Makes deliveries and jobs that wait for a budget due now instead of at the next period.
    async fn hurry(&self, company: &CompanyId) -> Result<(), ServiceError> {
        let filter =
            DeliveryFilter { status: Some(DeliveryStatus::Pending), ..DeliveryFilter::default() };
        let for_budget = |delivery: &Delivery| {
            delivery
                .error
                .as_ref()
                .is_some_and(|error| error.code == OperationErrorCode::BudgetExceeded)
        };
        let mut waiting = self.deliveries.all(company);
        while let Some(before) = waiting.next().await? {
            if filter.matches(&before) && for_budget(&before) {
                let after = Delivery { due_at: Some(self.clock.now()), ..before.clone() };
                // A delivery that was changed meanwhile is left as it is.
                self.deliveries.write(&before, &after).await?;
            }
        }
        let mut waiting = self.jobs.all(company);
        while let Some(before) = waiting.next().await? {
            if before.is_stopped_by_budget() {
                let after = Job { due_at: Some(self.clock.now()), ..before.clone() };
                self.jobs.write(&before, &after).await?;
            }
        }
        self.wake.notify_one();
        Ok(())
    }

    /// Enters a flat charge.
    ///
    /// # Errors
    /// Where a field is not valid.
    #[boxed]
    pub async fn add_finance_event(
        &self,
        caller: &Caller,
        company: &CompanyId,
        entered: NewFinanceEvent,
    ) -> Result<FinanceEvent, ServiceError> {
        if let Some(key) = &entered.binding_key
            && self.bindings.get(company, key).is_err()
        {
            let message = format!(
                "is `{key}`, and the company has no such binding; `memhost binding list` shows its \
                 own"
            );
            return Err(FieldError::new("bindingKey", message).into());
        }
        let (event, change) =
            self.oplog.ledger.finance_event(company, caller.principal(), entered).await?;
        let entry = NewActivity::new(
            caller.principal(),
            ActivityAction::FinanceEventAdded,
            event.id.to_string(),
        );
        let entry = entry.with(None::<&FinanceEvent>, Some(&event));
        self.activity.record_with(company, entry, vec![change]).await?;
        Ok(event)
    }

    /// One page of a company's finance events, newest first.
    ///
    /// # Errors
    /// Where the cursor or the limit is not valid.
    #[boxed]
    pub async fn finance_events(
        &self,
        company: &CompanyId,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Page<FinanceEvent>, ServiceError> {
        let page = self.tenancy.page_of("finance-events", company, &(), cursor, limit)?;
        let found = self.oplog.ledger.finance_events(company, page.from(), page.limit).await?;
        Ok(self.tenancy.sealed(&page, found))
    }
}
