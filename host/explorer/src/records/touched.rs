//! The operations that touched a record, on its page. The list of operations has all of them, with
//! pages.

use maud::{Markup, html};

use super::record::RecordView;
use super::scope::record_path;
use crate::components::{binding_link, panel, query, short_id, time, words};
use memhost_core::Act;
use memhost_http::Problem;
use memhost_types::{Operation, OperationFilter, OperationKind};

/// How many are shown.
const SHOWN: usize = 12;
/// Operations that are read at a time.
const PAGE: u32 = 200;
/// How many pages are read at most: every look at this page is an operation, too.
const MOST_PAGES: usize = 5;

/// The shown operations that touched a record.
pub(super) struct Touched {
    /// The newest that wrote the record, returned it for a query, or cite it.
    shown: Vec<Operation>,
    /// How many of the newest were looked at. `None` if that was all.
    looked_at: Option<usize>,
}

impl Touched {
    /// None where the viewer may not see operations.
    pub(super) async fn of<P>(record: &RecordView<P>) -> Result<Option<Self>, Problem> {
        if !record.allows(Act::View) {
            return Ok(None);
        }
        let filter = OperationFilter {
            provider_key: Some(record.handle.provider_key.clone()),
            provider_record_id: Some(record.id.clone()),
            ..OperationFilter::default()
        };
        let (mut shown, mut looked_at, mut cursor) = (Vec::new(), 0, None::<String>);
        for _ in 0..MOST_PAGES {
            let page = record
                .service
                .control()
                .operations(&record.view.company, &filter, cursor.as_deref(), PAGE)
                .await?;
            looked_at += page.items.len();
            // Lists and reads of a record are not worth showing here.
            let tells = |operation: &Operation| {
                operation.kind.is_write() || operation.kind == OperationKind::Query
            };
            shown.extend(page.items.into_iter().filter(tells).take(SHOWN - shown.len()));
            cursor = page.next_cursor;
            if cursor.is_none() || shown.len() == SHOWN {
                break;
            }
        }
        let is_cut = cursor.is_some() && shown.len() < SHOWN;
        Ok(Some(Self { shown, looked_at: is_cut.then_some(looked_at) }))
    }

    pub(super) fn panel<P>(&self, record: &RecordView<P>) -> Markup {
        let body = html! {
            @match (self.shown.is_empty(), self.looked_at) {
                (true, None) => p.soft {
                    "No operation in the log wrote it, found it or cites it."
                },
                (true, Some(number)) => {
                    p.soft {
                        "None of the latest " (number)
                            " operations with it wrote it, found it or cites it."
                    }
                }
                (false, _) => ul.list {
                    @for operation in &self.shown { (line(record, operation)) }
                },
            }
            p {
                a href=(all(record)) { "All operations that touched it" }
                ", with those that only read it"
            }
        };
        panel("operations", "Operations", body)
    }
}

/// The address of the list of operations, with those of the record.
fn all<P>(record: &RecordView<P>) -> String {
    let (provider, id) = (record.handle.provider_key.as_str(), record.id.as_str());
    let named = query([("providerRecordId", Some(id)), ("providerKey", Some(provider))]);
    format!("{}{named}", record.at(&["operations"]))
}

fn line<P>(record: &RecordView<P>, operation: &Operation) -> Markup {
    // A handle names a provider. Another of its bindings may have a record of the same name, and
    // may cite this one.
    let elsewhere = operation.binding_key.as_ref().filter(|key| **key != record.binding);
    html! {
        li.between data-key=(operation.id) {
            span {
                a href=(
                    record.at(&["operations", &operation.id.to_string()])
                ) { (words(operation.kind.as_str())) }
                @if operation.cited.contains(&record.handle) { " that cites it" }
                @if let Some(key) = elsewhere { " at " (binding_link(record, key.as_str())) }
                " " span.soft { (operation.principal) " " (short_id(operation.id)) }
            }
            span.soft {
                @if operation.scope != record.scope && elsewhere.is_none() {
                    a href=(
                        record_path(record, &record.binding, &record.id, &operation.scope)
                    ) { "view in its scope" }
                    " · "
                }
                (time(operation.started_at, record.now))
            }
        }
    }
}
