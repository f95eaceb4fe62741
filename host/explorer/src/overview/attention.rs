//! What needs somebody: bindings in trouble, reviews, what was given up, budgets, and plugins that were kept out.

use maud::{Markup, html};

use crate::kit::{Tone, View, badge, duration_us, panel};
use crate::pieces;
use memhost_core::{Act, BindingView, BreakerState, Page, Service};
use memhost_http::Problem;
use memhost_types::{
    BudgetState, CompanyId, DeliveryFilter, DeliveryStatus, JobFilter, JobStatus, ReviewFilter, ReviewStatus,
};

/// More than so many are not counted.
const COUNTED: u32 = 100;

/// Something to look at: how bad it is, what it is, and where to go.
struct Item {
    tone: Tone,
    word: &'static str,
    text: Markup,
    href: String,
}

/// What needs somebody; a word of comfort where nothing does.
pub(super) async fn list(
    service: &Service,
    view: &View,
    company: &CompanyId,
    bindings: &[BindingView],
) -> Result<Markup, Problem> {
    let mut all = Vec::new();
    for shown in bindings {
        of_binding(view, shown, &mut all);
    }
    of_work(service, view, company, &mut all).await?;
    for found in service.budgets(company).await? {
        let (tone, word) = match found.state {
            BudgetState::Open => continue,
            BudgetState::Warning => (Tone::Warning, "nearly used up"),
            BudgetState::Stopped => (Tone::Bad, "used up"),
        };
        let whose = found.budget.binding_key.as_ref().map_or("the company".to_owned(), ToString::to_string);
        let text = html! { "The budget of " (whose) " for the " (found.budget.period) };
        all.push(Item { tone, word, text, href: view.at(&["budgets"]) });
    }
    if view.caller.may(Act::Host, None).is_ok() {
        let refused = service.plugins().refused.len();
        if refused > 0 {
            let text = html! { (refused) @if refused == 1 { " file" } @else { " files" } " in the plugins directory" };
            all.push(Item { tone: Tone::Warning, word: "kept out", text, href: "/plugins#refused".to_owned() });
        }
    }
    // What is worst stands first.
    all.sort_by_key(|item| item.tone != Tone::Bad);
    let body = html! {
        @if all.is_empty() { p { (badge(Tone::Good, "nothing needs you")) } }
        @else {
            ul.list {
                @for item in &all { li.between { a href=(item.href) { (item.text) } (badge(item.tone, item.word)) } }
            }
        }
    };
    Ok(panel("attention", "Needs attention", &body))
}

fn of_binding(view: &View, shown: &BindingView, all: &mut Vec<Item>) {
    let key = shown.binding.key.as_str();
    let mut add = |tone, word, text| all.push(Item { tone, word, text, href: view.at(&["bindings", key]) });
    let is_used = shown.is_default || !shown.agents.is_empty();
    if !shown.binding.enabled && is_used {
        add(Tone::Warning, "disabled", html! { "The binding " (key) " answers for somebody" });
    }
    match shown.breaker {
        BreakerState::Closed => {}
        BreakerState::Open { retry_after_ms } => {
            let after = duration_us(retry_after_ms.saturating_mul(1_000));
            add(
                Tone::Bad,
                "left alone",
                html! { "The provider of " (key) " kept failing; the next trial is in " (after) },
            );
        }
        BreakerState::HalfOpen => add(Tone::Warning, "on trial", html! { "The provider of " (key) " kept failing" }),
    }
    for waiting in &shown.waiting {
        let text = html! { "Version " (waiting.build.version) " for " (key) " asks for more than was granted" };
        add(Tone::Warning, "waits for grants", text);
    }
    for warning in &shown.warnings {
        add(Tone::Warning, "look at it", html! { (key) ": " (pieces::prose(warning)) });
    }
}

/// What waits for a person and what was given up.
async fn of_work(service: &Service, view: &View, company: &CompanyId, all: &mut Vec<Item>) -> Result<(), Problem> {
    let pending = ReviewFilter { status: Some(ReviewStatus::Pending), ..ReviewFilter::default() };
    let dead = DeliveryFilter { status: Some(DeliveryStatus::Dead), ..DeliveryFilter::default() };
    let failed = JobFilter { status: Some(JobStatus::Failed), ..JobFilter::default() };
    let reviews = counted(&service.reviews(company, &pending, None, Some(COUNTED)).await?);
    let deliveries = counted(&service.deliveries(company, &dead, None, Some(COUNTED)).await?);
    let jobs = counted(&service.jobs(company, &failed, None, Some(COUNTED)).await?);
    for (found, one, many, tone, word, page, status) in [
        (reviews, "memory", "memories", Tone::Warning, "held for review", "reviews", "pending"),
        (deliveries, "delivery", "deliveries", Tone::Bad, "given up", "hooks", "dead"),
        (jobs, "job", "jobs", Tone::Bad, "failed", "jobs", "failed"),
    ] {
        let Some(found) = found else { continue };
        let text = html! { (found) " " (if found == "1" { one } else { many }) };
        all.push(Item { tone, word, text, href: format!("{}?status={status}", view.at(&[page])) });
    }
    Ok(())
}

/// How many there are, as it is said; none where there is none.
fn counted<T>(page: &Page<T>) -> Option<String> {
    match (page.items.len(), &page.next_cursor) {
        (0, _) => None,
        (found, None) => Some(found.to_string()),
        (found, Some(_)) => Some(format!("more than {found}")),
    }
}
