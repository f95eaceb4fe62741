//! Imports and exports Markdown journals of memsearch. `memhost-journal` has their form.

mod files;

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use memhost_journal::{Entry, Journal, New, anchor, entries};
use memhost_types::counted;
use serde_json::{Map, Value, json};

use super::records::{Import, Report, all, imported, is_of};
use super::row::{clean, hash};
use super::{JournalsArgs, JournalsImportArgs};
use crate::CliError;

/// Entries that are written together.
const BATCH: usize = 200;
/// Members of an anchor, and of the metadata `memsearch`, in the order in which memsearch writes
/// them.
const ANCHOR: [&str; 3] = ["session", "turn", "transcript"];

pub(super) async fn import(args: JournalsImportArgs) -> Result<(), CliError> {
    let JournalsImportArgs { journals: args, replace } = args;
    let session = args.scope.open().await?;
    let files = files::markdown(&args.directory)?;
    let project = args.scope.project.as_deref();
    let mut import = Import::new(&session, &args.scope, "memsearch", "memsearch");
    let (mut count, mut private, mut batch) = (0, 0, Vec::new());
    let (mut named, mut taken) = (Named::default(), None);
    for (name, file) in &files {
        let content = files::read(file)?;
        for entry in entries(&content) {
            count += 1;
            if entry.note.is_some_and(is_private) {
                private += 1;
                continue;
            }
            let mut record = record(name, &entry, project);
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
    let Report { imported, unchanged } = import.report;
    let (unchanged, apart) = (unchanged + named.unchanged, named.apart);
    let answer = json!({"files": files.len(), "entries": count, "imported": imported, "unchanged": unchanged,
        "private": private, "apart": apart});
    session.show(&answer, "", |_| {
        let left_out = match private {
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
            "{entries} of {files}: {imported} imported, {unchanged} \
                 unchanged{left_out}{others}"
        )
    })
}

pub(super) async fn export(args: JournalsArgs) -> Result<(), CliError> {
    let session = args.scope.open().await?;
    let new = files::NewDirectory::at(&args.directory)?;
    let mut records = all(&session, &args.scope).await?;
    if let Some(project) = &args.scope.project {
        records.retain(|record| is_of(record, project));
    }
    let mut by_time: Vec<(Timestamp, &Value)> =
        records.iter().map(|record| (time_of(record), record)).collect();
    by_time.sort_by_key(|(at, _)| *at);
    let mut journals: BTreeMap<String, Journal> = BTreeMap::new();
    for (at, record) in by_time {
        let day = at.strftime("%Y-%m-%d").to_string();
        let (time, anchor, note) =
            (at.strftime("%H:%M").to_string(), anchor_of(record), note_of(record));
        let text = record["text"].as_str().unwrap_or_default();
        let entry = New { time: &time, anchor: &anchor, note: &note, text };
        journals.entry(day.clone()).or_default().add(&entry, &day);
    }
    let journals = journals.into_iter().map(|(day, journal)| (day, journal.into_text())).collect();
    let files = new.write(&journals)?;
    let answer = json!({"records": records.len(), "files": files});
    session.show(&answer, "", |_| {
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
        record: &mut Value,
        content: Value,
        taken: &mut HashMap<String, Value>,
    ) -> bool {
        let id = record["id"].as_str().unwrap_or_default().to_owned();
        let id = match taken.get(&id) {
            Some(present) if *present == content => {
                self.unchanged += 1;
                return true;
            }
            Some(_) => {
                self.apart += 1;
                format!("memsearch-{}", hash(&["apart", &id, &content.to_string()]))
            }
            None => id,
        };
        record["id"] = id.as_str().into();
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
fn record(name: &str, entry: &Entry<'_>, project: Option<&str>) -> Value {
    if let Some(record) = entry.note.and_then(|note| ours(note, &entry.text, project)) {
        return record;
    }
    let day = name.rsplit('/').next().and_then(|name| name.strip_suffix(".md")).unwrap_or_default();
    let at: Option<Timestamp> =
        entry.time.and_then(|time| format!("{day}T{time}:00Z").parse().ok());
    let at = at.map(|at| at.to_string());
    let kept: Map<_, _> = ANCHOR
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
    let own = json!({
        "sessionId": entry.named("session").map(clean),
        "type": "task_context",
        "externalRef": format!("memsearch:{name}"),
        "memsearch": kept,
    });
    let metadata = imported(project, at.as_deref(), own);
    json!({"id": format!("memsearch-{id}"), "text": entry.text, "metadata": metadata, "createdAt": at})
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
fn ours(note: &str, text: &str, project: Option<&str>) -> Option<Value> {
    let note: Value = serde_json::from_str(note).ok()?;
    let (id, tag) = (note["id"].as_str()?, &note["tag"]);
    let mut metadata: Option<Map<String, Value>> =
        tag["metadata"].as_str().and_then(|metadata| serde_json::from_str(metadata).ok());
    let before = metadata
        .as_ref()
        .and_then(|metadata| metadata.get("projectId"))
        .or_else(|| tag["scope"].get("project_id"));
    // In another project it is another record, because the original may be there, too.
    let id = match before.and_then(Value::as_str) == project {
        true => id.to_owned(),
        false => format!("memsearch-{}", hash(&[project.unwrap_or_default(), id])),
    };
    if let Some(named) = metadata.as_mut().and_then(|metadata| metadata.get_mut("projectId")) {
        *named = project.into();
    }
    Some(
        json!({"id": id, "text": text, "summary": tag["summary"], "metadata": metadata, "createdAt": tag["createdAt"],
        "expiresAt": tag["expiresAt"]}),
    )
}

/// What an entry has beside a text, in the form of the provider `memsearch`.
fn note_of(record: &Value) -> String {
    let snake = |name: &str| -> String {
        name.chars()
            .flat_map(|c| c.is_uppercase().then_some('_').into_iter().chain(c.to_lowercase()))
            .collect()
    };
    let scope =
        record["scope"].as_object().into_iter().flatten().filter(|(name, _)| *name != "companyId");
    let scope: Map<String, Value> =
        scope.map(|(name, value)| (snake(name), value.clone())).collect();
    let mut tag = json!({"scope": scope, "summary": record["summary"], "createdAt": time_of(record).to_string(),
        "metadata": record["metadata"].as_object().map(|metadata| json!(metadata).to_string()),
        "expiresAt": record["expiresAt"]});
    if let Some(tag) = tag.as_object_mut() {
        tag.retain(|_, value| !value.is_null());
    }
    json!({"id": record["handle"]["providerRecordId"], "tag": tag}).to_string()
}

/// The anchor of a record: the one that it was imported with, or its session.
fn anchor_of(record: &Value) -> String {
    let kept = &record["metadata"]["memsearch"];
    let session =
        record["metadata"]["sessionId"].as_str().or_else(|| record["scope"]["sessionKey"].as_str());
    anchor(
        &ANCHOR.map(|word| (word, kept[word].as_str().or(session.filter(|_| word == "session")))),
    )
}

/// When a record was made.
fn time_of(record: &Value) -> Timestamp {
    let times = [&record["metadata"]["createdAt"], &record["createdAt"]];
    times.into_iter().find_map(|at| at.as_str()?.parse().ok()).unwrap_or_else(Timestamp::now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_an_entry_and_a_record_again() {
        let stored = json!({"handle": {"providerRecordId": "gate"}, "text": "### \
            10:00\nred", "summary": "a --> b",
            "scope": {"companyId": "acme", "agentId": "ada", "sessionKey": "s1"},
            "metadata": {"projectId": "p", "n": 1.5}, "createdAt": "2026-03-01T12:00:00Z"});
        let note = note_of(&stored);
        assert!(!note.contains("acme") && note.contains(r#""agent_id":"ada""#), "{note}");
        assert_eq!(anchor_of(&stored), "session:s1");
        let text = stored["text"].as_str().unwrap();
        let journal = New { time: "12:00", anchor: "", note: &note, text }.encode();
        let entry = &entries(&journal)[0];
        let back = record("2026-03-01.md", entry, Some("p"));
        assert_eq!(
            (&back["id"], &back["text"], &back["summary"]),
            (&json!("gate"), &stored["text"], &stored["summary"])
        );
        assert_eq!(
            (&back["metadata"], &back["createdAt"]),
            (&stored["metadata"], &stored["createdAt"])
        );
        let elsewhere = record("2026-03-01.md", entry, Some("q"));
        assert_eq!(elsewhere["metadata"]["projectId"], "q");
        assert_ne!(elsewhere["id"], "gate");
    }

    #[test]
    fn an_entry_of_memsearch_is_a_record_of_its_time() {
        let journal =
            "### 12:00\n<!-- session:s/1 turn:t transcript:/t -->\n- Moved\n\n## Other\nnotes";
        let found = entries(journal);
        let moved = record("a/2026-03-01.md", &found[0], None);
        assert_eq!(
            (&moved["text"], &moved["createdAt"]),
            (&json!("- Moved"), &json!("2026-03-01T12:00:00Z"))
        );
        let metadata = &moved["metadata"];
        assert_eq!(metadata["externalRef"], "memsearch:a/2026-03-01.md");
        assert_eq!(
            metadata["memsearch"],
            json!({"session": "s/1", "turn": "t", "transcript": "/t"})
        );
        assert!(
            metadata["sessionId"].as_str().unwrap().starts_with("s-1-")
                && metadata.get("projectId").is_none()
        );
        assert_eq!(anchor_of(&moved), "session:s/1 turn:t transcript:/t");
        let notes = record("notes.md", &found[1], None);
        assert_eq!(
            (&notes["text"], &notes["createdAt"]),
            (&json!("## Other\nnotes"), &Value::Null)
        );
        assert_ne!(record("2026-03-02.md", &found[0], None)["id"], moved["id"]);
    }
}
