//! Reads due dates as people write them, in UTC, relative to the day on which they were said.

use std::sync::LazyLock;

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};
use regex_lite::{Captures, Regex};

/// Each way to write a date: its pattern, and how it is read.
const FORMS: &[(&str, Read)] = &[
    (r"\b(\d{4})-(\d\d)-(\d\d)\b", iso),
    (r"\b(?:the )?day after tomorrow\b", |_, today| after(today, 2.days())),
    (r"\btomorrow\b", |_, today| after(today, 1.day())),
    (
        r"\b(?:today|tonight|eod|this (?:morning|afternoon|evening)|end of (?:the )?day)\b",
        |_, today| Some(today),
    ),
    (r"\bin (\d{1,3}|an?|one|two|three|four|five|six|seven|ten) (day|week|month)s?\b", within),
    (r"\b(?:end of (?:the |this )?week|eow|this week)\b", |_, today| {
        weekday(today, Weekday::Sunday, true)
    }),
    (r"\bnext week\b", |_, today| weekday(after(today, 7.days())?, Weekday::Sunday, true)),
    (r"\b(?:end of (?:the |this )?month|eom|this month)\b", |_, today| Some(today.last_of_month())),
    (r"\bnext month\b", |_, today| Some(after(today.first_of_month(), 1.month())?.last_of_month())),
    (
        r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?\b(?:,? (20\d\d))?",
        |found, today| {
            month_day(
                found.get(1)?.as_str(),
                found.get(2)?.as_str(),
                found.get(3).map(|year| year.as_str()),
                today,
            )
        },
    ),
    (
        r"\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? (jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b(?:,? (20\d\d))?",
        |found, today| {
            month_day(
                found.get(2)?.as_str(),
                found.get(1)?.as_str(),
                found.get(3).map(|year| year.as_str()),
                today,
            )
        },
    ),
    (
        r"\b(next |this |on |by |before |until )?(mon|tues|wednes|thurs|fri|satur|sun)day\b",
        day_of_week,
    ),
    (
        r"\b(?:by|before|until) (january|february|march|april|may|june|july|august|september|october|november|december)\b",
        |found, today| {
            Some(month_day(&found.get(1)?.as_str()[..3], "1", None, today)?.last_of_month())
        },
    ),
];

type Read = fn(&Captures, Date) -> Option<Date>;

static READERS: LazyLock<Vec<(Regex, Read)>> = LazyLock::new(|| {
    FORMS.iter().filter_map(|(pattern, read)| Some((Regex::new(pattern).ok()?, *read))).collect()
});

/// Whether a text in lower case names a day.
pub fn mentions(plain: &str) -> bool {
    READERS.iter().any(|(pattern, _)| pattern.is_match(plain))
}

/// The end of the day that a text names, if any. If there are several, the first form in the table
/// counts.
pub fn parse(text: &str, said: Timestamp) -> Option<Timestamp> {
    let today = said.to_zoned(TimeZone::UTC).date();
    let plain = text.to_lowercase();
    let found =
        READERS.iter().find_map(|(pattern, read)| read(&pattern.captures(&plain)?, today))?;
    Some(found.to_datetime(Time::constant(23, 59, 59, 0)).to_zoned(TimeZone::UTC).ok()?.timestamp())
}

fn after(day: Date, span: Span) -> Option<Date> {
    day.checked_add(span).ok()
}

fn iso(found: &Captures, _: Date) -> Option<Date> {
    let number = |at: usize| found.get(at)?.as_str().parse::<i16>().ok();
    Date::new(number(1)?, number(2)?.try_into().ok()?, number(3)?.try_into().ok()?).ok()
}

fn within(found: &Captures, today: Date) -> Option<Date> {
    let count: i64 = match found.get(1)?.as_str() {
        "a" | "an" | "one" => 1,
        "two" => 2,
        "three" => 3,
        "four" => 4,
        "five" => 5,
        "six" => 6,
        "seven" => 7,
        "ten" => 10,
        number => number.parse().ok()?,
    };
    match found.get(2)?.as_str() {
        "day" => after(today, count.days()),
        "week" => after(today, count.weeks()),
        _ => after(today, count.months()),
    }
}

/// The next such day; without `today_counts` it is at least tomorrow.
fn weekday(today: Date, day: Weekday, today_counts: bool) -> Option<Date> {
    if today_counts && today.weekday() == day {
        Some(today)
    } else {
        today.nth_weekday(1, day).ok()
    }
}

fn day_of_week(found: &Captures, today: Date) -> Option<Date> {
    let day = match found.get(2)?.as_str() {
        "mon" => Weekday::Monday,
        "tues" => Weekday::Tuesday,
        "wednes" => Weekday::Wednesday,
        "thurs" => Weekday::Thursday,
        "fri" => Weekday::Friday,
        "satur" => Weekday::Saturday,
        _ => Weekday::Sunday,
    };
    let next = weekday(today, day, false)?;
    // `next Friday` is that of the next week if this week still has one.
    let is_next = found.get(1).is_some_and(|word| word.as_str() == "next ");
    let sunday = weekday(today, Weekday::Sunday, true)?;
    if is_next && next <= sunday { after(next, 7.days()) } else { Some(next) }
}

/// A day of this year, or of the next one if it was more than half a year ago: `3 January`, said in
/// December.
fn month_day(month: &str, day: &str, year: Option<&str>, today: Date) -> Option<Date> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let month = i8::try_from(MONTHS.iter().position(|name| *name == month)? + 1).ok()?;
    let day: i8 = day.parse().ok()?;
    if let Some(year) = year {
        return Date::new(year.parse().ok()?, month, day).ok();
    }
    let this = Date::new(today.year(), month, day).ok()?;
    let long_over = after(this, 6.months())? < today;
    if long_over { Date::new(today.year() + 1, month, day).ok() } else { Some(this) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Said on Wednesday, 4 March 2026.
    fn due(text: &str) -> Option<String> {
        let said: Timestamp = "2026-03-04T10:00:00Z".parse().unwrap();
        parse(text, said).map(|time| time.to_string()[..10].to_owned())
    }

    #[test]
    fn days_are_read_as_people_write_them() {
        assert_eq!(READERS.len(), FORMS.len());
        for (text, day) in [
            ("by 2026-05-01", "2026-05-01"),
            ("Book it by Friday", "2026-03-06"),
            ("next Friday", "2026-03-13"),
            ("next Monday", "2026-03-09"),
            ("on Wednesday", "2026-03-11"),
            ("tomorrow", "2026-03-05"),
            ("the day after tomorrow", "2026-03-06"),
            ("today", "2026-03-04"),
            ("in three weeks", "2026-03-25"),
            ("in 10 days", "2026-03-14"),
            ("by the end of the week", "2026-03-08"),
            ("next week", "2026-03-15"),
            ("by the end of the month", "2026-03-31"),
            ("March 14th", "2026-03-14"),
            ("14 March 2027", "2027-03-14"),
            ("January 3", "2026-01-03"),
            ("by August", "2026-08-31"),
        ] {
            assert_eq!(due(text).as_deref(), Some(day), "{text}");
        }
        for text in ["sometime", "2026-13-45", "it may work", "the Mayor", "version 3.1"] {
            assert_eq!(due(text), None, "{text}");
        }
        let december: Timestamp = "2026-12-20T10:00:00Z".parse().unwrap();
        assert!(parse("on 3 January", december).unwrap().to_string().starts_with("2027-01-03"));
    }
}
