//! The records of a scope, read and written page by page.

use serde_json::{Value, json};

use crate::CliError;
use crate::args::ScopeArgs;
use crate::page::{items, next_cursor};
use crate::session::Session;
use memhost_types::Pages;

/// Records of a page.
const PAGE: usize = 1_000;
/// About how many bytes of records one request has; the host takes 32 MiB.
const BATCH_BYTES: usize = 4 << 20;

/// All records of a scope.
pub(super) async fn all(session: &Session, scope: &ScopeArgs) -> Result<Vec<Value>, CliError> {
    let (mut records, mut pages) = (Vec::new(), Pages::default());
    while let Some(cursor) = pages.next() {
        let page = session.send(scope, "list", json!({"limit": PAGE, "cursor": cursor})).await?;
        records.extend_from_slice(items(&page, "items"));
        pages.go_on(next_cursor(&page));
    }
    Ok(records)
}

/// Writes records, and answers how many.
pub(super) async fn write(session: &Session, scope: &ScopeArgs, records: Vec<Value>) -> Result<usize, CliError> {
    let (mut batch, mut bytes, mut written) = (Vec::new(), 0, 0);
    let mut records = records.into_iter().peekable();
    while let Some(record) = records.next() {
        bytes += record.to_string().len();
        batch.push(record);
        let is_full = records.peek().is_none_or(|next| bytes + next.to_string().len() > BATCH_BYTES);
        if is_full {
            let source =
                json!({"kind": "external_document", "companyId": session.company, "externalRef": "claude-mem"});
            let sent = std::mem::take(&mut batch);
            written += sent.len();
            session.send(scope, "records", json!({"source": source, "records": sent})).await?;
            bytes = 0;
        }
    }
    Ok(written)
}
