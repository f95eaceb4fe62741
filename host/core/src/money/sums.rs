//! What memory costs: budgets, cost and finance events, and sums in groups.

use async_recursion::async_recursion as boxed;
use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Service;
use crate::access::Caller;
use crate::bindings::NewActivity;
use crate::error::ServiceError;
use crate::paging::Page;
use memhost_types::{
    ActivityAction, BindingKey, BudgetView, CompanyId, Delivery, DeliveryFilter, DeliveryStatus,
    FieldError, FinanceEvent, Microcents, NewFinanceEvent, OperationErrorCode, Period, Rollup,
    RollupKey, SetBudget,
};

/// How sums are grouped.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum GroupBy {
    Day,
    Binding,
    Agent,
    Provider,
    Model,
}

impl GroupBy {
    const ALL: [(&'static str, Self); 5] = [
        ("day", Self::Day),
        ("binding", Self::Binding),
        ("agent", Self::Agent),
        ("provider", Self::Provider),
        ("model", Self::Model),
    ];

    /// From a list such as `day,binding`; empty: one row for everything.
    ///
    /// # Errors
    /// The first unknown name.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, FieldError> {
        let mut all = Vec::new();
        for name in text.split(',').filter(|name| !name.is_empty()) {
            match Self::ALL.iter().find(|(known, _)| *known == name) {
                Some((_, by)) if !all.contains(by) => all.push(*by),
                Some(_) => {}
                None => {
                    let message = format!(
                        "has `{}`; day, binding, agent, provider and model are allowed",
                        name.escape_debug()
                    );
                    return Err(FieldError::new("groupBy", message));
                }
            }
        }
        Ok(all)
    }
}

/// One row of sums. Fields by which it is not grouped are absent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are those of the key's fields")]
pub struct SumsRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<Date>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The sums.
    #[serde(flatten)]
    pub sums: SumsView,
}

/// Sums as they are shown.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SumsView {
    /// Everything that is counted.
    #[serde(flatten)]
    #[schemars(with = "Rollup")]
    pub counts: serde_json::Map<String, serde_json::Value>,
    /// What was billed directly: the sum of the cost events.
    #[serde(rename = "costCents")]
    pub cost: Microcents,
    /// What the providers reported in all, whoever bills it.
    #[serde(rename = "reportedCostCents")]
    pub reported_cost: Microcents,
    /// The median latency, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p50_us: Option<u64>,
    /// The 99th percentile of latency, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p99_us: Option<u64>,
}

impl SumsView {
    /// A count, by its name in JSON.
    pub fn counted(&self, name: &str) -> u64 {
        self.counts.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0)
    }
}

impl From<&Rollup> for SumsView {
    fn from(sums: &Rollup) -> Self {
        let mut counts = match serde_json::to_value(sums) {
            Ok(serde_json::Value::Object(counts)) => counts,
            _ => serde_json::Map::new(),
        };
        for name in ["latency", "costMicrocents", "reportedCostMicrocents"] {
            counts.remove(name);
        }
        let (cost, reported_cost) = (sums.cost, sums.reported_cost);
        Self {
            counts,
            cost,
            reported_cost,
            latency_p50_us: sums.latency.percentile(0.5),
            latency_p99_us: sums.latency.percentile(0.99),
        }
    }
}

/// The sums of some days.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sums {
    /// The first day, in UTC.
    pub since: Date,
    /// The last day.
    pub until: Date,
    /// One row a group.
    pub rows: Vec<SumsRow>,
    /// All of them together.
    pub total: SumsView,
}

/// Which days, and by what.
#[derive(Debug, Clone, Default)]
pub struct SumsQuery {
    /// The first day; 30 days before the last where absent.
    pub since: Option<Date>,
    /// The last day; today where absent.
    pub until: Option<Date>,
    /// How rows are grouped.
    pub group_by: Vec<GroupBy>,
    /// Only this binding.
    pub binding_key: Option<BindingKey>,
}

impl Service {
    /// Sums over a company's operations.
    ///
    /// # Errors
    /// Where the days are not valid or the sums cannot be read.
    #[boxed]
    pub async fn sums(&self, company: &CompanyId, query: &SumsQuery) -> Result<Sums, ServiceError> {
        let (since, until) = days(query, self.clock.now())?;
        let mut total = Rollup::default();
        let mut rows: BTreeMap<[Option<String>; 5], (RollupKey, Rollup)> = BTreeMap::new();
        for (key, sums) in self.store.rollups(company, since, until).await? {
            if query
                .binding_key
                .as_ref()
                .is_some_and(|wanted| key.binding_key.as_ref() != Some(wanted))
            {
                continue;
            }
            total.add(&sums);
            let group =
                [GroupBy::Day, GroupBy::Binding, GroupBy::Agent, GroupBy::Provider, GroupBy::Model]
                    .map(|by| query.group_by.contains(&by).then(|| of(&key, by)));
            rows.entry(group).or_insert_with(|| (key, Rollup::default())).1.add(&sums);
        }
        let row = |(group, (key, sums)): ([Option<String>; 5], (RollupKey, Rollup))| {
            let [day, binding_key, agent_id, provider, model] = group;
            SumsRow {
                day: day.map(|_| key.day),
                binding_key,
                agent_id,
                provider,
                model,
                sums: (&sums).into(),
            }
        };
        Ok(Sums { since, until, rows: rows.into_iter().map(row).collect(), total: (&total).into() })
    }

    /// A company's budgets as they stand.
    ///
    /// # Errors
    /// Where what was spent cannot be read.
    #[boxed]
    pub async fn budgets(&self, company: &CompanyId) -> Result<Vec<BudgetView>, ServiceError> {
        Ok(self.recorder.ledger.budgets(company).await?)
    }

    /// Sets a budget, or removes it. Deliveries that wait for it are tried again.
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
        if let Some(binding) = binding.filter(|_| set.is_some()) {
            self.bindings.get(company, binding)?;
        }
        let ledger = &self.recorder.ledger;
        let (before, after, change) = ledger.set_budget(company, binding, period, set)?;
        let subject = match binding {
            Some(binding) => format!("binding {binding}, per {period}"),
            None => format!("company, per {period}"),
        };
        let entry = NewActivity::new(caller.principal(), ActivityAction::BudgetChanged, subject);
        let entry = entry.with(before.as_ref(), after.as_ref());
        self.bindings.record_with(company, entry, vec![change]).await?;
        ledger.apply(company, binding, period, after);
        let all = self.budgets(company).await?;
        let is_it = |view: &&BudgetView| {
            view.budget.binding_key.as_ref() == binding && view.budget.period == period
        };
        if let Some(view) = all.iter().find(is_it) {
            self.recorder.feed.budget(view.clone());
        }
        self.hurry(company).await?;
        Ok(all)
    }

    /// Makes deliveries that wait for a budget due now instead of at the next period.
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
        if let Some(id) = entered.cost_event_id
            && !self.recorder.ledger.has_cost_event(company, id).await?
        {
            let message = format!(
                "is {id}, and the company has no such cost event; `memhost cost list` shows those \
                 that it has"
            );
            return Err(FieldError::new("costEventId", message).into());
        }
        let (event, change) =
            self.recorder.ledger.finance_event(company, caller.principal(), entered)?;
        let entry = NewActivity::new(
            caller.principal(),
            ActivityAction::FinanceEventAdded,
            event.id.to_string(),
        );
        let entry = entry.with(None::<&FinanceEvent>, Some(&event));
        self.bindings.record_with(company, entry, vec![change]).await?;
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
        let page = self.page_of("finance-events", company, &(), cursor, limit)?;
        let found = self.recorder.ledger.finance_events(company, page.from(), page.limit).await?;
        Ok(self.sealed(&page, found))
    }
}

/// The first and the last day of a query.
pub(crate) fn days(query: &SumsQuery, now: Timestamp) -> Result<(Date, Date), FieldError> {
    let until = query.until.unwrap_or_else(|| TimeZone::UTC.to_datetime(now).date());
    let since = query
        .since
        .or_else(|| until.checked_sub(SignedDuration::from_hours(30 * 24)).ok())
        .unwrap_or(until);
    if since > until {
        return Err(FieldError::new(
            "since",
            format!("is {since}, which is after the last day, {until}; turn them round"),
        ));
    }
    Ok((since, until))
}

fn of(key: &RollupKey, by: GroupBy) -> String {
    match by {
        GroupBy::Day => key.day.to_string(),
        GroupBy::Binding => key.binding_key.as_ref().map(ToString::to_string).unwrap_or_default(),
        GroupBy::Agent => key.agent_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        GroupBy::Provider => key.provider.clone(),
        GroupBy::Model => key.model.clone().unwrap_or_default(),
    }
}
