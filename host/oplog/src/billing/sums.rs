//! Sums over operations, by day, binding, agent, provider and model.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BillingError, Ledger};
use memhost_types::{BindingKey, CompanyId, Counts, FieldError, Microcents, Rollup, RollupKey};

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
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
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

impl SumsQuery {
    /// Whether it asks for this row's binding.
    pub(super) fn is_for(&self, key: &RollupKey) -> bool {
        self.binding_key.as_ref().is_none_or(|wanted| key.binding_key.as_ref() == Some(wanted))
    }
}

impl Ledger {
    /// Sums over a company's operations, and over `further`, which the store does not have yet.
    ///
    /// # Errors
    /// Where the days are not valid or the sums cannot be read.
    pub(crate) async fn sums(
        &self,
        company: &CompanyId,
        query: &SumsQuery,
        further: Vec<(RollupKey, Rollup)>,
    ) -> Result<Sums, BillingError> {
        let (since, until) = days(query, self.clock.now())?;
        let mut total = Rollup::default();
        let mut rows: BTreeMap<[Option<String>; 5], (RollupKey, Rollup)> = BTreeMap::new();
        let further = further.into_iter().filter(|(key, _)| (since..=until).contains(&key.day));
        let stored = self.store.rollups(company, since, until).await?;
        for (key, sums) in stored.into_iter().chain(further) {
            if key.origin.is_some() || !query.is_for(&key) {
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

fn of(key: &RollupKey, by: GroupBy) -> String {
    match by {
        GroupBy::Day => key.day.to_string(),
        GroupBy::Binding => key.binding_key.as_ref().map(ToString::to_string).unwrap_or_default(),
        GroupBy::Agent => key.agent_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        GroupBy::Provider => key.provider.clone(),
        GroupBy::Model => key.model.clone().unwrap_or_default(),
    }
}
