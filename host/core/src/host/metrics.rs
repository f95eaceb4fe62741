//! Metrics for Prometheus. Labels are bounded: operations by kind and outcome, providers by key, limits by name. Companies
//! are a label only where the operator configures that.

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::Service;
use crate::error::ServiceError;
use crate::versions::breaker::BreakerState;
use memhost_types::Operation;

/// Seconds: from a warm query in the fastest provider to the longest call.
const BUCKETS: [f64; 14] = [0.0001, 0.000_25, 0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    kind: &'static str,
    outcome: &'static str,
    provider: String,
    company: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    provider: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    limit: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

fn seconds() -> Histogram {
    Histogram::new(BUCKETS)
}

/// The counters of the host.
pub(crate) struct Metrics {
    operations: Family<OperationLabels, Counter>,
    seconds: Family<KindLabels, Histogram, fn() -> Histogram>,
    provider_seconds: Family<ProviderLabels, Histogram, fn() -> Histogram>,
    limits: Family<LimitLabels, Counter>,
    unauthenticated: Counter,
    has_company: bool,
}

impl Metrics {
    pub(crate) fn new(has_company: bool) -> Self {
        Self {
            operations: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            provider_seconds: Family::new_with_constructor(seconds),
            limits: Family::default(),
            unauthenticated: Counter::default(),
            has_company,
        }
    }

    /// Counts an operation that has ended.
    pub(crate) fn observe(&self, operation: &Operation) {
        #[allow(clippy::cast_precision_loss, reason = "seconds for a histogram")]
        let seconds = |us: u64| us as f64 / 1e6;
        let provider = operation.provider_key.as_ref().map(ToString::to_string).unwrap_or_default();
        if let Some(us) = operation.provider_us {
            self.provider_seconds.get_or_create(&ProviderLabels { provider: provider.clone() }).observe(seconds(us));
        }
        let kind = operation.kind.as_str();
        if let Some(us) = operation.latency_us {
            self.seconds.get_or_create(&KindLabels { kind }).observe(seconds(us));
        }
        let company = self.has_company.then(|| operation.company_id.to_string());
        let labels = OperationLabels { kind, outcome: operation.outcome.as_str(), provider, company };
        self.operations.get_or_create(&labels).inc();
    }

    /// Counts a request with an invalid token.
    pub(crate) fn unauthenticated(&self) {
        self.unauthenticated.inc();
    }

    /// Counts a call that reached a limit of its binding.
    pub(crate) fn limit_hit(&self, limit: &'static str) {
        self.limits.get_or_create(&LimitLabels { limit }).inc();
    }
}

impl Service {
    /// All metrics as OpenMetrics text, which Prometheus reads.
    ///
    /// # Errors
    /// Where it cannot be written out.
    pub fn metrics(&self) -> Result<String, ServiceError> {
        let mut registry = Registry::with_prefix("memhost");
        let counted = &self.recorder.metrics;
        registry.register("operations", "Operations that have ended", counted.operations.clone());
        let help = "How long operations took, the wait for the provider included";
        registry.register_with_unit("operation_duration", help, Unit::Seconds, counted.seconds.clone());
        let help = "How long calls of providers took";
        registry.register_with_unit("provider_duration", help, Unit::Seconds, counted.provider_seconds.clone());
        registry.register("limits_hit", "Calls that ran into a limit of their binding", counted.limits.clone());
        let help = "Requests that came with a token that is no good";
        registry.register("unauthenticated", help, counted.unauthenticated.clone());
        let in_flight = Family::<KindLabels, Gauge>::default();
        for (kind, count) in [("deliveries", self.hooks.in_flight()), ("jobs", self.jobs.in_flight())] {
            in_flight.get_or_create(&KindLabels { kind }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        registry.register("background_at_work", "Deliveries and jobs that are at work", in_flight);
        self.register_sandbox(&mut registry);
        self.register_bindings(&mut registry);
        let states = Family::<StateLabels, Gauge>::default();
        for (state, count) in [("admitted", self.plugins.list().len()), ("refused", self.plugins.refused().len())] {
            states.get_or_create(&StateLabels { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        registry.register("plugins", "Builds that can serve, and files that were kept out", states);
        let mut text = String::new();
        text::encode(&mut text, &registry).map_err(|error| ServiceError::Host(error.to_string()))?;
        Ok(text)
    }

    fn register_sandbox(&self, registry: &mut Registry) {
        let stats = self.sandbox.stats();
        let gauge = |number: u64| ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX));
        registry.register("instance_slots", "Instances that may exist at once", gauge(stats.slots));
        let instances = Family::<StateLabels, Gauge>::default();
        for (state, count) in [("idle", stats.idle), ("in_flight", stats.instances.saturating_sub(stats.idle))] {
            instances.get_or_create(&StateLabels { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        registry.register("instances", "Instances that exist", instances);
        for (name, help, count) in [
            ("instances_made", "Instances made: calls that found none warm", stats.made),
            ("components_compiled", "Components compiled", stats.compiled),
            ("components_loaded", "Components loaded from the compiled cache", stats.loaded),
            ("outgoing_requests", "Outgoing requests that were answered", stats.requests),
            ("outgoing_requests_refused", "Outgoing requests that were refused or failed", stats.requests_refused),
            ("outgoing_sent_bytes", "Bytes of outgoing requests' bodies", stats.bytes_sent),
            ("outgoing_received_bytes", "Bytes of the bodies that came back", stats.bytes_received),
        ] {
            registry.register(name, help, ConstCounter::new(count));
        }
        #[allow(clippy::cast_precision_loss, reason = "seconds for people")]
        let compiling = ConstCounter::new(stats.compile_us as f64 / 1e6);
        registry.register_with_unit("compile", "Time spent compiling components", Unit::Seconds, compiling);
    }

    fn register_bindings(&self, registry: &mut Registry) {
        let (mut all, mut states) = (0_i64, [("closed", 0_i64), ("open", 0), ("half_open", 0)]);
        for company in self.bindings.companies() {
            for binding in self.bindings.list(&company) {
                all += 1;
                let state = self.serving.warm(binding.id).map(|serving| serving.breaker.state());
                match state {
                    None => {}
                    Some(BreakerState::Closed) => states[0].1 += 1,
                    Some(BreakerState::Open { .. }) => states[1].1 += 1,
                    Some(BreakerState::HalfOpen) => states[2].1 += 1,
                }
            }
        }
        registry.register("bindings", "Bindings of all companies", ConstGauge::new(all));
        let breakers = Family::<StateLabels, Gauge>::default();
        for (state, count) in states {
            breakers.get_or_create(&StateLabels { state }).set(count);
        }
        registry.register("breakers", "Circuit breakers of bindings that have served since the start", breakers);
    }
}
