//! The same small provider in several languages: size, admission, start and calls, with the one in
//! Rust as the floor. `just examples` builds them; those that are not built are left out.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use std::time::{Duration, Instant};

use memhost_tests::measure::{Timings, ratio, repeat, show, table};
use memhost_tests::{TestHost, example_file, guest_file};
use memhost_types::BindingLimits;

/// How many notes a query searches.
const NOTES: usize = 20;
const STARTS: usize = 15;
const CALLS: usize = 300;

struct Measured {
    bytes: usize,
    /// With `describe`, and with writing the compiled form.
    admission: Duration,
    /// The same from the cache of compiled components, as at a host's start.
    cached: Duration,
    /// A call on a fresh instance.
    fresh: Duration,
    warm: Duration,
}

async fn measure(key: &str, file: &std::path::Path) -> Measured {
    let bytes = std::fs::read(file).unwrap();
    let mut host = TestHost::new(&[]).await.unwrap();
    std::fs::write(host.directory().join("plugins/example.wasm"), &bytes).unwrap();
    let started = Instant::now();
    host.service().control().scan_plugins().await;
    let admission = started.elapsed();
    assert_eq!(
        host.service().control().plugins().admitted.len(),
        2,
        "{:?}",
        host.service().control().plugins().refused
    );
    host.bind("acme", key, BindingLimits::default()).await.unwrap();
    for n in 0..NOTES {
        host.write("acme", &format!("note {n} about the harbour and its lanterns")).await.unwrap();
    }
    // The built-in provider is loaded in both, so the time of a host without plugins is subtracted.
    let mut starts = [Vec::new(), Vec::new()];
    let mut fresh = Vec::new();
    let mut empty = TestHost::new(&[]).await.unwrap();
    for _ in 0..STARTS {
        for (index, host) in [&mut empty, &mut host].into_iter().enumerate() {
            host.stop().await;
            let started = Instant::now();
            host.start().await.unwrap();
            starts[index].push(started.elapsed());
        }
        let started = Instant::now();
        assert_eq!(host.query("acme", "harbour lanterns").await.unwrap().len(), 10);
        fresh.push(started.elapsed());
    }
    let [without, with] = starts.map(Timings::new);
    let warm =
        repeat(CALLS, || async { drop(host.query("acme", "harbour lanterns").await.unwrap()) })
            .await;
    Measured {
        bytes: bytes.len(),
        admission,
        cached: with.p50().saturating_sub(without.p50()),
        fresh: Timings::new(fresh).p50(),
        warm: warm.p50(),
    }
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let floor = runtime.block_on(measure("notes", &guest_file("notes")));
    let mut all = vec![("rust".to_owned(), floor)];
    for language in ["c", "javascript", "python"] {
        match example_file(language) {
            Ok(file) => all.push((
                language.to_owned(),
                runtime.block_on(measure(&format!("notes-{language}"), &file)),
            )),
            Err(why) => eprintln!("left out: {why}"),
        }
    }
    let floor = &all[0].1;
    let against =
        |took: Duration, floor: Duration| format!("{} ({})", show(took), ratio(took, floor));
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|(language, one)| {
            vec![
                language.clone(),
                format!("{:.1} KiB", one.bytes as f64 / 1024.0),
                against(one.admission, floor.admission),
                against(one.cached, floor.cached),
                against(one.fresh, floor.fresh),
                against(one.warm, floor.warm),
            ]
        })
        .collect();
    table(
        "The same provider in several languages",
        &[
            "language",
            "component",
            "admission, cold",
            "from the cache",
            "fresh instance and query of 20 notes",
            "query, warm",
        ],
        &rows,
    );
}
