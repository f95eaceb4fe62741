//! Budgets: their usage, setting and removing them.

use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::TABS;
use crate::bindings::limits::budget;
use crate::components::{
    CompanyView, CsrfForm, Field, Page, View, binding_choices, empty, form, panel, select_field,
    tabs, unprocessable,
};
use crate::guard::redirect;
use memhost_core::{Act, ServiceError};
use memhost_http::{Problem, permission};
use memhost_types::{BindingKey, Microcents, Period, SetBudget};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct BudgetFields {
    binding_key: Option<BindingKey>,
    period: Option<Period>,
    limit: String,
    warn: String,
}

pub(crate) async fn list(view: CompanyView<permission::View>) -> Result<Response, Problem> {
    Ok(page(&view, &BudgetFields::default(), None).await?.into_response())
}

async fn page<P>(
    view: &CompanyView<P>,
    given: &BudgetFields,
    wrong: Option<&str>,
) -> Result<Markup, Problem> {
    let all = view.service.control().budgets(&view.company).await?;
    let may = view.allows(Act::Administer);
    let body = html! {
        (tabs(view, "budgets", &TABS))
        @if all.is_empty() {
            (empty("No budgets", &html! {
                "Spending is not limited. Set a budget below, or with " code {
                    "memhost budget create"
                } "."
            }))
        } @else {
            div.two #budgets data-live {
                @for found in &all {
                    @let budget_of = &found.budget;
                    @let whose = budget_of.binding_key.as_ref().map_or("", BindingKey::as_str);
                    section.panel data-key={ (whose) "/" (budget_of.period) } {
                        ul.meters { (budget(view, found)) }
                        @if may {
                            (form(view, &view.at(&["budgets", "remove"]), &html! {
                                input type="hidden" name="bindingKey" value=(whose);
                                input type="hidden" name="period" value=(budget_of.period);
                                button { "Remove" }
                            }))
                        }
                    }
                }
            }
        }
        @if may { (set_panel(view, given, wrong)) }
    };
    let about = "Limits on spending per day or month, for the company or one binding. A capture \
                 over a limit is refused or waits.";
    Ok(Page::new(view, "Budgets", about).live("budgets").render(&body))
}

fn set_panel(view: &View, given: &BudgetFields, wrong: Option<&str>) -> Markup {
    let whole = std::iter::once((String::new(), "Company".to_owned()));
    let chosen = given.binding_key.as_ref().map_or("", BindingKey::as_str);
    let period = given.period.map_or("month", Period::as_str);
    let warn = if given.warn.is_empty() { "80" } else { &given.warn };
    panel(
        "set",
        "Set budget",
        &html! {
            @if let Some(wrong) = wrong { p.wrong role="alert" { (wrong) } }
            (form(view, &view.at(&["budgets"]), &html! {
                div.inline {
                    (select_field(
                        "bindingKey", "Scope", chosen, whole.chain(binding_choices(view)),
                    ))
                    (select_field(
                        "period", "Period", period, [("day", "day"), ("month", "calendar month")],
                    ))
                    (Field::new("limit", "Limit (USD)", &given.limit).required())
                    (Field::new("warn", "Warn at (%)", warn))
                }
                button.primary { "Set budget" }
            }))
        },
    )
}

/// Reads an amount in dollars exactly: `12`, `12.5` or `$1,200.00`.
fn dollars(text: &str) -> Option<Microcents> {
    let text = text.trim().trim_start_matches('$').replace(',', "");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let is_number = !text.is_empty()
        && rest.len() <= 8
        && format!("{whole}{rest}").bytes().all(|b| b.is_ascii_digit());
    if !is_number || whole.len() + rest.len() == 0 {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let rest: u64 = format!("{rest:0<8}").parse().ok()?;
    // 9 billion cents are the most that the API takes.
    let amount = whole.checked_mul(100_000_000)?.checked_add(rest)?;
    (amount <= 9_000_000_000_000_000).then_some(Microcents(amount))
}

pub(crate) async fn set(
    view: CompanyView<permission::Administer>,
    CsrfForm(given): CsrfForm<BudgetFields>,
) -> Result<Response, Problem> {
    let wrong = async |wrong: &str| {
        let page = page(&view, &given, Some(wrong)).await;
        page.map(|page| unprocessable(&page))
    };
    let Some(limit) = dollars(&given.limit) else {
        return wrong("The limit is not an amount. Enter dollars, such as 12.50.").await;
    };
    let warn = if given.warn.is_empty() {
        "80"
    } else {
        given.warn.trim().trim_end_matches('%').trim_end()
    };
    let Ok(percent) = warn.parse::<f64>() else {
        return wrong("The warning threshold is not a percentage. Enter a such as 80.").await;
    };
    let set = SetBudget { limit, warn_share: percent / 100.0 };
    let (binding, period) = (given.binding_key.as_ref(), given.period.unwrap_or(Period::Month));
    match view
        .service
        .control()
        .set_budget(&view.caller, &view.company, binding, period, Some(set))
        .await
    {
        Ok(_) => {}
        Err(ServiceError::Billing(memhost_core::BillingError::Field(error))) => {
            return wrong(&error.to_string()).await;
        }
        Err(error) => return Err(error.into()),
    }
    view.flash("The budget is set. Captures that waited for it are retried.");
    Ok(redirect(&view.at(&["budgets"])))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Removed {
    binding_key: Option<BindingKey>,
    period: Period,
}

pub(crate) async fn remove(
    view: CompanyView<permission::Administer>,
    CsrfForm(Removed { binding_key, period }): CsrfForm<Removed>,
) -> Result<Response, Problem> {
    view.service
        .control()
        .set_budget(&view.caller, &view.company, binding_key.as_ref(), period, None)
        .await?;
    view.flash("The budget is removed. This spending is not limited any more.");
    Ok(redirect(&view.at(&["budgets"])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_exactly() {
        let read = |text: &str| dollars(text).map(|amount| amount.0);
        assert_eq!(read("12"), Some(1_200_000_000));
        assert_eq!(read(" $1,200.50 "), Some(120_050_000_000));
        assert_eq!(read(".00000001"), Some(1));
        for wrong in ["", ".", "-1", "1e9", "1.123456789", "90000001", "twelve", "1.2.3"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
