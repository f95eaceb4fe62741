//! Cost events, one for each usage that is billed directly, and flat charges.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use serde::Deserialize;

use super::TABS;
use crate::components::{
    Column, PAGE_SIZE, Page, QueryParams, Row, Tone, View, badge, count, empty, money, pager, short_id, table, tabs,
    time, words,
};
use memhost_core::Service;
use memhost_http::{Authorized, Problem, permission};
use memhost_types::{BillingType, CostStatus, Direction, FinanceEvent};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    cursor: Option<String>,
}

fn billing(r#type: BillingType) -> &'static str {
    match r#type {
        BillingType::MeteredApi => "metered",
        BillingType::SubscriptionIncluded => "subscription",
        BillingType::SubscriptionOverage => "subscription overage",
        BillingType::Unknown => "unknown",
    }
}

pub(crate) async fn events(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::View>,
    params: QueryParams<EventsQuery>,
) -> Result<Markup, Problem> {
    let page = service.cost_events(&allowed.company, params.query.cursor.as_deref(), PAGE_SIZE).await?;
    let columns = [
        Column::text("Operation"),
        Column::text("Time"),
        Column::text("Binding"),
        Column::text("Agent").wide(),
        Column::text("Provider"),
        Column::text("Model").long(),
        Column::text("Billing").wide(),
        Column::number("Tokens in").wide(),
        Column::number("Tokens out").wide(),
        Column::number("Cost"),
    ];
    let rows = page.items.iter().map(|event| {
        let cost = match event.cost_status {
            CostStatus::Reported => html! { (money(event.cost)) },
            CostStatus::Unpriced => badge(Tone::Warning, "unpriced"),
        };
        Row::to(view.at(&["operations", &event.operation_id.to_string()]))
            .key(event.id)
            .cell(short_id(event.operation_id))
            .cell(time(event.occurred_at, view.now))
            .maybe(event.binding_key.as_ref().map(|key| key.as_str()))
            .maybe(event.agent_id.as_ref().map(|agent| agent.as_str()))
            .cell(event.provider.as_str())
            .maybe(event.model.as_deref())
            .cell(billing(event.billing_type))
            .cell(count(event.input_tokens))
            .cell(count(event.output_tokens))
            .cell(cost)
    });
    let body = html! {
        (tabs(&view, "cost-events", &TABS))
        @if page.items.is_empty() {
            (empty("No cost events yet", &html! {
                "A call that its provider reports as billed by usage creates one. Usage that a run already accounts for creates none."
            }))
        } @else {
            (table("Cost events", &columns, rows))
            (pager(&view, &params, page.next_cursor.as_deref(), "cost events"))
        }
    };
    Ok(Page::new(&view, "Cost events", "Usage that is billed directly, newest first.").render(&body))
}

/// An amount in its own currency.
fn amount(event: &FinanceEvent) -> Markup {
    let shown = money(event.entered.amount);
    let shown = match event.entered.currency.as_str() {
        "USD" => shown,
        other => format!("{} {other}", shown.trim_start_matches('$')),
    };
    match event.entered.direction {
        Direction::Debit => html! { (shown) },
        Direction::Credit => html! { span.good { "−" (shown) } },
    }
}

pub(crate) async fn charges(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::View>,
    params: QueryParams<EventsQuery>,
) -> Result<Markup, Problem> {
    let page = service.finance_events(&allowed.company, params.query.cursor.as_deref(), PAGE_SIZE).await?;
    let columns = [
        Column::text("Type"),
        Column::text("Time"),
        Column::text("Biller"),
        Column::text("Applies to").wide(),
        Column::text("Description").long(),
        Column::text("Invoice").wide(),
        Column::text("Entered by").wide(),
        Column::number("Amount"),
    ];
    let rows = page.items.iter().map(|event| {
        let entered = &event.entered;
        let whose = entered.binding_key.as_ref().map(|key| key.to_string());
        let whose = whose.or_else(|| entered.agent_id.as_ref().map(|agent| format!("agent {agent}")));
        Row::new()
            .key(event.id)
            .cell(html! { (words(&entered.event_kind)) @if entered.estimated { " " span.tag { "estimated" } } })
            .cell(time(entered.occurred_at, view.now))
            .cell(entered.biller.as_str())
            .maybe(whose)
            .maybe(entered.description.as_deref())
            .maybe(entered.external_invoice_id.as_deref())
            .cell(event.created_by.as_str())
            .cell(amount(event))
    });
    let body = html! {
        (tabs(&view, "charges", &TABS))
        @if page.items.is_empty() {
            (empty("No flat charges yet", &html! {
                "Add subscriptions and invoices with " code {
                    "POST /control/v1/companies/" (allowed.company) "/finance-events"
                }
            }))
        } @else {
            (table("Flat charges", &columns, rows))
            (pager(&view, &params, page.next_cursor.as_deref(), "charges"))
        }
    };
    Ok(Page::new(
        &view,
        "Flat charges",
        "Subscriptions, invoices and fees that no single operation caused. Budgets do not include them.",
    )
    .render(&body))
}
