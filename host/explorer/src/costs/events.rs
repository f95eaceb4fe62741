//! Cost events, one for each usage that is billed directly, and flat charges.

use maud::{Markup, html};

use super::TABS;
use crate::components::{
    CompanyView, Control, ListParams, PAGE_SIZE, Page, Row, Tone, badge, count, filter_fields,
    listing, long, money, number, short_id, tabs, time, wide, words,
};
use memhost_http::{Problem, permission};
use memhost_types::{BillingType, CostEventFilter, CostStatus, Direction, FinanceEvent};

/// How a call is billed, in words.
pub(crate) fn billing_type(r#type: BillingType) -> &'static str {
    match r#type {
        BillingType::MeteredApi => "metered",
        BillingType::SubscriptionIncluded => "subscription",
        BillingType::SubscriptionOverage => "subscription overage",
        BillingType::Unknown => "unknown",
    }
}

filter_fields! {
    CostEventFilter {
        "bindingKey", "Binding", Control::Binding, read_text(binding_key);
        "agentId", "Agent", Control::Text, read_text(agent_id);
        "since", "From", Control::Day, read_since(since);
        "until", "Until", Control::Day, read_until(until);
        advanced:
        "issueId", "Issue", Control::Text, read_text(issue_id);
        "runId", "Run", Control::Text, read_text(run_id);
    }
}

pub(crate) async fn events(
    view: CompanyView<permission::View>,
    params: ListParams<CostEventFilter>,
) -> Result<Markup, Problem> {
    let query = &params.query;
    let page = view
        .service
        .control()
        .cost_events(&view.company, &query.filter, query.cursor.as_deref(), PAGE_SIZE)
        .await?;
    let rows = page.items.iter().map(|event| {
        let cost = match event.cost_status {
            CostStatus::Reported => html! { (money(event.cost)) },
            CostStatus::Unpriced => badge(Tone::Warning, "unpriced"),
        };
        Row::to(view.at(&["operations", &event.operation_id.to_string()]))
            .key(event.id)
            .cell("Operation", short_id(event.operation_id))
            .cell("Time", time(event.occurred_at, view.now))
            .maybe("Binding", event.binding_key.as_ref().map(|key| key.as_str()))
            .cell(wide("Agent"), event.agent_id.as_str())
            .cell("Provider", event.provider.as_str())
            .cell(long("Model"), event.model.as_str())
            .cell(wide("Billing"), billing_type(event.billing_type))
            .cell(number("Tokens in").wide(), count(event.input_tokens))
            .cell(number("Tokens out").wide(), count(event.output_tokens))
            .cell(number("Cost"), cost)
    });
    let none = html! {
        "A call that its provider reports as billed by usage creates one. Usage that a run already \
         accounts for creates none."
    };
    let (names, none) = (("Cost events", "cost events"), ("No cost events yet", &none));
    let next = page.next_cursor.as_deref().filter(|_| page.more);
    let body = html! {
        (tabs(&view, "cost-events", &TABS))
        (listing(&view, &params, names, next, none, rows))
    };
    Ok(Page::new(&view, "Cost events", "Usage that is billed directly, newest first.")
        .render(&body))
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
    view: CompanyView<permission::View>,
    params: ListParams<()>,
) -> Result<Markup, Problem> {
    let page = view
        .service
        .control()
        .finance_events(&view.company, params.query.cursor.as_deref(), PAGE_SIZE)
        .await?;
    let rows = page.items.iter().map(|event| {
        let entered = &event.entered;
        let whose = entered.binding_key.as_ref().map(|key| key.to_string());
        let whose =
            whose.or_else(|| entered.agent_id.as_ref().map(|agent| format!("agent {agent}")));
        Row::new()
            .key(event.id)
            .cell(
                "Type",
                html! {
                    (words(&entered.event_kind)) @if entered.estimated {
                        " " span.tag { "estimated" }
                    }
                },
            )
            .cell("Time", time(entered.occurred_at, view.now))
            .cell("Biller", entered.biller.as_str())
            .maybe(wide("Applies to"), whose)
            .maybe(long("Description"), entered.description.as_deref())
            .maybe(wide("Invoice"), entered.external_invoice_id.as_deref())
            .cell(wide("Entered by"), event.created_by.to_string())
            .cell(number("Amount"), amount(event))
    });
    let none = html! {
        "Add subscriptions and invoices with " code {
            "POST /control/v1/companies/" (view.company) "/finance-events"
        }
    };
    let (names, none) = (("Flat charges", "charges"), ("No flat charges yet", &none));
    let body = html! {
        (tabs(&view, "charges", &TABS))
        (listing(&view, &params, names, page.next_cursor.as_deref(), none, rows))
    };
    Ok(Page::new(
        &view,
        "Flat charges",
        "Subscriptions, invoices and fees that no single operation caused. Budgets do not include \
         them.",
    )
    .render(&body))
}
