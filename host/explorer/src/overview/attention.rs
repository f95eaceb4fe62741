//! Problems that need attention: bindings, reviews, dead letters, failed jobs, budgets, and
//! rejected plugins.

use maud::{Markup, html};

use crate::components::{CompanyView, Tone, View, badge, duration_us, panel, sentence};
use memhost_core::{Act, BindingView, BreakerState, Page};
use memhost_http::Problem;
use memhost_types::{
    BudgetState, DeliveryFilter, DeliveryStatus, JobFilter, JobStatus, ReviewFilter, ReviewStatus,
};

/// Counting stops at this number.
const COUNTED: u32 = 100;

/// One problem and the page to solve it on.
struct Item {
    tone: Tone,
    word: &'static str,
    text: Markup,
    href: String,
}

/// The list of problems.
pub(super) async fn list<P>(
    view: &CompanyView<P>,
    bindings: &[BindingView],
) -> Result<Markup, Problem> {
    let mut all = Vec::new();
    for shown in bindings {
        of_binding(view, shown, &mut all);
    }
    of_work(view, &mut all).await?;
    for found in view.service.control().budgets(&view.company).await? {
        let (tone, word) = match found.state {
            BudgetState::Open => continue,
            BudgetState::Warning => (Tone::Warning, "near limit"),
            BudgetState::Stopped => (Tone::Bad, "exceeded"),
        };
        let whose =
            found.budget.binding_key.as_ref().map_or("the company".to_owned(), ToString::to_string);
        let text = html! { "Budget of " (whose) " per " (found.budget.period) };
        all.push(Item { tone, word, text, href: view.at(&["budgets"]) });
    }
    if view.caller.may(Act::Host, None).is_ok() {
        let refused = view.service.control().plugins().refused.len();
        if refused > 0 {
            let text = html! {
                (refused) @if refused == 1 { " file" } @else { " files" }
                " in the plugins directory"
            };
            all.push(Item {
                tone: Tone::Warning,
                word: "rejected",
                text,
                href: "/plugins#refused".to_owned(),
            });
        }
    }
    // The worst problems come first.
    all.sort_by_key(|item| item.tone != Tone::Bad);
    let body = html! {
        @if all.is_empty() { p { (badge(Tone::Good, "no problems")) } }
        @else {
            ul.list {
                @for item in &all {
                    li.between { a href=(item.href) { (item.text) } (badge(item.tone, item.word)) }
                }
            }
        }
    };
    Ok(panel("attention", "Needs attention", body))
}

fn of_binding(view: &View, shown: &BindingView, all: &mut Vec<Item>) {
    let key = shown.binding.key.as_str();
    let mut add =
        |tone, word, text| all.push(Item { tone, word, text, href: view.at(&["bindings", key]) });
    let is_used = shown.is_default || !shown.agents.is_empty();
    if !shown.binding.enabled && is_used {
        add(Tone::Warning, "disabled", html! { "The binding " (key) " is assigned but disabled" });
    }
    match shown.breaker {
        BreakerState::Closed => {}
        BreakerState::Open { retry_after_ms } => {
            let after = duration_us(retry_after_ms.saturating_mul(1_000));
            add(
                Tone::Bad,
                "circuit open",
                html! { "The provider of " (key) " kept failing; the next attempt is in " (after) },
            );
        }
        BreakerState::HalfOpen => {
            add(
                Tone::Warning,
                "circuit half open",
                html! { "The provider of " (key) " kept failing" },
            );
        }
    }
    for waiting in &shown.waiting {
        let text = html! {
            "Version " (waiting.build.version) " of " (key)
                " requests permissions that are not granted"
        };
        add(Tone::Warning, "needs permissions", text);
    }
    for warning in &shown.warnings {
        add(Tone::Warning, "warning", html! { (key) ": " (sentence(warning)) });
    }
}

/// Pending reviews, dead letters and failed jobs.
async fn of_work<P>(view: &CompanyView<P>, all: &mut Vec<Item>) -> Result<(), Problem> {
    let (service, company) = (&view.service, &view.company);
    let pending = ReviewFilter { status: Some(ReviewStatus::Pending), ..ReviewFilter::default() };
    let dead = DeliveryFilter { status: Some(DeliveryStatus::Dead), ..DeliveryFilter::default() };
    let failed = JobFilter { status: Some(JobStatus::Failed), ..JobFilter::default() };
    let reviews =
        counted(&service.operations().reviews(company, &pending, None, Some(COUNTED)).await?);
    let deliveries =
        counted(&service.control().deliveries(company, &dead, None, Some(COUNTED)).await?);
    let jobs = counted(&service.control().jobs(company, &failed, None, Some(COUNTED)).await?);
    for (found, one, many, tone, word, page, status) in [
        (reviews, "review item", "review items", Tone::Warning, "pending", "reviews", "pending"),
        (deliveries, "delivery", "deliveries", Tone::Bad, "dead letter", "hooks", "dead"),
        (jobs, "job", "jobs", Tone::Bad, "failed", "jobs", "failed"),
    ] {
        let Some(found) = found else { continue };
        let text = html! { (found) " " (if found == "1" { one } else { many }) };
        all.push(Item { tone, word, text, href: format!("{}?status={status}", view.at(&[page])) });
    }
    Ok(())
}

/// The number of items as a text. None: there are no items.
fn counted<T>(page: &Page<T>) -> Option<String> {
    match (page.items.len(), &page.next_cursor) {
        (0, _) => None,
        (found, None) => Some(found.to_string()),
        (found, Some(_)) => Some(format!("more than {found}")),
    }
}
