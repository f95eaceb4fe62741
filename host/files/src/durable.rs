//! Files and directories that survive a power failure.
//!
//! A new file is on disk when its content was flushed *and* the directory that names it was
//! flushed. A file that is replaced is written beside the old one, flushed and renamed, so a crash
//! leaves the old content or the new one.
//!
//! Every call here returns after the disk has what it did. The calls block: use them where blocking
//! is allowed.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use tempfile::NamedTempFile;

/// The directory that holds a path.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Flushes a directory: the files that were made, renamed or removed in it.
///
/// # Errors
/// Where it cannot be opened or flushed.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Writes a file with this mode, such as 0o600. It replaces another one in one step.
///
/// # Errors
/// Where the disk fails; the old file is still there then.
pub fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let file = temporary(path, content, mode)?;
    file.persist(path).map_err(|error| error.error)?;
    sync_directory(parent(path))
}

/// Writes a file that must not be there yet.
///
/// # Errors
/// `AlreadyExists` where it is there, and where the disk fails.
pub fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    temporary(path, content, mode)?.persist_noclobber(path).map_err(|error| error.error)?;
    sync_directory(parent(path))
}

/// [`write()`], and where root writes it, the file belongs to the owner of its directory.
///
/// # Errors
/// As there.
pub fn write_for_owner(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let file = temporary(path, content, mode)?;
    give_to_owner(file.as_file(), parent(path))?;
    file.persist(path).map_err(|error| error.error)?;
    sync_directory(parent(path))
}

/// [`write_new`], and where root writes it, the file belongs to the owner of its directory.
///
/// # Errors
/// As there.
pub fn write_new_for_owner(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let file = temporary(path, content, mode)?;
    give_to_owner(file.as_file(), parent(path))?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    sync_directory(parent(path))
}

/// It changes the open file. The owner of the directory could put a link in the place of its name.
fn give_to_owner(file: &File, directory: &Path) -> io::Result<()> {
    let (owner, ours) = (fs::metadata(directory)?, file.metadata()?);
    match ours.uid() == 0 && owner.uid() != 0 {
        true => fchown(file, Some(owner.uid()), Some(owner.gid())),
        false => Ok(()),
    }
}

/// A file beside `path` with this content, on disk.
fn temporary(path: &Path, content: &[u8], mode: u32) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(parent(path))?;
    // The umask may have taken something away.
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Renames a file or a directory whose content is flushed already, and flushes both directories.
///
/// # Errors
/// Where the disk fails.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_directory(parent(to))?;
    if parent(from) == parent(to) { Ok(()) } else { sync_directory(parent(from)) }
}

/// Makes a directory and those above it that are missing, with this mode, such as 0o700. Those that
/// are there stay as they are.
///
/// # Errors
/// Where the disk fails, or something else has the name.
pub fn create_directory(path: &Path, mode: u32) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if !parent(path).is_dir() {
        create_directory(parent(path), mode)?;
    }
    match DirBuilder::new().mode(mode).create(path) {
        // Somebody else made it at the same time.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        made => made?,
    }
    sync_directory(parent(path))
}

/// Flushes every regular file and directory below a directory. Links are not followed.
///
/// # Errors
/// Where one of them cannot be read or flushed.
pub fn sync_tree(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync_tree(&entry.path())?;
        } else if kind.is_file() {
            match File::open(entry.path()) {
                // Removed since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => opened?.sync_all()?,
            }
        }
    }
    sync_directory(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_has_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        write(&path, b"one", 0o600).unwrap();
        write(&path, b"two", 0o640).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        let again = write_new(&path, b"three", 0o600).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing temporary is left");
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        assert!(write(&directory.path().join("no/such"), b"text", 0o600).is_err());
        fs::create_dir(directory.path().join("taken")).unwrap();
        assert!(write(&directory.path().join("taken"), b"text", 0o600).is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_root_writes_for_an_owner_is_the_owners() {
        let directory = tempfile::tempdir().unwrap();
        let is_root = fs::metadata(directory.path()).unwrap().uid() == 0;
        if is_root {
            std::os::unix::fs::chown(directory.path(), Some(65_534), Some(65_534)).unwrap();
        }
        let owner = fs::metadata(directory.path()).unwrap().uid();
        let path = |name: &str| directory.path().join(name);
        write_new_for_owner(&path("new"), b"1", 0o600).unwrap();
        write_for_owner(&path("any"), b"1", 0o600).unwrap();
        write_for_owner(&path("any"), b"2", 0o600).unwrap();
        assert!(write_new_for_owner(&path("new"), b"2", 0o600).is_err());
        for name in ["new", "any"] {
            let found = fs::metadata(path(name)).unwrap();
            assert_eq!((found.uid(), found.mode() & 0o777), (owner, 0o600), "{name}");
        }
    }

    #[test]
    fn directories_are_made_down_to_the_last() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/c");
        create_directory(&path, 0o700).unwrap();
        create_directory(&path, 0o700).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        write(&path.join("file"), b"", 0o600).unwrap();
        assert!(create_directory(&path.join("file"), 0o700).is_err());
        sync_tree(directory.path()).unwrap();
        rename(&path.join("file"), &directory.path().join("moved")).unwrap();
        assert!(directory.path().join("moved").exists());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }
}
