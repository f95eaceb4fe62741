//! The records of a scope, read and written page by page.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Result;
use crate::answer::Answer;
use crate::args::ScopeArgs;
use crate::session::Session;
use memhost_types::{JsonObject, ListPage, Pages, RecordId, RecordWrite, Snippet, UpsertResponse};

/// Records of a page.
const PAGE: usize = 1_000;
/// About how many bytes of records one request has; the host takes 32 MiB.
const BATCH_BYTES: usize = 4 << 20;

/// All records of a scope.
pub(super) async fn all(session: &Session, scope: &ScopeArgs) -> Result<Vec<Snippet>> {
    let (mut records, mut pages) = (Vec::new(), Pages::default());
    while let Some(cursor) = pages.next() {
        let body = json!({"limit": PAGE, "cursor": cursor});
        let page: Answer<ListPage> = session.send(scope, "list", body).await?;
        let page = page.read()?;
        records.extend(page.items);
        pages.go_on(page.next_cursor);
    }
    Ok(records)
}

/// Whether a record is of a project: by its metadata, else by the scope that it was written in. A
/// list in a project also has what every project sees, and of some providers what others wrote.
pub(super) fn is_of(record: &Snippet, project: &str) -> bool {
    let scope = record.scope.as_ref();
    let named =
        word(record, "projectId").or_else(|| scope.and_then(|scope| scope.project_id.as_deref()));
    named == Some(project)
}

/// A text of a record's metadata.
pub(super) fn word<'a>(record: &'a Snippet, name: &str) -> Option<&'a str> {
    record.metadata.as_ref()?.get(name)?.as_str()
}

/// The metadata of a record that is imported into a project: what every import says, and what the
/// system says.
pub(super) fn imported(
    project: Option<&str>,
    created: Option<Timestamp>,
    own: &[(&str, Value)],
) -> JsonObject {
    let all = [
        ("projectId", json!(project)),
        ("visibility", json!(project.map(|_| "project"))),
        ("source", json!("imported")),
        ("createdAt", json!(created)),
        ("updatedAt", json!(created)),
    ];
    let all = all.iter().chain(own).filter(|(_, value)| !value.is_null());
    all.map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// What an import compares of a record: its text, its summary and its metadata.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Content {
    text: String,
    summary: Option<String>,
    metadata: Option<JsonObject>,
}

impl Content {
    /// One text of all of it.
    pub(super) fn joined(&self) -> String {
        json!([self.text, self.summary, self.metadata]).to_string()
    }
}

/// What an import brought.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) imported: usize,
    pub(super) unchanged: usize,
    /// What the host does not take: where it is, and why not.
    pub(super) left_out: Vec<String>,
}

/// How much that was left out is shown in table format.
const SHOWN: usize = 20;

impl Report {
    /// Lines about what was left out, to follow the others.
    pub(super) fn complaint(&self) -> String {
        let count = self.left_out.len();
        if count == 0 {
            return String::new();
        }
        let mut lines = format!("\nleft out, because the host does not take it: {count}");
        for left_out in self.left_out.iter().take(SHOWN) {
            lines.push_str(&format!("\n  {left_out}"));
        }
        if count > SHOWN {
            lines.push_str("\n  … `-o json` has them all");
        }
        lines
    }
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
    known: HashMap<String, HashMap<String, Content>>,
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

    /// Whether the host takes a record. If not, it is noted with its place, so that the others can
    /// be imported.
    pub(super) fn takes(&mut self, record: &RecordWrite, place: impl FnOnce() -> String) -> bool {
        let checked = record.check_sizes();
        if let Err(error) = &checked {
            self.leave_out(&place(), format!("the {} {}", error.field, error.message));
        }
        checked.is_ok()
    }

    /// Notes what is left out, and why.
    pub(super) fn leave_out(&mut self, place: &str, why: impl std::fmt::Display) {
        self.report.left_out.push(format!("{place}: {why}"));
    }

    /// Writes those of the records into a project, and of a subject, that are not there as they
    /// are. What the arguments name goes before.
    pub(super) async fn write(
        &mut self,
        project: Option<&str>,
        subject: Option<&str>,
        records: Vec<RecordWrite>,
    ) -> Result<()> {
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
        let is_new = |record: &RecordWrite| {
            let id = record.id.as_ref().map(RecordId::as_str).unwrap_or_default();
            known.and_then(|known| known.get(id)) != Some(&self.content(record))
        };
        let (new, same): (Vec<_>, Vec<_>) = records.into_iter().partition(is_new);
        self.report.unchanged += same.len();
        self.report.imported += write(self.session, &scope, self.system, new).await?;
        Ok(())
    }

    /// The content of a scope's records, by id.
    async fn present(&self, scope: &ScopeArgs) -> Result<HashMap<String, Content>> {
        let of = |Snippet { handle, text, summary, metadata, .. }| {
            (handle.provider_record_id.to_string(), self.content_of(text, summary, metadata))
        };
        Ok(all(self.session, scope).await?.into_iter().map(of).collect())
    }

    /// The content of the records that are there, by id: in the scope of the arguments, and in that
    /// of the whole company, where an id that a file names may be another record's.
    pub(super) async fn taken(&self) -> Result<HashMap<String, Content>> {
        let (issue, run, session) = (None, None, None);
        let (project, subject, namespace) = (None, None, None);
        let own = self.scope.clone();
        let whole = ScopeArgs { project, issue, run, subject, session, namespace, ..own };
        let mut taken = self.present(&whole).await?;
        taken.extend(self.present(self.scope).await?);
        Ok(taken)
    }

    /// The content of a record that an import compares.
    pub(super) fn content(&self, record: &RecordWrite) -> Content {
        let RecordWrite { text, summary, metadata, .. } = record.clone();
        self.content_of(text, summary, metadata)
    }

    fn content_of(
        &self,
        text: String,
        summary: Option<String>,
        mut metadata: Option<JsonObject>,
    ) -> Content {
        if let Some(metadata) = &mut metadata {
            metadata.remove(self.kept);
        }
        Content { text, summary, metadata }
    }
}

/// Writes records, and answers how many.
async fn write(
    session: &Session,
    scope: &ScopeArgs,
    system: &str,
    records: Vec<RecordWrite>,
) -> Result<usize> {
    let size = |record: &RecordWrite| serde_json::to_vec(record).map_or(0, |json| json.len());
    let (mut batch, mut bytes, mut written) = (Vec::new(), 0, 0);
    let mut records = records.into_iter().peekable();
    while let Some(record) = records.next() {
        bytes += size(&record);
        batch.push(record);
        let is_full = records.peek().is_none_or(|next| bytes + size(next) > BATCH_BYTES);
        if is_full {
            let source = json!({
                "kind": "external_document", "companyId": session.company, "externalRef": system,
            });
            let sent = std::mem::take(&mut batch);
            written += sent.len();
            let body = json!({"source": source, "records": sent});
            session.send::<UpsertResponse>(scope, "records", body).await?;
            bytes = 0;
        }
    }
    Ok(written)
}
