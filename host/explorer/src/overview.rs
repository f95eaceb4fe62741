//! How memory does in a company: who answers, what needs somebody, what was done, how fast, how well, and for how much.

mod attention;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use jiff::civil::Date;
use maud::{Markup, html};
use serde::Deserialize;

use super::bindings::budget;
use super::kit::{
    Asked, Col, Facts, Page, Plot, Row, Tone, View, badge, count, duration_us, empty, money, panel, percent, table,
};
use super::operations;
use super::pieces;
use memhost_core::{Act, BindingView, Evaluation, GroupBy, Health, Service, ServiceError, Sums, SumsQuery};
use memhost_http::{Authorized, Problem, Viewing};
use memhost_types::{AgentId, CompanyId, OperationFilter};

/// So many of the latest operations are shown.
const LATEST: u32 = 8;
/// How good memory is is counted over so many days, the present one among them.
const QUALITY_DAYS: i64 = 7;
/// It is counted operation by operation: where there are more than these, not on a page that somebody waits for.
const MOST_LOOKS: u64 = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OverviewQuery {
    doctor: Option<String>,
}

pub(super) async fn show(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<Viewing>,
    asked: Asked<OverviewQuery>,
) -> Result<Markup, Problem> {
    let company = &allowed.company;
    let latest = service.operations(company, &OperationFilter::default(), None, LATEST)?.items;
    let bindings = service.bindings(company)?;
    let page = Page::new(&view, "Overview", "How memory does in this company.");
    if latest.is_empty() {
        let body = html! {
            @if !bindings.is_empty() { (panel("bindings", "Who answers", &who_answers(&view, &bindings))) }
            (first_steps(company))
        };
        return Ok(page.live("operations").render(&body));
    }
    let is_operator = view.caller.may(Act::Host, None).is_ok();
    let doctor = is_operator && asked.query.doctor.is_some();
    let days = service.sums(company, &SumsQuery { group_by: vec![GroupBy::Day], ..SumsQuery::default() })?;
    let quality = quality(&service, company, &days).await?;
    let body = html! {
        div.stack #overview data-live {
            (attention::list(&service, &view, company, &bindings)?)
            (figures(&days, quality.as_ref()))
            div.two {
                div.panel { (volume(&days)) }
                div.panel { (latency(&days)) }
            }
            div.two {
                (panel("bindings", "Who answers", &who_answers(&view, &bindings)))
                (panel("budgets", "Spent against budgets", &budgets(&service, &view, company)?))
            }
            section.panel #latest aria-labelledby="latest-h" {
                h2 #latest-h { "Latest operations" a.quiet href=(view.at(&["operations"])) { "All operations" } }
                (operations::rows(&view, "Latest operations", &latest))
            }
            @if doctor { (panel("doctor", "Doctor", &checks(&service).await)) }
        }
    };
    let action = html! { @if is_operator && !doctor { a.button href={ (view.at(&[])) "?doctor=yes#doctor" } { "Ask the doctor" } } };
    let page = page.action(action);
    // The doctor reads the whole log: once, and not again at every operation.
    Ok(if doctor { page } else { page.live("operations,jobs,budgets,plugins") }.render(&body))
}

/// A company in which nothing has happened yet.
fn first_steps(company: &CompanyId) -> Markup {
    html! {
        div.stack #overview data-live {
            (empty("Nothing has happened here yet", &html! {
                "Put something into memory, and ask for it:"
            }))
            pre tabindex="0" {
                "memhost note --company " (company) " 'Deploys are frozen on Fridays'\n"
                "memhost search --company " (company) " 'when may I deploy?'"
            }
            p.help { "The first operation makes a binding of the built-in provider, which keeps Markdown files on this machine. " code { "memhost agent-hooks claude install" } " has Claude Code do the same by itself." }
        }
    }
}

fn who_answers(view: &View, bindings: &[BindingView]) -> Markup {
    let default = bindings.iter().find(|shown| shown.is_default);
    let agents: BTreeMap<&AgentId, &BindingView> =
        bindings.iter().flat_map(|shown| shown.agents.iter().map(move |agent| (agent, shown))).collect();
    let row = |shown: &BindingView| {
        html! { (pieces::binding(view, shown.binding.key.as_str())) " " (super::bindings::health(shown)) }
    };
    html! {
        ul.list data-active=[default.map(|shown| shown.binding.key.as_str())] {
            li.between {
                span { "The company" }
                @match default {
                    Some(shown) => span { (row(shown)) },
                    None => (badge(Tone::Warning, "no default binding")),
                }
            }
            @for (agent, shown) in agents { li.between { span { "The agent " strong { (agent) } } span { (row(shown)) } } }
        }
        @if let Some(shown) = default {
            (Facts::default()
                .row("Provider", shown.binding.provider_key.as_str())
                .maybe("Version", shown.serving.as_ref().map(|build| build.version.to_string())))
        }
        p { a href=(view.at(&["resolve"])) { "Who answers for whom?" } }
    }
}

fn budgets(service: &Service, view: &View, company: &CompanyId) -> Result<Markup, Problem> {
    let all = service.budgets(company)?;
    Ok(html! {
        @if all.is_empty() { p.soft { "No budget is set: nothing stops this company's memory from spending." } }
        @else { ul.meters { @for found in &all { (budget(view, found)) } } }
        p { a href=(view.at(&["budgets"])) { "Budgets" } " · " a href=(view.at(&["costs"])) { "Costs" } }
    })
}

/// How good memory was in the last days; none where there is too much to count.
async fn quality(service: &Arc<Service>, company: &CompanyId, days: &Sums) -> Result<Option<Evaluation>, ServiceError> {
    let since = days.until.checked_sub(jiff::Span::new().days(QUALITY_DAYS - 1)).unwrap_or(days.since);
    let looks: u64 =
        days.rows.iter().filter(|row| row.day >= Some(since)).map(|row| row.sums.counted("operations")).sum();
    if looks > MOST_LOOKS {
        return Ok(None);
    }
    let (service, company) = (Arc::clone(service), company.clone());
    let query = SumsQuery { since: Some(since), until: Some(days.until), ..SumsQuery::default() };
    match tokio::task::spawn_blocking(move || service.evaluation(&company, &query)).await {
        Ok(report) => Ok(Some(report?.total)),
        // It ended with the host.
        Err(_) => Ok(None),
    }
}

fn figures(days: &Sums, quality: Option<&Evaluation>) -> Markup {
    let total = &days.total;
    let latency = |us: Option<u64>| us.map_or_else(|| "–".to_owned(), duration_us);
    let rate = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), percent);
    let (queries, empty) = (total.counted("queries"), total.counted("emptyQueries"));
    #[allow(clippy::cast_precision_loss, reason = "a rate")]
    let empty = (queries > 0).then(|| empty as f64 / queries as f64);
    let hits = quality.map(|quality| rate(quality.recall_hit_rate));
    html! {
        dl.stats {
            div { dt { "Operations in 30 days" } dd { (count(total.counted("operations"))) small { (count(total.counted("reads"))) " reads, " (count(total.counted("writes"))) " writes" } } }
            div { dt { "Did not succeed" } dd { (count(total.counted("failed"))) small { (count(total.counted("refused"))) " more were refused" } } }
            div { dt { "Half within" } dd { (latency(total.latency_p50_us)) small { (latency(total.latency_p99_us)) " for 99 of 100" } } }
            div { dt { "Recall hit rate" } dd { (hits.as_deref().unwrap_or("–")) small { @if hits.is_some() { "of what was found in 7 days was used" } @else { "too much to count here: " code { "memhost stats" } } } } }
            div { dt { "Empty queries" } dd { (rate(empty)) small { "of " (count(queries)) " queries" } } }
            div { dt { "Billed" } dd { (money(total.cost)) small { (money(total.reported_cost)) " reported in all" } } }
        }
    }
}

/// Every day of the sums with what a row says, `none` where there is none.
fn by_day<T: Copy>(days: &Sums, none: T, value: impl Fn(&memhost_core::SumsView) -> T) -> Vec<T> {
    let rows: BTreeMap<Date, T> = days.rows.iter().filter_map(|row| Some((row.day?, value(&row.sums)))).collect();
    all_days(days).map(|day| rows.get(&day).copied().unwrap_or(none)).collect()
}

fn all_days(days: &Sums) -> impl Iterator<Item = Date> {
    let until = days.until;
    days.since.series(jiff::Span::new().days(1)).take_while(move |day| *day <= until)
}

fn labels(days: &Sums) -> Vec<String> {
    all_days(days).map(|day| day.strftime("%-d %b").to_string()).collect()
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a plot")]
fn volume(days: &Sums) -> Markup {
    let labels = labels(days);
    Plot::new("volume", "Operations a day", &labels, |number| count(number as u64))
        .series("reads", "s1", by_day(days, 0.0, |sums| sums.counted("reads") as f64))
        .series("writes", "s3", by_day(days, 0.0, |sums| sums.counted("writes") as f64))
        .bars()
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a plot")]
fn latency(days: &Sums) -> Markup {
    let labels = labels(days);
    let us = |us: Option<u64>| us.map_or(f64::NAN, |us| us as f64);
    Plot::new("latency", "Latency a day", &labels, |us| duration_us(us as u64))
        .series("half within", "s1", by_day(days, f64::NAN, |sums| us(sums.latency_p50_us)))
        .series("99 of 100 within", "s3", by_day(days, f64::NAN, |sums| us(sums.latency_p99_us)))
        .lines()
}

async fn checks(service: &Service) -> Markup {
    let rows = service.doctor().await.into_iter().map(|check| {
        let (tone, word) = match check.health {
            Health::Good => (Tone::Good, "good"),
            Health::Warning => (Tone::Warning, "look at it"),
            Health::Bad => (Tone::Bad, "bad"),
        };
        let found = html! { p.reason { (pieces::prose(&check.found)) @if !check.advice.is_empty() { ". " (pieces::prose(&check.advice)) } } };
        Row::new().key(check.name).cell(check.name).cell(badge(tone, word)).cell(found)
    });
    table("Checks", &[Col::text("What"), Col::text("How it is"), Col::text("Found").long()], rows)
}
