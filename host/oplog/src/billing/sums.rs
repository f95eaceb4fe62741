//! Sums over operations, by day, binding, agent, provider and model, and by issue, project and run.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BillingError, Ledger};
use memhost_store as store;
use memhost_types::{
    BindingId, BindingKey, CompanyId, Counts, FieldError, Microcents, Operation, OperationFilter,
    Rollup, RollupKey,
};

/// Operations that are read for sums by issue, project or run, at most: sums are kept by day,
/// binding, agent, provider and model.
const MOST_READ: u64 = 200_000;

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
    Issue,
    Project,
    Run,
}

impl GroupBy {
    const ALL: [(&'static str, Self); 8] = [
        ("day", Self::Day),
        ("binding", Self::Binding),
        ("agent", Self::Agent),
        ("provider", Self::Provider),
        ("model", Self::Model),
        ("issue", Self::Issue),
        ("project", Self::Project),
        ("run", Self::Run),
    ];

    /// Whether sums by it are made from the operations themselves.
    fn is_of_operations(self) -> bool {
        matches!(self, Self::Issue | Self::Project | Self::Run)
    }

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
                        "has `{}`; day, binding, agent, provider, model, issue, project and run \
                         are allowed",
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
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are those of the key's fields")]
pub struct SumsRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<Date>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<String>,
    /// Another binding may have had the key before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_id: Option<BindingId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The issue of the scope, the source or the hook; empty where none of them names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issue_id: Option<String>,
    /// Like `issueId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Like `issueId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The sums.
    #[serde(flatten)]
    pub sums: SumsView,
}

/// Sums as they are shown.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SumsView {
    /// Everything that is counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// The cost that was billed directly: the sum of the cost events.
    #[serde(rename = "costCents")]
    pub cost: Microcents,
    /// The cost that providers reported in all, whoever bills it.
    #[serde(rename = "reportedCostCents")]
    pub reported_cost: Microcents,
    /// The median latency, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p50_us: Option<u64>,
    /// The 99th percentile of latency, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_p99_us: Option<u64>,
}

impl From<&Rollup> for SumsView {
    fn from(sums: &Rollup) -> Self {
        Self {
            counts: sums.counts.clone(),
            cost: sums.cost,
            reported_cost: sums.reported_cost,
            latency_p50_us: sums.latency.percentile(0.5),
            latency_p99_us: sums.latency.percentile(0.99),
        }
    }
}

/// The sums of some days.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sums {
    /// The first day, in UTC.
    pub since: Date,
    /// The last day.
    pub until: Date,
    /// One row a group.
    pub rows: Vec<SumsRow>,
    /// All of the days together.
    pub total: SumsView,
    /// Whether the rows have all that the total has. Sums by issue, project or run are made from
    /// the operations of the log: at most 200,000, the newest ones, and none that retention has
    /// removed.
    pub is_complete: bool,
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
    /// Only the binding of this id.
    pub binding_id: Option<BindingId>,
}

impl SumsQuery {
    /// Whether it asks for this row's binding.
    pub(super) fn is_for(&self, key: &RollupKey) -> bool {
        self.binding_key.as_ref().is_none_or(|wanted| key.binding_key.as_ref() == Some(wanted))
            && self.binding_id.is_none_or(|wanted| key.binding_id == Some(wanted))
    }
}

/// What an operation is about: its issue, its project and its run.
type Work = [Option<String>; 3];

/// A part of the sums, with what it is grouped by.
type Part = (RollupKey, Work, Rollup);

impl Ledger {
    /// Sums over a company's operations. `further` are refusals of which the store does not have
    /// the number yet, each with how many more there were.
    ///
    /// # Errors
    /// Where the days are not valid or the sums cannot be read.
    pub(crate) async fn sums(
        &self,
        company: &CompanyId,
        query: &SumsQuery,
        further: &[(Operation, u64)],
    ) -> Result<Sums, BillingError> {
        let (since, until) = days(query, self.clock.now())?;
        let again = further.iter().filter_map(|(operation, more)| {
            let (key, sums) = Rollup::again(operation, *more)?;
            Some((key, work_of(operation), sums))
        });
        let again: Vec<Part> =
            again.filter(|(key, ..)| (since..=until).contains(&key.day)).collect();
        let stored = self.store.rollups(company, since, until).await?;
        let stored = stored.into_iter().map(|(key, sums)| (key, Work::default(), sums));
        let is_wanted = |key: &RollupKey| key.origin.is_none() && query.is_for(key);
        let mut parts: Vec<Part> = stored.filter(|(key, ..)| is_wanted(key)).collect();
        let mut is_complete = true;
        let mut total = Rollup::default();
        parts.iter().for_each(|(.., sums)| total.add(sums));
        if query.group_by.iter().any(|by| by.is_of_operations()) {
            parts = self.of_operations(company, query, (since, until)).await?;
            let read: u64 = parts.iter().map(|(.., sums)| sums.counts.operations).sum();
            is_complete = read >= total.counts.operations;
        }
        let again = again.into_iter().filter(|(key, ..)| is_wanted(key));
        parts.extend(again.inspect(|(.., sums)| total.add(sums)));
        let mut rows: BTreeMap<[Option<String>; 8], (RollupKey, Rollup)> = BTreeMap::new();
        for (key, work, sums) in parts {
            let group = GroupBy::ALL
                .map(|(_, by)| query.group_by.contains(&by).then(|| of((&key, &work), by)));
            rows.entry(group).or_insert_with(|| (key, Rollup::default())).1.add(&sums);
        }
        let row = |(group, (key, sums)): ([Option<String>; 8], (RollupKey, Rollup))| {
            let [day, binding_key, agent_id, provider, model, issue_id, project_id, run_id] = group;
            let has_binding = binding_key.is_some();
            SumsRow {
                day: day.map(|_| key.day),
                binding_key: binding_key
                    .map(|_| key.binding_key.map(|key| key.to_string()).unwrap_or_default()),
                binding_id: has_binding.then_some(key.binding_id).flatten(),
                agent_id,
                provider,
                model,
                issue_id,
                project_id,
                run_id,
                sums: (&sums).into(),
            }
        };
        let rows = rows.into_iter().map(row).collect();
        Ok(Sums { since, until, rows, total: (&total).into(), is_complete })
    }

    /// The parts of the newest operations of some days.
    async fn of_operations(
        &self,
        company: &CompanyId,
        query: &SumsQuery,
        (since, until): (Date, Date),
    ) -> Result<Vec<Part>, BillingError> {
        let (since, until) = moments(since, until)?;
        let filter = OperationFilter {
            since: Some(since),
            until: Some(until),
            binding_key: query.binding_key.clone(),
            ..OperationFilter::default()
        };
        let mut sums: BTreeMap<(RollupKey, Work), Rollup> = BTreeMap::new();
        let mut operations = store::scan_operations(&*self.store, company, &filter);
        let mut read = 0;
        while let Some(operation) = operations.next().await? {
            if read == MOST_READ {
                break;
            }
            read += 1;
            let work = work_of(&operation);
            for (key, part) in Rollup::of(&operation) {
                if key.origin.is_none() && query.is_for(&key) {
                    sums.entry((key, work.clone())).or_default().add(&part);
                }
            }
        }
        Ok(sums.into_iter().map(|((key, work), sums)| (key, work, sums)).collect())
    }
}

fn work_of(operation: &Operation) -> Work {
    let about = operation.about();
    [about.issue(), about.project(), about.run()].map(|id| id.map(str::to_owned))
}

/// The first moment of the days, and the first one after them.
pub(super) fn moments(since: Date, until: Date) -> Result<(Timestamp, Timestamp), FieldError> {
    let start = |day: Date| day.to_zoned(TimeZone::UTC).map(|day| day.timestamp());
    let wrong = |error: jiff::Error| FieldError::new("since", error.to_string());
    Ok((start(since).map_err(wrong)?, until.tomorrow().and_then(start).map_err(wrong)?))
}

/// The first and the last day of a query.
pub(super) fn days(query: &SumsQuery, now: Timestamp) -> Result<(Date, Date), FieldError> {
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

fn of((key, [issue, project, run]): (&RollupKey, &Work), by: GroupBy) -> String {
    match by {
        GroupBy::Day => key.day.to_string(),
        GroupBy::Binding => {
            let id = key.binding_id.map(|id| id.to_string()).unwrap_or_default();
            format!("{}\0{id}", key.binding_key.as_ref().map_or("", |key| key.as_str()))
        }
        GroupBy::Agent => key.agent_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        GroupBy::Provider => key.provider.clone(),
        GroupBy::Model => key.model.clone().unwrap_or_default(),
        GroupBy::Issue => issue.clone().unwrap_or_default(),
        GroupBy::Project => project.clone().unwrap_or_default(),
        GroupBy::Run => run.clone().unwrap_or_default(),
    }
}
