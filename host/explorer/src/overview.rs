//! The overview of a company: problems, bindings, operations, latency, quality and cost.

mod attention;

use std::collections::BTreeMap;

use jiff::civil::Date;
use maud::{Markup, html};
use serde::Deserialize;

use super::bindings::health;
use super::bindings::limits::budget;
use super::components::{
    Chart, CompanyView, Details, Page, QueryParams, Row, Tone, View, badge, binding_link, bytes,
    count, duration_us, empty, figure, long, money, panel, percent, sentence, table,
};
use super::operations;
use memhost_core::{
    Act, BindingView, CompanyUsage, Evaluation, GroupBy, Health, ServiceError, Sums, SumsQuery,
};
use memhost_http::{Problem, permission};
use memhost_types::{AgentId, CompanyId, OperationFilter};

/// How many of the latest operations are shown.
const LATEST: u32 = 8;
/// The days over which quality is counted, today included.
const QUALITY_DAYS: i64 = 7;
/// Quality is counted operation by operation. More operations than this take too long for a page.
const MAX_COUNTED: u64 = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OverviewQuery {
    doctor: Option<String>,
}

pub(super) async fn show(
    view: CompanyView<permission::View>,
    params: QueryParams<OverviewQuery>,
) -> Result<Markup, Problem> {
    let company = &view.company;
    let latest = view
        .service
        .control()
        .operations(company, &OperationFilter::default(), None, LATEST)
        .await?
        .items;
    let mut bindings = view.service.control().bindings(company).await?;
    let page = Page::new(&view, "Overview", "Health, usage and cost of this company's memory.");
    if latest.is_empty() {
        let body = html! {
            @if !bindings.is_empty() {
                (panel("bindings", "Bindings in use", bindings_in_use(&view, &bindings)))
            }
            (first_steps(company))
        };
        return Ok(page.live("operations").render(&body));
    }
    // The built-in provider may answer without a binding that is stored.
    if bindings.is_empty()
        && let Ok(implied) = view.service.control().resolve_binding(company, None, None).await
    {
        bindings.push(implied.binding);
    }
    let is_operator = view.caller.may(Act::Host, None).is_ok();
    let doctor = is_operator && params.query.doctor.is_some();
    let days = view
        .service
        .control()
        .sums(company, &SumsQuery { group_by: vec![GroupBy::Day], ..SumsQuery::default() })
        .await?;
    let quality = quality(&view, &days).await?;
    let usage = view.service.tenancy().company_usage(company)?;
    let body = html! {
        div.stack #overview data-live {
            (attention::list(&view, &bindings).await?)
            (figures(&days, quality.as_ref(), usage))
            div.two {
                div.panel { (volume(&days)) }
                div.panel { (latency(&days)) }
            }
            div.two {
                (panel("bindings", "Bindings in use", bindings_in_use(&view, &bindings)))
                (panel("budgets", "Budgets", budgets(&view).await?))
            }
            section.panel #latest aria-labelledby="latest-h" {
                h2 #latest-h {
                    "Latest operations" a.quiet href=(view.at(&["operations"])) { "All operations" }
                }
                (table("Latest operations", operations::rows(&view, &latest)))
            }
            @if doctor { (panel("doctor", "Health checks", checks(&view).await)) }
        }
    };
    let action = html! {
        @if is_operator && !doctor {
            a.button href={ (view.at(&[])) "?doctor=yes#doctor" } { "Run health checks" }
        }
    };
    let page = page.action(action);
    // The checks read the whole log, so this page does not refresh itself at every operation.
    Ok(if doctor { page } else { page.live("operations,jobs,budgets,plugins") }.render(&body))
}

/// The first commands, for a company without operations.
fn first_steps(company: &CompanyId) -> Markup {
    html! {
        div.stack #overview data-live {
            (empty("No operations yet", &html! { "Store a note and search for it:" }))
            pre tabindex="0" {
                "memhost note --company " (company) " 'Deploys are frozen on Fridays'\n"
                "memhost search --company " (company) " 'when may I deploy?'"
            }
            p.help {
                "The first write creates a binding for the built-in provider, which stores \
                 Markdown files on this machine. To connect Claude Code, use " code {
                    "memhost agent-hooks claude install"
                } "."
            }
        }
    }
}

fn bindings_in_use(view: &View, bindings: &[BindingView]) -> Markup {
    let default = bindings.iter().find(|shown| shown.is_default);
    let agents: BTreeMap<&AgentId, &BindingView> = bindings
        .iter()
        .flat_map(|shown| shown.agents.iter().map(move |agent| (agent, shown)))
        .collect();
    let row = |shown: &BindingView| {
        html! {
            (binding_link(view, shown.binding.key.as_str())) " " (health(shown))
        }
    };
    html! {
        ul.list data-active=[default.map(|shown| shown.binding.key.as_str())] {
            li.between {
                span { "Company default" }
                @match default {
                    Some(shown) => span { (row(shown)) },
                    None => (badge(Tone::Warning, "no default binding")),
                }
            }
            @for (agent, shown) in agents {
                li.between { span { "Agent " strong { (agent) } } span { (row(shown)) } }
            }
        }
        @if let Some(shown) = default {
            (Details::default()
                .row("Provider", shown.binding.provider_key.as_str())
                .maybe("Version", shown.serving.as_ref().map(|build| build.version.to_string())))
        }
        p { a href=(view.at(&["resolve"])) { "Resolve a binding" } }
    }
}

async fn budgets<P>(view: &CompanyView<P>) -> Result<Markup, Problem> {
    let all = view.service.control().budgets(&view.company).await?;
    Ok(html! {
        @if all.is_empty() { p.soft { "No budget: spending is not limited." } }
        @else { ul.meters { @for found in &all { (budget(view, found)) } } }
        p {
            a href=(view.at(&["budgets"])) { "Budgets" }
            " · " a href=(view.at(&["costs"])) { "Costs" }
        }
    })
}

/// The quality of recall in the last days. None: there are too many operations to count here.
async fn quality<P>(
    view: &CompanyView<P>,
    days: &Sums,
) -> Result<Option<Evaluation>, ServiceError> {
    let since =
        days.until.checked_sub(jiff::Span::new().days(QUALITY_DAYS - 1)).unwrap_or(days.since);
    let looks: u64 = days
        .rows
        .iter()
        .filter(|row| row.day >= Some(since))
        .map(|row| row.sums.counts.operations)
        .sum();
    if looks > MAX_COUNTED {
        return Ok(None);
    }
    let query = SumsQuery { since: Some(since), until: Some(days.until), ..SumsQuery::default() };
    Ok(Some(view.service.control().evaluation(&view.company, &query).await?.total))
}

fn figures(days: &Sums, quality: Option<&Evaluation>, usage: CompanyUsage) -> Markup {
    let total = &days.total;
    let latency = |us: Option<u64>| us.map_or_else(|| "–".to_owned(), duration_us);
    let rate = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), percent);
    let (recalls, empty) = (total.counts.recalls, total.counts.empty_recalls);
    #[allow(clippy::cast_precision_loss, reason = "a rate")]
    let empty = (recalls > 0).then(|| empty as f64 / recalls as f64);
    let hits = quality.map(|quality| rate(quality.recall_hit_rate));
    let measured = html! {
        @if hits.is_some() { "of queries, last 7 days" } @else {
            "too many operations; use " code { "memhost stats" }
        }
    };
    let quota = usage.max_bytes.map_or("no quota".to_owned(), |most| format!("of {}", bytes(most)));
    let counts = &total.counts;
    html! {
        dl.stats {
            (figure(
                "Operations, 30 days", count(counts.operations),
                format!("{} reads, {} writes", count(counts.reads), count(counts.writes)),
            ))
            (figure("Failed", count(counts.failed), count(counts.refused) + " refused"))
            (figure(
                "Latency p50", latency(total.latency_p50_us),
                format!("p99 {}", latency(total.latency_p99_us)),
            ))
            (figure("Recall hit rate", hits.as_deref().unwrap_or("–"), measured))
            (figure("Empty queries", rate(empty), format!("of {} by agents", count(recalls))))
            (figure("Billed", money(total.cost), money(total.reported_cost) + " reported in total"))
            (figure("Kept by the host", bytes(usage.held_bytes), quota))
        }
    }
}

/// A value for every day of the sums; `none` for a day without a row.
fn by_day<T: Copy>(days: &Sums, none: T, value: impl Fn(&memhost_core::SumsView) -> T) -> Vec<T> {
    let rows: BTreeMap<Date, T> =
        days.rows.iter().filter_map(|row| Some((row.day?, value(&row.sums)))).collect();
    all_days(days).map(|day| rows.get(&day).copied().unwrap_or(none)).collect()
}

fn all_days(days: &Sums) -> impl Iterator<Item = Date> {
    let until = days.until;
    days.since.series(jiff::Span::new().days(1)).take_while(move |day| *day <= until)
}

fn labels(days: &Sums) -> Vec<String> {
    all_days(days).map(|day| day.strftime("%-d %b").to_string()).collect()
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a plot"
)]
fn volume(days: &Sums) -> Markup {
    let labels = labels(days);
    Chart::new("volume", "Operations per day", &labels, |number| count(number as u64))
        .series("reads", "s1", by_day(days, 0.0, |sums| sums.counts.reads as f64))
        .series("writes", "s3", by_day(days, 0.0, |sums| sums.counts.writes as f64))
        .bars()
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a plot"
)]
fn latency(days: &Sums) -> Markup {
    let labels = labels(days);
    let us = |us: Option<u64>| us.map_or(f64::NAN, |us| us as f64);
    Chart::new("latency", "Latency per day", &labels, |us| duration_us(us as u64))
        .series("p50", "s1", by_day(days, f64::NAN, |sums| us(sums.latency_p50_us)))
        .series("p99", "s3", by_day(days, f64::NAN, |sums| us(sums.latency_p99_us)))
        .lines()
}

async fn checks(view: &View) -> Markup {
    let rows = view.service.monitor().doctor_for(&view.caller).await.into_iter().map(|check| {
        let (tone, word) = match check.health {
            Health::Ok => (Tone::Good, "ok"),
            Health::Warning => (Tone::Warning, "warning"),
            Health::Error => (Tone::Bad, "error"),
        };
        let found = html! {
            p.reason {
                (sentence(&check.found)) @if !check.advice.is_empty() {
                    ". " (sentence(&check.advice))
                }
            }
        };
        let row = Row::new().key(&check.name).cell("Check", &*check.name);
        row.cell("Status", badge(tone, word)).cell(long("Result"), found)
    });
    table("Health checks", rows)
}
