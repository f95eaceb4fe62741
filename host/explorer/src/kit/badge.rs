//! A word with a colour. The word says it all; the colour is for whoever looks over many.

use maud::{Markup, html};

use super::words;
use memhost_types::Outcome;

/// What a colour stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it should be.
    Good,
    /// Somebody may want to look.
    Warning,
    /// Something failed.
    Bad,
    /// Goes on at the moment.
    Busy,
    /// Neither good nor bad.
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

/// How an operation ended.
pub(crate) fn outcome(outcome: Outcome) -> Markup {
    let tone = match outcome {
        Outcome::Succeeded => Tone::Good,
        Outcome::Failed | Outcome::TimedOut | Outcome::Trapped => Tone::Bad,
        Outcome::Refused | Outcome::Held | Outcome::Interrupted => Tone::Warning,
        Outcome::InProgress => Tone::Busy,
    };
    badge(tone, outcome.as_str())
}
