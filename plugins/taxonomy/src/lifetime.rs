//! How long an item lives and how it ages, by its kind.

use jiff::{SignedDuration, Timestamp};

use crate::config::Config;
use crate::due;
use crate::kind::Kind;

fn days(count: u32) -> SignedDuration {
    SignedDuration::from_hours(24 * i64::from(count))
}

/// When an item expires: a `todo` some days after the day that it names, a `hypothesis` after a
/// time. The other kinds do not expire.
pub(crate) fn expires(
    config: &Config,
    kind: Kind,
    text: &str,
    said: Timestamp,
) -> Option<Timestamp> {
    match kind {
        Kind::Todo => match due::parse(text, said) {
            Some(day) => day.checked_add(days(config.todo.grace_days)).ok(),
            None => said.checked_add(days(config.todo.default_days)).ok(),
        },
        Kind::Hypothesis if config.hypothesis.days > 0 => {
            said.checked_add(days(config.hypothesis.days)).ok()
        }
        _ => None,
    }
}

/// The decay of a `fact`, 0 to 1; 1 for the other kinds. It halves with each half-life since the
/// fact was last said or used. The half-life grows with the number of uses, so that facts in use
/// stay.
pub(crate) fn decay(
    config: &Config,
    kind: Kind,
    since: Timestamp,
    uses: u32,
    now: Timestamp,
) -> f64 {
    if kind != Kind::Fact {
        return 1.0;
    }
    let age = now.duration_since(since).as_secs_f64().max(0.0) / 86_400.0;
    let half_life = f64::from(config.fact.half_life_days) * (1.0 + f64::from(uses).ln_1p());
    0.5_f64.powf(age / half_life)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_todo_expires_after_its_day_and_a_hypothesis_after_a_time() {
        let config = Config::default();
        let said = time("2026-03-04T10:00:00Z");
        let end = |kind, text| expires(&config, kind, text, said).map(|end| end.to_string());
        assert_eq!(end(Kind::Todo, "Book it by Friday").as_deref(), Some("2026-03-09T23:59:59Z"));
        assert_eq!(end(Kind::Todo, "Book it").as_deref(), Some("2026-04-03T10:00:00Z"));
        assert_eq!(end(Kind::Hypothesis, "by Friday").as_deref(), Some("2026-04-03T10:00:00Z"));
        assert_eq!(end(Kind::Fact, "by Friday"), None);
    }

    #[test]
    fn a_fact_fades_and_its_uses_keep_it() {
        let config = Config::default();
        let (said, now) = (time("2026-01-01T00:00:00Z"), time("2026-03-02T00:00:00Z"));
        let left = |kind, uses| decay(&config, kind, said, uses, now);
        assert!((left(Kind::Fact, 0) - 0.5).abs() < 1e-9, "60 days are a half-life");
        assert!(left(Kind::Fact, 5) > 0.7);
        assert!((left(Kind::Decision, 0) - 1.0).abs() < 1e-9);
        assert!(
            (decay(&config, Kind::Fact, now, 0, said) - 1.0).abs() < 1e-9,
            "nothing is younger than new"
        );
    }
}
