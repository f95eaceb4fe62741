//! All metrics as text for Prometheus: the counters, and what is read at the time of the request.

use async_recursion::async_recursion as boxed;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};

use crate::Service;
use crate::error::ServiceError;
use crate::host::attached::Gauges;
use crate::versions::BreakerState;
use memhost_oplog::metrics::KindLabels;
use memhost_store::DiskLevel;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

impl Service {
    /// All metrics as OpenMetrics text, which Prometheus reads.
    ///
    /// # Errors
    /// Where it cannot be written out.
    #[boxed]
    pub async fn metrics(&self) -> Result<String, ServiceError> {
        let mut added = Vec::new();
        for (_, source) in self.metric_sources.all() {
            added.extend(source.gauges(self, self.clock.now()).await?);
        }
        let mut registry = Registry::with_prefix("memhost");
        self.recorder.metrics.register(&mut registry);
        let background =
            [("deliveries", self.deliveries.in_flight()), ("jobs", self.jobs.in_flight())];
        let in_flight = gauges(background.map(|(kind, count)| (KindLabels { kind }, count as u64)));
        registry.register("background_in_flight", "Deliveries and jobs that run", in_flight);
        self.register_disk(&mut registry);
        self.register_sandbox(&mut registry);
        self.register_bindings(&mut registry);
        for Gauges { name, help, label, values } in added {
            let values = values.into_iter().map(|(value, count)| (vec![(label, value)], count));
            registry.register(name, help, gauges(values));
        }
        let plugins =
            [("admitted", self.plugins.list().len()), ("refused", self.plugins.refused().len())];
        let states = gauges(plugins.map(|(state, count)| (StateLabels { state }, count as u64)));
        registry.register("plugins", "Builds that can serve, and files that were refused", states);
        let mut text = String::new();
        text::encode(&mut text, &registry).map_err(ServiceError::host)?;
        Ok(text)
    }

    fn register_disk(&self, registry: &mut Registry) {
        let disk = self.store.disk();
        if let Some(free) = disk.free_bytes {
            let help = "Free space on the disk of the data directory";
            registry.register_with_unit(
                "disk_free",
                help,
                Unit::Bytes,
                ConstGauge::new(whole(free)),
            );
        }
        let states =
            [("plenty", DiskLevel::Plenty), ("low", DiskLevel::Low), ("spent", DiskLevel::Spent)];
        let states = gauges(
            states.map(|(state, level)| (StateLabels { state }, u64::from(disk.level == level))),
        );
        registry.register(
            "disk",
            "1 at the present state: new data is refused at low, reads too at spent",
            states,
        );
    }

    fn register_sandbox(&self, registry: &mut Registry) {
        let stats = self.sandbox.stats();
        registry.register(
            "instance_slots",
            "Instances that may exist at once",
            ConstGauge::new(whole(stats.slots)),
        );
        let instances =
            [("idle", stats.idle), ("in_flight", stats.instances.saturating_sub(stats.idle))];
        let instances = gauges(instances.map(|(state, count)| (StateLabels { state }, count)));
        registry.register("instances", "Instances that exist", instances);
        for (name, help, count) in [
            ("instances_made", "Instances made: calls that found none warm", stats.made),
            ("components_compiled", "Components compiled", stats.compiled),
            ("components_loaded", "Components loaded from the compiled cache", stats.loaded),
            ("outgoing_requests", "Outgoing requests that were answered", stats.requests),
            (
                "outgoing_requests_refused",
                "Outgoing requests that were refused or failed",
                stats.requests_refused,
            ),
            ("outgoing_sent_bytes", "Bytes of outgoing requests' bodies", stats.bytes_sent),
            ("outgoing_received_bytes", "Bytes of the bodies that came back", stats.bytes_received),
        ] {
            registry.register(name, help, ConstCounter::new(count));
        }
        #[allow(clippy::cast_precision_loss, reason = "seconds for people")]
        let compiling = ConstCounter::new(stats.compile_us as f64 / 1e6);
        registry.register_with_unit(
            "compile",
            "Time spent compiling components",
            Unit::Seconds,
            compiling,
        );
    }

    fn register_bindings(&self, registry: &mut Registry) {
        let (mut all, mut states) = (0, [("closed", 0), ("open", 0), ("half_open", 0)]);
        for company in self.bindings.companies() {
            for binding in self.bindings.list(&company) {
                all += 1;
                let Some(serving) = self.serving.warm(binding.id) else { continue };
                match serving.breaker.state() {
                    BreakerState::Closed => states[0].1 += 1,
                    BreakerState::Open { .. } => states[1].1 += 1,
                    BreakerState::HalfOpen => states[2].1 += 1,
                }
            }
        }
        registry.register("bindings", "Bindings of all companies", ConstGauge::new(whole(all)));
        let breakers = gauges(states.map(|(state, count)| (StateLabels { state }, count)));
        registry.register(
            "breakers",
            "Circuit breakers of bindings that have served since the start",
            breakers,
        );
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// One gauge for each label.
fn gauges<L>(counts: impl IntoIterator<Item = (L, u64)>) -> Family<L, Gauge>
where
    L: Clone + std::hash::Hash + Eq,
{
    let family = Family::<L, Gauge>::default();
    for (label, count) in counts {
        family.get_or_create(&label).set(whole(count));
    }
    family
}
