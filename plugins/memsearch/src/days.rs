//! The journals in the binding's directory, and the records in them.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{Error, ErrorKind, Result, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::time::SystemTime;

use memhost_journal::{Entry, entries};
use memhost_sdk::remote::{Record, Tag, utc};
use memhost_sdk::warn_once;
use memhost_sdk::words::Words;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use siphasher::sip::SipHasher13;

/// The ending of a journal's name.
const END: &str = ".md";

/// The state of a file that is read next time, also if it is gone by then.
const UNREAD: (SystemTime, u64) = (SystemTime::UNIX_EPOCH, u64::MAX);

/// The note that the provider writes beside a text.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Note {
    id: String,
    /// Without the company, which is the binding's: a directory can be moved.
    tag: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
}

/// The note of a record, as JSON.
pub(crate) fn note(id: &str, tag: &Tag, updated_at: Option<String>) -> String {
    let mut tag = tag.compact();
    if let Some(scope) = tag.get_mut("scope").and_then(Value::as_object_mut) {
        scope.remove("company_id");
    }
    json!(Note { id: id.to_owned(), tag, updated_at }).to_string()
}

/// A record, and where it is.
#[derive(Debug)]
pub(crate) struct Found {
    /// The file's name without its end: a date, of a journal.
    pub(crate) day: String,
    /// Where in the file.
    pub(crate) range: Range<usize>,
    pub(crate) record: Record,
    pub(crate) words: Words,
}

/// The files as they were read last.
#[derive(Debug, Default)]
struct Read {
    stamps: BTreeMap<String, (SystemTime, u64)>,
    found: Vec<Found>,
}

/// The journals of a binding.
#[derive(Debug)]
pub(crate) struct Days {
    root: PathBuf,
    read: RefCell<Read>,
}

impl Days {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, read: RefCell::default() }
    }

    /// All records, by file and in the order of the file. What changed since the last time is read.
    pub(crate) fn all(&self, company: &str) -> Result<Ref<'_, Vec<Found>>> {
        let mut stamps = BTreeMap::new();
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let name = entry.file_name();
            // Hidden files and other folders are none of ours, as for memsearch.
            let Some(day) = name
                .to_str()
                .and_then(|name| name.strip_suffix(END))
                .filter(|day| !day.starts_with('.'))
            else {
                continue;
            };
            // Gone since it was listed.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() {
                stamps.insert(day.to_owned(), (metadata.modified()?, metadata.len()));
            }
        }
        let mut read = self.read.borrow_mut();
        if read.stamps != stamps {
            let Read { stamps: before, found } = std::mem::take(&mut *read);
            let mut kept: BTreeMap<String, Vec<Found>> = BTreeMap::new();
            for found in found {
                kept.entry(found.day.clone()).or_default().push(found);
            }
            let mut all = Vec::new();
            for (day, stamp) in &stamps {
                match kept.remove(day) {
                    Some(same) if before.get(day) == Some(stamp) => all.extend(same),
                    _ => all.extend(
                        self.readable(day)?
                            .iter()
                            .flat_map(|content| records(day, content, company)),
                    ),
                }
            }
            // A copied entry is the same record. Its file is read again, for when the first one is
            // gone.
            let mut seen = HashSet::new();
            all.retain(|found| {
                let is_first = seen.insert(found.record.id.clone());
                if !is_first {
                    stamps.insert(found.day.clone(), UNREAD);
                }
                is_first
            });
            *read = Read { stamps, found: all };
        }
        drop(read);
        Ok(Ref::map(self.read.borrow(), |read| &read.found))
    }

    /// The content of a file; none if it is gone.
    pub(crate) fn content(&self, day: &str) -> Result<Option<String>> {
        match fs::read_to_string(self.root.join(format!("{day}{END}"))) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let day = day.escape_debug();
                Err(Error::new(error.kind(), format!("{day}{END}: {error}")))
            }
        }
    }

    /// The same, and none for what is not UTF-8 or may not be read, and so no record.
    fn readable(&self, day: &str) -> Result<Option<String>> {
        match self.content(day) {
            Err(error)
                if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::PermissionDenied) =>
            {
                let right = "save it as UTF-8 and make it readable for the host";
                warn_once(&format!("{error}; it is left out until then: {right}"));
                Ok(None)
            }
            content => content,
        }
    }

    /// Replaces a file, or removes it where no entry is left. A crash leaves the old one or the new
    /// one.
    pub(crate) fn write(&self, day: &str, content: &str) -> Result<()> {
        self.read.borrow_mut().stamps.insert(day.to_owned(), UNREAD);
        let (file, new) =
            (self.root.join(format!("{day}{END}")), self.root.join(format!(".{day}.new")));
        if entries(content).is_empty() {
            fs::remove_file(file)?;
        } else {
            let mut written = File::create(&new)?;
            written.write_all(content.as_bytes())?;
            written.sync_all()?;
            fs::rename(new, file)?;
        }
        // Where a folder cannot be flushed by itself, the file system orders its renames.
        let _ = File::open(&self.root).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

impl Found {
    /// Where the record is in what its file has now; none if it is not there any more.
    pub(crate) fn range_in(&self, content: &str, company: &str) -> Option<Range<usize>> {
        records(&self.day, content, company)
            .find(|found| found.record.id == self.record.id)
            .map(|found| found.range)
    }
}

/// The records of a file.
fn records<'a>(
    day: &'a str,
    content: &'a str,
    company: &'a str,
) -> impl Iterator<Item = Found> + 'a {
    entries(content).into_iter().map(move |entry| {
        let record = record(day, &entry, company);
        Found { day: day.to_owned(), range: entry.range, words: Words::of(&record.text), record }
    })
}

fn record(day: &str, entry: &Entry<'_>, company: &str) -> Record {
    let at = entry.time.map(|time| format!("{day}T{time}:00Z")).and_then(|at| utc(&at));
    let text = entry.text.clone().into_owned();
    if let Some((Note { id, updated_at, .. }, mut tag)) =
        entry.note.and_then(|note| read(note, company))
    {
        tag.created_at = tag.created_at.or(at);
        let updated_at = updated_at.or_else(|| tag.created_at.clone());
        return Record { key: Some(id.clone()), id, text, tag, updated_at, ..Record::default() };
    }
    let anchor: Map<_, _> = ["session", "turn", "transcript"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), entry.named(name)?.into())))
        .collect();
    let metadata = (!anchor.is_empty()).then(|| json!({"memsearch": anchor}).to_string());
    // As with memsearch's own ids: an edited text is another record.
    let told =
        format!("{day}\n{}\n{}\n{text}", entry.time.unwrap_or(""), entry.anchor.unwrap_or(""));
    let mut hasher = SipHasher13::new();
    told.hash(&mut hasher);
    let id = format!("file-{:016x}", hasher.finish());
    let tag = Tag { metadata, created_at: at.clone(), ..Tag::default() };
    Record { id, text, tag, updated_at: at, ..Record::default() }
}

/// A note and its tag. `None` if a person broke it.
fn read(note: &str, company: &str) -> Option<(Note, Tag)> {
    let mut note: Note = serde_json::from_str(note).ok()?;
    let mut tag = note.tag.take();
    if let Some(scope) = tag.get_mut("scope").and_then(Value::as_object_mut) {
        scope.insert("company_id".to_owned(), company.into());
    }
    Some((note, serde_json::from_value(tag).ok()?))
}
