//! The figures that the metrics have beside their counters, read at the time of the request.

use std::sync::Arc;

use async_recursion::async_recursion as boxed;

use super::Monitor;
use memhost_oplog::metrics::{Exposition, Gauges};
use memhost_registry::versions::BreakerState;
use memhost_store::DiskLevel;
use memhost_tenancy::ServiceError;

/// Adds figures to those of the same name.
fn add(known: &mut Gauges, more: Gauges) {
    for (label, count) in more.values {
        match known.values.iter_mut().find(|(other, _)| *other == label) {
            Some((_, sum)) => *sum += count,
            None => known.values.push((label, count)),
        }
    }
}

impl Monitor {
    /// All metrics as OpenMetrics text, which Prometheus reads.
    ///
    /// # Errors
    /// Where it cannot be written out.
    #[boxed]
    pub async fn metrics(&self) -> Result<String, ServiceError> {
        let beside = self.beside();
        let (mut added, mut deliveries, mut jobs) = (Vec::<Gauges>::new(), 0, 0);
        for one in self.with(&beside) {
            for (_, source) in one.metric_sources.all() {
                for gauges in source.gauges(&one.control, one.clock.now()).await? {
                    match added.iter_mut().find(|known| known.name == gauges.name) {
                        Some(known) => add(known, gauges),
                        None => added.push(gauges),
                    }
                }
            }
            deliveries += one.deliveries.in_flight();
            jobs += one.jobs.in_flight();
        }
        let mut metrics = Exposition::of(&self.oplog.metrics);
        metrics.gauges(Gauges {
            name: "background_in_flight",
            help: "Deliveries and jobs that run",
            label: "kind",
            values: vec![("deliveries", deliveries as u64), ("jobs", jobs as u64)],
        });
        self.expose_disk(&mut metrics);
        self.expose_database(&mut metrics).await;
        self.expose_sandbox(&mut metrics);
        self.expose_bindings(&beside, &mut metrics);
        added.into_iter().for_each(|gauges| metrics.gauges(gauges));
        let (admitted, refused) = (self.plugins.list().len(), self.plugins.refused().len());
        metrics.gauges(Gauges {
            name: "plugins",
            help: "Builds that can serve, and files that were refused",
            label: "state",
            values: vec![("admitted", admitted as u64), ("refused", refused as u64)],
        });
        metrics.text().map_err(ServiceError::host)
    }

    fn expose_disk(&self, metrics: &mut Exposition) {
        let disk = self.store.disk();
        if let Some(free) = disk.free_bytes {
            metrics.bytes("disk_free", "Free space on the disk of the data directory", free);
        }
        let states =
            [("plenty", DiskLevel::Plenty), ("low", DiskLevel::Low), ("spent", DiskLevel::Spent)];
        metrics.gauges(Gauges {
            name: "disk",
            help: "1 at the present state: new data is refused at low, reads too at spent",
            label: "state",
            values: states.map(|(state, level)| (state, u64::from(disk.level == level))).to_vec(),
        });
    }

    async fn expose_database(&self, metrics: &mut Exposition) {
        if let Some(writing) = self.store.writing() {
            for (name, help, count) in [
                ("database_batches", "Batches committed to the database", writing.batches),
                ("database_items", "Items in those batches", writing.items),
                ("database_tries_again", "Batches that were tried again", writing.tried_again),
                (
                    "database_items_refused",
                    "Items refused because another host had taken over, with those built on them",
                    writing.refused,
                ),
                (
                    "database_items_given_up",
                    "Items that could not be written within 10 s",
                    writing.given_up,
                ),
            ] {
                metrics.counter(name, help, count);
            }
            metrics.time("database_batch", "Time of committed batches", writing.batch_us);
            metrics.gauge("database_items_waiting", "Items that wait", writing.waiting);
        }
        let Some(place) = &self.place else { return };
        let groups = place.beside.all();
        let groups = groups.iter().filter(|one| one.serves_companies()).count() as u64;
        metrics.gauge("groups", "Groups of companies that this host serves, of 16", groups);
        let taken = place.beside.taken();
        metrics.counter("groups_taken", "Groups that this host has taken over", taken);
        // What the database does not say is left out, and the rest is there.
        if let Ok(hosts) = place.membership.hosts().await {
            let up = hosts.iter().filter(|host| host.is_up).count() as u64;
            let gone = hosts.len() as u64 - up;
            metrics.gauges(Gauges {
                name: "hosts",
                help: "Hosts on the database; gone: in the last ten minutes",
                label: "state",
                values: vec![("up", up), ("gone", gone)],
            });
        }
    }

    fn expose_sandbox(&self, metrics: &mut Exposition) {
        let stats = self.sandbox.stats();
        let (slots, idle) = (stats.slots, stats.idle);
        metrics.gauge("instance_slots", "Instances that may exist at once", slots);
        metrics.gauges(Gauges {
            name: "instances",
            help: "Instances that exist",
            label: "state",
            values: vec![("idle", idle), ("in_flight", stats.instances.saturating_sub(idle))],
        });
        for (name, help, count) in [
            ("instances_made", "Instances made: calls that found none warm", stats.made),
            ("components_compiled", "Components compiled", stats.compiled),
            ("components_loaded", "Components loaded without compiling", stats.loaded),
            ("outgoing_requests", "Outgoing requests that were answered", stats.requests),
            (
                "outgoing_requests_refused",
                "Outgoing requests that were refused or failed",
                stats.requests_refused,
            ),
            ("outgoing_sent_bytes", "Bytes of outgoing requests' bodies", stats.bytes_sent),
            ("outgoing_received_bytes", "Bytes of the bodies that came back", stats.bytes_received),
        ] {
            metrics.counter(name, help, count);
        }
        metrics.time("compile", "Time spent compiling components", stats.compile_us);
    }

    fn expose_bindings(&self, beside: &[Arc<Self>], metrics: &mut Exposition) {
        let (mut all, mut states) = (0, [("closed", 0), ("open", 0), ("half_open", 0)]);
        let (now, mut failing, mut degraded) = (self.clock.now(), 0, 0);
        for one in self.with(beside) {
            for company in one.bindings.companies() {
                for binding in one.bindings.list(&company) {
                    all += 1;
                    let troubles = one.oplog.recent.troubles(&company, &binding.key, now);
                    failing += u64::from(troubles.failing.is_some());
                    degraded += u64::from(troubles.degraded.is_some());
                    let Some(serving) = one.serving.warm(binding.id) else { continue };
                    match serving.breaker.state() {
                        BreakerState::Closed => states[0].1 += 1,
                        BreakerState::Open { .. } => states[1].1 += 1,
                        BreakerState::HalfOpen => states[2].1 += 1,
                    }
                }
            }
        }
        metrics.gauge("bindings", "Bindings of all companies", all);
        metrics.gauges(Gauges {
            name: "troubled_bindings",
            help: "Bindings with a warning: 5 % of the calls of the last hour failed, 5 at least, \
                   or 5 % of its recalls were degraded, 3 at least",
            label: "trouble",
            values: vec![("failing", failing), ("degraded", degraded)],
        });
        metrics.gauges(Gauges {
            name: "breakers",
            help: "Circuit breakers of bindings that have served since the start",
            label: "state",
            values: states.to_vec(),
        });
    }
}
