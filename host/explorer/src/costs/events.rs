//! What the sums are made of: a row for each metered use that is billed directly, and flat charges.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use serde::Deserialize;

use super::TABS;
use crate::kit::{Asked, Col, Page, Row, Tone, View, badge, count, empty, money, pager, short_id, table, time, words};
use crate::pieces::{self, ROWS};
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
        BillingType::SubscriptionIncluded => "in a subscription",
        BillingType::SubscriptionOverage => "beyond a subscription",
        BillingType::Unknown => "unknown",
    }
}

pub(crate) async fn events(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::View>,
    asked: Asked<EventsQuery>,
) -> Result<Markup, Problem> {
    let page = service.cost_events(&allowed.company, asked.query.cursor.as_deref(), ROWS).await?;
    let columns = [
        Col::text("Operation"),
        Col::text("When"),
        Col::text("Binding"),
        Col::text("Agent").wide(),
        Col::text("Provider"),
        Col::text("Model").long(),
        Col::text("Billing").wide(),
        Col::number("Tokens in").wide(),
        Col::number("Tokens out").wide(),
        Col::number("Cost"),
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
        (pieces::tabs(&view, "cost-events", &TABS))
        @if page.items.is_empty() {
            (empty("No cost event yet", &html! { "A provider that says that a call is billed by use makes one. What a run's own accounting has already makes none." }))
        } @else {
            (table("Cost events", &columns, rows))
            (pager(&view, &asked, page.next_cursor.as_deref(), "cost events"))
        }
    };
    Ok(Page::new(&view, "Cost events", "Metered use that is billed directly, newest first.").render(&body))
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
    asked: Asked<EventsQuery>,
) -> Result<Markup, Problem> {
    let page = service.finance_events(&allowed.company, asked.query.cursor.as_deref(), ROWS).await?;
    let columns = [
        Col::text("What"),
        Col::text("When"),
        Col::text("Biller"),
        Col::text("For").wide(),
        Col::text("Description").long(),
        Col::text("Invoice").wide(),
        Col::text("Entered by").wide(),
        Col::number("Amount"),
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
        (pieces::tabs(&view, "charges", &TABS))
        @if page.items.is_empty() {
            (empty("No flat charge yet", &html! {
                "Subscriptions and invoices are entered by hand: " code { "POST /control/v1/companies/" (allowed.company) "/finance-events" }
            }))
        } @else {
            (table("Flat charges", &columns, rows))
            (pager(&view, &asked, page.next_cursor.as_deref(), "charges"))
        }
    };
    Ok(Page::new(
        &view,
        "Flat charges",
        "Subscriptions, invoices and fees that no operation caused. No budget stops them.",
    )
    .render(&body))
}
