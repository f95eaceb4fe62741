//! Reads the plugins directory, and never uses a file that is still being written.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::plugins::error::PluginError;
use crate::plugins::trust;
use memhost_sandbox::{AdmissionError, MAX_COMPONENT_BYTES};

/// How long a file must be unchanged before it is read.
pub(crate) const SETTLE: Duration = Duration::from_millis(200);

/// Identifies a file's content without reading it. Writing to the file, replacing it or renaming
/// another one over it changes one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    /// When its signature was changed, if there is one.
    signed: Option<(i64, i64)>,
}

impl Fingerprint {
    fn of(path: &Path, metadata: &std::fs::Metadata) -> Self {
        let signature = std::fs::metadata(trust::signature_path(path));
        let signature = signature.or_else(|_| std::fs::metadata(trust::cosign_path(path))).ok();
        Self {
            signed: signature.map(|metadata| (metadata.ctime(), metadata.ctime_nsec())),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// When it was last written, to tell the newer of two builds of one version.
    pub fn modified(&self) -> (i64, i64) {
        self.modified
    }
}

/// The `.wasm` files of a directory, by name.
///
/// # Errors
/// Where the directory cannot be read.
pub fn list(directory: &Path) -> Result<Vec<(PathBuf, Fingerprint)>, PluginError> {
    let failed =
        |error: std::io::Error| PluginError::io("reading the plugins directory", directory, &error);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "wasm")
            // Without metadata it was removed meanwhile, or is a broken link.
            && let Ok(metadata) = std::fs::metadata(&path)
        {
            let fingerprint = Fingerprint::of(&path, &metadata);
            files.push((path, fingerprint));
        }
    }
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(files)
}

/// When a file was last written; `None`: there is no such file.
pub(crate) fn written(path: &Path) -> Option<(i64, i64)> {
    std::fs::metadata(path).ok().map(|metadata| (metadata.mtime(), metadata.mtime_nsec()))
}

/// Reads a file of any size or kind. Its size is checked first, and no more than the limit is read.
/// None: it changed meanwhile and must be read again.
///
/// # Errors
/// Where it is too large, no file, or cannot be read.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, PluginError> {
    use std::io::Read as _;
    let failed = |error: std::io::Error| PluginError::io("reading", path, &error);
    let mut options = std::fs::OpenOptions::new();
    // Opening a named pipe must not wait for a writer.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.read(true).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(PluginError::io("reading", path, &"it is not a file"));
    }
    if metadata.len() > MAX_COMPONENT_BYTES {
        return Err(
            AdmissionError::TooLarge { bytes: metadata.len(), max: MAX_COMPONENT_BYTES }.into()
        );
    }
    let fingerprint = Fingerprint::of(path, &metadata);
    let mut bytes = Vec::new();
    file.take(MAX_COMPONENT_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    let after = std::fs::metadata(path).map(|metadata| Fingerprint::of(path, &metadata));
    Ok((after.ok() == Some(fingerprint)).then_some(bytes))
}

/// The signature file beside a file. `None`: there is none that could be one.
pub fn read_signature(file: &Path) -> Option<Vec<u8>> {
    let path = trust::signature_path(file);
    let bytes = std::fs::metadata(&path).ok()?.len();
    if bytes > trust::MAX_SIGNATURE_BYTES {
        return None;
    }
    read(&path).ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let listed = list(directory).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        listed.iter().map(|(path, _)| name(path)).collect()
    }

    fn fingerprint(path: &Path) -> Fingerprint {
        let listed = list(path.parent().unwrap()).unwrap();
        listed.into_iter().find(|(found, _)| found == path).unwrap().1
    }

    #[test]
    fn components_are_listed_by_name_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for name in ["b.wasm", "a.wasm", "a.wasm.minisig", "notes.txt", "wasm", ".wasm", "c.WASM"] {
            fs::write(path.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", path.join("broken.wasm")).unwrap();
        std::os::unix::fs::symlink("a.wasm", path.join("link.wasm")).unwrap();
        assert_eq!(names(path), ["a.wasm", "b.wasm", "link.wasm"]);
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = list(Path::new("/nowhere/plugins")).unwrap_err().to_string();
        assert!(error.contains("reading the plugins directory /nowhere/plugins failed"), "{error}");
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("folder.wasm");
        fs::create_dir(&folder).unwrap();
        let pipe = directory.path().join("pipe.wasm");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        for path in [folder, pipe] {
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains("it is not a file"), "{error}");
        }
    }

    #[test]
    fn a_file_over_the_limit_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("large.wasm");
        fs::File::create(&path).unwrap().set_len(MAX_COMPONENT_BYTES + 1).unwrap();
        let error = read(&path).unwrap_err();
        assert!(matches!(error, PluginError::Admission(AdmissionError::TooLarge { .. })));
    }

    #[test]
    fn whatever_changes_a_file_changes_its_fingerprint() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.wasm");
        fs::write(&path, "one").unwrap();
        let mut seen = vec![fingerprint(&path)];
        let changed = |how: &str, seen: &mut Vec<Fingerprint>| {
            let now = fingerprint(&path);
            assert!(!seen.contains(&now), "{how}");
            seen.push(now);
        };
        fs::write(&path, "more").unwrap();
        changed("another length", &mut seen);
        let other = directory.path().join("other");
        fs::write(&other, "more").unwrap();
        fs::rename(&other, &path).unwrap();
        changed("another file in its place", &mut seen);
        fs::write(directory.path().join("a.wasm.sig"), "x").unwrap();
        changed("a signature beside it", &mut seen);
        fs::write(directory.path().join("a.wasm.minisig"), "x").unwrap();
        changed("the signature that counts", &mut seen);
        assert_eq!(fingerprint(&path), fingerprint(&path));
    }
}
