//! The files of journals: what memsearch would index, and a new directory that is written whole or
//! not at all.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{CliError, Result};

/// How deep directories are read.
const DEEPEST: usize = 16;
/// The most files of an import.
const MOST: usize = 100_000;
/// The largest file, in bytes.
const LARGEST: u64 = 32 << 20;

/// The Markdown files of a directory with their names in it, or a file alone. As in memsearch,
/// hidden ones are left out; links are not followed. `leave_out` is told of directories below it
/// that cannot be read, and why not.
pub(super) fn markdown(
    place: &Path,
    mut leave_out: impl FnMut(&str, std::io::Error),
) -> Result<BTreeMap<String, PathBuf>> {
    let failed = |place: &Path| {
        let place = place.to_owned();
        move |error: std::io::Error| {
            CliError::input(
                place.display().to_string(),
                format!("{error}; give a directory of Markdown files"),
            )
        }
    };
    let mut found = BTreeMap::new();
    let metadata = fs::metadata(place).map_err(failed(place))?;
    if metadata.is_file() {
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Ok([(name, place.to_owned())].into());
    }
    let mut open = vec![(String::new(), place.to_owned(), 0)];
    while let Some((prefix, directory, depth)) = open.pop() {
        let entries = match fs::read_dir(&directory) {
            Err(error) if depth > 0 => {
                leave_out(&prefix, error);
                continue;
            }
            entries => entries.map_err(failed(&directory))?,
        };
        for entry in entries {
            let entry = entry.map_err(failed(&directory))?;
            let name = shown(&entry.file_name());
            let kind = entry.file_type().map_err(failed(&directory))?;
            if name.starts_with('.') {
                continue;
            }
            let path = format!("{prefix}{name}");
            let end = Path::new(&name)
                .extension()
                .and_then(|end| end.to_str())
                .unwrap_or_default()
                .to_lowercase();
            if kind.is_dir() && depth < DEEPEST {
                open.push((format!("{path}/"), entry.path(), depth + 1));
            } else if kind.is_file() && ["md", "markdown"].contains(&end.as_str()) {
                found.insert(path, entry.path());
            }
            if found.len() > MOST {
                return Err(CliError::input(
                    place.display().to_string(),
                    "has more than 100,000 files; import it in parts",
                ));
            }
        }
    }
    if found.is_empty() {
        let message = "has no Markdown files; memsearch keeps its journals in `.memsearch/memory` \
                       of a project";
        return Err(CliError::input(place.display().to_string(), message));
    }
    Ok(found)
}

/// The name of a file as text. Two names that are not UTF-8 stay two.
fn shown(name: &OsStr) -> String {
    let escaped = || name.as_encoded_bytes().escape_ascii().to_string();
    name.to_str().map_or_else(escaped, str::to_owned)
}

/// The text of a file.
pub(super) fn read(file: &Path) -> Result<String> {
    let failed = |error| CliError::file(file, &error);
    if fs::metadata(file).map_err(failed)?.len() > LARGEST {
        return Err(CliError::input(file.display().to_string(), "is larger than 32 MiB; split it"));
    }
    fs::read_to_string(file).map_err(failed)
}

/// A directory that is not there yet.
#[derive(Debug)]
pub(super) struct NewDirectory {
    place: PathBuf,
    /// Beside it; removed if the export fails.
    draft: tempfile::TempDir,
}

impl NewDirectory {
    pub(super) fn at(place: &Path) -> Result<Self> {
        if fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_some()) || place.is_file()
        {
            return Err(CliError::input(
                place.display().to_string(),
                "exists; name a new directory",
            ));
        }
        let beside = place
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let draft = tempfile::Builder::new().prefix(".memhost-").tempdir_in(beside);
        let draft = draft.map_err(|error| CliError::file(beside, &error))?;
        Ok(Self { place: place.to_owned(), draft })
    }

    /// Writes a file for each day, and answers how many.
    pub(super) fn write(self, journals: &BTreeMap<String, String>) -> Result<usize> {
        for (day, journal) in journals {
            let file = self.draft.path().join(format!("{day}.md"));
            fs::write(&file, journal).map_err(|error| CliError::file(&file, &error))?;
        }
        memhost_files::durable::sync_tree(self.draft.path())
            .map_err(|error| CliError::file(&self.place, &error))?;
        let draft = self.draft.keep();
        memhost_files::durable::rename(&draft, &self.place).map_err(|error| {
            let _ = fs::remove_dir_all(&draft);
            CliError::file(&self.place, &error)
        })?;
        Ok(journals.len())
    }
}
