//! All metrics as text for Prometheus, while they are gathered.

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};

use super::Metrics;

/// Gauges of one name, which differ in one label.
#[derive(Debug, Clone)]
pub struct Gauges {
    /// The name, without the prefix of all metrics.
    pub name: &'static str,
    /// What they count.
    pub help: &'static str,
    /// The label.
    pub label: &'static str,
    /// Its values with their counts.
    pub values: Vec<(&'static str, u64)>,
}

/// All metrics, while they are gathered.
#[derive(Debug)]
pub struct Exposition(Registry);

impl Exposition {
    /// The counters, to which the rest is added.
    pub fn of(metrics: &Metrics) -> Self {
        let mut registry = Registry::with_prefix("memhost");
        metrics.register(&mut registry);
        Self(registry)
    }

    /// Adds a number that only grows.
    pub fn counter(&mut self, name: &str, help: &str, count: u64) {
        self.0.register(name, help, ConstCounter::new(count));
    }

    /// Adds a time that only grows, in microseconds.
    #[allow(clippy::cast_precision_loss, reason = "seconds for people")]
    pub fn time(&mut self, name: &str, help: &str, us: u64) {
        let seconds = ConstCounter::new(us as f64 / 1e6);
        self.0.register_with_unit(name, help, Unit::Seconds, seconds);
    }

    /// Adds a number as it is now.
    pub fn gauge(&mut self, name: &str, help: &str, count: u64) {
        self.0.register(name, help, ConstGauge::new(whole(count)));
    }

    /// Adds a number of bytes as it is now.
    pub fn bytes(&mut self, name: &str, help: &str, bytes: u64) {
        self.0.register_with_unit(name, help, Unit::Bytes, ConstGauge::new(whole(bytes)));
    }

    /// Adds one gauge for each value of a label.
    pub fn gauges(&mut self, Gauges { name, help, label, values }: Gauges) {
        let family = Family::<[(&'static str, &'static str); 1], Gauge>::default();
        for (value, count) in values {
            family.get_or_create(&[(label, value)]).set(whole(count));
        }
        self.0.register(name, help, family);
    }

    /// Everything as OpenMetrics text.
    ///
    /// # Errors
    /// Where it cannot be written out.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.0)?;
        Ok(text)
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
