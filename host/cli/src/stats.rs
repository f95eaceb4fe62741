//! `memhost stats`: daily statistics as sparklines.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use jiff::civil::Date;
use jiff::{ToSpan, Zoned, tz::TimeZone};

use super::Result;
use super::args::{CompanyArgs, WatchArgs};
use super::argument::name;
use super::output::table;
use super::page::{self, query};
use super::texts::micros;
use memhost_core::{Sums, SumsRow, SumsView};
use memhost_types::Counts;

#[derive(Debug, Args)]
pub(super) struct StatsArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Group by this.
    #[arg(long, value_enum, default_value_t = By::Binding, value_name = "WHAT")]
    by: By,
    /// Number of days up to today, in UTC.
    #[arg(
        long, default_value_t = 14, value_name = "NUMBER",
        value_parser = clap::value_parser!(u16).range(1..=90)
    )]
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
    /// The group of a row; empty where it is of none.
    fn group(self, row: &SumsRow) -> String {
        let group = match self {
            Self::Binding => &row.binding_key,
            Self::Agent => &row.agent_id,
            Self::Provider => &row.provider,
            Self::Model => &row.model,
        };
        group.clone().unwrap_or_default()
    }
}

pub(super) async fn run(args: StatsArgs) -> Result<()> {
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
    let human = |sums: &Sums| drawn(&sums.rows, args.by, &days());
    page::watch_list(&session, &args.watch, fetch, human).await
}

/// One daily metric: its title, the value of a day (`None`: the day has no data), the summary of
/// all days, and how that is shown.
type Measure = (&'static str, fn(&SumsView) -> Option<f64>, fn(&[f64]) -> f64, fn(f64) -> String);

const MEASURES: [Measure; 7] = [
    ("operations", |sums| Some(number(sums.counts.operations)), total, whole),
    ("p50, worst day", |sums| sums.latency_p50_us.map(number), most, duration),
    ("p99, worst day", |sums| sums.latency_p99_us.map(number), most, duration),
    (
        "failed, refused",
        |sums| Some(number(sums.counts.failed + sums.counts.refused)),
        total,
        whole,
    ),
    ("empty rate, worst day", empty_rate, most, |rate| format!("{:.0} %", rate * 100.0)),
    ("tokens", |sums| Some(number(tokens(&sums.counts))), total, whole),
    ("cents", |sums| Some(number(sums.cost.0) / 1e6), total, cents),
];

fn empty_rate(sums: &SumsView) -> Option<f64> {
    let recalls = Some(sums.counts.recalls).filter(|recalls| *recalls > 0)?;
    Some(number(sums.counts.empty_recalls) / number(recalls))
}

fn tokens(counts: &Counts) -> u64 {
    counts.input_tokens + counts.output_tokens + counts.embedding_tokens
}

fn cents(cents: f64) -> String {
    format!("{cents:.4}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn number(count: u64) -> f64 {
    count as f64
}

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
    micros(us.max(0.0) as u64)
}

fn drawn(sums: &[SumsRow], by: By, days: &[Date]) -> String {
    let mut groups: BTreeMap<String, BTreeMap<Option<Date>, &SumsView>> = BTreeMap::new();
    for row in sums {
        groups.entry(by.group(row)).or_default().insert(row.day, &row.sums);
    }
    let mut rows = Vec::new();
    for (name, of_days) in &groups {
        let mut name = if name.is_empty() { "(none)".to_owned() } else { name.clone() };
        for (title, of, sum, shown) in &MEASURES {
            let values: Vec<Option<f64>> =
                days.iter().map(|day| of_days.get(&Some(*day)).and_then(|sums| of(sums))).collect();
            let known: Vec<f64> = values.iter().flatten().copied().collect();
            if known.iter().all(|value| *value == 0.0) && *title != "operations" {
                continue;
            }
            let (name, line) = (std::mem::take(&mut name), sparkline(&values));
            rows.push(vec![name, (*title).to_owned(), line, shown(sum(&known))]);
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
                "day": day, "bindingKey": binding, "operations": operations, "failed": 0,
                "refused": 1, "recalls": 4, "emptyRecalls": 1, "latencyP50Us": 900,
                "latencyP99Us": 12_000, "costCents": 0.5, "inputTokens": 0,
                "reportedCostCents": 0.5,
            })
        };
        let row = |day: &str, binding: &str, operations: u64| {
            serde_json::from_value::<SumsRow>(row(day, binding, operations)).unwrap()
        };
        let rows =
            [row("2026-11-01", "a", 2), row("2026-11-03", "a", 4), row("2026-11-02", "b", 1)];
        let days = ["2026-11-01", "2026-11-02", "2026-11-03"].map(|day| day.parse().unwrap());
        insta::assert_snapshot!(drawn(&rows, By::Binding, &days), @r"
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
