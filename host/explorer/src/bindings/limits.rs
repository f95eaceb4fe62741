//! The limits of a binding, their usage, and its budgets.

use maud::{Markup, html};

use crate::components::{
    CompanyView, Details, Tone, View, badge, bytes, count, money, time, usage_meter,
};
use memhost_core::{Act, BindingView};
use memhost_http::Problem;
use memhost_types::{BindingKey, BindingLimits, BudgetState, BudgetView};

/// Bars for the limits that have a usage, and the other limits as a list.
pub(super) fn used(shown: &BindingView) -> Markup {
    let (limits, grants) = (&shown.binding.limits, &shown.binding.grants);
    let number = u64::from;
    let set = BindingLimits::TABLE.iter().fold(Details::default(), |rows, limit| {
        rows.row(limit.name, limit.shown(limit.value(limits)))
    });
    html! {
        @match shown.usage {
            None => p.soft { "Not used since the host started." },
            Some(use_) => ul.meters {
                (usage_meter("Memory per instance", use_.memory_bytes, limits.memory_bytes, bytes))
                @if grants.storage_bytes > 0 {
                    (usage_meter("Storage", use_.storage_bytes, grants.storage_bytes, bytes))
                    (usage_meter("Storage keys", use_.storage_keys, limits.storage_keys, count))
                }
                @if grants.directory_bytes > 0 {
                    (usage_meter("Directory", use_.directory_bytes, grants.directory_bytes, bytes))
                    (usage_meter("Files", use_.directory_files, limits.directory_files, count))
                }
                (usage_meter(
                    "Concurrent calls",
                    number(use_.calls_in_flight), number(limits.concurrent_calls), count,
                ))
                (usage_meter(
                    "Queued calls", number(use_.calls_waiting), number(limits.queued_calls), count,
                ))
                @if !grants.http.is_empty() {
                    @let (used, limit) = (
                        use_.outgoing_requests_per_minute, limits.outgoing_requests_per_minute
                    );
                    (usage_meter("Requests per minute", number(used), number(limit), count))
                    @let (used, limit) = (use_.outgoing_connections, limits.outgoing_connections);
                    (usage_meter("Connections", number(used), number(limit), count))
                }
            },
        }
        details.more { summary { "All limits" } (set) }
    }
}

/// The budgets that apply to the binding.
pub(super) async fn budgets<P>(view: &CompanyView<P>, key: &BindingKey) -> Result<Markup, Problem> {
    let all = view.service.control().budgets(&view.company).await?;
    let mine: Vec<_> = all
        .iter()
        .filter(|found| found.budget.binding_key.as_ref().is_none_or(|binding| binding == key))
        .collect();
    Ok(html! {
        @if mine.is_empty() { p.soft { "No budget: spending is not limited." } }
        ul.meters { @for found in mine { (budget(view, found)) } }
        @if view.allows(Act::Administer) {
            p { a href={ (view.at(&["budgets"])) "#set" } { "Set budget" } }
        }
    })
}

/// One budget with its bar.
pub(crate) fn budget(view: &View, found: &BudgetView) -> Markup {
    let budget = &found.budget;
    let whose = budget.binding_key.as_ref().map_or("Company", BindingKey::as_str);
    let (tone, state) = match found.state {
        BudgetState::Open => (Tone::Good, "within budget"),
        BudgetState::Warning => (Tone::Warning, "near limit"),
        BudgetState::Stopped => (Tone::Bad, "exceeded"),
    };
    let show: fn(u64) -> String = |amount| money(memhost_types::Microcents(amount));
    html! {
        (usage_meter(
            &format!("{whose}, per {}", budget.period), found.spent.0, budget.set.limit.0, show,
        ))
        li.between.soft {
            (badge(tone, state)) span { "resets " (time(found.resets_at, view.now)) }
        }
    }
}
