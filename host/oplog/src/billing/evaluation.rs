//! Metrics of how good memory is, computed from the operation log.

use std::collections::{HashMap, HashSet};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sums::{SumsQuery, days};
use super::{BillingError, Ledger};
use memhost_store as store;
use memhost_types::{
    BindingKey, CompanyId, FieldError, Operation, OperationFilter, OperationKind, Outcome,
    RecordHandle, Rollup,
};

/// A record counts as used when that happens within this time after the query that returned it.
const USED_WITHIN: SignedDuration = SignedDuration::from_hours(24);
/// Operations that are read for the hit rate at most, the newest ones.
const MOST_READ: usize = 200_000;

/// The metrics of one binding, or of a whole company.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// Which binding; absent for all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    /// Queries that succeeded.
    pub queries: u64,
    /// Recall hit rate: the share of the queries that returned something of which a returned record
    /// was opened (`get`), cited (`citedRecords` in the metadata of a capture or upsert) or
    /// corrected within 24 hours. Somebody who looks at memory without an agent or a run in the
    /// scope counts neither as a query nor as a use. Absent without queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall_hit_rate: Option<f64>,
    /// Empty query rate: the share of the queries that returned nothing. Absent without queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty_query_rate: Option<f64>,
    /// Manual corrections: `correct` operations that succeeded.
    pub corrections: u64,
    /// Extraction failures: `extraction` operations that did not succeed, without those that were
    /// refused and wait.
    pub extraction_failures: u64,
    /// Operations that succeeded.
    pub succeeded: u64,
    /// Operations that the provider failed.
    pub failed: u64,
}

/// The metrics of some days.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvaluationReport {
    /// The first day, in UTC.
    pub since: Date,
    /// The last day.
    pub until: Date,
    /// By binding.
    pub bindings: Vec<Evaluation>,
    /// All together.
    pub total: Evaluation,
    /// Whether the hit rate is about all of the days, and not only their newest operations.
    pub is_complete: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Hits {
    answered: u64,
    hit: u64,
}

impl Ledger {
    /// How good memory was on some days. It reads much of the log.
    ///
    /// # Errors
    /// Where the days are not valid or the records cannot be read.
    pub async fn evaluation(
        &self,
        company: &CompanyId,
        query: &SumsQuery,
    ) -> Result<EvaluationReport, BillingError> {
        let (since, until) = days(query, self.clock.now())?;
        let mut sums: HashMap<Option<BindingKey>, Rollup> = HashMap::new();
        let mut total = Rollup::default();
        for (key, row) in self.store.rollups(company, since, until).await? {
            total.add(&row);
            sums.entry(key.binding_key).or_default().add(&row);
        }
        let (hits, is_complete) = self.hits(company, since, until).await?;
        let mut bindings: Vec<Evaluation> = sums
            .into_iter()
            .filter_map(|(key, row)| {
                let hits = hits.get(&key).copied().unwrap_or_default();
                key.map(|key| evaluation(Some(key), &row, hits))
            })
            .collect();
        bindings.sort_by(|a, b| a.binding_key.cmp(&b.binding_key));
        let all = hits.values().fold(Hits::default(), |sum, hits| Hits {
            answered: sum.answered + hits.answered,
            hit: sum.hit + hits.hit,
        });
        Ok(EvaluationReport {
            since,
            until,
            bindings,
            total: evaluation(None, &total, all),
            is_complete,
        })
    }

    /// Reads newest first: a use of a record is read before the query that returned it.
    async fn hits(
        &self,
        company: &CompanyId,
        since: Date,
        until: Date,
    ) -> Result<(HashMap<Option<BindingKey>, Hits>, bool), BillingError> {
        let start = |day: Date| day.to_zoned(TimeZone::UTC).map(|day| day.timestamp());
        let wrong = |error: jiff::Error| FieldError::new("since", error.to_string());
        let (from, to) =
            (start(since).map_err(wrong)?, start(until.tomorrow().map_err(wrong)?).map_err(wrong)?);
        // What is used on the day after still counts for a query of the last day.
        let until = to.checked_add(USED_WITHIN).map_err(wrong)?;
        let filter =
            OperationFilter { since: Some(from), until: Some(until), ..OperationFilter::default() };
        let mut used: HashMap<(Option<BindingKey>, RecordHandle), Vec<Timestamp>> = HashMap::new();
        let (mut hits, mut read) = (HashMap::<_, Hits>::new(), 0);
        let mut operations = store::scan_operations(&*self.store, company, &filter);
        while let Some(operation) = operations.next().await? {
            if read == MOST_READ {
                return Ok((hits, false));
            }
            read += 1;
            let binding = operation.binding_key.clone();
            for handle in uses(&operation) {
                used.entry((binding.clone(), handle.clone()))
                    .or_default()
                    .push(operation.started_at);
            }
            let is_answer = operation.kind == OperationKind::Query
                && is_of_an_agent(&operation)
                && operation.outcome == Outcome::Succeeded
                && operation.record_count > 0
                && operation.started_at < to;
            if is_answer {
                let is_used = |handle: &RecordHandle| {
                    let times = used.get(&(binding.clone(), handle.clone()));
                    let is_soon =
                        |at: &Timestamp| at.duration_since(operation.started_at) <= USED_WITHIN;
                    times.is_some_and(|times| times.iter().any(is_soon))
                };
                let returned: HashSet<&RecordHandle> = operation.records.iter().collect();
                let count = hits.entry(binding.clone()).or_default();
                count.answered += 1;
                count.hit += u64::from(returned.into_iter().any(is_used));
            }
        }
        Ok((hits, true))
    }
}

/// The records that an operation used.
fn uses(operation: &Operation) -> impl Iterator<Item = &RecordHandle> {
    let is_use = match operation.kind {
        OperationKind::Get => is_of_an_agent(operation),
        kind => kind == OperationKind::Correct,
    };
    let opens = is_use && operation.outcome == Outcome::Succeeded;
    operation.records.iter().filter(move |_| opens).chain(&operation.cited)
}

/// Whether an agent or a run asked, and not somebody who looks at its memory.
fn is_of_an_agent(operation: &Operation) -> bool {
    let about = operation.about();
    operation.principal.agent().is_some() || about.agent().is_some() || about.run().is_some()
}

#[allow(clippy::cast_precision_loss, reason = "a rate")]
fn evaluation(binding_key: Option<BindingKey>, sums: &Rollup, hits: Hits) -> Evaluation {
    let counts = &sums.counts;
    let rate = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    Evaluation {
        binding_key,
        queries: counts.queries,
        recall_hit_rate: rate(hits.hit, hits.answered),
        empty_query_rate: rate(counts.empty_queries, counts.queries),
        corrections: counts.corrections,
        extraction_failures: counts.extraction_failures,
        succeeded: counts.succeeded,
        failed: counts.failed,
    }
}
