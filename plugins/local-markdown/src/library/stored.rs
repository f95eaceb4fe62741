//! The index in storage: a head, and one value for each page and each folder.

use std::rc::Rc;

use memhost_sdk::storage::{self, Batch};
use memhost_sdk::types::Error;

use super::Library;
use super::folders::Folders;
use crate::config::Language;
use crate::files::{Stamp, folder};
use crate::index::{Entry, Index, Pages, decode, seal, stored_size, unseal};

/// Increased when the stored form or the making of terms changes. An index of another version is
/// rebuilt.
const VERSION: u32 = 6;
const HEAD: &[u8] = b"head";
const PAGE: &[u8] = b"page/";
const FOLDER: &[u8] = b"folder/";
/// About how many records a page has. The index makes room for so many.
const USUAL_IN_PAGE: usize = 4;
/// A batch is applied when it has this many bytes; one page more may still come in.
const BATCH_BYTES: usize = 4 << 20;
const BATCH_WRITES: usize = 1_000;

#[derive(serde::Serialize, serde::Deserialize)]
struct Head {
    version: u32,
    language: Language,
    pages: u32,
}

impl Library {
    /// Reads the stored index. If it is missing, damaged or of another version, it is rebuilt from
    /// the files.
    pub(super) fn load(&mut self) -> Result<(), Error> {
        match self.load_pages()? {
            Ok(()) => return Ok(()),
            Err(reason) => log::info!("the search index is rebuilt from the files: {reason}"),
        }
        (self.index, self.pages, self.folders) =
            (Index::default(), Pages::default(), Folders::default());
        let mut batch = Batch::new();
        for entry in [HEAD, PAGE, FOLDER].into_iter().flat_map(storage::scan) {
            batch.delete_raw(entry?.0);
            if batch.len() >= BATCH_WRITES {
                std::mem::take(&mut batch).apply()?;
            }
        }
        batch.apply()?;
        Ok(())
    }

    /// The inner error says why the stored index cannot be used.
    fn load_pages(&mut self) -> Result<Result<(), String>, Error> {
        let Some(head) = storage::get(HEAD)? else {
            return Ok(Err("none is stored yet".to_owned()));
        };
        let Some(head) = unseal(&head).and_then(|body| postcard::from_bytes::<Head>(body).ok())
        else {
            return Ok(Err("its head is damaged".to_owned()));
        };
        if (head.version, head.language) != (VERSION, self.language) {
            return Ok(Err("the stored one is of another version or language".to_owned()));
        }
        self.index = Index::expecting(head.pages as usize * USUAL_IN_PAGE);
        let mut number = 0_u32;
        for entry in storage::scan(PAGE) {
            let (key, page) = entry?;
            let entries = decode(page).filter(|_| key == page_key(number));
            let Some(entries) = entries else {
                return Ok(Err(format!("page {number} is missing or damaged")));
            };
            self.pages.reserve(number);
            entries.into_iter().for_each(|entry| self.restore(entry, number));
            number += 1;
        }
        if number < head.pages {
            return Ok(Err(format!("{number} of its {} pages are there", head.pages)));
        }
        for entry in storage::scan(FOLDER) {
            let (key, stamp) = entry?;
            let path = std::str::from_utf8(&key[FOLDER.len()..]).ok();
            // If a state cannot be read, the folder is listed again.
            if let (Some(path), Ok(stamp)) = (path, postcard::from_bytes::<Stamp>(&stamp)) {
                self.folders.restore(path, stamp);
            }
        }
        Ok(Ok(()))
    }

    fn restore(&mut self, entry: Entry, page: u32) {
        // After a crash between two batches a record may be in two pages.
        for before in
            [self.index.by_path(&entry.path), self.index.by_id(&entry.id)].into_iter().flatten()
        {
            self.drop_doc(before);
        }
        let (size, path) = (stored_size(&entry), Rc::clone(&entry.path));
        if let Some(doc) = self.index.add(entry) {
            self.pages.enter_page(doc, size, page);
            self.folders.enter(folder(&path), doc);
        }
    }

    /// Stores the changes. If storage fails, everything counts as changed, so that the next call
    /// tries again.
    pub(crate) fn save(&mut self) -> Result<(), Error> {
        self.store_changes().inspect_err(|_| {
            self.pages.mark_all();
            self.folders.mark_all();
        })
    }

    /// Folders come last: a folder that counts as listed has all its records in the pages.
    fn store_changes(&mut self) -> Result<(), Error> {
        let folders = self.folders.take_dirty();
        if !self.pages.is_dirty() && folders.is_empty() && !self.embedded.has_gone() {
            return Ok(());
        }
        let mut batch = Batch::new();
        for key in self.embedded.gone() {
            batch.delete_raw(key);
            if batch.len() >= BATCH_WRITES {
                std::mem::take(&mut batch).apply()?;
            }
        }
        let mut bytes = 0;
        while let Some((number, page)) = self.pages.next_dirty(&self.index) {
            let page = page.map_err(|error| {
                Error::internal(format!("an index page cannot be written: {error}"))
            })?;
            bytes += page.len();
            batch.put_raw(page_key(number), page);
            if bytes > BATCH_BYTES || batch.len() >= BATCH_WRITES {
                std::mem::take(&mut batch).apply()?;
                bytes = 0;
            }
        }
        for (path, stamp) in folders {
            let key = [FOLDER, path.as_bytes()].concat();
            match stamp.map(|stamp| postcard::to_allocvec(&stamp)) {
                Some(Ok(stamp)) => batch.put_raw(key, stamp),
                _ => batch.delete_raw(key),
            }
            if batch.len() >= BATCH_WRITES {
                std::mem::take(&mut batch).apply()?;
            }
        }
        let head = Head { version: VERSION, language: self.language, pages: self.pages.len() };
        let head = postcard::to_allocvec(&head).map_err(|error| {
            Error::internal(format!("the index's head cannot be written: {error}"))
        })?;
        batch.put_raw(HEAD.to_vec(), seal(&head));
        batch.apply()?;
        self.embedded.left();
        Ok(())
    }
}

fn page_key(number: u32) -> Vec<u8> {
    [PAGE, &number.to_be_bytes()].concat()
}
