//! The data directory: whose it is, which format it has, and that one process at a time has it.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::Path;

use crate::store::StoreError;

const FORMAT_FILE: &str = "FORMAT";
const LOCK_FILE: &str = "LOCK";
const FORMAT_NAME: &str = "memhost-data";
/// The format that this version writes.
const FORMAT: u32 = 1;

/// Takes the directory for this process, until the file that it answers is closed. A directory that is refused is left
/// as it was.
pub(super) fn take(path: &Path) -> Result<File, StoreError> {
    fs::create_dir_all(path).map_err(|error| io("making the data directory", path, &error))?;
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
        Err(error) => return Err(io("reading the format of the data directory", &format_path, &error)),
    };
    let lock = lock(path)?;
    if is_new {
        let temporary = path.join("FORMAT.tmp");
        File::create(&temporary)
            .and_then(|mut file| {
                writeln!(file, "{FORMAT_NAME} {FORMAT}")?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&temporary, &format_path))
            .map_err(|error| io("writing the format of the data directory", &format_path, &error))?;
    }
    Ok(lock)
}

fn check_format(path: &Path, text: &str) -> Result<(), StoreError> {
    let shown = path.display().to_string();
    let version = text.trim().strip_prefix(FORMAT_NAME).and_then(|rest| rest.trim().parse::<u32>().ok());
    match version {
        Some(FORMAT) => Ok(()),
        Some(found) if found > FORMAT => Err(StoreError::TooNew { path: shown, found, known: FORMAT }),
        _ => Err(StoreError::NotOurs { path: shown, found: format!("its file {FORMAT_FILE} says {:?}", text.trim()) }),
    }
}

fn refuse_strangers(path: &Path) -> Result<(), StoreError> {
    let entries = fs::read_dir(path).map_err(|error| io("reading the data directory", path, &error))?;
    for entry in entries {
        let name = entry.map_err(|error| io("reading the data directory", path, &error))?.file_name();
        // A first start that ended between its lock and its format leaves the first two; plugins and a configuration
        // may be put there before any start.
        let known = [LOCK_FILE, "FORMAT.tmp", "plugins", "memhost.toml"];
        if !known.iter().any(|known| name == *known) {
            let found = format!("it holds {}", name.to_string_lossy());
            return Err(StoreError::NotOurs { path: path.display().to_string(), found });
        }
    }
    Ok(())
}

fn lock(path: &Path) -> Result<File, StoreError> {
    let lock_path = path.join(LOCK_FILE);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock_path)
        .map_err(|error| io("opening the lock of the data directory", &lock_path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path: path.display().to_string() }),
        Err(TryLockError::Error(error)) => Err(io("locking the data directory", &lock_path, &error)),
    }
}

fn io(action: &'static str, path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Io { action, message: format!("{}: {error}", path.display()) }
}
