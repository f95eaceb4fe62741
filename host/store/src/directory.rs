//! The data directory: its owner, its format, and its lock, which one process has at a time; and
//! which of its directories is the store, also after a compaction that was cut short.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::StoreError;

/// The format that this version writes and reads.
pub(crate) const FORMAT: u32 = 1;
const FORMAT_FILE: &str = "FORMAT";
const LOCK_FILE: &str = "LOCK";
const FORMAT_NAME: &str = "memhost-data";
/// Where a compaction keeps the old store for a moment.
const BEFORE_COMPACTION: &str = "store.before";
/// Names the directory of the store, where a compaction of a running host has put it into another
/// one.
const CURRENT: &str = "STORE";
/// The beginning of the names of such directories; a number follows.
const COMPACTED: &str = "store.";
/// How long to wait for the lock. A host that is just ending keeps it for a moment, and so does a
/// process that it was starting: between fork and exec a child has its parent's open files.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes the directory for this process, until the file that it answers is closed. A directory that
/// is refused is left unchanged.
pub(crate) fn take(path: &Path) -> Result<File, StoreError> {
    memhost_files::durable::create_directory(path, 0o700)
        .map_err(|error| io("making the data directory", path, &error))?;
    let format_path = path.join(FORMAT_FILE);
    let is_new = match fs::read_to_string(&format_path) {
        Ok(text) => {
            check_format(path, &text)?;
            false
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            refuse_strangers(path)?;
            true
        }
        Err(error) => {
            return Err(io("reading the format of the data directory", &format_path, &error));
        }
    };
    let lock = lock_directory(path)?;
    undo_half_a_compaction(path)?;
    settle(path)?;
    // sled makes its files with the process's umask; nobody else gets to them here.
    memhost_files::durable::create_directory(&path.join("store"), 0o700)
        .map_err(|error| io("making", path, &error))?;
    if is_new {
        write_format(path)?;
    }
    Ok(lock)
}

/// Undoes a compaction that ended between its two steps, when the store had another name.
fn undo_half_a_compaction(path: &Path) -> Result<(), StoreError> {
    let (store, before) = (path.join("store"), path.join(BEFORE_COMPACTION));
    if before.exists() && !store.exists() {
        memhost_files::durable::rename(&before, &store)
            .map_err(|error| io("taking back a compaction", &before, &error))?;
    }
    Ok(())
}

/// Gives the store its usual name again, and removes stores that a compaction has left: the one
/// before, or an unfinished one. A crash at any moment leaves the present store under the name that
/// the next call finds.
fn settle(path: &Path) -> Result<(), StoreError> {
    let (store, current) = (path.join("store"), path.join(CURRENT));
    match fs::read_to_string(&current) {
        Ok(name) => {
            let named = path.join(name.trim());
            if !is_compacted(name.trim()) {
                let message = format!(
                    "{} names {:?}, which is not a store of a compaction",
                    current.display(),
                    name.trim()
                );
                return Err(StoreError::Io { action: "finding the store", message });
            }
            // Where it is gone, it has its usual name already.
            if named.exists() {
                remove(&store)?;
                memhost_files::durable::rename(&named, &store)
                    .map_err(|error| io("renaming the store", &named, &error))?;
            }
            let removed = fs::remove_file(&current)
                .and_then(|()| memhost_files::durable::sync_directory(path));
            removed.map_err(|error| io("renaming the store", &current, &error))?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(io("finding the store", &current, &error)),
    }
    for entry in fs::read_dir(path)
        .map_err(|error| io("reading the data directory", path, &error))?
        .flatten()
    {
        if entry.file_name().to_str().is_some_and(is_compacted) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

fn is_compacted(name: &str) -> bool {
    let number = name.strip_prefix(COMPACTED);
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The directory that a compaction of the running host writes to, where the store is in `present`.
pub(crate) fn next_store(data_dir: &Path, present: &Path) -> PathBuf {
    let name = present.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number =
        name.strip_prefix(COMPACTED).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
    data_dir.join(format!("{COMPACTED}{}", number.wrapping_add(1)))
}

/// Makes the finished store `fresh` the store of the data directory, durably.
pub(crate) fn make_current(data_dir: &Path, fresh: &Path) -> Result<(), StoreError> {
    let (current, name) =
        (data_dir.join(CURRENT), fresh.file_name().unwrap_or_default().as_encoded_bytes());
    memhost_files::durable::write(&current, name, 0o600)
        .map_err(|error| io("replacing the store", &current, &error))
}

/// Marks the directory with the present format, in one step.
pub(crate) fn write_format(path: &Path) -> Result<(), StoreError> {
    let format_path = path.join(FORMAT_FILE);
    memhost_files::durable::write(
        &format_path,
        format!("{FORMAT_NAME} {FORMAT}\n").as_bytes(),
        0o600,
    )
    .map_err(|error| io("writing the format of the data directory", &format_path, &error))
}

/// Puts a finished store in the place of the present one, which is removed or gets another name. A
/// crash at any moment leaves one of them in place.
pub(crate) fn replace(
    data_dir: &Path,
    fresh: &Path,
    keep_as: Option<&Path>,
) -> Result<(), StoreError> {
    let (store, before) = (data_dir.join("store"), data_dir.join(BEFORE_COMPACTION));
    remove(&before)?;
    let rename = |from: &Path, to: &Path| {
        memhost_files::durable::rename(from, to)
            .map_err(|error| io("replacing the store", from, &error))
    };
    rename(&store, &before)?;
    rename(fresh, &store)?;
    match keep_as {
        Some(name) => rename(&before, name),
        None => remove(&before),
    }
}

/// Removes a directory, if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(io("removing a copy of the store", path, &error))
        }
        _ => Ok(()),
    }
}

/// The bytes of the files in a directory and those below it.
pub(crate) fn size_of(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// Whether a copy of so many bytes has room: sled may wait forever where it has not.
pub(crate) fn check_room_for(
    path: &Path,
    bytes: u64,
    action: &'static str,
) -> Result<(), StoreError> {
    const MARGIN: u64 = 64 << 20;
    let Ok(stat) = rustix::fs::statvfs(path) else { return Ok(()) };
    let (free, needed) =
        (stat.f_bavail.saturating_mul(stat.f_frsize), bytes.saturating_add(MARGIN));
    if free >= needed {
        return Ok(());
    }
    let message = format!(
        "{} MiB are free and a copy needs {} MiB; free disk space first",
        free >> 20,
        needed >> 20
    );
    Err(StoreError::Io { action, message })
}

fn check_format(path: &Path, text: &str) -> Result<(), StoreError> {
    let shown = path.display().to_string();
    let version =
        text.trim().strip_prefix(FORMAT_NAME).and_then(|rest| rest.trim().parse::<u32>().ok());
    match version {
        Some(FORMAT) => Ok(()),
        Some(found) if found > FORMAT => {
            Err(StoreError::TooNew { path: shown, found, known: FORMAT })
        }
        _ => Err(StoreError::NotOurs {
            path: shown,
            found: format!("its file {FORMAT_FILE} says {:?}", text.trim()),
        }),
    }
}

fn refuse_strangers(path: &Path) -> Result<(), StoreError> {
    let entries =
        fs::read_dir(path).map_err(|error| io("reading the data directory", path, &error))?;
    for entry in entries {
        let name =
            entry.map_err(|error| io("reading the data directory", path, &error))?.file_name();
        // The first one is left by a first start that ended before it wrote the format, and so are
        // temporary files. Plugins and a configuration may be put there before any start.
        let known = [LOCK_FILE, "plugins", "memhost.toml"];
        if !known.iter().any(|known| name == *known) && !name.to_string_lossy().starts_with(".tmp")
        {
            let found = format!("it holds {}", name.to_string_lossy());
            return Err(StoreError::NotOurs { path: path.display().to_string(), found });
        }
    }
    Ok(())
}

/// Takes a data directory for this process, until the file that it answers is closed.
///
/// # Errors
/// Where another process has it, or its file cannot be made.
pub fn lock_directory(path: &Path) -> Result<File, StoreError> {
    let lock_path = path.join(LOCK_FILE);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&lock_path)
        .map_err(|error| io("opening the lock of the data directory", &lock_path, &error))?;
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::InUse { path: path.display().to_string() });
            }
            Err(TryLockError::Error(error)) => {
                return Err(io("locking the data directory", &lock_path, &error));
            }
        }
    }
}

pub(crate) fn io(action: &'static str, path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Io { action, message: format!("{}: {error}", path.display()) }
}
