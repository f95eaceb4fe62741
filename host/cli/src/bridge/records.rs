//! The records of a scope, read and written page by page.

use std::collections::HashMap;

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

/// Whether a record is of a project: by its metadata, else by the scope that it was written in. A
/// list in a project also has what every project sees, and of some providers what others wrote.
pub(super) fn is_of(record: &Value, project: &str) -> bool {
    let named =
        record["metadata"]["projectId"].as_str().or_else(|| record["scope"]["projectId"].as_str());
    named == Some(project)
}

/// The metadata of a record that is imported into a project: what every import says, and what the
/// system says.
pub(super) fn imported(project: Option<&str>, created: Option<&str>, own: Value) -> Value {
    let mut all = json!({"projectId": project, "visibility": project.map(|_| "project"), "source": "imported",
        "createdAt": created, "updatedAt": created});
    if let (Some(all), Value::Object(own)) = (all.as_object_mut(), own) {
        all.extend(own);
        all.retain(|_, value| !value.is_null());
    }
    all
}

/// What an import brought.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) imported: usize,
    pub(super) unchanged: usize,
}

/// Writes what the host does not have yet.
pub(super) struct Import<'a> {
    session: &'a Session,
    scope: &'a ScopeArgs,
    /// The system that the records come from.
    system: &'a str,
    /// A member of the metadata that is not compared, because the system changes counters in it.
    kept: &'a str,
    /// The content of the records that each scope has already, by id.
    known: HashMap<String, HashMap<String, Value>>,
    pub(super) report: Report,
}

impl<'a> Import<'a> {
    pub(super) fn new(
        session: &'a Session,
        scope: &'a ScopeArgs,
        system: &'a str,
        kept: &'a str,
    ) -> Self {
        Self { session, scope, system, kept, known: HashMap::new(), report: Report::default() }
    }

    /// Writes those of the records into a project, and of a subject, that are not there as they
    /// are. What the arguments name goes before.
    pub(super) async fn write(
        &mut self,
        project: Option<&str>,
        subject: Option<&str>,
        records: Vec<Value>,
    ) -> Result<(), CliError> {
        let either = |own: &Option<String>, given: Option<&str>| {
            own.clone().or_else(|| given.map(str::to_owned))
        };
        let (project, subject) =
            (either(&self.scope.project, project), either(&self.scope.subject, subject));
        let place = json!([project, subject]).to_string();
        let scope = ScopeArgs { project, subject, ..self.scope.clone() };
        if !self.known.contains_key(&place) {
            self.known.insert(place.clone(), self.present(&scope).await?);
        }
        let known = self.known.get(&place);
        let is_new = |record: &Value| {
            let id = record["id"].as_str().unwrap_or_default();
            known.and_then(|known| known.get(id)) != Some(&self.content(record))
        };
        let (new, same): (Vec<Value>, Vec<Value>) = records.into_iter().partition(is_new);
        self.report.unchanged += same.len();
        self.report.imported += write(self.session, &scope, self.system, new).await?;
        Ok(())
    }

    /// The content of a scope's records, by id.
    async fn present(&self, scope: &ScopeArgs) -> Result<HashMap<String, Value>, CliError> {
        let mut found = HashMap::new();
        for record in all(self.session, scope).await? {
            let id = record["handle"]["providerRecordId"].as_str().unwrap_or_default().to_owned();
            found.insert(id, self.content(&record));
        }
        Ok(found)
    }

    /// The content of the records that are there, by id: in the scope of the arguments, and in that
    /// of the whole company, where an id that a file names may be another record's.
    pub(super) async fn taken(&self) -> Result<HashMap<String, Value>, CliError> {
        let ScopeArgs { company, agent, binding, .. } = self.scope.clone();
        let (project, issue, run, subject, session, namespace) =
            (None, None, None, None, None, None);
        let whole =
            ScopeArgs { company, agent, binding, project, issue, run, subject, session, namespace };
        let mut taken = self.present(&whole).await?;
        taken.extend(self.present(self.scope).await?);
        Ok(taken)
    }

    /// The content of a record that an import compares.
    pub(super) fn content(&self, record: &Value) -> Value {
        let mut metadata = record["metadata"].clone();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove(self.kept);
        }
        json!([record["text"], record["summary"], metadata])
    }
}

/// Writes records, and answers how many.
async fn write(
    session: &Session,
    scope: &ScopeArgs,
    system: &str,
    records: Vec<Value>,
) -> Result<usize, CliError> {
    let (mut batch, mut bytes, mut written) = (Vec::new(), 0, 0);
    let mut records = records.into_iter().peekable();
    while let Some(record) = records.next() {
        bytes += record.to_string().len();
        batch.push(record);
        let is_full =
            records.peek().is_none_or(|next| bytes + next.to_string().len() > BATCH_BYTES);
        if is_full {
            let source = json!({"kind": "external_document", "companyId": session.company, "externalRef": system});
            let sent = std::mem::take(&mut batch);
            written += sent.len();
            session.send(scope, "records", json!({"source": source, "records": sent})).await?;
            bytes = 0;
        }
    }
    Ok(written)
}
