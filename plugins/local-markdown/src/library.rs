//! Files and index together: every file in the directory is found, also one that a person put
//! there.

mod cache;
mod embed;
mod folders;
mod stored;
mod watch;
mod write;

use std::time::Duration;

use memhost_sdk::types::{Error, Snippet};
use memhost_sdk::{MAX_TEXT_BYTES, is_record_id};

use crate::config::{Config, Language};
use crate::files::{Files, Stamp, folder, tell};
use crate::hash::hash;
use crate::index::{Doc, DocId, Entry, Index, Pages, stored_size};
use crate::record::{Record, Shown, snippet};
use crate::text::Analyzer;
use cache::Cache;
use embed::Embedded;
use folders::Folders;
use watch::Watch;

/// The records of one binding.
pub(crate) struct Library {
    /// The index.
    pub(crate) index: Index,
    /// Turns words into terms.
    pub(crate) analyzer: Analyzer,
    files: Files,
    language: Language,
    pages: Pages,
    folders: Folders,
    embedded: Embedded,
    watch: Watch,
    /// Records as they were answered.
    kept: Cache,
    changes: u64,
    /// The latest time that was given to a record, in microseconds since 1970.
    latest: i64,
}

impl Library {
    /// Reads the stored index, or builds it from the files.
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        let files = Files::open(config.durable)?;
        let watch = match files.are_ours() {
            true => Watch::never(),
            false => Watch::new(Duration::from_millis(config.check_ms.into())),
        };
        let mut library = Self {
            index: Index::default(),
            analyzer: Analyzer::new(config.language),
            files,
            language: config.language,
            pages: Pages::default(),
            folders: Folders::default(),
            embedded: Embedded::open()?,
            watch,
            kept: Cache::default(),
            changes: 0,
            latest: 0,
        };
        let repaired = library.files.repair()?;
        library.load()?;
        if repaired {
            library.folders.doubt_all();
        }
        library.look_at_every_folder()?;
        library.save()?;
        Ok(library)
    }

    /// A number that changes with every change of the index.
    pub(crate) fn version(&self) -> u64 {
        self.changes
    }

    /// The record of an id.
    pub(crate) fn find(&self, id: &str) -> Option<(DocId, &Doc)> {
        let number = self.index.by_id(id)?;
        Some((number, self.index.doc(number)?))
    }

    /// A record, read from its file. If the file was changed meanwhile, the index is updated.
    pub(crate) fn read(&mut self, id: &str) -> Result<Option<Record>, Error> {
        let Some((number, path, stamp)) =
            self.find(id).map(|(number, doc)| (number, doc.path.to_string(), doc.stamp))
        else {
            return Ok(None);
        };
        let Some((content, found)) = self.files.read(&path)? else {
            self.drop_doc(number);
            return Ok(None);
        };
        let record = Self::decode(&path, &content);
        if found != stamp {
            self.insert(&path, found, &record)?;
        }
        Ok(self.find(id).is_some_and(|(_, doc)| *doc.path == path).then_some(record))
    }

    /// A record as it is answered, from memory if its file was checked lately.
    pub(crate) fn shown(
        &mut self,
        id: &str,
        company: &str,
    ) -> Result<Option<(DocId, &Shown)>, Error> {
        self.kept.enter(company);
        let known = self.find(id).map(|(number, _)| number);
        let is_current = match known {
            Some(number) => self.is_current(number)?,
            None => return Ok(None),
        };
        if !is_current {
            let Some(record) = self.read(id)? else { return Ok(None) };
            let Some((number, _)) = self.find(id) else { return Ok(None) };
            let shown = Shown::of(self.snippet(id, record, company));
            self.kept.put(number, shown, self.watch.now);
        }
        let Some((number, _)) = self.find(id) else { return Ok(None) };
        Ok(self.kept.get(number).map(|shown| (number, shown)))
    }

    /// A record as it is answered with its whole text.
    pub(crate) fn snippet(&self, id: &str, record: Record, company: &str) -> Snippet {
        let (snippet, problems) = snippet(id, record, company);
        if let Some((_, doc)) = self.find(id) {
            problems.iter().for_each(|problem| tell(&doc.path, problem));
        }
        snippet
    }

    /// The file of a record.
    pub(crate) fn path(&self, id: &str) -> String {
        self.find(id).map(|(_, doc)| doc.path.to_string()).unwrap_or_default()
    }

    /// A time for a new record: now, but later than all times before, so that times have the order
    /// of the writes.
    pub(crate) fn now(&mut self) -> jiff::Timestamp {
        let since =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        self.latest = micros.max(self.latest + 1);
        jiff::Timestamp::from_microsecond(self.latest).unwrap_or_default()
    }

    /// Reads the content of a file.
    fn decode(path: &str, content: &str) -> Record {
        let mut record = Record::decode(content);
        if let Some(unread) = &record.front.unread {
            let what = format!(
                "has front matter that cannot be read and is treated as text until it is repaired: \
                 line {}: {}",
                unread.line, unread.reason
            );
            tell(path, &what);
        }
        if record.text.len() > MAX_TEXT_BYTES {
            tell(path, "has more than 1 MiB of text, whose end is left out; split it");
            record.text.truncate(record.text.floor_char_boundary(MAX_TEXT_BYTES));
        }
        record
    }

    /// Updates the index from one file.
    fn reindex(&mut self, path: &str) -> Result<(), Error> {
        match self.files.read(path)? {
            Some((content, stamp)) => {
                let record = Self::decode(path, &content);
                self.insert(path, stamp, &record)
            }
            None => {
                if let Some(number) = self.index.by_path(path) {
                    self.drop_doc(number);
                }
                Ok(())
            }
        }
    }

    fn insert(&mut self, path: &str, stamp: Stamp, record: &Record) -> Result<(), Error> {
        let id = self.id_of(path, record)?;
        let entry = Entry::of(&self.analyzer, id, path.to_owned(), stamp, record);
        for before in [self.index.by_path(path), self.index.by_id(&entry.id)].into_iter().flatten()
        {
            self.drop_doc(before);
        }
        self.changes += 1;
        let size = stored_size(&entry);
        if let Some(number) = self.index.insert(entry) {
            self.pages.enter(number, size);
            self.folders.enter(folder(path), number);
        }
        Ok(())
    }

    /// The id in the file, or one made from its path. If two files have one id, it belongs to the
    /// file that the provider named.
    fn id_of(&mut self, path: &str, record: &Record) -> Result<String, Error> {
        let by_path = || {
            let id = format!("file:{path}");
            if is_record_id(&id) {
                id
            } else {
                format!("file:{:016x}", hash(b"path", path.as_bytes()))
            }
        };
        let Some(id) = record.front.id.clone().filter(|id| !id.is_empty()) else {
            return Ok(by_path());
        };
        if !is_record_id(&id) {
            let what = "has an id with a control character or of more than 512 bytes, which is \
                        left out; shorten it";
            tell(path, what);
            return Ok(by_path());
        }
        let Some((holder, held)) =
            self.find(&id).map(|(number, doc)| (number, doc.path.to_string()))
        else {
            return Ok(id);
        };
        if held == path {
            return Ok(id);
        }
        let own_name = format!("-{:016x}.md", hash(&0_u32.to_le_bytes(), id.as_bytes()));
        if self.files.stamp(&held)?.is_none() {
            // It was moved here.
            return Ok(id);
        }
        if path.ends_with(&own_name) && !held.ends_with(&own_name) {
            self.drop_doc(holder);
            self.folders.doubt(folder(&held));
            return Ok(id);
        }
        let what = format!(
            "has the id of {held} and is treated as a separate record; give it another id or none"
        );
        tell(path, &what);
        Ok(by_path())
    }

    fn drop_doc(&mut self, number: DocId) {
        if let Some(doc) = self.index.doc(number) {
            self.changes += 1;
            self.folders.leave(folder(&doc.path), number);
            self.pages.leave(number);
            self.embedded.drop(number, &doc.id);
            self.kept.drop(number);
            self.index.remove(number);
        }
    }
}
