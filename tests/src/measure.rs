//! Repeated timings, percentiles, and Markdown tables.

use std::process::Command;
use std::time::{Duration, Instant};

/// Sorted durations.
#[derive(Debug, Clone, Default)]
pub struct Timings(Vec<Duration>);

impl Timings {
    /// From durations in any order.
    pub fn new(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        Self(all)
    }

    /// The duration that `percent` of all do not exceed.
    pub fn percentile(&self, percent: f64) -> Duration {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let index = ((self.0.len() as f64) * percent / 100.0) as usize;
        self.0.get(index.min(self.0.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    /// The median.
    pub fn p50(&self) -> Duration {
        self.percentile(50.0)
    }

    /// The 99th percentile.
    pub fn p99(&self) -> Duration {
        self.percentile(99.0)
    }
}

/// Measures a call `count` times, after a warm-up of a tenth as many calls.
pub async fn repeat<F: Future<Output = ()>>(count: usize, mut call: impl FnMut() -> F) -> Timings {
    for _ in 0..count / 10 {
        call().await;
    }
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        call().await;
        all.push(started.elapsed());
    }
    Timings::new(all)
}

/// Measures a call `count` times, at a fixed rate, after a warm-up of a tenth as many calls. A loop
/// without pauses only measures how long the queue behind the calls gets.
pub async fn paced<F: Future<Output = ()>>(
    count: usize,
    every: Duration,
    mut call: impl FnMut() -> F,
) -> Timings {
    let (mut all, mut next) = (Vec::with_capacity(count), Instant::now());
    for number in 0..count + count / 10 {
        // This sleep sets the rate: tokio's timer only has milliseconds, and a loop that reads the
        // clock is preempted during calls.
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        next += every;
        let started = Instant::now();
        call().await;
        if number >= count / 10 {
            all.push(started.elapsed());
        }
    }
    Timings::new(all)
}

/// The processor time that this process has used, on all threads.
pub fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), u32::try_from(used.tv_nsec).unwrap_or_default())
}

/// A duration for a table.
pub fn show(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    match micros {
        ..1_000.0 => format!("{micros:.1} µs"),
        1_000.0..1_000_000.0 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

/// How many times longer than the lower bound.
pub fn ratio(duration: Duration, floor: Duration) -> String {
    format!("{:.2}×", duration.as_secs_f64() / floor.as_secs_f64().max(1e-12))
}

/// Prints a Markdown table.
pub fn table(title: &str, head: &[&str], rows: &[Vec<String>]) {
    println!("\n### {title}\n");
    println!("| {} |", head.join(" | "));
    println!("|{}", " --- |".repeat(head.len()));
    for row in rows {
        println!("| {} |", row.join(" | "));
    }
}

/// The p50 and the p99 that a program of another project prints as `p50_ns p99_ns`, if the
/// variable names it, with its first arguments, divided by spaces. `count` is its last argument.
///
/// # Panics
/// Where the program fails or prints something else.
#[must_use]
#[allow(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]
pub fn peer(variable: &str, count: usize) -> Option<(Duration, Duration)> {
    let named = std::env::var(variable).ok()?;
    let mut words = named.split(' ');
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).arg(count.to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut nanos =
        printed.split_whitespace().map(|number| Duration::from_nanos(number.parse().unwrap()));
    nanos.next().zip(nanos.next())
}
