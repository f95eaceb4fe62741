//! Sums of costs by dimension as a table, a chart and CSV.

use std::collections::BTreeMap;

use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use jiff::civil::Date;
use maud::{Markup, html};

use super::{TABS, csv, dimension_label, dimension_value};
use crate::components::{
    Chart, Choice, CompanyView, Control, FilterForm, ListParams, Page, Row, View, binding_link,
    choices, count, duration_us, empty, figure, filter_fields, first_note, money, number, table,
    tabs,
};
use memhost_core::{GroupBy, Sums, SumsQuery, SumsRow, SumsView};
use memhost_http::{Problem, permission};
use memhost_types::Microcents;

/// By what sums can be grouped. The first one is the default.
const DIMENSIONS: [&str; 8] =
    ["binding", "agent", "provider", "model", "issue", "project", "run", "day"];

/// More days than this are not drawn one by one.
const MOST_DAYS: usize = 124;

/// More rows than this are for a spreadsheet.
const MOST_ROWS: usize = 500;

/// Which sums are shown, and how they are grouped.
#[derive(Default)]
pub(crate) struct CostFilter {
    sums: SumsQuery,
    by: Option<GroupBy>,
    then: Option<GroupBy>,
}

filter_fields! {
    CostFilter {
        "by", "Group by", Control::Required(dimensions), read_text(by);
        "then", "Then by", Control::Required(second_dimensions), read_text(then);
        "bindingKey", "Binding", Control::Binding, read_text(sums.binding_key);
        "since", "From", Control::Day, read_text(sums.since);
        "until", "Until", Control::Day, read_text(sums.until);
    }
}

fn dimensions() -> Vec<Choice> {
    choices(DIMENSIONS)
}

fn second_dimensions() -> Vec<Choice> {
    std::iter::once((String::new(), "none".to_owned())).chain(dimensions()).collect()
}

impl CostFilter {
    /// The dimensions of the address, each once. The default is the binding.
    fn group_by(&self) -> Vec<GroupBy> {
        let first = self.by.unwrap_or(GroupBy::Binding);
        std::iter::once(first).chain(self.then.filter(|then| *then != first)).collect()
    }

    async fn sums<P>(
        &self,
        view: &CompanyView<P>,
        group_by: Vec<GroupBy>,
    ) -> Result<Sums, Problem> {
        Ok(view
            .service
            .control()
            .sums(&view.company, &SumsQuery { group_by, ..self.sums.clone() })
            .await?)
    }
}

pub(crate) async fn list(
    view: CompanyView<permission::View>,
    params: ListParams<CostFilter>,
) -> Result<Markup, Problem> {
    let filter = &params.query.filter;
    let group_by = filter.group_by();
    let sums = filter.sums(&view, group_by.clone()).await?;
    let by_day = match group_by[0] {
        GroupBy::Day => vec![GroupBy::Day],
        first => vec![GroupBy::Day, first],
    };
    let days = filter.sums(&view, by_day).await?;
    let shown = params.with(&view, "", None);
    let csv = format!(
        "{}{}",
        view.at(&["costs.csv"]),
        shown.strip_prefix(view.path.as_str()).unwrap_or_default()
    );
    let body = html! {
        (tabs(&view, "costs", &TABS))
        (FilterForm::of(&view, &params))
        @if sums.rows.is_empty() {
            (empty("No operations in this period", &html! {
                "Every operation is counted, for example: " (first_note(view.company.as_str()))
            }))
        } @else {
            (totals(&sums))
            (plot(&days, group_by[0]))
            (rows(&view, &sums, &group_by))
        }
    };
    let about = format!("From {} to {}, days in UTC.", sums.since, sums.until);
    let action = html! { a.button href=(csv) download { "Export CSV" } };
    Ok(Page::new(&view, "Costs", &about).action(action).render(&body))
}

fn totals(sums: &Sums) -> Markup {
    let total = &sums.total;
    let latency = |us: Option<u64>| us.map_or_else(|| "–".to_owned(), duration_us);
    let counts = &total.counts;
    let failed = format!("{} failed, {} refused", count(counts.failed), count(counts.refused));
    html! {
        dl.stats {
            (figure("Billed", money(total.cost), money(total.reported_cost) + " reported in total"))
            (figure("Operations", count(counts.operations), failed))
            (figure(
                "Tokens in", count(counts.input_tokens),
                count(counts.cached_input_tokens) + " cached",
            ))
            (figure(
                "Tokens out", count(counts.output_tokens),
                count(counts.embedding_tokens) + " embedding",
            ))
            (figure(
                "Latency p50", latency(total.latency_p50_us),
                format!("p99 {}", latency(total.latency_p99_us)),
            ))
        }
    }
}

/// A bar for each day: the reported cost if there is any, else the number of operations.
#[allow(clippy::cast_precision_loss, reason = "a plot")]
fn plot(days: &Sums, by: GroupBy) -> Markup {
    let is_money = days.total.reported_cost.0 > 0;
    let value =
        |sums: &SumsView| if is_money { sums.reported_cost.0 } else { sums.counts.operations };
    let every = days.since.series(jiff::Span::new().days(1)).take_while(|day| *day <= days.until);
    let mut all: Vec<Date> = every.take(MOST_DAYS + 1).collect();
    if all.len() > MOST_DAYS {
        all = days.rows.iter().filter_map(|row| row.day).collect();
        all.dedup();
    }
    // The two largest groups have their own colours; the others share one.
    let group = |row: &SumsRow| match dimension_value(row, by) {
        _ if by == GroupBy::Day => String::new(),
        none if none.is_empty() => format!("no {}", dimension_label(by).to_lowercase()),
        found => found,
    };
    let mut groups: BTreeMap<String, u64> = BTreeMap::new();
    days.rows.iter().for_each(|row| *groups.entry(group(row)).or_default() += value(&row.sums));
    let mut largest: Vec<(String, u64)> = groups.into_iter().collect();
    largest.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    let is_few = largest.len() <= 3;
    let named: Vec<String> =
        largest.iter().map(|(name, _)| name.clone()).take(if is_few { 3 } else { 2 }).collect();
    let labels: Vec<String> = all.iter().map(ToString::to_string).collect();
    let (title, show): (_, fn(f64) -> String) = match is_money {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an amount")]
        true => ("Reported cost per day", |amount| money(Microcents(amount as u64))),
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        false => ("Operations per day", |number| count(number as u64)),
    };
    let at: BTreeMap<Date, usize> = all.iter().enumerate().map(|(at, day)| (*day, at)).collect();
    let mut series = vec![vec![0.0; all.len()]; 3];
    for row in &days.rows {
        let group = group(row);
        let which = named.iter().position(|name| *name == group).unwrap_or(2);
        if let Some(at) = row.day.and_then(|day| at.get(&day)) {
            series[which][*at] += value(&row.sums) as f64;
        }
    }
    let mut plot = Chart::new("plot", title, &labels, show);
    let others = (!is_few).then_some("other");
    let called =
        named.iter().map(|name| if name.is_empty() { "all" } else { name.as_str() }).chain(others);
    for ((called, class), values) in called.zip(["s1", "s2", "s3"]).zip(series) {
        plot = plot.series(called, class, values);
    }
    html! { div.panel { (plot.bars()) } }
}

fn rows(view: &View, sums: &Sums, group_by: &[GroupBy]) -> Markup {
    let row = |row: &SumsRow| {
        let sums = &row.sums;
        let mut shown = Row::new();
        for by in group_by {
            let value = dimension_value(row, *by);
            let is_binding = *by == GroupBy::Binding;
            shown = shown.maybe(
                dimension_label(*by),
                (!value.is_empty()).then(|| match is_binding {
                    true => binding_link(view, &value),
                    false => html! { (value) },
                }),
            );
        }
        shown
            .cell(number("Billed"), money(sums.cost))
            .cell(number("Reported").wide(), money(sums.reported_cost))
            .cell(number("Operations"), count(sums.counts.operations))
            .cell(number("Failed").wide(), count(sums.counts.failed))
            .cell(number("Reads").wide(), count(sums.counts.reads))
            .cell(number("Writes").wide(), count(sums.counts.writes))
            .cell(number("Tokens in"), count(sums.counts.input_tokens))
            .cell(number("Tokens out"), count(sums.counts.output_tokens))
            .maybe(number("p50").wide(), sums.latency_p50_us.map(duration_us))
            .maybe(number("p99").wide(), sums.latency_p99_us.map(duration_us))
    };
    let all: Vec<Row> = match group_by[0] {
        // The last day comes first.
        GroupBy::Day => sums.rows.iter().rev().take(MOST_ROWS).map(row).collect(),
        _ => {
            let mut rows: Vec<&SumsRow> = sums.rows.iter().collect();
            rows.sort_by_key(|row| {
                std::cmp::Reverse((row.sums.reported_cost, row.sums.counts.operations))
            });
            rows.into_iter().take(MOST_ROWS).map(row).collect()
        }
    };
    let left_out = sums.rows.len().saturating_sub(MOST_ROWS);
    html! {
        (table("Costs", all))
        @if left_out > 0 { p.help { (count(left_out as u64)) " more rows are in the CSV." } }
        @if !sums.is_complete {
            p.help {
                "The rows are of the newest operations of the log only; the total is of all days."
            }
        }
    }
}

/// The same sums for a spreadsheet.
pub(crate) async fn export(
    view: CompanyView<permission::View>,
    params: ListParams<CostFilter>,
) -> Result<Response, Problem> {
    let filter = &params.query.filter;
    let group_by = filter.group_by();
    let sums = filter.sums(&view, group_by.clone()).await?;
    let file = format!("attachment; filename=\"memhost-costs-{}-{}.csv\"", sums.since, sums.until);
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8; header=present".to_owned()),
        (CONTENT_DISPOSITION, file),
    ];
    Ok((headers, csv::of_sums(&sums, &group_by)).into_response())
}
