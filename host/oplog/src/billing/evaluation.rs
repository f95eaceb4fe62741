//! Metrics of how good memory is, computed from the operation log.

use std::collections::{HashMap, HashSet};

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sums::{SumsQuery, days, moments};
use super::{BillingError, Ledger};
use memhost_store as store;
use memhost_types::{
    BindingId, BindingKey, CompanyId, Operation, OperationFilter, OperationKind, Outcome,
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
    /// Its id: another binding may have had its key before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_id: Option<BindingId>,
    /// Queries of agents and runs that succeeded. What a person looks for counts nowhere here.
    pub queries: u64,
    /// Recall hit rate: the share of the queries that returned something of which a returned record
    /// was opened by an agent or a run (`get`), cited (`citedRecords` in the metadata of a capture
    /// or upsert) or corrected within 24 hours. Absent without queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recall_hit_rate: Option<f64>,
    /// Empty query rate: the share of the queries that returned nothing. Absent without queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty_query_rate: Option<f64>,
    /// Manual corrections: `correct` operations that succeeded.
    pub corrections: u64,
    /// Extraction failures: `extraction` operations that were tried and did not succeed.
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

/// A binding by its key and its id.
type Of = (Option<BindingKey>, Option<BindingId>);

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
        let mut sums: HashMap<Of, Rollup> = HashMap::new();
        let mut total = Rollup::default();
        for (key, row) in self.store.rollups(company, since, until).await? {
            total.add(&row);
            sums.entry((key.binding_key, key.binding_id)).or_default().add(&row);
        }
        let (hits, is_complete) = self.hits(company, since, until).await?;
        let mut bindings: Vec<Evaluation> = sums
            .into_iter()
            .filter_map(|(key, row)| {
                let hits = hits.get(&key).copied().unwrap_or_default();
                key.0.is_some().then(|| evaluation(key, &row, hits))
            })
            .collect();
        bindings
            .sort_by(|a, b| (&a.binding_key, a.binding_id).cmp(&(&b.binding_key, b.binding_id)));
        let all = hits.values().fold(Hits::default(), |sum, hits| Hits {
            answered: sum.answered + hits.answered,
            hit: sum.hit + hits.hit,
        });
        Ok(EvaluationReport {
            since,
            until,
            bindings,
            total: evaluation((None, None), &total, all),
            is_complete,
        })
    }

    /// Reads newest first: a use of a record is read before the query that returned it.
    async fn hits(
        &self,
        company: &CompanyId,
        since: Date,
        until: Date,
    ) -> Result<(HashMap<Of, Hits>, bool), BillingError> {
        let (from, to) = moments(since, until)?;
        // What is used on the day after still counts for a query of the last day.
        let until = to.saturating_add(USED_WITHIN).unwrap_or(to);
        let filter =
            OperationFilter { since: Some(from), until: Some(until), ..OperationFilter::default() };
        let mut used: HashMap<(Of, RecordHandle), Vec<Timestamp>> = HashMap::new();
        let (mut hits, mut read) = (HashMap::<_, Hits>::new(), 0);
        let mut operations = store::scan_operations(&*self.store, company, &filter);
        while let Some(operation) = operations.next().await? {
            if read == MOST_READ {
                return Ok((hits, false));
            }
            read += 1;
            let binding = (operation.binding_key.clone(), operation.binding_id);
            for handle in uses(&operation) {
                used.entry((binding.clone(), handle.clone()))
                    .or_default()
                    .push(operation.started_at);
            }
            let is_answer = operation.kind == OperationKind::Query
                && operation.outcome == Outcome::Succeeded
                && operation.record_count > 0
                && operation.is_agents()
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

/// The records that an operation used. A correction says that a record was read, whoever makes it;
/// that a person opens one says nothing of recall.
fn uses(operation: &Operation) -> impl Iterator<Item = &RecordHandle> {
    let is_use = match operation.kind {
        OperationKind::Get => operation.is_agents(),
        kind => kind == OperationKind::Correct,
    };
    let opens = is_use && operation.outcome == Outcome::Succeeded;
    operation.records.iter().filter(move |_| opens).chain(&operation.cited)
}

#[allow(clippy::cast_precision_loss, reason = "a rate")]
fn evaluation((binding_key, binding_id): Of, sums: &Rollup, hits: Hits) -> Evaluation {
    let counts = &sums.counts;
    let rate = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    Evaluation {
        binding_key,
        binding_id,
        queries: counts.recalls,
        recall_hit_rate: rate(hits.hit, hits.answered),
        empty_query_rate: rate(counts.empty_recalls, counts.recalls),
        corrections: counts.corrections,
        extraction_failures: counts.extraction_failures,
        succeeded: counts.succeeded,
        failed: counts.failed,
    }
}
