//! A histogram without a lock: operations of all companies count in the same ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Counts values in buckets. Each value is one addition to its bucket and one to the sum, so
/// nothing is lost and nobody waits.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    /// The upper bounds, in the unit that is shown.
    bounds: &'static [f64],
    /// How many units of the values make one that is shown.
    scale: f64,
    /// One for each bound, and the last for what is above them.
    counts: Arc<[AtomicU64]>,
    sum: Arc<AtomicU64>,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64], scale: f64) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, scale, counts, sum: Arc::default() }
    }

    /// Counts a value.
    #[allow(clippy::cast_precision_loss, reason = "bounds are far below 2^52")]
    pub(super) fn observe(&self, value: u64) {
        let shown = value as f64 / self.scale;
        let bucket = self.bounds.partition_point(|bound| *bound < shown);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }
}

impl EncodeMetric for Histogram {
    #[allow(clippy::cast_precision_loss, reason = "a sum for people")]
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = self.sum.load(Ordering::Relaxed) as f64 / self.scale;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;
    use prometheus_client::registry::Registry;

    use super::*;

    fn shown(histogram: &Histogram) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        registry.register("took", "How long", histogram.clone());
        text::encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn a_value_is_in_the_bucket_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::new(&[0.5, 1.0], 1e6);
        [1, 500_000, 500_001, 1_000_000, 3_000_000]
            .into_iter()
            .for_each(|us| histogram.observe(us));
        let text = shown(&histogram);
        for line in [
            "took_sum 5.000002",
            "took_count 5",
            "took_bucket{le=\"0.5\"} 2",
            "took_bucket{le=\"1.0\"} 4",
            "took_bucket{le=\"+Inf\"} 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }

    #[test]
    fn what_many_threads_count_is_all_there() {
        let histogram = Histogram::new(&[1.0], 1.0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|n| histogram.observe(n % 3)));
            }
        });
        let counts: Vec<u64> =
            histogram.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        assert_eq!(counts, [4 * 6_667, 4 * 3_333]);
    }
}
