//! The figures of the benchmarks that `just bench-gate` compares with the kept ones: ratios of what
//! was measured and its floor in the same run, so that machines can be compared, or times where the
//! name says so.

use std::io::Write;
use std::time::Duration;

/// The file that the figures of a run are added to: a line each, the name, a tab, the number.
pub const FILE: &str = "MEMHOST_FIGURES";

/// Whether the figures of this run are wanted: then benchmarks take as little time as they can.
pub fn are_wanted() -> bool {
    std::env::var_os(FILE).is_some()
}

/// A figure.
///
/// # Panics
/// Where the file cannot be written.
pub fn note(name: &str, figure: f64) {
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| writeln!(file, "{name}\t{figure:.3}"));
    written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// How many times as long as its floor something takes. Less is better.
///
/// # Panics
/// As [`note`].
pub fn cost(name: &str, ours: Duration, floor: Duration) {
    note(name, ours.as_secs_f64() / floor.as_secs_f64().max(1e-12));
}
