//! Export of everything that a company has, as lines of JSON that another host imports
//! (`import.rs`).
//!
//! A line is `{"type": …, …}`. The first line names the format and the company. Rows of tables have
//! their keys and are imported under the same keys. Records come from the providers and are written
//! through them, in the provider's own lines where it has such lines. Secrets and tokens are named
//! without their values: set them again after the import.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::Transfer;
use crate::oldest_first::OldestFirst;
use async_recursion::async_recursion as boxed;
use memhost_access::Caller;
use memhost_queues::waiting::Waiting;
use memhost_store::{self as store, Table};
use memhost_tenancy::ServiceError;
use memhost_types::{
    Binding, BindingKey, CompanyId, ListRequest, Operation, Outcome, Pages, Scope, Snippet,
};

/// The format of the lines.
pub(crate) const FORMAT: u32 = 1;
/// Tables whose rows are exported unchanged.
pub(crate) const TABLES: [Table; 15] = [
    Table::Companies,
    Table::Bindings,
    Table::Targets,
    Table::Activity,
    Table::Jobs,
    Table::Deliveries,
    Table::CostEvents,
    Table::CostOrder,
    Table::FinanceEvents,
    Table::Budgets,
    Table::Reviews,
    Table::Events,
    Table::Records,
    Table::PrivateWrites,
    Table::Sums,
];

/// A line of an export.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Line {
    Company {
        format: u32,
        company_id: CompanyId,
        exported_at: Timestamp,
    },
    Row {
        table: String,
        key: String,
        value: Value,
    },
    Bytes {
        table: String,
        key: String,
        bytes: String,
    },
    Operation {
        value: Box<Operation>,
    },
    Record {
        binding_key: BindingKey,
        value: Box<Snippet>,
    },
    /// A line in the provider's own format, unchanged.
    Own {
        binding_key: BindingKey,
        line: String,
    },
    Secret {
        name: String,
    },
    Token {
        name: String,
    },
    End {
        lines: u64,
    },
}

/// The cursor of the next page. A provider that leads back to a page that was read would never come
/// to an end.
fn new_cursor(
    binding: &Binding,
    next: Option<String>,
    seen: &mut HashSet<blake3::Hash>,
) -> Result<Option<String>, ServiceError> {
    match next {
        Some(cursor) if !seen.insert(blake3::hash(cursor.as_bytes())) => {
            Err(ServiceError::Host(format!(
                "the provider of the binding `{}` leads back to a page that it has answered \
                 before, so its list never ends; \
             the export is incomplete; report it to the provider's author, install a version that \
             ends its list, and \
             export again",
                binding.key
            )))
        }
        next => Ok(next),
    }
}

/// A page of everything that a binding has.
fn all_of(binding: &Binding, cursor: Option<String>, limit: u32) -> ListRequest {
    ListRequest {
        binding_key: Some(binding.key.clone()),
        scope: Scope::company(binding.company_id.clone()),
        cursor,
        limit: Some(limit),
        metadata_filter: None,
        filter: None,
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The receiver of the lines; counts them.
struct Out {
    lines: mpsc::Sender<Result<String, ServiceError>>,
    count: u64,
}

impl Out {
    async fn line(&mut self, line: &Line) -> Result<(), ServiceError> {
        let mut text = serde_json::to_string(line).map_err(ServiceError::host)?;
        text.push('\n');
        self.count += 1;
        let gone = |_| {
            ServiceError::Host(
                "the client that asked for the export closed the connection".to_owned(),
            )
        };
        self.lines.send(Ok(text)).await.map_err(gone)
    }
}

impl Transfer {
    /// Asks every binding of a company for a record before the first line of an export is sent:
    /// afterwards a failure can only cut the export off.
    ///
    /// # Errors
    /// Where a binding that has something cannot be read: its provider is missing, lacks a grant or
    /// fails.
    #[boxed]
    pub async fn check_export(&self, company: &CompanyId) -> Result<(), ServiceError> {
        for binding in self.bindings.list(company) {
            if self.has_nothing(&binding).await? {
                continue;
            }
            self.first_record(&binding).await.map_err(|error| ServiceError::NotExported {
                key: binding.key.clone(),
                error: Box::new(error),
            })?;
        }
        Ok(())
    }

    /// Asks a binding for a record.
    pub(crate) async fn first_record(&self, binding: &Binding) -> Result<(), ServiceError> {
        let first = all_of(binding, None, 1);
        self.operations.list_all(&Caller::system(), first).await.map(drop)
    }

    /// Everything of a company, line by line, as it is read. The last line is `{"type":"end"}`.
    /// Without that line the export is incomplete, and the error before says why.
    pub fn export(
        self: &Arc<Self>,
        company: &CompanyId,
    ) -> mpsc::Receiver<Result<String, ServiceError>> {
        let (lines, receiver) = mpsc::channel(64);
        let (service, company) = (Arc::clone(self), company.clone());
        memhost_executor::spawn(async move {
            let mut out = Out { lines: lines.clone(), count: 0 };
            if let Err(error) = service.export_to(&company, &mut out).await {
                drop(lines.send(Err(error)).await);
            }
        });
        receiver
    }

    /// Whether the provider of a binding was never used, or can have nothing.
    async fn has_nothing(&self, binding: &Binding) -> Result<bool, ServiceError> {
        Ok(self.operations.never_served(binding).await?
            || self.operations.holds_no_data(binding).await?)
    }

    async fn export_to(&self, company: &CompanyId, out: &mut Out) -> Result<(), ServiceError> {
        for binding in self.bindings.list(company) {
            self.operations.forget_expired_at(&binding, &|| true).await;
        }
        self.oplog.write_refusals(true).await?;
        let (company_id, exported_at) = (company.clone(), self.clock.now());
        out.line(&Line::Company { format: FORMAT, company_id, exported_at }).await?;
        for table in TABLES {
            let prefix = store::company_key(company, b"");
            let mut rows = store::scan_all(&*self.store, table, &prefix);
            while let Some((key, value)) = rows.next().await? {
                // The marks of known events follow from the deliveries themselves.
                if table == Table::Deliveries && key[prefix.len()..].starts_with(b"k") {
                    continue;
                }
                let (name, key) = (table.name().to_owned(), hex(&key[prefix.len()..]));
                let line = match store::decode::<Value>("row", &value) {
                    Ok(value) => Line::Row { table: name, key, value },
                    Err(_) => Line::Bytes { table: name, key, bytes: hex(&value) },
                };
                out.line(&line).await?;
            }
        }
        for secret in self.secrets.list(company).await? {
            out.line(&Line::Secret { name: secret.name }).await?;
        }
        for token in self.tenancy.tokens(Some(company)) {
            out.line(&Line::Token { name: token.name }).await?;
        }
        self.export_operations(company, out).await?;
        // After the operations: importing records makes operations, and their numbers come after
        // the imported ones.
        for binding in self.bindings.list(company) {
            self.export_memory(&binding, out).await?;
        }
        out.line(&Line::End { lines: out.count }).await
    }

    /// Exports operations oldest first, so that they are imported in their order.
    async fn export_operations(
        &self,
        company: &CompanyId,
        out: &mut Out,
    ) -> Result<(), ServiceError> {
        let mut log = OldestFirst::of(&*self.store, company).await?;
        loop {
            let found = log.next().await?;
            if found.is_empty() {
                return Ok(());
            }
            // What becomes of one in progress is not known, and an import takes only what has
            // ended.
            for operation in found.into_iter().filter(|one| one.outcome != Outcome::InProgress) {
                out.line(&Line::Operation { value: Box::new(operation) }).await?;
            }
        }
    }

    /// Exports records of an import that wait for a decision.
    async fn export_waiting(&self, binding: &Binding, out: &mut Out) -> Result<(), ServiceError> {
        let mut after: Option<Vec<u8>> = None;
        while let Some((key, waiting)) = self.waiting.next(binding, after.as_deref()).await? {
            match waiting {
                Waiting::Record(value) => {
                    out.line(&Line::Record { binding_key: binding.key.clone(), value }).await?;
                }
                Waiting::Own(lines) => {
                    for line in lines.lines() {
                        let (binding_key, line) = (binding.key.clone(), line.to_owned());
                        out.line(&Line::Own { binding_key, line }).await?;
                    }
                }
            }
            after = Some(key);
        }
        Ok(())
    }

    async fn export_memory(
        &self,
        binding: &Arc<Binding>,
        out: &mut Out,
    ) -> Result<(), ServiceError> {
        self.export_waiting(binding, out).await?;
        if self.has_nothing(binding).await? {
            return Ok(());
        }
        let (mut pages, mut seen) = (Pages::default(), HashSet::new());
        if self.operations.writes_lines(binding).await {
            while let Some(cursor) = pages.next() {
                let part = self.operations.lines_of(binding, cursor).await?;
                for line in part.lines.lines() {
                    let (binding_key, line) = (binding.key.clone(), line.to_owned());
                    out.line(&Line::Own { binding_key, line }).await?;
                }
                pages.go_on(new_cursor(binding, part.next_cursor, &mut seen)?);
            }
            return Ok(());
        }
        while let Some(cursor) = pages.next() {
            let page =
                self.operations.list_all(&Caller::system(), all_of(binding, cursor, 500)).await?;
            for snippet in page.items {
                let (binding_key, value) = (binding.key.clone(), Box::new(snippet));
                out.line(&Line::Record { binding_key, value }).await?;
            }
            pages.go_on(new_cursor(binding, page.next_cursor, &mut seen)?);
        }
        Ok(())
    }
}
