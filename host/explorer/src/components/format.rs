//! One format each for times, numbers and amounts.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use memhost_types::Microcents;

/// A time as its age. The tooltip has the exact time.
pub(crate) fn time(moment: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(precise(moment)) title=(exact(moment)) data-ago { (ago(moment, now)) } }
}

/// A time to the millisecond, in UTC.
pub(crate) fn exact(moment: Timestamp) -> String {
    TimeZone::UTC.to_datetime(moment).strftime("%Y-%m-%d %H:%M:%S%.3f UTC").to_string()
}

/// The hour of a time that is known to the hour.
pub(crate) fn hour(moment: Timestamp) -> String {
    let start = TimeZone::UTC.to_datetime(moment);
    let end = TimeZone::UTC
        .to_datetime(Timestamp::from_second(moment.as_second() + 3_600).unwrap_or(moment));
    format!("{} to {} UTC", start.strftime("%Y-%m-%d %H:00"), end.strftime("%H:00"))
}

fn precise(moment: Timestamp) -> String {
    TimeZone::UTC.to_datetime(moment).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The age of a time, or how far ahead it is. The page's script writes it in the same way.
fn ago(moment: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(moment.as_second());
    let text = match seconds.unsigned_abs() {
        0..5 => return "just now".to_owned(),
        s @ 5..60 => format!("{s} s"),
        s @ 60..3_600 => format!("{} min", s / 60),
        s @ 3_600..86_400 => format!("{} h", s / 3_600),
        s @ 86_400..2_592_000 => format!("{} d", s / 86_400),
        _ => return TimeZone::UTC.to_datetime(moment).strftime("%-d %b %Y").to_string(),
    };
    if seconds < 0 { format!("in {text}") } else { format!("{text} ago") }
}

/// `12,345`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// An amount in dollars: two decimals, or more if it is less than a cent.
pub(crate) fn money(amount: Microcents) -> String {
    let microcents = amount.0;
    if microcents == 0 {
        return "$0.00".to_owned();
    }
    if microcents < 1_000_000 {
        let text = format!("{microcents:08}");
        return format!("$0.{}", text.trim_end_matches('0'));
    }
    let cents = microcents.saturating_add(500_000) / 1_000_000;
    format!("${}.{:02}", count(cents / 100), cents % 100)
}

/// A size: `1.5 MiB`.
#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn bytes(size: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if size < 1_024 {
        return format!("{size} B");
    }
    let (mut size, mut unit) = (size as f64 / 1_024.0, 0);
    while size >= 1_023.95 && unit + 1 < UNITS.len() {
        size /= 1_024.0;
        unit += 1;
    }
    format!("{} {}", short(size), UNITS[unit])
}

/// A duration of so many microseconds: `870 µs`, `12.4 ms`, `3.1 s`, `4 min`.
#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn duration_us(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{} ms", short(us as f64 / 1e3)),
        1_000_000..120_000_000 => format!("{} s", short(us as f64 / 1e6)),
        120_000_000..7_200_000_000 => format!("{} min", us / 60_000_000),
        _ => format!("{} h", count(us / 3_600_000_000)),
    }
}

/// Three digits, and no zeros at the end.
fn short(number: f64) -> String {
    let text = if number >= 99.95 { format!("{number:.0}") } else { format!("{number:.1}") };
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// A share from 0 to 1: `4.2 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", short(share * 100.0))
}

/// A name from JSON as words: `timed_out` is `timed out`.
pub(crate) fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// A message of the host as a sentence: it starts with a capital letter, and names in backticks
/// become code.
pub(crate) fn sentence(text: &str) -> Markup {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let text = format!("{first}{}", letters.as_str());
    // An unpaired backtick is shown as it is.
    let is_paired = text.matches('`').count().is_multiple_of(2);
    html! {
        @if is_paired {
            @for (index, part) in text.split('`').enumerate() {
                @if index % 2 == 0 { (part) } @else { code { (part) } }
            }
        } @else { (text) }
    }
}

/// The beginning of a text, in one line.
pub(crate) fn clipped(text: &str, most: usize) -> String {
    let mut letters =
        text.split_whitespace().flat_map(|word| std::iter::once(' ').chain(word.chars())).skip(1);
    let start: String = letters.by_ref().take(most).collect();
    match letters.next() {
        Some(_) => format!("{start}…"),
        None if start.is_empty() => "(empty)".to_owned(),
        None => start,
    }
}

/// The end of an id, which differs between neighbours. The tooltip has the whole id.
pub(crate) fn short_id(id: impl std::fmt::Display) -> Markup {
    let id = id.to_string();
    let start = id.char_indices().rev().nth(11).map_or(0, |(at, _)| at);
    html! { code title=(id) { (id[start..]) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_sizes_are_short() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let amounts =
            [0, 1, 1_500, 990_000, 1_000_000, 123_456_789_000].map(|n| money(Microcents(n)));
        assert_eq!(amounts, ["$0.00", "$0.00000001", "$0.000015", "$0.0099", "$0.01", "$1,234.57"]);
        assert_eq!(
            [0, 1_023, 1_536, 1_048_575, 10 << 30].map(bytes),
            ["0 B", "1023 B", "1.5 KiB", "1 MiB", "10 GiB"]
        );
        let durations = [7, 1_240, 999_960, 3_100_000, 240_000_000, 7_200_000_000].map(duration_us);
        assert_eq!(durations, ["7 µs", "1.2 ms", "1000 ms", "3.1 s", "4 min", "2 h"]);
        assert_eq!([0.0, 0.042, 1.0].map(percent), ["0 %", "4.2 %", "100 %"]);
    }

    #[test]
    fn a_long_text_is_shown_by_its_beginning() {
        assert_eq!(clipped("one\n two", 20), "one two");
        assert_eq!(clipped("äöü äöü", 5), "äöü ä…");
        assert_eq!(clipped(&"x".repeat(1 << 20), 3), "xxx…");
        assert_eq!(clipped(" \n", 5), "(empty)");
    }

    #[test]
    fn messages_are_sentences() {
        let said = |text: &str| sentence(text).into_string();
        assert_eq!(said("the key `a` is <b>"), "The key <code>a</code> is &lt;b&gt;");
        assert_eq!(said("one ` alone"), "One ` alone");
        assert_eq!(said(""), "");
    }

    #[test]
    fn moments_are_said_as_people_say_them() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let said = |text: &str| ago(text.parse().unwrap(), now);
        assert_eq!(said("2026-11-21T11:59:58Z"), "just now");
        assert_eq!(said("2026-11-21T11:59:18Z"), "42 s ago");
        assert_eq!(said("2026-11-21T09:00:00Z"), "3 h ago");
        assert_eq!(said("2026-11-21T12:05:00Z"), "in 5 min");
        assert_eq!(said("2025-01-02T12:05:00Z"), "2 Jan 2025");
        assert_eq!(hour("2026-11-23T23:00:00Z".parse().unwrap()), "2026-11-23 23:00 to 00:00 UTC");
    }
}
