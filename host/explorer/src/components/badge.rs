//! Status badges: a word with a colour. The word alone has the whole meaning.

use maud::{Markup, html};

use super::words;
use memhost_types::{JobStatus, Outcome};

/// The meaning of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Healthy.
    Good,
    /// Needs attention.
    Warning,
    /// Failed.
    Bad,
    /// In progress.
    Busy,
    /// Neutral.
    Plain,
}

/// A word with the colour of its tone.
pub(crate) fn badge(tone: Tone, text: &str) -> Markup {
    let class = match tone {
        Tone::Good => "b good",
        Tone::Warning => "b warn",
        Tone::Bad => "b bad",
        Tone::Busy => "b busy",
        Tone::Plain => "b",
    };
    html! { span class=(class) { (words(text)) } }
}

/// The badge of an outcome.
pub(crate) fn outcome(outcome: Outcome) -> Markup {
    let tone = match outcome {
        Outcome::Succeeded => Tone::Good,
        Outcome::Failed | Outcome::TimedOut | Outcome::Trapped => Tone::Bad,
        Outcome::Refused | Outcome::Held | Outcome::Interrupted => Tone::Warning,
        Outcome::InProgress => Tone::Busy,
    };
    badge(tone, outcome.as_str())
}

/// The badge of a job.
pub(crate) fn job_status(status: JobStatus) -> Markup {
    match status {
        JobStatus::Queued => badge(Tone::Plain, "queued"),
        JobStatus::Running => badge(Tone::Busy, "running"),
        JobStatus::Succeeded => badge(Tone::Good, "succeeded"),
        JobStatus::Failed => badge(Tone::Bad, "failed"),
        JobStatus::Cancelled => badge(Tone::Plain, "cancelled"),
    }
}
