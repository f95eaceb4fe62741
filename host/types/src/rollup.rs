//! Sums over operations: what was done, how it ended, what it used and cost, by day, binding,
//! agent, provider and model. A row is a sum of sums, so that days become months and bindings a
//! company by adding rows.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cost::agent_of;
use super::{
    AgentId, AttributionMode, BindingId, BindingKey, Microcents, Operation, OperationKind, Outcome,
    OutgoingCounts, OutgoingTo, Usage,
};

/// The key of a row. The day is a day in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollupKey {
    /// When the operations began.
    pub day: Date,
    /// The binding; absent if none was resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    /// Its id: another binding may have had its key before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_id: Option<BindingId>,
    /// The agent that it is for, or else who asked, as in cost events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Whom the usage names; for what has no usage, the provider that answered.
    pub provider: String,
    /// Which model; `unknown` for usage that names none, and absent for what has no usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where requests went. A row with an origin has nothing but them, and no agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// The provider of what the host itself sent.
const HOST: &str = "memhost";

/// What is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// Operations that have ended.
    pub operations: u64,
    /// Those that asked: query, list and get.
    pub reads: u64,
    /// Those that changed something: capture, upsert, forget, correct and extraction.
    pub writes: u64,
    /// `query` operations that succeeded.
    pub queries: u64,
    /// `query` operations that succeeded and returned nothing.
    pub empty_queries: u64,
    /// Those of the queries that an agent or a run asked, and no person who looks.
    pub recalls: u64,
    /// Those of the recalls that returned nothing.
    pub empty_recalls: u64,
    /// `correct` operations that succeeded.
    pub corrections: u64,
    /// `extraction` operations.
    pub extractions: u64,
    /// `extraction` operations that were tried and did not succeed. One that waits, such as for a
    /// budget, has not failed.
    pub extraction_failures: u64,
    /// Operations that succeeded.
    pub succeeded: u64,
    /// Operations that the provider failed: failed, timed out, trapped, interrupted.
    pub failed: u64,
    /// Operations that the host refused.
    pub refused: u64,
    /// Tokens that went in.
    pub input_tokens: u64,
    /// Those of them that came from a cache.
    pub cached_input_tokens: u64,
    /// Tokens that came out.
    pub output_tokens: u64,
    /// Tokens that were embedded.
    pub embedding_tokens: u64,
}

/// The sums. Counts of operations stand in the row of the provider that answered; tokens and
/// amounts stand in the row of the provider and model that the usage names, so that nothing is
/// counted twice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rollup {
    /// Everything that is counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// The cost that was billed directly: the sum of the cost events.
    #[serde(rename = "costMicrocents", with = "super::usage::whole")]
    pub cost: Microcents,
    /// The cost that providers reported in all, with or without a biller.
    #[serde(rename = "reportedCostMicrocents", with = "super::usage::whole")]
    pub reported_cost: Microcents,
    /// How long operations took.
    pub latency: Latencies,
    /// The requests to the origin of the key.
    #[serde(skip_serializing_if = "OutgoingCounts::is_empty")]
    pub outgoing: OutgoingCounts,
    /// When the last operation with such a request began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_outgoing: Option<Timestamp>,
}

/// How long operations took: counts in buckets that are an eighth of an octave wide, so that a
/// percentile is at most 9 % too high. From 1 µs to over an hour.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Latencies(std::collections::BTreeMap<u16, u64>);

const BUCKETS_PER_OCTAVE: f64 = 8.0;

impl Latencies {
    /// Counts one.
    pub fn add(&mut self, us: u64) {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let bucket =
            ((us.max(1) as f64).log2() * BUCKETS_PER_OCTAVE).ceil().min(f64::from(u16::MAX)) as u16;
        *self.0.entry(bucket).or_default() += 1;
    }

    /// The latency in microseconds that this share of the operations stayed below or at. `None` if
    /// there were none.
    pub fn percentile(&self, share: f64) -> Option<u64> {
        let all: u64 = self.0.values().sum();
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let wanted = ((all as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = self.0.iter().find_map(|(bucket, count)| {
            seen += count;
            (seen >= wanted).then_some(*bucket)
        })?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Some((f64::from(bucket) / BUCKETS_PER_OCTAVE).exp2().round() as u64)
    }
}

impl RollupKey {
    fn of(operation: &Operation, provider: &str, model: Option<&str>) -> Self {
        Self {
            day: TimeZone::UTC.to_datetime(operation.started_at).date(),
            binding_key: operation.binding_key.clone(),
            binding_id: operation.binding_id,
            agent_id: Some(agent_of(operation)),
            provider: provider.to_owned(),
            model: model.map(str::to_owned),
            origin: None,
        }
    }

    fn outgoing(operation: &Operation, to: &OutgoingTo) -> Self {
        let provider = operation.provider_key.as_ref().map_or("", |key| key.as_str());
        let provider = if to.by_host { HOST } else { provider };
        let key = Self::of(operation, provider, None);
        Self { agent_id: None, origin: Some(to.origin.clone()), ..key }
    }
}

impl Counts {
    /// Each number.
    fn all(&mut self) -> [&mut u64; 17] {
        [
            &mut self.operations,
            &mut self.reads,
            &mut self.writes,
            &mut self.queries,
            &mut self.empty_queries,
            &mut self.recalls,
            &mut self.empty_recalls,
            &mut self.corrections,
            &mut self.extractions,
            &mut self.extraction_failures,
            &mut self.succeeded,
            &mut self.failed,
            &mut self.refused,
            &mut self.input_tokens,
            &mut self.cached_input_tokens,
            &mut self.output_tokens,
            &mut self.embedding_tokens,
        ]
    }
}

impl Rollup {
    /// The rows that one operation adds to. Empty while it runs.
    pub fn of(operation: &Operation) -> Vec<(RollupKey, Self)> {
        if operation.outcome == Outcome::InProgress {
            return Vec::new();
        }
        let key = |provider: &str, model| RollupKey::of(operation, provider, model);
        let provider = operation.provider_key.as_ref().map_or("", |key| key.as_str());
        let mut rows = vec![(key(provider, None), Self::counts(operation))];
        rows.extend(Self::again(operation, operation.count.saturating_sub(1)));
        rows.extend(operation.usage.iter().map(|usage| {
            let used = Self::used(usage);
            (key(&usage.provider, Some(usage.model_name())), used)
        }));
        rows.extend(operation.outgoing.iter().map(|to| {
            let last_outgoing = Some(operation.started_at);
            let sent = Self { outgoing: to.counts, last_outgoing, ..Self::default() };
            (RollupKey::outgoing(operation, to), sent)
        }));
        rows
    }

    /// The row of further refusals that an operation's entry stands for. How long they took is not
    /// known.
    pub fn again(operation: &Operation, more: u64) -> Option<(RollupKey, Self)> {
        let provider = operation.provider_key.as_ref().map_or("", |key| key.as_str());
        let row = Self { latency: Latencies::default(), ..Self::counts(operation).times(more) };
        (more > 0).then(|| (RollupKey::of(operation, provider, None), row))
    }

    /// Multiplies every count. Costs and latencies stay as they are.
    #[must_use]
    pub fn times(mut self, many: u64) -> Self {
        for count in self.counts.all() {
            *count = count.saturating_mul(many);
        }
        self
    }

    fn counts(operation: &Operation) -> Self {
        let (kind, outcome) = (operation.kind, operation.outcome);
        let one = u64::from;
        let succeeded = outcome == Outcome::Succeeded;
        let is_query = kind == OperationKind::Query && succeeded;
        let is_empty = is_query && operation.record_count == 0;
        let is_agents = is_query && operation.is_agents();
        let mut latency = Latencies::default();
        if let Some(us) = operation.latency_us {
            latency.add(us);
        }
        let counts = Counts {
            operations: 1,
            reads: one(kind.is_read()),
            writes: one(kind.is_write()),
            queries: one(is_query),
            empty_queries: one(is_empty),
            recalls: one(is_agents),
            empty_recalls: one(is_empty && is_agents),
            corrections: one(kind == OperationKind::Correct && succeeded),
            extractions: one(kind == OperationKind::Extraction),
            extraction_failures: one(kind == OperationKind::Extraction
                && !succeeded
                && !operation.is_put_off()),
            succeeded: one(succeeded),
            failed: one(matches!(
                outcome,
                Outcome::Failed | Outcome::TimedOut | Outcome::Trapped | Outcome::Interrupted
            )),
            refused: one(outcome == Outcome::Refused),
            ..Counts::default()
        };
        Self { counts, latency, ..Self::default() }
    }

    fn used(usage: &Usage) -> Self {
        let reported = usage.cost.unwrap_or_default();
        let is_billed = usage.attribution() == AttributionMode::BilledDirectly;
        let counts = Counts {
            input_tokens: usage.input_tokens.unwrap_or(0),
            cached_input_tokens: usage.cached_input_tokens.unwrap_or(0),
            output_tokens: usage.output_tokens.unwrap_or(0),
            embedding_tokens: usage.embedding_tokens.unwrap_or(0),
            ..Counts::default()
        };
        Self {
            counts,
            cost: if is_billed { reported } else { Microcents::default() },
            reported_cost: reported,
            ..Self::default()
        }
    }

    /// Adds another row's sums.
    pub fn add(&mut self, other: &Self) {
        let mut counts = other.counts.clone();
        let amounts =
            [(&mut self.cost.0, other.cost.0), (&mut self.reported_cost.0, other.reported_cost.0)];
        let numbers = self.counts.all().into_iter().zip(counts.all().map(|more| *more));
        for (sum, more) in numbers.chain(amounts) {
            *sum = sum.saturating_add(more);
        }
        for (bucket, count) in &other.latency.0 {
            *self.latency.0.entry(*bucket).or_default() += count;
        }
        self.outgoing.add(&other.outgoing);
        self.last_outgoing = self.last_outgoing.max(other.last_outgoing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_sum_is_read_back() {
        let mut sum = Rollup { cost: Microcents(u64::MAX - 1), ..Rollup::default() };
        sum.add(&Rollup { cost: Microcents(7), ..Rollup::default() });
        let text = serde_json::to_string(&sum).unwrap();
        assert_eq!(serde_json::from_str::<Rollup>(&text).unwrap().cost, Microcents(u64::MAX));
    }

    #[test]
    fn percentiles_are_at_most_a_tenth_too_high_and_never_too_low() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(0.5), None);
        (1..=1_000).for_each(|us| latencies.add(us));
        for (share, exact) in [(0.5, 500), (0.99, 990), (1.0, 1_000)] {
            let found = latencies.percentile(share).unwrap();
            assert!((exact..=exact + exact / 10).contains(&found), "{share}: {found} for {exact}");
        }
    }
}
