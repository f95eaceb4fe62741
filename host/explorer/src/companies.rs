//! The start page: the companies of this host.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::html;

use super::components::{Column, Page, Row, View, count, empty, table};
use super::guard::see;
use memhost_core::{Act, Service};
use memhost_http::Problem;

/// An operator chooses a company. Any other caller belongs to one, and is sent there.
pub(super) async fn list(State(service): State<Arc<Service>>, view: View) -> Result<Response, Problem> {
    if let Some(company) = view.caller.company() {
        let page: &[&str] = if service.allows(&view.caller, Act::View, company) { &[] } else { &["query"] };
        return Ok(see(&View::company_at(company, page)));
    }
    service.allow(&view.caller, Act::Host, None).await?;
    let companies = service.companies();
    let mut rows = Vec::new();
    for company in &companies {
        let bindings = service.bindings(company).await.unwrap_or_default();
        let default = bindings.iter().find(|binding| binding.is_default);
        let row = Row::to(View::company_at(company, &[]))
            .key(company)
            .cell(company.as_str())
            .maybe(default.map(|binding| binding.binding.key.to_string()))
            .cell(count(bindings.len() as u64));
        rows.push(row);
    }
    let body = if companies.is_empty() {
        empty(
            "No companies yet",
            &html! {
                "The first operation of a company creates it: " code {
                    "memhost note --company acme 'Deploys are frozen on Fridays'"
                }
            },
        )
    } else {
        table(
            "Companies",
            &[Column::text("Company"), Column::text("Default binding"), Column::number("Bindings")],
            rows,
        )
    };
    Ok(Page::new(&view, "Companies", "All companies with memory on this host.").render(&body).into_response())
}
