//! Compaction of a store that is in use: everything is copied into a new database, which takes the
//! place of the present one. sled keeps the bytes of removed and overwritten values in its files
//! indefinitely; the new database has none of them.
//!
//! The copy goes on beside all operations. The gate lists what is written meanwhile, and those keys
//! are copied again. At the end the gate is shut for the few that are left: then nobody writes, the
//! new database is on the disk, a file that names it is written, and the trees change over. After a
//! crash before that file the present store is used, and after it the new one.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::disk::{self, Files};
use super::gate::Place;
use super::trees::Trees;
use crate::directory;
use crate::error::failed;
use crate::{Compacted, DiskLevel, StoreError};

/// Bytes that are copied between two flushes.
const PIECE: usize = 4 << 20;
/// So few keys are copied while nobody can write.
const FEW: usize = 256;
/// Rounds before that, at most: under a load that never ends the last one is longer.
const ROUNDS: u32 = 20;
/// How long reads of one page may take.
const SHORT_READ: Duration = Duration::from_secs(1);

/// The new database, while it is filled.
struct Copy<'a> {
    trees: &'a Trees,
    files: Files,
    unsynced: usize,
    stop: &'a dyn Fn() -> bool,
}

/// Compacts the store in `data_dir`. None: `stop` said so, and nothing has changed.
pub(super) fn run(
    trees: &Trees,
    data_dir: &Path,
    cache_bytes: u64,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Compacted>, StoreError> {
    let watching = trees.gate.watch();
    let present = trees.disk.store();
    let fresh = directory::next_store(data_dir, &present);
    directory::remove(&fresh)?;
    let before = directory::size_of(&present);
    directory::check_room_for(data_dir, before, "compacting")?;
    let copied = copy(trees, &fresh, cache_bytes, stop);
    let files = match copied {
        Ok(Some(files)) => files,
        stopped_or_failed => {
            directory::remove(&fresh)?;
            return stopped_or_failed.map(|_| None);
        }
    };
    let replaced = change_over(trees, data_dir, &fresh, files);
    drop(watching);
    match replaced {
        Ok(old) => drop(old),
        Err(error) => {
            directory::remove(&fresh)?;
            return Err(error);
        }
    }
    // Long values of the store before are read from its directory.
    std::thread::sleep(SHORT_READ);
    drop(trees.long_reads.write());
    directory::remove(&present)?;
    Ok(Some(Compacted { bytes_before: before, bytes_after: directory::size_of(&fresh) }))
}

/// Copies everything but the last few keys. None where it was stopped.
fn copy(
    trees: &Trees,
    fresh: &Path,
    cache_bytes: u64,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Files>, StoreError> {
    disk::prepare(fresh).map_err(failed("compacting"))?;
    let config = sled::Config::new()
        .path(fresh)
        .cache_capacity(cache_bytes)
        .mode(sled::Mode::HighThroughput)
        .flush_every_ms(None);
    let db = disk::open_db(&config).map_err(failed("compacting"))?;
    let files = Files::open(db, fresh).map_err(failed("compacting"))?;
    let mut copy = Copy { trees, files, unsynced: 0, stop };
    for (name, tree) in trees.all() {
        let target = copy.files.db().open_tree(name).map_err(failed("compacting"))?;
        for entry in tree.iter() {
            let (key, value) = entry.map_err(failed("reading"))?;
            let bytes = key.len() + value.len();
            target.insert(key, value).map_err(failed("compacting"))?;
            if !copy.goes_on(bytes)? {
                return Ok(None);
            }
        }
    }
    for _ in 0..ROUNDS {
        let written = trees.gate.written();
        let is_last = written.len() <= FEW;
        if !copy.again(&written)? {
            return Ok(None);
        }
        if is_last {
            break;
        }
    }
    copy.sync()?;
    Ok(Some(copy.files))
}

impl Copy<'_> {
    fn sync(&mut self) -> Result<(), StoreError> {
        self.unsynced = 0;
        self.files.db().flush().map_err(failed("compacting"))?;
        self.files.sync().map_err(failed("compacting"))
    }

    /// Counts what was copied, and flushes it now and then. False: end here. sled does not survive
    /// a full disk.
    fn goes_on(&mut self, bytes: usize) -> Result<bool, StoreError> {
        self.unsynced += bytes;
        if self.unsynced < PIECE {
            return Ok(true);
        }
        self.sync()?;
        self.trees.disk.alive()?;
        if self.trees.disk.reserve.state().level != DiskLevel::Plenty {
            return Err(failed("compacting")(
                "the disk became almost full meanwhile; free disk space first",
            ));
        }
        Ok(!(self.stop)())
    }

    fn again(&mut self, written: &BTreeSet<Place>) -> Result<bool, StoreError> {
        for place in written {
            let bytes = copy_again(self.trees, &self.files, place)?;
            if !self.goes_on(bytes)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Copies what is at a key now. Answers its bytes.
fn copy_again(trees: &Trees, files: &Files, (name, key): &Place) -> Result<usize, StoreError> {
    let Some((_, tree)) = trees.all().find(|(known, _)| known == name) else { return Ok(0) };
    let target = files.db().open_tree(name).map_err(failed("compacting"))?;
    let value = tree.get(key).map_err(failed("reading"))?;
    let bytes = key.len() + value.as_ref().map_or(0, |value| value.len());
    let done = match value {
        Some(value) => target.insert(key, value),
        None => target.remove(key),
    };
    done.map_err(failed("compacting"))?;
    Ok(bytes)
}

/// Copies the last keys while nobody writes, and goes on with the new database. Answers the one
/// before.
fn change_over(
    trees: &Trees,
    data_dir: &Path,
    fresh: &Path,
    files: Files,
) -> Result<std::sync::Arc<Files>, StoreError> {
    let (door, written) = trees.gate.shut();
    for place in &written {
        copy_again(trees, &files, place)?;
    }
    let mut after = Vec::new();
    for (name, tree) in trees.all() {
        after.push((tree, files.db().open_tree(name).map_err(failed("compacting"))?));
    }
    files.db().flush().map_err(failed("compacting"))?;
    memhost_files::durable::sync_tree(fresh).map_err(failed("compacting"))?;
    directory::make_current(data_dir, fresh)?;
    for (tree, new) in after {
        tree.replace(new);
    }
    let before = trees.disk.replace(files);
    drop(door);
    Ok(before)
}

/// Copies the store of a stopped host into a new one, which replaces it. Overwritten and removed
/// data no longer takes disk space. Answers the bytes before and after.
pub(super) fn of_stopped_host(path: &Path) -> Result<(u64, u64), StoreError> {
    let _lock = directory::take(path)?;
    let (store, fresh) = (path.join("store"), path.join("store.compact"));
    directory::remove(&fresh)?;
    directory::check_room_for(path, directory::size_of(&store), "compacting")?;
    let copied = (|| {
        let open =
            |path: &Path| disk::open_db(&sled::Config::new().path(path).flush_every_ms(None));
        let (old, new) = (open(&store)?, open(&fresh)?);
        for name in old.tree_names() {
            let tree = new.open_tree(&name)?;
            for entry in &old.open_tree(&name)? {
                let (key, value) = entry?;
                tree.insert(key, value)?;
            }
        }
        new.flush()?;
        let sizes = (old.size_on_disk()?, new.size_on_disk()?);
        sled::Result::Ok(sizes)
    })();
    let sizes = copied
        .map_err(|error| StoreError::Io { action: "compacting", message: error.to_string() })?;
    memhost_files::durable::sync_tree(&fresh)
        .map_err(|error| directory::io("compacting", &fresh, &error))?;
    directory::replace(path, &fresh, None)?;
    Ok(sizes)
}
