//! Files and index together: what is in the directory is what is found, whoever put it there.

use memhost_sdk::storage::{self, Batch};
use memhost_sdk::types::Error;

use crate::config::{Config, Language};
use crate::files::{Files, Pending, Stamp, folder};
use crate::index::{Doc, Index};
use crate::record::Record;
use crate::words::Analyzer;

/// Raised when the stored form changes: an index of another version is made anew.
const VERSION: u32 = 1;
const HEAD: &[u8] = b"index/head";
const CHUNK: usize = 1 << 20;
/// Files whose content was replaced since the index was stored: their names say nothing of it.
const REPLACED: &str = "replaced";
/// How many files are looked at in each call for changes that were made by hand.
const LOOK_AT: usize = 64;

/// What the stored index is, before it is read.
#[derive(serde::Serialize, serde::Deserialize, PartialEq)]
struct Head {
    version: u32,
    language: Language,
    generation: u64,
    bytes: usize,
    folders: Vec<(String, Stamp)>,
}

/// The records of one binding.
pub(crate) struct Library {
    /// The index.
    pub(crate) index: Index,
    /// Turns words into terms.
    pub(crate) analyzer: Analyzer,
    files: Files,
    language: Language,
    generation: u64,
    /// The folders as they were when they were last listed; the root has an empty name.
    folders: Vec<(String, Stamp)>,
    replaced: storage::Collection<()>,
    /// Changes since the index was stored.
    unsaved: usize,
    /// Where the look for changes by hand goes on.
    looked_at: Option<String>,
}

impl Library {
    /// Reads the stored index, or makes it from the files.
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        let files = Files::new(memhost_sdk::directory(), config.durable);
        let mut library = Self {
            index: Index::default(),
            analyzer: Analyzer::new(config.language),
            files,
            language: config.language,
            generation: 0,
            folders: Vec::new(),
            replaced: storage::Collection::new(REPLACED),
            unsaved: 0,
            looked_at: None,
        };
        match library.load() {
            Ok(true) => {}
            Ok(false) => log::info!("there is no index yet; it is made from the files"),
            Err(reason) => log::warn!("the stored index is not used: {reason}; it is made from the files"),
        }
        let replaced: Vec<String> = library
            .replaced
            .iter("")
            .filter_map(|entry| Some(String::from_utf8_lossy(&entry.ok()?.0).into_owned()))
            .collect();
        for path in replaced {
            library.reindex(&path)?;
        }
        library.list_changed(true)?;
        library.save_if(1)?;
        Ok(library)
    }

    fn load(&mut self) -> Result<bool, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let Some(head) = storage::get(HEAD).map_err(|error| text(&error))? else { return Ok(false) };
        let head: Head = postcard::from_bytes(&head).map_err(|error| text(&error))?;
        self.generation = head.generation;
        if (head.version, head.language) != (VERSION, self.language) {
            return Err("it is of another version or language".to_owned());
        }
        let mut bytes = Vec::with_capacity(head.bytes);
        for entry in storage::scan(chunk_prefix(head.generation)) {
            bytes.extend_from_slice(&entry.map_err(|error| text(&error))?.1);
        }
        if bytes.len() != head.bytes {
            return Err(format!("{} of its {} bytes are there", bytes.len(), head.bytes));
        }
        let index: Index = postcard::from_bytes(&bytes).map_err(|error| text(&error))?;
        self.index = index.restore();
        self.folders = head.folders;
        Ok(true)
    }

    /// Stores the index where at least `changes` were made since it was stored.
    pub(crate) fn save_if(&mut self, changes: usize) -> Result<(), Error> {
        if self.unsaved < changes.max(1) {
            return Ok(());
        }
        self.index.compact();
        let bytes = postcard::to_allocvec(&self.index)
            .map_err(|error| Error::internal(format!("the index cannot be written: {error}")))?;
        let before = self.generation;
        self.generation += 1;
        for (number, chunk) in bytes.chunks(CHUNK).enumerate() {
            let mut batch = Batch::new();
            batch
                .put_raw([chunk_prefix(self.generation), format!("{number:06}").into_bytes()].concat(), chunk.to_vec());
            batch.apply()?;
        }
        let head = Head {
            version: VERSION,
            language: self.language,
            generation: self.generation,
            bytes: bytes.len(),
            folders: self.folders.clone(),
        };
        let head = postcard::to_allocvec(&head)
            .map_err(|error| Error::internal(format!("the index cannot be written: {error}")))?;
        // The head names the new chunks and the old ones go, in one step: a crash leaves the one index or the other.
        let mut batch = Batch::new();
        batch.put_raw(HEAD.to_vec(), head);
        for entry in storage::scan(chunk_prefix(before)) {
            batch.delete_raw(entry?.0);
        }
        for entry in self.replaced.iter("") {
            batch.delete(&self.replaced, entry?.0);
        }
        batch.apply()?;
        self.unsaved = 0;
        Ok(())
    }

    /// How many changes may wait before the index is stored again: storing costs as much as the index is large.
    pub(crate) fn patience(&self) -> usize {
        256.max(self.index.len() / 16)
    }

    /// Finds what was changed by hand: new and vanished files at once, edited ones at once in a small directory and
    /// little by little in a large one.
    pub(crate) fn refresh(&mut self) -> Result<(), Error> {
        self.list_changed(false)?;
        let mut next: Vec<(String, String, Stamp)> = self.slice(self.looked_at.as_deref());
        if next.len() < LOOK_AT && self.looked_at.is_some() {
            next.extend(self.slice(None).into_iter().take(LOOK_AT - next.len()));
        }
        self.looked_at = next.last().map(|(id, ..)| id.clone());
        for (_, path, stamp) in next {
            if self.files.stamp(&path).ok() != Some(stamp) {
                self.reindex(&path)?;
            }
        }
        Ok(())
    }

    fn slice(&self, behind: Option<&str>) -> Vec<(String, String, Stamp)> {
        let docs = self.index.behind(behind).take(LOOK_AT);
        docs.map(|doc| (doc.id.clone(), doc.path.clone(), doc.stamp)).collect()
    }

    /// Lists the folders that changed since they were listed.
    fn list_changed(&mut self, is_opening: bool) -> Result<(), Error> {
        let mut present = self.files.folders()?;
        present.push((String::new(), self.files.stamp("")?));
        if present == self.folders {
            return Ok(());
        }
        for (name, stamp) in &present {
            let known = self.folders.iter().any(|(known, listed)| known == name && listed == stamp);
            // Where the index was lost the folders are listed whatever they were.
            if !known || (is_opening && self.index.len() == 0) {
                self.list(name)?;
            }
        }
        let gone: Vec<String> = self
            .index
            .docs()
            .map(|(_, doc)| doc.path.clone())
            .filter(|path| !present.iter().any(|(name, _)| name == folder(path)))
            .collect();
        for path in gone {
            self.drop_path(&path);
        }
        self.folders = present;
        Ok(())
    }

    fn list(&mut self, name: &str) -> Result<(), Error> {
        let present = self.files.list(name)?;
        for path in &present {
            if self.index.by_path(path).is_none() {
                self.reindex(path)?;
            }
        }
        let present: std::collections::HashSet<String> = present.into_iter().collect();
        let gone: Vec<String> = self
            .index
            .docs()
            .filter(|(_, doc)| folder(&doc.path) == name && !present.contains(&doc.path))
            .map(|(_, doc)| doc.path.clone())
            .collect();
        gone.iter().for_each(|path| self.drop_path(path));
        Ok(())
    }

    fn drop_path(&mut self, path: &str) {
        self.index.remove_path(path);
        self.unsaved += 1;
    }

    /// Brings the index up to one file, and answers its record.
    pub(crate) fn reindex(&mut self, path: &str) -> Result<Option<Record>, Error> {
        self.unsaved += 1;
        let Some((content, stamp)) = self.files.read(path)? else {
            self.index.remove_path(path);
            return Ok(None);
        };
        let record = Record::decode(&content);
        self.insert(path, stamp, &record);
        Ok(Some(record))
    }

    fn insert(&mut self, path: &str, stamp: Stamp, record: &Record) {
        let id = record.front.id.clone().filter(|id| !id.is_empty() && id.len() <= 512);
        // A copy of a file must not take its original's place.
        let taken = |id: &str| self.index.by_id(id).is_some_and(|doc| doc.path != path);
        let id = id.filter(|id| !taken(id)).unwrap_or_else(|| format!("file:{path}"));
        self.index.insert(&self.analyzer, id, path.to_owned(), stamp, record);
    }

    /// A record as its file now is. The index follows where the file was changed meanwhile.
    pub(crate) fn read(&mut self, id: &str) -> Result<Option<Record>, Error> {
        let Some((path, stamp)) = self.index.by_id(id).map(|doc| (doc.path.clone(), doc.stamp)) else {
            return Ok(None);
        };
        let Some((content, found)) = self.files.read(&path)? else {
            self.drop_path(&path);
            return Ok(None);
        };
        let record = Record::decode(&content);
        if found != stamp {
            self.unsaved += 1;
            self.insert(&path, found, &record);
            if self.index.by_id(id).is_none() {
                return Ok(None);
            }
        }
        Ok(Some(record))
    }

    /// Writes records, all of them or none, and indexes them. A crash in the middle leaves whole records only, and the
    /// operation is shown as interrupted.
    pub(crate) fn write(&mut self, records: Vec<(String, Record)>) -> Result<(), Error> {
        let mut pending: Vec<(Pending, Record, Option<String>)> = Vec::new();
        let prepared = records.into_iter().try_for_each(|(id, record)| {
            let present = self.index.by_id(&id).map(|doc| doc.path.clone());
            let before = match &present {
                Some(path) => self.files.read(path)?.map(|(content, _)| content),
                None => None,
            };
            let path = present.unwrap_or_else(|| {
                let created = record.front.created_at.clone().unwrap_or_default();
                let more =
                    |folder: &str| pending.iter().filter(|(p, ..)| crate::files::folder(&p.path) == folder).count();
                self.files.name(&created, &record.text, &id, &|folder| self.index.folder_size(folder) + more(folder))
            });
            if before.is_some() {
                self.replaced.put(&path, &())?;
            }
            pending.push((self.files.prepare(&path, &record.encode())?, record, before));
            Ok::<(), Error>(())
        });
        if let Err(error) = prepared {
            pending.iter().for_each(|(pending, ..)| self.files.discard(pending));
            return Err(error);
        }
        let mut published = Vec::new();
        for (number, (file, ..)) in pending.iter().enumerate() {
            match self.files.publish(file) {
                Ok(stamp) => published.push(stamp),
                Err(error) => {
                    self.take_back(&pending[..number]);
                    pending[number..].iter().for_each(|(pending, ..)| self.files.discard(pending));
                    return Err(error.into());
                }
            }
        }
        for ((file, record, _), stamp) in pending.iter().zip(published) {
            self.insert(&file.path, stamp, record);
            self.unsaved += 1;
            self.own_change(&file.path);
        }
        self.save_if(self.patience())
    }

    fn take_back(&mut self, published: &[(Pending, Record, Option<String>)]) {
        for (file, _, before) in published {
            let undone = match before {
                Some(content) => {
                    self.files.prepare(&file.path, content).and_then(|file| self.files.publish(&file).map(drop))
                }
                None => self.files.remove(&file.path),
            };
            if let Err(error) = undone {
                log::error!("{} could not be taken back: {error}", file.path);
            }
        }
    }

    /// A change of ours is no reason to list the folder again.
    fn own_change(&mut self, path: &str) {
        for name in [folder(path), ""] {
            let Ok(stamp) = self.files.stamp(name) else { continue };
            match self.folders.iter_mut().find(|(known, _)| known == name) {
                Some((_, listed)) => *listed = stamp,
                None => {
                    self.folders.push((name.to_owned(), stamp));
                    self.folders.sort_by(|(a, _), (b, _)| a.is_empty().cmp(&b.is_empty()).then_with(|| a.cmp(b)));
                }
            }
        }
    }

    /// Removes files and every word of them, here and in what is stored.
    pub(crate) fn remove(&mut self, paths: &[String]) -> Result<(), Error> {
        for path in paths {
            self.files.remove(path)?;
            self.drop_path(path);
            self.own_change(path);
        }
        // The stored index knows the words until it is stored again.
        if paths.is_empty() { Ok(()) } else { self.save_if(1) }
    }

    /// The document of a record.
    pub(crate) fn doc(&self, id: &str) -> Option<&Doc> {
        self.index.by_id(id)
    }
}

fn chunk_prefix(generation: u64) -> Vec<u8> {
    format!("index/{generation:020}/").into_bytes()
}
