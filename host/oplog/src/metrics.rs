//! Counters for Prometheus. Labels are bounded: operations by kind and outcome, providers by key,
//! limits by name. Companies are a label only where the operator configures that.

mod exposition;
mod histogram;

use std::collections::HashSet;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};

pub use self::exposition::{Exposition, Gauges};
use self::histogram::Histogram;
use memhost_types::{
    CompanyId, HookKind, OTHER_ORIGINS, Operation, OperationKind, Outcome, ProviderKey,
};

/// Seconds: from a warm query in the fastest provider to the longest call.
const BUCKETS: [f64; 14] =
    [0.0001, 0.000_25, 0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];

/// The provider of a label; empty where none was asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Provider(Option<ProviderKey>);

impl EncodeLabelValue for Provider {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or("", ProviderKey::as_str).encode(encoder)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    kind: &'static str,
    outcome: &'static str,
    provider: Provider,
    company: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    provider: Provider,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OriginLabels {
    origin: String,
    provider: Provider,
    company: Option<String>,
}

/// The most sets of labels with an origin. Operators grant origins, but each company its own.
const MOST_ORIGINS: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    limit: &'static str,
}

/// Tokens: a context is to have at most 500.
const TOKEN_BUCKETS: [f64; 10] =
    [25.0, 50.0, 100.0, 200.0, 300.0, 400.0, 500.0, 750.0, 1_000.0, 4_000.0];

fn tokens() -> Histogram {
    Histogram::new(&TOKEN_BUCKETS, 1.0)
}

/// A histogram of microseconds, shown in seconds.
fn seconds() -> Histogram {
    Histogram::new(&BUCKETS, 1e6)
}

/// The counters of the host.
pub struct Metrics {
    operations: Family<OperationLabels, Counter>,
    seconds: Family<KindLabels, Histogram, fn() -> Histogram>,
    provider_seconds: Family<ProviderLabels, Histogram, fn() -> Histogram>,
    limits: Family<LimitLabels, Counter>,
    preamble_tokens: Family<ProviderLabels, Histogram, fn() -> Histogram>,
    unauthenticated: Counter,
    unknown_company: Counter,
    hooks_not_taken: Family<KindLabels, Counter>,
    origins: Mutex<HashSet<OriginLabels>>,
    sent_requests: Family<OriginLabels, Counter>,
    sent_bytes: Family<OriginLabels, Counter>,
    has_company: bool,
}

impl Metrics {
    /// Counters at 0. `has_company`: companies are a label.
    pub fn new(has_company: bool) -> Self {
        Self {
            operations: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            provider_seconds: Family::new_with_constructor(seconds),
            limits: Family::default(),
            preamble_tokens: Family::new_with_constructor(tokens),
            unauthenticated: Counter::default(),
            unknown_company: Counter::default(),
            hooks_not_taken: Family::default(),
            origins: Mutex::default(),
            sent_requests: Family::default(),
            sent_bytes: Family::default(),
            has_company,
        }
    }

    /// Counts an operation that has ended.
    pub fn observe(&self, operation: &Operation) {
        let provider = Provider(operation.provider_key.clone());
        if let Some(us) = operation.provider_us {
            self.provider_seconds
                .get_or_create(&ProviderLabels { provider: provider.clone() })
                .observe(us);
        }
        let kind = operation.kind.as_str();
        if let Some(us) = operation.latency_us {
            self.seconds.get_or_create(&KindLabels { kind }).observe(us);
        }
        let company = self.has_company.then(|| operation.company_id.to_string());
        for to in &operation.outgoing {
            let provider = Provider(operation.provider_key.clone().filter(|_| !to.by_host));
            let labels = self.origin(to.origin.clone(), provider, company.clone());
            self.sent_requests.get_or_create(&labels).inc_by(to.counts.requests);
            self.sent_bytes.get_or_create(&labels).inc_by(to.counts.bytes_sent);
        }
        let labels =
            OperationLabels { kind, outcome: operation.outcome.as_str(), provider, company };
        self.operations.get_or_create(&labels).inc();
    }

    /// The labels of an origin, or those of all others where there are too many. Only operations
    /// that sent something wait for this lock.
    fn origin(&self, origin: String, provider: Provider, company: Option<String>) -> OriginLabels {
        let labels = OriginLabels { origin, provider, company };
        let mut known = self.origins.lock();
        if known.contains(&labels) || known.len() < MOST_ORIGINS {
            known.insert(labels.clone());
            return labels;
        }
        OriginLabels { origin: OTHER_ORIGINS.to_owned(), provider: Provider(None), company: None }
    }

    /// Counts a refusal that is counted in an earlier operation.
    pub fn refused(&self, kind: OperationKind, company: &CompanyId) {
        let company = self.has_company.then(|| company.to_string());
        let (kind, outcome) = (kind.as_str(), Outcome::Refused.as_str());
        self.operations
            .get_or_create(&OperationLabels { kind, outcome, provider: Provider(None), company })
            .inc();
    }

    /// Counts a request with an invalid token.
    pub fn unauthenticated(&self) {
        self.unauthenticated.inc();
    }

    /// Counts a request to a company that this host does not have.
    pub fn unknown_company(&self) {
        self.unknown_company.inc();
    }

    /// Counts an event that no binding took. Kinds of a platform's own share a label.
    pub fn hook_not_taken(&self, kind: &HookKind) {
        let kind = match kind {
            HookKind::PreRunHydrate => "pre_run_hydrate",
            HookKind::PostRunCapture => "post_run_capture",
            HookKind::IssueCommentCapture => "issue_comment_capture",
            HookKind::IssueDocumentCapture => "issue_document_capture",
            HookKind::ManualCapture => "manual_capture",
            HookKind::Other(_) => "other",
        };
        self.hooks_not_taken.get_or_create(&KindLabels { kind }).inc();
    }

    /// Counts the tokens of a preamble.
    pub fn preamble(&self, provider: &ProviderKey, tokens: usize) {
        self.preamble_tokens
            .get_or_create(&ProviderLabels { provider: Provider(Some(provider.clone())) })
            .observe(tokens as u64);
    }

    /// Counts a call that reached a limit of its binding.
    pub fn limit_hit(&self, limit: &'static str) {
        self.limits.get_or_create(&LimitLabels { limit }).inc();
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("operations", "Operations that have ended", self.operations.clone());
        let help = "How long operations took, the wait for the provider included";
        registry.register_with_unit(
            "operation_duration",
            help,
            Unit::Seconds,
            self.seconds.clone(),
        );
        let help = "How long calls of providers took";
        registry.register_with_unit(
            "provider_duration",
            help,
            Unit::Seconds,
            self.provider_seconds.clone(),
        );
        registry.register(
            "limits_hit",
            "Calls that ran into a limit of their binding",
            self.limits.clone(),
        );
        let help = "Estimated tokens of the summaries that queries for the start of a run were \
                    answered";
        registry.register("preamble_tokens", help, self.preamble_tokens.clone());
        let help = "Events that no binding took, by kind of hook";
        registry.register("hooks_not_taken", help, self.hooks_not_taken.clone());
        let help = "Requests that operations sent, by origin";
        registry.register("origin_requests", help, self.sent_requests.clone());
        let help = "Bytes of requests that operations sent, by origin";
        registry.register("origin_sent_bytes", help, self.sent_bytes.clone());
        let help = "Requests with an invalid token";
        registry.register("unauthenticated", help, self.unauthenticated.clone());
        let help = "Requests to companies that this host does not have";
        registry.register("unknown_company", help, self.unknown_company.clone());
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;
    use serde_json::json;

    use super::*;
    use crate::testing::{NOON, acme, operation};

    fn shown(metrics: &Metrics) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        metrics.register(&mut registry);
        text::encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn operations_are_counted_by_kind_outcome_and_provider() {
        let metrics = Metrics::new(false);
        metrics.observe(&operation(1, NOON, &json!({"providerUs": 500})));
        metrics.observe(&operation(2, NOON, &json!({"outcome": "failed"})));
        let text = shown(&metrics);
        for line in [
            r#"operations_total{kind="query",outcome="succeeded",provider="p",company=""} 1"#,
            r#"operations_total{kind="query",outcome="failed",provider="p",company=""} 1"#,
            r#"operation_duration_seconds_count{kind="query"} 2"#,
            r#"provider_duration_seconds_bucket{le="0.001",provider="p"} 1"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("acme"), "{text}");
    }

    #[test]
    fn what_is_sent_is_counted_by_origin_and_a_flood_of_origins_together() {
        let metrics = Metrics::new(false);
        for number in 0..MOST_ORIGINS + 5 {
            let to =
                json!([{"origin": format!("https://{number}"), "requests": 2, "bytesSent": 7}]);
            metrics.observe(&operation(1, NOON, &json!({"outgoing": to})));
        }
        let text = shown(&metrics);
        for line in [
            r#"origin_requests_total{origin="https://7",provider="p",company=""} 2"#,
            r#"origin_sent_bytes_total{origin="https://7",provider="p",company=""} 7"#,
            r#"origin_requests_total{origin="other",provider="",company=""} 10"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn companies_are_a_label_where_that_is_configured() {
        let metrics = Metrics::new(true);
        metrics.observe(&operation(1, NOON, &json!({})));
        metrics.refused(OperationKind::Query, &acme());
        let text = shown(&metrics);
        assert!(text.contains(r#"outcome="refused",provider="",company="acme"} 1"#), "{text}");
        assert!(text.contains(r#"outcome="succeeded",provider="p",company="acme"} 1"#), "{text}");
    }
}
