//! `memhost stats`: daily statistics as sparklines.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use jiff::civil::Date;
use jiff::{ToSpan, Zoned, tz::TimeZone};
use serde_json::Value;

use super::CliError;
use super::args::{CompanyArgs, WatchArgs};
use super::argument::name;
use super::output::{micros, table, text};
use super::page::{self, items, query};

#[derive(Debug, Args)]
pub(super) struct StatsArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Group by this.
    #[arg(long, value_enum, default_value_t = By::Binding, value_name = "WHAT")]
    by: By,
    /// Number of days up to today, in UTC.
    #[arg(long, default_value_t = 14, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=90))]
    days: u16,
    #[command(flatten)]
    watch: WatchArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum By {
    /// Bindings.
    Binding,
    /// Agents.
    Agent,
    /// Providers.
    Provider,
    /// Models.
    Model,
}

impl By {
    fn pointer(self) -> &'static str {
        match self {
            Self::Binding => "/bindingKey",
            Self::Agent => "/agentId",
            Self::Provider => "/provider",
            Self::Model => "/model",
        }
    }
}

pub(super) async fn run(args: StatsArgs) -> Result<(), CliError> {
    let session = args.company.open().await?;
    // The days change at midnight, also while the command repeats.
    let days = || {
        let today = Zoned::now().with_time_zone(TimeZone::UTC).date();
        let first = today.saturating_sub((i64::from(args.days) - 1).days());
        first.series(1.day()).take(args.days.into()).collect::<Vec<Date>>()
    };
    let fetch = async || {
        let days = days();
        let (since, until) = (days.first().map(Date::to_string), days.last().map(Date::to_string));
        let group = format!("day,{}", name(&args.by));
        let pairs = [
            ("groupBy", Some(group.as_str())),
            ("since", since.as_deref()),
            ("until", until.as_deref()),
        ];
        session.get(&format!("costs?{}", query(&pairs))).await
    };
    page::watch(&session, &args.watch, "rows", fetch, |sums| drawn(sums, args.by, &days())).await
}

/// One daily metric.
struct Measure {
    title: &'static str,
    /// The value of a day; none where the day has no data.
    of: fn(&Value) -> Option<f64>,
    /// The summary of all days, shown after the line.
    sum: fn(&[f64]) -> f64,
    shown: fn(f64) -> String,
}

fn count(row: &Value, name: &str) -> Option<f64> {
    row[name].as_f64()
}

const MEASURES: [Measure; 7] = [
    Measure { title: "operations", of: |row| count(row, "operations"), sum: total, shown: whole },
    Measure {
        title: "p50, worst day",
        of: |row| count(row, "latencyP50Us"),
        sum: most,
        shown: duration,
    },
    Measure {
        title: "p99, worst day",
        of: |row| count(row, "latencyP99Us"),
        sum: most,
        shown: duration,
    },
    Measure {
        title: "failed, refused",
        of: |row| Some(count(row, "failed")? + count(row, "refused").unwrap_or_default()),
        sum: total,
        shown: whole,
    },
    Measure {
        title: "empty rate, worst day",
        of: |row| {
            Some(
                count(row, "emptyQueries")?
                    / count(row, "queries").filter(|queries| *queries > 0.0)?,
            )
        },
        sum: most,
        shown: |rate| format!("{:.0} %", rate * 100.0),
    },
    Measure {
        title: "tokens",
        of: |row| {
            let names = ["inputTokens", "outputTokens", "embeddingTokens"];
            Some(names.iter().filter_map(|name| count(row, name)).sum())
        },
        sum: total,
        shown: whole,
    },
    Measure {
        title: "cents",
        of: |row| count(row, "costCents"),
        sum: total,
        shown: |cents| format!("{cents:.4}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    },
];

fn total(values: &[f64]) -> f64 {
    values.iter().sum()
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

fn duration(us: f64) -> String {
    micros(Some(&Value::from(us.max(0.0) as u64)))
}

fn drawn(sums: &Value, by: By, days: &[Date]) -> String {
    let mut groups: BTreeMap<String, BTreeMap<String, &Value>> = BTreeMap::new();
    for row in items(sums, "rows") {
        groups.entry(text(row, by.pointer())).or_default().insert(text(row, "/day"), row);
    }
    let mut rows = Vec::new();
    for (name, of_days) in &groups {
        let mut name = if name.is_empty() { "(none)".to_owned() } else { name.clone() };
        for measure in &MEASURES {
            let values: Vec<Option<f64>> = days
                .iter()
                .map(|day| of_days.get(&day.to_string()).and_then(|row| (measure.of)(row)))
                .collect();
            let known: Vec<f64> = values.iter().flatten().copied().collect();
            if known.iter().all(|value| *value == 0.0) && measure.title != "operations" {
                continue;
            }
            let shown = (measure.shown)((measure.sum)(&known));
            rows.push(vec![
                std::mem::take(&mut name),
                measure.title.to_owned(),
                sparkline(&values),
                shown,
            ]);
        }
    }
    let (first, last) = (days.first().map(Date::to_string), days.last().map(Date::to_string));
    let span = format!("{} to {}", first.unwrap_or_default(), last.unwrap_or_default());
    table(&[&name(&by), "metric", &span, ""], rows)
}

/// A line of blocks from zero to the maximum; a dot where there is no value.
fn sparkline(values: &[Option<f64>]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let block = |value: &Option<f64>| match value {
        None => '·',
        Some(value) if most > 0.0 => {
            let step = (value / most * (BLOCKS.len() - 1) as f64).round() as usize;
            BLOCKS[step.min(BLOCKS.len() - 1)]
        }
        Some(_) => BLOCKS[0],
    };
    values.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_goes_from_nothing_to_the_most() {
        assert_eq!(sparkline(&[Some(0.0), Some(1.0), Some(2.0), None, Some(4.0)]), "▁▃▅·█");
        assert_eq!(sparkline(&[Some(0.0), None]), "▁·");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn every_group_has_its_lines_and_leaves_out_what_was_nothing() {
        let row = |day: &str, binding: &str, operations: u64| {
            json!({
                "day": day, "bindingKey": binding, "operations": operations, "failed": 0, "refused": 1, "queries": 4,
                "emptyQueries": 1, "latencyP50Us": 900, "latencyP99Us": 12_000, "costCents": 0.5, "inputTokens": 0,
            })
        };
        let rows =
            [row("2026-11-01", "a", 2), row("2026-11-03", "a", 4), row("2026-11-02", "b", 1)];
        let days = ["2026-11-01", "2026-11-02", "2026-11-03"].map(|day| day.parse().unwrap());
        insta::assert_snapshot!(drawn(&json!({ "rows": rows }), By::Binding, &days), @r"
        BINDING  METRIC                 2026-11-01 TO 2026-11-03
        a        operations             ▅·█                       6
                 p50, worst day         █·█                       900 µs
                 p99, worst day         █·█                       12.0 ms
                 failed, refused        █·█                       2
                 empty rate, worst day  █·█                       25 %
                 cents                  █·█                       1
        b        operations             ·█·                       1
                 p50, worst day         ·█·                       900 µs
                 p99, worst day         ·█·                       12.0 ms
                 failed, refused        ·█·                       1
                 empty rate, worst day  ·█·                       25 %
                 cents                  ·█·                       0.5
        ");
    }
}
