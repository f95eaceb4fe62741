//! What several pages show in one way: links to operations, records, bindings and sources, who something is about, days of
//! a filter, and fields that are not text.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, Render, html};

pub(super) use super::kit::source_words as source;
use super::kit::{Facts, Tone, View, badge, record_link, short_id};
use memhost_types::{JobStatus, OperationId, RecordHandle, Scope};

/// Rows of one page of a list.
pub(super) const ROWS: Option<u32> = Some(50);

/// An operation, by the end of its id.
pub(super) fn operation(view: &View, id: OperationId) -> Markup {
    html! { a href=(view.at(&["operations", &id.to_string()])) { (short_id(id)) } }
}

/// A binding, by its key.
pub(super) fn binding(view: &View, key: &str) -> Markup {
    html! { a href=(view.at(&["bindings", key])) { (key) } }
}

/// A record, by the provider's own name for it.
pub(super) fn record(view: &View, binding: &str, handle: &RecordHandle) -> Markup {
    let id = handle.provider_record_id.as_str();
    html! { a href=(record_link(view, binding, handle)) { code title=(id) { (ends(id)) } } }
}

/// The end of a long name.
fn ends(text: &str) -> String {
    match text.char_indices().rev().nth(39) {
        Some((at, _)) if at > 0 => format!("…{}", &text[at..]),
        _ => text.to_owned(),
    }
}

/// Who and what something is about.
pub(super) fn scope(facts: Facts, scope: &Scope) -> Facts {
    facts
        .maybe("Agent", scope.agent_id.as_ref().map(ToString::to_string))
        .maybe("Project", scope.project_id.as_ref())
        .maybe("Issue", scope.issue_id.as_ref())
        .maybe("Run", scope.run_id.as_ref())
        .maybe("Subject", scope.subject_id.as_ref())
        .maybe("Session", scope.session_key.as_ref())
        .maybe("Namespace", scope.namespace.as_ref())
}

/// A message of the host as a sentence: it begins with a capital, and names in backticks are set as such.
pub(super) fn prose(text: &str) -> Markup {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let text = format!("{first}{}", letters.as_str());
    // A backtick without another one is a letter like any other.
    let is_paired = text.matches('`').count().is_multiple_of(2);
    html! {
        @if is_paired {
            @for (index, part) in text.split('`').enumerate() { @if index % 2 == 0 { (part) } @else { code { (part) } } }
        } @else { (text) }
    }
}

/// How far a job is.
pub(super) fn job_status(status: JobStatus) -> Markup {
    match status {
        JobStatus::Queued => badge(Tone::Plain, "queued"),
        JobStatus::Running => badge(Tone::Busy, "running"),
        JobStatus::Succeeded => badge(Tone::Good, "succeeded"),
        JobStatus::Failed => badge(Tone::Bad, "failed"),
        JobStatus::Cancelled => badge(Tone::Plain, "cancelled"),
    }
}

/// What somebody may choose: `timed_out`, called `timed out`.
pub(super) fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(String, String)> {
    names.into_iter().map(|name| (name.to_owned(), super::kit::words(name))).collect()
}

/// The keys of a company's bindings, to choose one of.
pub(super) fn binding_keys(view: &View) -> Vec<(String, String)> {
    let keys = view.company.as_ref().map(|company| view.service.binding_keys(company)).unwrap_or_default();
    keys.iter().map(|key| (key.to_string(), key.to_string())).collect()
}

/// The moments of a filter's days: from the first one's beginning to the last one's end, in UTC.
pub(super) fn moments(since: Option<Date>, until: Option<Date>) -> (Option<Timestamp>, Option<Timestamp>) {
    let start = |day: Date| day.to_zoned(TimeZone::UTC).ok().map(|start| start.timestamp());
    (since.and_then(start), until.and_then(|day| day.tomorrow().ok()).and_then(start))
}

/// A field of a form that is a choice of one. `options` are values and what they are called.
pub(super) fn choose<V: AsRef<str>, N: Render>(
    name: &str,
    label: &str,
    chosen: &str,
    options: impl IntoIterator<Item = (V, N)>,
) -> Markup {
    html! {
        div.field {
            label for={ "in-" (name) } { (label) }
            select #{ "in-" (name) } name=(name) {
                @for (value, called) in options { option value=(value.as_ref()) selected[value.as_ref() == chosen] { (called) } }
            }
        }
    }
}

/// A field of a form that is on or off.
pub(super) fn tick(name: &str, label: &str, is_on: bool) -> Markup {
    html! { label.tick { input type="checkbox" name=(name) value="on" checked[is_on]; span { (label) } } }
}

/// Something that is used up to a limit, with a bar.
#[allow(clippy::cast_precision_loss, reason = "a bar")]
pub(super) fn used(name: &str, used: u64, limit: u64, show: fn(u64) -> String) -> Markup {
    let (value, of) = (used.min(limit) as f64, limit.max(1) as f64);
    html! {
        li.used {
            div.between { span { (name) } span.soft { (show(used)) " of " (show(limit)) } }
            meter min="0" max=(of) low=(of * 0.75) high=(of * 0.95) optimum="0" value=(value) aria-label=(name) { (show(used)) }
        }
    }
}

/// Pages that belong together, above what they show. `here` is the path of the present one below the company.
pub(super) fn tabs(view: &View, here: &str, pages: &[(&str, &str)]) -> Markup {
    html! {
        nav.tabs aria-label="Section" {
            @for (path, name) in pages {
                a href=(view.at(&[path])) aria-current=[(*path == here).then_some("page")] { (name) }
            }
        }
    }
}

/// A form once more, with what was wrong: nothing was changed.
pub(super) fn again(page: &Markup) -> Response {
    (StatusCode::UNPROCESSABLE_ENTITY, page.clone()).into_response()
}

/// A text area's lines as they were before a browser sent them.
pub(super) fn lines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sentences() {
        let said = |text: &str| prose(text).into_string();
        assert_eq!(said("the key `a` is <b>"), "The key <code>a</code> is &lt;b&gt;");
        assert_eq!(said("one ` alone"), "One ` alone");
        assert_eq!(said(""), "");
    }

    #[test]
    fn days_are_whole() {
        let (day, other) = ("2026-11-20".parse().unwrap(), "2026-11-21".parse().unwrap());
        let (since, until) = moments(Some(day), Some(other));
        assert_eq!(since.unwrap().to_string(), "2026-11-20T00:00:00Z");
        assert_eq!(until.unwrap().to_string(), "2026-11-22T00:00:00Z");
        assert_eq!(moments(None, None), (None, None));
    }

    #[test]
    fn long_names_show_their_ends() {
        assert_eq!(ends("short"), "short");
        assert_eq!(ends(&"é".repeat(50)), format!("…{}", "é".repeat(40)));
    }
}
