//! What a binding's provider may use, and how much of it is in use; its budgets.

use maud::{Markup, html};

use crate::kit::{Facts, Tone, View, badge, bytes, count, money, time};
use crate::pieces;
use memhost_core::{Act, BindingView, Service};
use memhost_http::Problem;
use memhost_types::{BindingKey, BindingLimits, BudgetState, BudgetView, CompanyId};

/// Bars for what is measured, and the other limits as they are set.
pub(super) fn used(shown: &BindingView) -> Markup {
    let (limits, grants) = (&shown.binding.limits, &shown.binding.grants);
    let number = u64::from;
    let set = BindingLimits::TABLE
        .iter()
        .fold(Facts::default(), |rows, limit| rows.row(limit.name, limit.shown(limit.value(limits))));
    html! {
        @match shown.usage {
            None => p.soft { "It has not served since the host started: nothing is in use." },
            Some(use_) => ul.meters {
                (pieces::used("Memory of one instance", use_.memory_bytes, limits.memory_bytes, bytes))
                @if grants.storage_bytes > 0 {
                    (pieces::used("Storage", use_.storage_bytes, grants.storage_bytes, bytes))
                    (pieces::used("Storage keys", use_.storage_keys, limits.storage_keys, count))
                }
                @if grants.directory_bytes > 0 {
                    (pieces::used("Directory", use_.directory_bytes, grants.directory_bytes, bytes))
                    (pieces::used("Files", use_.directory_files, limits.directory_files, count))
                }
                (pieces::used("Calls at work", number(use_.calls_at_work), number(limits.concurrent_calls), count))
                (pieces::used("Calls waiting", number(use_.calls_waiting), number(limits.queued_calls), count))
                @if !grants.http.is_empty() {
                    (pieces::used("Requests a minute", number(use_.outgoing_requests_per_minute), number(limits.outgoing_requests_per_minute), count))
                    (pieces::used("Connections", number(use_.outgoing_connections), number(limits.outgoing_connections), count))
                }
            },
        }
        details.more { summary { "All limits" } (set) }
    }
}

/// What may be spent on it, and what is.
pub(super) fn budgets(
    service: &Service,
    view: &View,
    company: &CompanyId,
    key: &BindingKey,
) -> Result<Markup, Problem> {
    let all = service.budgets(company)?;
    let mine: Vec<_> =
        all.iter().filter(|found| found.budget.binding_key.as_ref().is_none_or(|binding| binding == key)).collect();
    Ok(html! {
        @if mine.is_empty() { p.soft { "None is set: nothing stops it from spending." } }
        ul.meters { @for found in mine { (budget(view, found)) } }
        @if view.allows(Act::Administer) { p { a href={ (view.at(&["budgets"])) "#set" } { "Set a budget" } } }
    })
}

/// One budget with its bar.
pub(crate) fn budget(view: &View, found: &BudgetView) -> Markup {
    let budget = &found.budget;
    let whose = budget.binding_key.as_ref().map_or("The company", BindingKey::as_str);
    let (tone, state) = match found.state {
        BudgetState::Open => (Tone::Good, "open"),
        BudgetState::Warning => (Tone::Warning, "nearly used up"),
        BudgetState::Stopped => (Tone::Bad, "used up"),
    };
    let show: fn(u64) -> String = |amount| money(memhost_types::Microcents(amount));
    html! {
        (pieces::used(&format!("{whose}, a {}", budget.period), found.spent.0, budget.set.limit.0, show))
        li.between.soft { (badge(tone, state)) span { "begins anew " (time(found.resets_at, view.now)) } }
    }
}
