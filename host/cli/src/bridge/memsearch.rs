//! Imports and exports Markdown journals of memsearch. `memhost-journal` has their form.

mod files;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use memhost_journal::{Entry, Journal, New, anchor, entries};
use memhost_types::{AgentId, JsonObject, RecordId, RecordWrite, Snippet, TextId, counted};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::records::{Content, Import, Report, all, imported, is_of, word};
use super::row::{clean, hash};
use crate::Result;
use crate::args::ScopeArgs;

#[derive(Debug, Args)]
pub(crate) struct JournalsArgs {
    /// The directory of journals; an export creates it.
    directory: PathBuf,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JournalsImportArgs {
    #[command(flatten)]
    journals: JournalsArgs,
    /// Replace records that entries name by their ids and that say something else.
    #[arg(long)]
    replace: bool,
}

/// Entries that are written together.
const BATCH: usize = 200;
/// Members of an anchor, and of the metadata `memsearch`, in the order in which memsearch writes
/// them.
const ANCHOR: [&str; 3] = ["session", "turn", "transcript"];

pub(super) async fn import(args: JournalsImportArgs) -> Result<()> {
    let JournalsImportArgs { journals: args, replace } = args;
    let session = args.scope.open().await?;
    let project = args.scope.project.as_deref();
    let mut import = Import::new(&session, &args.scope, "memsearch", "memsearch");
    let files = files::markdown(&args.directory, |place, why| import.leave_out(place, why))?;
    let (mut count, mut private, mut batch) = (0, 0, Vec::new());
    let (mut named, mut taken) = (Named::default(), None);
    for (name, file) in &files {
        let content = match files::read(file) {
            // One of many does not keep the others out.
            Err(error) if args.directory.is_dir() => {
                import.leave_out(name, error);
                continue;
            }
            content => content?,
        };
        for entry in entries(&content) {
            count += 1;
            if entry.note.is_some_and(is_private) {
                private += 1;
                continue;
            }
            let mut record = record(name, &entry, project);
            let place = || {
                let line = content[..entry.range.start].lines().count() + 1;
                format!("{name}, the entry at line {line}")
            };
            if !import.takes(&record, place) {
                continue;
            }
            if !replace && names_id(&entry) {
                let taken = match &mut taken {
                    Some(taken) => taken,
                    none => none.insert(import.taken().await?),
                };
                let content = import.content(&record);
                if named.is_there(&mut record, content, taken) {
                    continue;
                }
            }
            batch.push(record);
            if batch.len() == BATCH {
                import.write(None, None, std::mem::take(&mut batch)).await?;
            }
        }
    }
    import.write(None, None, batch).await?;
    let report = import.report;
    let Report { imported, unchanged, left_out } = &report;
    let (unchanged, apart) = (unchanged + named.unchanged, named.apart);
    let answer = json!({
        "files": files.len(), "entries": count, "imported": imported, "unchanged": unchanged,
        "private": private, "apart": apart, "leftOut": left_out,
    });
    session.tell(&answer, || {
        let private = match private {
            0 => String::new(),
            _ => format!(
                "; {} of one agent or subject left out, because the import would show them to all",
                counted(private, "entry", "entries")
            ),
        };
        let others = match apart {
            0 => String::new(),
            _ => format!(
                "; {} the id of another record and {} a record of {} own; import with `--replace` \
                 to replace it",
                counted(apart, "entry names", "entries name"),
                if apart == 1 { "is" } else { "are each" },
                if apart == 1 { "its" } else { "their" },
            ),
        };
        let (files, entries) =
            (counted(files.len(), "file", "files"), counted(count, "entry", "entries"));
        format!(
            "{entries} of {files}: {imported} imported, {unchanged} unchanged{private}{others}{}",
            report.complaint()
        )
    })
}

pub(super) async fn export(args: JournalsArgs) -> Result<()> {
    let session = args.scope.open().await?;
    let new = files::NewDirectory::at(&args.directory)?;
    let mut records = all(&session, &args.scope).await?;
    if let Some(project) = &args.scope.project {
        records.retain(|record| is_of(record, project));
    }
    let mut by_time: Vec<(Timestamp, &Snippet)> =
        records.iter().map(|record| (time_of(record), record)).collect();
    by_time.sort_by_key(|(at, _)| *at);
    let mut journals: BTreeMap<String, Journal> = BTreeMap::new();
    for (at, record) in by_time {
        let day = at.strftime("%Y-%m-%d").to_string();
        let (time, anchor, note) =
            (at.strftime("%H:%M").to_string(), anchor_of(record), note_of(record));
        let entry = New { time: &time, anchor: &anchor, note: &note, text: &record.text };
        journals.entry(day.clone()).or_default().add(&entry, &day);
    }
    let journals = journals.into_iter().map(|(day, journal)| (day, journal.into_text())).collect();
    let files = new.write(&journals)?;
    let answer = json!({"records": records.len(), "files": files});
    session.tell(&answer, || {
        let (records, files) =
            (counted(records.len(), "record", "records"), counted(files, "file", "files"));
        format!(
            "{records} written to {files} in {}; index them with `memsearch index`",
            args.directory.display()
        )
    })
}

/// What was done with entries that name records by their ids. A file may come from anybody, and so
/// may its ids.
#[derive(Debug, Default)]
struct Named {
    /// Entries that name a record which says the same.
    unchanged: usize,
    /// Entries that name a record which says something else.
    apart: usize,
}

impl Named {
    /// Whether the record that an entry names is there as the entry says. Where it says something
    /// else, the entry becomes a record of its own, and the same one whenever it is imported again.
    fn is_there(
        &mut self,
        record: &mut RecordWrite,
        content: Content,
        taken: &mut HashMap<String, Content>,
    ) -> bool {
        let id = record.id.as_ref().map(ToString::to_string).unwrap_or_default();
        let id = match taken.get(&id) {
            Some(present) if *present == content => {
                self.unchanged += 1;
                return true;
            }
            Some(_) => {
                self.apart += 1;
                format!("memsearch-{}", hash(&["apart", &id, &content.joined()]))
            }
            None => id,
        };
        record.id = RecordId::parse(&id).ok();
        // The next entry of the same id in these files does not replace this one either.
        taken.insert(id, content);
        false
    }
}

/// Whether an entry names a record by its id.
fn names_id(entry: &Entry<'_>) -> bool {
    entry.note.and_then(|note| ours(note, &entry.text, None)).is_some()
}

/// The record of an entry.
fn record(name: &str, entry: &Entry<'_>, project: Option<&str>) -> RecordWrite {
    if let Some(record) = entry.note.and_then(|note| ours(note, &entry.text, project)) {
        return record;
    }
    let day = name.rsplit('/').next().and_then(|name| name.strip_suffix(".md")).unwrap_or_default();
    let at: Option<Timestamp> =
        entry.time.and_then(|time| format!("{day}T{time}:00Z").parse().ok());
    let kept: JsonObject = ANCHOR
        .iter()
        .filter_map(|word| Some(((*word).to_owned(), entry.named(word)?.into())))
        .collect();
    let id = hash(&[
        project.unwrap_or_default(),
        name,
        entry.time.unwrap_or_default(),
        entry.anchor.unwrap_or_default(),
        &entry.text,
    ]);
    let own = [
        ("sessionId", json!(entry.named("session").map(clean))),
        ("type", json!("task_context")),
        ("externalRef", json!(format!("memsearch:{name}"))),
        ("memsearch", json!(kept)),
    ];
    RecordWrite {
        id: RecordId::parse(&format!("memsearch-{id}")).ok(),
        metadata: Some(imported(project, at, &own)),
        created_at: at,
        ..RecordWrite::new(entry.text.to_string())
    }
}

/// What an entry has beside a text, in the form of the provider `memsearch`.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    id: RecordId,
    tag: Tag,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tag {
    /// A scope without its company, in the names of the contract.
    scope: JsonObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Timestamp>,
    /// JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
}

/// Whether an entry is of one agent or subject: an import has the scope of its arguments, which
/// others read, too.
fn is_private(note: &str) -> bool {
    let note: Value = serde_json::from_str(note).unwrap_or_default();
    ["agent_id", "subject_id", "namespace"]
        .iter()
        .any(|field| !note["tag"]["scope"][field].is_null())
}

/// The record that memhost wrote as an entry: an export of a host, or the provider `memsearch`.
fn ours(note: &str, text: &str, project: Option<&str>) -> Option<RecordWrite> {
    let Note { id, tag } = serde_json::from_str(note).ok()?;
    let mut metadata: Option<JsonObject> =
        tag.metadata.and_then(|metadata| serde_json::from_str(&metadata).ok());
    let named = metadata.as_ref().and_then(|metadata| metadata.get("projectId"));
    let before = match named {
        Some(named) => named.as_str(),
        None => tag.scope.get("project_id").and_then(Value::as_str),
    };
    // In another project it is another record, because the original may be there, too.
    let id = match before == project {
        true => id,
        false => {
            let hash = hash(&[project.unwrap_or_default(), id.as_str()]);
            RecordId::parse(&format!("memsearch-{hash}")).ok()?
        }
    };
    if let Some(named) = metadata.as_mut().and_then(|metadata| metadata.get_mut("projectId")) {
        *named = project.into();
    }
    Some(RecordWrite {
        id: Some(id),
        summary: tag.summary,
        metadata,
        created_at: tag.created_at,
        expires_at: tag.expires_at,
        ..RecordWrite::new(text)
    })
}

/// What an entry has beside a text, in the form of the provider `memsearch`.
fn note_of(record: &Snippet) -> String {
    let scope = record.scope.as_ref().map(|scope| {
        [
            ("agent_id", scope.agent_id.as_ref().map(AgentId::as_str)),
            ("project_id", scope.project_id.as_deref()),
            ("issue_id", scope.issue_id.as_deref()),
            ("run_id", scope.run_id.as_deref()),
            ("subject_id", scope.subject_id.as_deref()),
            ("session_key", scope.session_key.as_deref()),
            ("namespace", scope.namespace.as_deref()),
        ]
    });
    let scope = scope.into_iter().flatten();
    let scope = scope.filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    let tag = Tag {
        scope: scope.collect(),
        summary: record.summary.clone(),
        created_at: Some(time_of(record)),
        metadata: record.metadata.as_ref().map(|metadata| json!(metadata).to_string()),
        expires_at: record.expires_at,
    };
    json!(Note { id: record.handle.provider_record_id.clone(), tag }).to_string()
}

/// The anchor of a record: the one that it was imported with, or its session.
fn anchor_of(record: &Snippet) -> String {
    let kept = record.metadata.as_ref().and_then(|metadata| metadata.get("memsearch"));
    let scope = record.scope.as_ref();
    let session = word(record, "sessionId").or_else(|| scope?.session_key.as_deref());
    anchor(&ANCHOR.map(|part| {
        let kept = kept.and_then(|kept| kept.get(part)?.as_str());
        (part, kept.or(session.filter(|_| part == "session")))
    }))
}

/// When a record was made.
fn time_of(record: &Snippet) -> Timestamp {
    let named = word(record, "createdAt").and_then(|at| at.parse().ok());
    named.or(record.created_at).unwrap_or_else(Timestamp::now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_an_entry_and_a_record_again() {
        let stored: Snippet = serde_json::from_value(json!({
            "handle": {"providerKey": "p", "providerRecordId": "gate"}, "text": "### 10:00\nred",
            "summary": "a --> b",
            "scope": {"companyId": "acme", "agentId": "ada", "sessionKey": "s1"},
            "metadata": {"projectId": "p", "n": 1.5}, "createdAt": "2026-03-01T12:00:00Z",
        }))
        .unwrap();
        let note = note_of(&stored);
        assert!(!note.contains("acme") && note.contains(r#""agent_id":"ada""#), "{note}");
        assert_eq!(anchor_of(&stored), "session:s1");
        let journal = New { time: "12:00", anchor: "", note: &note, text: &stored.text }.encode();
        let entry = &entries(&journal)[0];
        let back = record("2026-03-01.md", entry, Some("p"));
        let id = |record: &RecordWrite| record.id.as_ref().unwrap().to_string();
        assert_eq!(
            (id(&back).as_str(), &back.text, &back.summary),
            ("gate", &stored.text, &stored.summary)
        );
        assert_eq!((&back.metadata, &back.created_at), (&stored.metadata, &stored.created_at));
        let elsewhere = record("2026-03-01.md", entry, Some("q"));
        assert_ne!(id(&elsewhere), "gate");
        assert_eq!(elsewhere.metadata.unwrap()["projectId"], "q");
    }

    #[test]
    fn an_entry_of_memsearch_is_a_record_of_its_time() {
        let journal =
            "### 12:00\n<!-- session:s/1 turn:t transcript:/t -->\n- Moved\n\n## Other\nnotes";
        let found = entries(journal);
        let moved = record("a/2026-03-01.md", &found[0], None);
        assert_eq!(
            (moved.text.as_str(), moved.created_at),
            ("- Moved", "2026-03-01T12:00:00Z".parse().ok())
        );
        let metadata = json!(moved.metadata);
        assert_eq!(metadata["externalRef"], "memsearch:a/2026-03-01.md");
        assert_eq!(
            metadata["memsearch"],
            json!({"session": "s/1", "turn": "t", "transcript": "/t"})
        );
        assert!(
            metadata["sessionId"].as_str().unwrap().starts_with("s-1-")
                && metadata.get("projectId").is_none()
        );
        let stored = json!({
            "handle": {"providerKey": "p", "providerRecordId": "moved"}, "text": moved.text,
            "metadata": metadata,
        });
        let stored: Snippet = serde_json::from_value(stored).unwrap();
        assert_eq!(anchor_of(&stored), "session:s/1 turn:t transcript:/t");
        let notes = record("notes.md", &found[1], None);
        assert_eq!((notes.text.as_str(), notes.created_at), ("## Other\nnotes", None));
        assert_ne!(record("2026-03-02.md", &found[0], None).id, moved.id);
    }
}
