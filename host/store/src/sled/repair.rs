//! What can be saved of a store that does not open, or whose pages cannot all be read.
//!
//! sled rebuilds itself from its log when it opens. Three things keep it from that: a damaged
//! snapshot, which only saves reading the whole log; a file of a long value that was cut off; and a
//! damaged log. The first two are left out, on a copy. What can be read then is written into a new
//! store. The damaged one stays beside it.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use sled::{Batch, Db};

use super::tree::Tree;
use super::trees::Trees;
use super::{backup, disk};
use crate::StoreError;
use crate::directory;
use crate::error::failed;

/// Entries that are written at once.
const BATCH: usize = 1_024;
/// Errors of one tree after which the rest of it is given up.
const MOST_ERRORS: usize = 100;

/// The result of a repair.
#[derive(Debug, Clone, Default)]
pub struct Repaired {
    /// Where the damaged store is kept.
    pub damaged: PathBuf,
    /// Records that were saved, by table.
    pub saved: BTreeMap<String, u64>,
    /// The losses, one line each: rows left out or unreadable.
    pub lost: Vec<String>,
}

/// Replaces the store of a data directory by one with everything that can be read of it.
pub(super) fn repair(data_dir: &Path) -> Result<Repaired, StoreError> {
    let io = |what: &Path, error: &std::io::Error| {
        failed("repairing the store")(format!("{}: {error}", what.display()))
    };
    let _lock = directory::take(data_dir)?;
    let (store, copy, fresh) =
        (data_dir.join("store"), data_dir.join("store.copy"), data_dir.join("store.repaired"));
    if !store.exists() {
        let message = format!("{} has no store; restore a backup", data_dir.display());
        return Err(failed("repairing the store")(message));
    }
    directory::check_room_for(
        data_dir,
        directory::size_of(&store).saturating_mul(2),
        "repairing the store",
    )?;
    for left in [&copy, &fresh] {
        directory::remove(left)?;
    }
    copy_tree(&store, &copy).map_err(|error| io(&copy, &error))?;
    let mut done = Repaired::default();
    let old = open_what_opens(&copy, &mut done)?;
    let new = backup::new_store(&fresh)?;
    for name in old.tree_names() {
        let name = String::from_utf8_lossy(&name).into_owned();
        // Derived, or sled's own and empty.
        let Some((kept, target)) = new.kept().find(|(kept, _)| *kept == name) else { continue };
        let source = old.open_tree(kept).map_err(failed("repairing the store"))?;
        let saved = save(&new, kept, &source, target, &mut done.lost)?;
        done.saved.insert(name, saved);
    }
    new.disk.flush()?;
    drop((old, new));
    done.damaged = free_name(data_dir);
    directory::replace(data_dir, &fresh.join("store"), Some(&done.damaged))?;
    directory::remove(&fresh)?;
    directory::remove(&copy)?;
    Ok(done)
}

/// Opens the copy, without what keeps it from opening.
fn open_what_opens(copy: &Path, done: &mut Repaired) -> Result<Db, StoreError> {
    // sled may open without a word where such a file is damaged.
    for entry in fs::read_dir(copy.join("blobs")).map_err(failed("repairing the store"))?.flatten()
    {
        if !is_whole_blob(&entry.path()) && fs::remove_file(entry.path()).is_ok() {
            let name = entry.file_name().to_string_lossy().into_owned();
            done.lost.push(format!(
                "left out blobs/{name}: it is damaged; a long value or a page of records is lost"
            ));
        }
    }
    let first = match open(copy) {
        Ok(db) => return Ok(db),
        Err(error) => error,
    };
    done.lost.push(format!("the store did not open: {first}"));
    for entry in fs::read_dir(copy).map_err(failed("repairing the store"))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("snap.") && fs::remove_file(entry.path()).is_ok() {
            done.lost.push(format!(
                "left out {name}: the log is read from its beginning instead, and nothing is lost"
            ));
        }
    }
    open(copy).map_err(|error| {
        let message =
            format!("it does not open: {error}; restore a backup with `memhost store restore`");
        failed("repairing the store")(message)
    })
}

/// sled ends the thread where it finds what it does not expect.
fn open(path: &Path) -> Result<Db, String> {
    let config = sled::Config::new().path(path).flush_every_ms(None);
    match catch_unwind(AssertUnwindSafe(|| disk::open_db(&config))) {
        Ok(opened) => opened.map_err(|error| error.to_string()),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().cloned();
            Err(said
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_default())
        }
    }
}

/// A checksum of four bytes, and what it was computed from.
fn is_whole_blob(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| {
        bytes.split_first_chunk::<4>().is_some_and(|(sum, rest)| {
            !rest.is_empty() && crc32fast::hash(rest) == u32::from_le_bytes(*sum)
        })
    })
}

/// Copies what can be read of a tree.
fn save(
    new: &Trees,
    name: &str,
    from: &sled::Tree,
    to: &Tree,
    lost: &mut Vec<String>,
) -> Result<u64, StoreError> {
    let (mut batch, mut count, mut saved, mut errors) = (Batch::default(), 0, 0, 0);
    let mut entries = from.iter();
    loop {
        let next = catch_unwind(AssertUnwindSafe(|| entries.next())).unwrap_or_else(|_| {
            Some(Err(sled::Error::ReportableBug("a page ends the thread".to_owned())))
        });
        match next {
            None => break,
            Some(Ok((key, value))) => {
                batch.insert(key, value);
                (count, saved) = (count + 1, saved + 1);
            }
            Some(Err(error)) => {
                errors += 1;
                if errors == 1 {
                    lost.push(format!("a part of `{name}` cannot be read: {error}"));
                }
                if errors == MOST_ERRORS {
                    lost.push(format!("the rest of `{name}` cannot be read"));
                    break;
                }
            }
        }
        if count == BATCH {
            new.disk.wrote("repairing", to.apply_batch(std::mem::take(&mut batch)))?;
            count = 0;
        }
    }
    new.disk.wrote("repairing", to.apply_batch(batch))?;
    Ok(saved)
}

fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    memhost_files::durable::create_directory(to, 0o700)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn free_name(data_dir: &Path) -> PathBuf {
    let name = |number: u32| data_dir.join(format!("store.damaged-{number}"));
    (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
}
