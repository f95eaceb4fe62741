//! What is measured beside an attack.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use memhost_tests::measure::{Timings, show};
use serde_json::json;

use super::harness::{Host, Round};
use super::{Attack, mib};

/// What an attack did.
pub(super) struct Measured {
    quiet_bytes: u64,
    max_bytes: u64,
    quiet: Timings,
    harmless: Timings,
    attacked: Timings,
    health: Duration,
    errors: Vec<String>,
}

/// A harmless caller, in the attacker's place.
fn harmless(host: &Host, _: u64) -> Result<(), String> {
    let ask = json!({"scope": {"companyId": "evil", "agentId": "ada"}, "query": "fact"});
    host.post("/runtime/v1/companies/evil/query", &ask.to_string()).map(drop)
}

/// Runs an attack beside the neighbour, on a host of its own.
pub(super) fn measure(attack: &Attack, time: Duration) -> Measured {
    let host = Host::start("warn");
    let (quiet, ..) = phase(&host, None, 0, time);
    let quiet_bytes = host.resident();
    let (harmless, ..) = phase(&host, Some(harmless), attack.threads, time);
    let (attacked, max_bytes, health, errors) =
        phase(&host, Some(attack.run), attack.threads, time);
    Measured { quiet_bytes, max_bytes, quiet, harmless, attacked, health, errors }
}

/// Lets everybody else compute first: what an attacker computes for its requests, it computes on
/// another machine.
fn give_way() {
    rustix::process::nice(19).unwrap();
}

fn phase(
    host: &Host,
    run: Option<Round>,
    threads: usize,
    time: Duration,
) -> (Timings, u64, Duration, Vec<String>) {
    let (stop, most, errors) = (AtomicBool::new(false), AtomicU64::new(0), Mutex::new(Vec::new()));
    let (stop, most, errors) = (&stop, &most, &errors);
    let goes_on = || !stop.load(Ordering::Relaxed);
    let note = |error: String| errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
    let (latencies, health) = std::thread::scope(|scope| {
        for thread in 0..threads as u64 {
            scope.spawn(move || {
                give_way();
                let mut round = thread << 32;
                while goes_on() {
                    if let Some(Err(error)) = run.map(|run| run(host, round)) {
                        note(error);
                    }
                    round += 1;
                }
            });
        }
        let neighbour = scope.spawn(move || {
            let mut all = Vec::new();
            while goes_on() {
                for ask in [Host::query_neighbour, Host::list_neighbour] {
                    let started = Instant::now();
                    ask(host).unwrap_or_else(note);
                    all.push(started.elapsed());
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            all
        });
        let health = scope.spawn(move || {
            let mut longest = Duration::ZERO;
            while goes_on() {
                let started = Instant::now();
                if let Err(error) = host.get("/healthz") {
                    note(error);
                }
                longest = longest.max(started.elapsed());
                std::thread::sleep(Duration::from_millis(10));
            }
            longest
        });
        let until = Instant::now() + time;
        while Instant::now() < until {
            most.fetch_max(host.resident(), Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
        (neighbour.join().unwrap(), health.join().unwrap())
    });
    host.held.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let mut errors = errors.lock().unwrap_or_else(PoisonError::into_inner).split_off(0);
    errors.sort();
    errors.dedup();
    errors.truncate(5);
    (Timings::new(latencies), most.load(Ordering::Relaxed), health, errors)
}

impl Measured {
    pub(super) fn row(&self, name: &str) -> Vec<String> {
        let bytes = |bytes| format!("{} MiB", mib(bytes));
        vec![
            name.to_owned(),
            bytes(self.quiet_bytes),
            bytes(self.max_bytes),
            show(self.quiet.p99()),
            show(self.harmless.p99()),
            show(self.attacked.p99()),
            show(self.health),
        ]
    }

    /// What breaks the figures.
    pub(super) fn wrong(&self, name: &str) -> Vec<String> {
        let mut wrong: Vec<String> =
            self.errors.iter().map(|error| format!("{name}: {error}")).collect();
        let most = 2 * self.quiet_bytes + (256 << 20);
        if self.max_bytes > most {
            wrong.push(format!(
                "{name}: {} MiB of memory; at most {} MiB",
                mib(self.max_bytes),
                mib(most)
            ));
        }
        let most = (3 * self.harmless.p99()).max(Duration::from_millis(10));
        if self.attacked.p99() > most {
            wrong.push(format!(
                "{name}: the neighbours' p99 is {}; at most {}",
                show(self.attacked.p99()),
                show(most)
            ));
        }
        if self.health > Duration::from_millis(100) {
            wrong.push(format!("{name}: /healthz took {}; at most 100 ms", show(self.health)));
        }
        wrong
    }
}
