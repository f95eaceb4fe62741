//! The start page: the companies of this host.

use std::collections::BTreeSet;

use axum::response::{IntoResponse, Response};
use maud::html;

use super::components::{Page, Row, View, count, empty, first_note, number, table};
use super::guard::redirect;
use memhost_core::Act;
use memhost_http::Problem;

/// An operator chooses a company. Any other caller belongs to one, and is sent there.
pub(super) async fn list(view: View) -> Result<Response, Problem> {
    if let Some(home) = View::home(&view.service, &view.caller) {
        return Ok(redirect(&home));
    }
    view.service.tenancy().allow(&view.caller, Act::Host, None).await?;
    let (companies, erasing) = view.service.tenancy().companies_of_all_hosts().await?;
    let here: BTreeSet<_> = view.service.tenancy().companies().into_iter().collect();
    let mut rows = Vec::new();
    for company in &companies {
        let bindings = view.service.control().bindings(company).await.unwrap_or_default();
        let default = bindings.iter().find(|binding| binding.is_default);
        let row = Row::to(View::company_at(company, &[]))
            .key(company)
            .cell("Company", company.as_str())
            .maybe("Default binding", default.map(|binding| binding.binding.key.to_string()));
        // This host knows no more than the name of a company that another one serves.
        let bindings = here.contains(company).then(|| count(bindings.len() as u64));
        let row = row.maybe(number("Bindings"), bindings);
        rows.push(row);
    }
    let body = if companies.is_empty() && erasing.is_empty() {
        empty(
            "No companies yet",
            &html! { "A company's first record creates it: " (first_note("acme")) },
        )
    } else {
        html! {
            @for company in &erasing {
                p.wrong role="alert" {
                    "The erasure of " (company)
                        " is not complete: a provider has not confirmed it. "
                    code {
                        "memhost company delete --company " (company) " --confirm " (company)
                    } " goes on with it."
                }
            }
            (table("Companies", rows))
        }
    };
    Ok(Page::new(&view, "Companies", "All companies with memory on this host.")
        .render(&body)
        .into_response())
}
