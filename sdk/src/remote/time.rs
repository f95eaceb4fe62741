//! Times as services write them, in the contract's form.

use std::time::SystemTime;

/// An RFC 3339 time of any offset in UTC, such as `2026-03-01T12:00:00.5Z`; also with a space for
/// the `T`, and without an offset, which is taken for UTC. None for anything else.
pub fn utc(time: &str) -> Option<String> {
    let number = |range: std::ops::Range<usize>| {
        let digits = time.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?
    };
    let sign = |at: usize, signs: &[u8]| {
        time.as_bytes().get(at).filter(|byte| signs.contains(byte)).map(|_| ())
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    for (at, signs) in [(4, b"-".as_slice()), (7, b"-"), (10, b"T t"), (13, b":"), (16, b":")] {
        sign(at, signs)?;
    }
    let rest = time.get(19..)?;
    let end = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (fraction, offset) = rest.split_at(end);
    let is_fraction = fraction.len() > 1 && fraction.len() < 11 && fraction.starts_with('.');
    if !(fraction.is_empty()
        || is_fraction && fraction[1..].bytes().all(|byte| byte.is_ascii_digit()))
    {
        return None;
    }
    let offset = match offset {
        "" | "Z" | "z" => 0,
        _ => {
            let (hours, minutes) = offset[1..].split_once(':')?;
            let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
            if offset.starts_with('-') { -minutes } else { minutes }
        }
    };
    if !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    let minutes = days(year, month, day) * 1_440 + hour * 60 + minute - offset;
    let (year, month, day) = date(minutes.div_euclid(1_440));
    let (hour, minute) = (minutes.rem_euclid(1_440) / 60, minutes.rem_euclid(60));
    (0..=9_999).contains(&year).then(|| {
        format!(
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}{fraction}Z",
            second.min(59)
        )
    })
}

/// Seconds since 1970, as services write them, such as `2026-03-01T12:00:00.5Z`. None before 1970
/// and after the year 9999.
pub fn of_unix(seconds: f64) -> Option<String> {
    if !(0.0..253_402_300_800.0).contains(&seconds) {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, reason = "it is within the range")]
    let millis = (seconds * 1_000.0) as i64;
    let (second, rest) = (millis / 1_000, millis % 1_000);
    let (year, month, day) = date(second.div_euclid(86_400));
    let of_day = second.rem_euclid(86_400);
    let fraction = if rest == 0 { String::new() } else { format!(".{rest:03}") };
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"))
}

/// The time now, in UTC: in steps of 100 ms without the permission `clock`.
pub fn now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    of_unix(since.as_secs_f64()).unwrap_or_default()
}

/// The milliseconds since 1970 of a time that [`utc`] reads, for services that write them; negative
/// before 1970.
pub fn to_unix_millis(time: &str) -> Option<i64> {
    let time = utc(time)?;
    let number = |range: std::ops::Range<usize>| time.get(range)?.parse::<i64>().ok();
    let of_day = number(11..13)? * 3_600 + number(14..16)? * 60 + number(17..19)?;
    let fraction: String =
        time[19..].chars().filter(char::is_ascii_digit).chain("000".chars()).take(3).collect();
    Some(
        (days(number(0..4)?, number(5..7)?, number(8..10)?) * 86_400 + of_day) * 1_000
            + fraction.parse::<i64>().ok()?,
    )
}

/// Days since 1970, by the Gregorian calendar. A year begins in March, so that a leap day is its
/// last one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse of [`days`].
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}
