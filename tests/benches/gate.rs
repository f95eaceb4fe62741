//! Compares the figures of several runs of the benchmarks with the kept ones. `just bench-gate`
//! runs both. `UPDATE_FIGURES=1` keeps what was measured: only with a reason in the same commit.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use std::cmp::Ordering::{Equal, Less};
use std::collections::BTreeMap;
use std::process::ExitCode;

use memhost_tests::figures;
use memhost_tests::measure::table;
use serde::{Deserialize, Serialize};

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/kept.json");

/// How many runs there are.
const RUNS: usize = 3;

/// A kept figure.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Kept {
    figure: String,
    /// The median of three runs.
    kept: f64,
    /// Whether less is better: a cost. Otherwise it is a share of the floor.
    less_is_better: bool,
    /// What is wanted, see `host/docs/performance.md`.
    wanted: f64,
    /// By how many percent it may be worse.
    may_be_worse_by: f64,
}

impl Kept {
    /// By how many percent a figure is worse; less than 0 where it is better.
    fn worse_by(&self, figure: f64) -> f64 {
        let by = match self.less_is_better {
            true => figure / self.kept,
            false => self.kept / figure,
        };
        (by - 1.0) * 100.0
    }
}

fn main() -> ExitCode {
    let Some(path) = std::env::var_os(figures::FILE) else {
        eprintln!("{} names no file of figures; type `just bench-gate`", figures::FILE);
        return ExitCode::FAILURE;
    };
    let mut measured: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let (name, figure) = line.split_once('\t').unwrap();
        measured.entry(name.to_owned()).or_default().push(figure.parse().unwrap());
    }
    let mut kept: Vec<Kept> = serde_json::from_slice(&std::fs::read(KEPT).unwrap()).unwrap();
    let (mut rows, mut is_worse, mut is_incomplete) = (Vec::new(), false, false);
    for known in &mut kept {
        let mut runs = measured.remove(&known.figure).unwrap_or_default();
        if runs.len() != RUNS {
            eprintln!("`{}` was measured {} times and not {RUNS}", known.figure, runs.len());
            is_incomplete = true;
            continue;
        }
        runs.sort_by(f64::total_cmp);
        let median = runs[runs.len() / 2];
        let worse_by = known.worse_by(median);
        // A figure that is no number fails, too.
        let fails = !matches!(worse_by.partial_cmp(&known.may_be_worse_by), Some(Less | Equal));
        is_worse |= fails;
        rows.push(vec![
            known.figure.clone(),
            format!("{:.2}", known.kept),
            runs.iter().map(|run| format!("{run:.2}")).collect::<Vec<_>>().join(" "),
            format!("{median:.2}"),
            format!("{}{:.2}", if known.less_is_better { "≤ " } else { "≥ " }, known.wanted),
            match fails {
                true => format!("WORSE by {worse_by:.0} %"),
                false => format!("{:+.0} %", -worse_by),
            },
        ]);
        known.kept = median;
    }
    table("The kept figures", &["figure", "kept", "runs", "median", "wanted", "better by"], &rows);
    for unknown in measured.keys() {
        eprintln!("`{unknown}` is measured and not kept; add it to {KEPT}");
        is_incomplete = true;
    }
    if is_incomplete {
        return ExitCode::FAILURE;
    }
    if std::env::var_os("UPDATE_FIGURES").is_some() {
        std::fs::write(KEPT, serde_json::to_string_pretty(&kept).unwrap() + "\n").unwrap();
        return ExitCode::SUCCESS;
    }
    if is_worse { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
