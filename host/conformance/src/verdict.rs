//! The outcome of one trial.

/// Why a rule did not pass.
#[derive(Debug)]
pub(super) enum Stop {
    /// The rule is broken, with the actual result.
    Failed(String),
    /// The rule cannot be tested on this provider, with the reason.
    Skipped(String),
}

pub(super) type Verdict = Result<(), Stop>;

pub(super) fn failed<T>(saw: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Failed(saw.into()))
}

pub(super) fn skipped<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Skipped(why.into()))
}

/// Passes where `is_so`; fails with what was seen otherwise.
pub(super) fn holds(is_so: bool, saw: impl FnOnce() -> String) -> Verdict {
    if is_so { Ok(()) } else { failed(saw()) }
}
