//! What left the host: requests of providers, and of the host itself, by origin.

use maud::{Markup, html};

use crate::components::{
    CompanyView, Control, FilterForm, ListParams, Page, Row, binding_link, count, empty, figure,
    filter_fields, number, table, time,
};
use memhost_core::SumsQuery;
use memhost_http::{Problem, permission};
use memhost_types::BindingKey;

/// Which days, and whose.
#[derive(Default)]
pub(crate) struct OutgoingFilter {
    sums: SumsQuery,
}

filter_fields! {
    OutgoingFilter {
        "bindingKey", "Binding", Control::Binding, read_text(sums.binding_key);
        "since", "From", Control::Day, read_text(sums.since);
        "until", "Until", Control::Day, read_text(sums.until);
    }
}

pub(crate) async fn list(
    view: CompanyView<permission::View>,
    params: ListParams<OutgoingFilter>,
) -> Result<Markup, Problem> {
    let query = &params.query.filter.sums;
    let sent = view.service.control().outgoing(&view.company, query).await?;
    let rows = sent.items.iter().map(|row| {
        Row::new()
            .cell("Origin", row.origin.as_str())
            .maybe(
                "Binding",
                row.binding_key
                    .as_ref()
                    .map(BindingKey::as_str)
                    .map(|key| binding_link(&view, key)),
            )
            .cell("Provider", row.provider.as_str())
            .cell(number("Requests"), count(row.counts.requests))
            .cell(number("Failed"), count(row.counts.failed))
            .cell(number("Refused"), count(row.counts.refused))
            .cell(number("Bytes sent"), count(row.counts.bytes_sent))
            .cell(number("Bytes received"), count(row.counts.bytes_received))
            .maybe("Last", row.last_at.map(|at| time(at, view.now)))
    });
    let total = &sent.total;
    let body = html! {
        (FilterForm::of(&view, &params))
        @if sent.items.is_empty() {
            (empty("Nothing was sent in this period", &html! {
                "No provider has sent a request, and the host has asked no endpoint for vectors."
            }))
        } @else {
            dl.stats {
                (figure(
                    "Requests", count(total.requests),
                    format!("{} failed, {} refused", count(total.failed), count(total.refused)),
                ))
                (figure("Bytes sent", count(total.bytes_sent), "paths, headers and bodies"))
                (figure("Bytes received", count(total.bytes_received), "bodies"))
            }
            (table("Outgoing requests", rows))
            @if sent.others > 0 {
                p.help {
                    (count(sent.others)) " more origins are counted together in the last row. \
                    Choose a binding or fewer days to see them."
                }
            }
        }
    };
    let about = format!("By origin, from {} to {}, days in UTC.", sent.since, sent.until);
    Ok(Page::new(&view, "Outgoing requests", &about).render(&body))
}
