//! Files and directories that only the host's user may use: modes 0600 and 0700, whatever the
//! process's umask is.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::directory::Directory;
use crate::listing::Kind;
use crate::walk::{Found, Then};

/// The mode bits of group and others.
const OTHERS: u32 = 0o077;
/// To look at a file without waiting for anybody.
const LOOK: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Makes every file of this process private from now on, also those that libraries make. Call it
/// before other threads start.
pub fn restrict_process() {
    rustix::process::umask(Mode::from_raw_mode(OTHERS));
}

/// Opens a file to write from its beginning, made where it is missing, with mode 0600. In a
/// directory of everybody's somebody else may have made a file or a link of this name.
///
/// # Errors
/// Where it cannot be opened, is a link, or belongs to somebody else.
pub fn create(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)?;
    let stat = rustix::fs::fstat(&file)?;
    if stat.st_uid != own_user() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    tighten_open(&file)?;
    file.set_len(0)?;
    Ok(file)
}

/// The same for a file that must not exist.
///
/// # Errors
/// Where it exists or cannot be made.
pub fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Takes from group and others what they may do with a file or directory; answers whether they
/// could do anything. Files of other users stay as they are.
///
/// # Errors
/// Where the mode cannot be read or set.
pub fn tighten(path: &Path) -> io::Result<bool> {
    tighten_open(&rustix::fs::open(path, LOOK, Mode::empty())?.into())
}

fn tighten_open(file: &File) -> io::Result<bool> {
    let stat = rustix::fs::fstat(file)?;
    if stat.st_mode & OTHERS == 0 || stat.st_uid != own_user() {
        return Ok(false);
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(stat.st_mode & 0o7700))?;
    Ok(true)
}

/// The user that this process runs as.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Tightens a directory and what is in it, down to what `below` says not to enter. Answers how many
/// were open to others.
///
/// # Errors
/// Where a directory cannot be read or a mode cannot be set.
pub fn tighten_tree(path: &Path, mut below: impl FnMut(&Found<'_>) -> Then) -> io::Result<u64> {
    let mut count = u64::from(tighten(path)?);
    Directory::open(path)?.walk(|one| {
        let is_ours = matches!(one.kind, Kind::File | Kind::Directory) && one.owner() == own_user();
        if is_ours && one.mode() & OTHERS != 0 {
            // Without permission to read it: its owner may still change the mode, and it is
            // nobody's way in.
            if let Ok(file) =
                rustix::fs::openat(one.directory, one.name, LOOK | OFlags::NOFOLLOW, Mode::empty())
            {
                count += u64::from(tighten_open(&file.into())?);
            }
        }
        Ok(below(one))
    })?;
    Ok(count)
}

/// Whether others than the owner may use what was found, or it belongs to another user. Links say
/// nothing.
pub fn is_exposed(found: &Found<'_>) -> bool {
    found.kind != Kind::Link && (found.mode() & OTHERS != 0 || found.owner() != own_user())
}

/// The mode and the owner of a path itself.
///
/// # Errors
/// Where it is missing.
pub fn mode_and_owner(path: &Path) -> io::Result<(u32, u32)> {
    let stat = rustix::fs::statat(rustix::fs::CWD, path, AtFlags::empty())?;
    Ok((stat.st_mode & 0o7777, stat.st_uid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_there_is_tightened_and_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let set = |name: &str, mode| {
            std::fs::set_permissions(
                place.path().join(name),
                std::fs::Permissions::from_mode(mode),
            )
            .unwrap();
        };
        let mode = |name: &str| mode_and_owner(&place.path().join(name)).unwrap().0;
        crate::durable::create_directory(&place.path().join("data/sub/guest"), 0o700).unwrap();
        std::fs::write(place.path().join("outside"), "").unwrap();
        std::fs::write(place.path().join("data/file"), "").unwrap();
        std::fs::write(place.path().join("data/sub/guest/file"), "").unwrap();
        std::os::unix::fs::symlink("../outside", place.path().join("data/link")).unwrap();
        for (name, mode) in
            [("data", 0o755), ("data/file", 0o644), ("data/sub", 0o775), ("outside", 0o644)]
        {
            set(name, mode);
        }
        set("data/sub/guest/file", 0o644);
        let below = |one: &Found<'_>| if one.name == "guest" { Then::Past } else { Then::Into };
        assert_eq!(tighten_tree(&place.path().join("data"), below).unwrap(), 3);
        assert_eq!((mode("data"), mode("data/file"), mode("data/sub")), (0o700, 0o600, 0o700));
        assert_eq!((mode("outside"), mode("data/sub/guest/file")), (0o644, 0o644));
        create(&place.path().join("outside")).unwrap();
        assert_eq!(mode("outside"), 0o600);
        // Somebody else's link leads nowhere.
        std::fs::write(place.path().join("outside"), "kept").unwrap();
        assert!(create(&place.path().join("data/link")).is_err());
        assert_eq!(std::fs::read(place.path().join("outside")).unwrap(), b"kept");
    }
}
