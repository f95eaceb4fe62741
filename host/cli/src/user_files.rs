//! Files of the user: the directories of the XDG base directory specification, and TOML files that
//! a person writes, too: their comments and formatting stay.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml_edit::DocumentMut;

use super::{CliError, Result};

/// The variable that names another cache directory.
const CACHE_VARIABLE: &str = "MEMHOST_CACHE_DIR";

/// The user's configuration directory.
pub(super) fn config_dir() -> Option<PathBuf> {
    below("XDG_CONFIG_HOME", ".config")
}

/// The directory of compiled components for hosts that a command opens, so that the next command
/// need not compile them: `$MEMHOST_CACHE_DIR/compiled`, or in the user's cache directory. None if
/// neither is known.
pub(super) fn compiled_dir() -> Option<PathBuf> {
    Some(given(CACHE_VARIABLE).or_else(|| below("XDG_CACHE_HOME", ".cache"))?.join("compiled"))
}

/// The directory of compiled components for `serve`. `None` if `$MEMHOST_CACHE_DIR` is not set:
/// then it is in the data directory.
pub(super) fn named_compiled_dir() -> Option<PathBuf> {
    Some(given(CACHE_VARIABLE)?.join("compiled"))
}

/// Checks that a directory is a host's: a command that reads must not make one, and say that all is
/// well in it.
pub(super) fn check_data(argument: &str, data_dir: &Path) -> Result<()> {
    let shown = data_dir.display();
    let message = match (data_dir.join("FORMAT").exists(), data_dir.is_dir()) {
        (true, _) => return Ok(()),
        (false, true) if data_dir.join("store.backup").exists() => format!(
            "{shown} is a backup; `memhost store verify --backup {shown}` verifies it, and \
             `memhost store restore {shown} --data-dir DIR` makes a data directory of it"
        ),
        (false, true) => format!(
            "{shown} is no data directory of a host; name the one that a host was started with"
        ),
        (false, false) => format!(
            "{shown} does not exist; `memhost serve --data-dir {shown}` makes a data directory"
        ),
    };
    Err(CliError::input(argument, message))
}

pub(super) fn given(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn below(variable: &str, in_home: &str) -> Option<PathBuf> {
    Some(base(given(variable), given("HOME"), in_home)?.join("memhost"))
}

fn base(named: Option<PathBuf>, home: Option<PathBuf>, in_home: &str) -> Option<PathBuf> {
    // The specification says to ignore a relative path.
    named.filter(|path| path.is_absolute()).or_else(|| Some(home?.join(in_home)))
}

/// The text of a file; empty if there is none.
pub(super) fn read(path: &Path) -> Result<String> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|error| CliError::file(path, &error)),
    }
}

/// Reads the values of a text. An error names the line and the key.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let said = |error: toml::de::Error| error.to_string().trim_end().to_owned();
    let reader = toml::Deserializer::parse(text).map_err(said)?;
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let path = error.path().to_string();
        let (path, error) = (path.trim_matches(['.', '?']), error.into_inner());
        let line =
            error.span().and_then(|span| Some(text.get(..span.start)?.matches('\n').count() + 1));
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let key = if path.is_empty() { String::new() } else { format!("`{path}`: ") };
        format!("{line}{key}{}", error.message())
    })
}

/// Changes a file in one step, so that a program that reads it meanwhile sees the old or the new
/// one. A new file is readable by its owner only.
pub(super) fn edit(path: &Path, change: impl FnOnce(&mut DocumentMut) -> Result<()>) -> Result<()> {
    let wrong = |error: std::io::Error| CliError::file(path, &error);
    let text = read(path)?;
    let parsed = text.parse::<DocumentMut>();
    let mut document =
        parsed.map_err(|error| CliError::input(path.display().to_string(), error))?;
    change(&mut document)?;
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    memhost_files::durable::create_directory(directory, 0o700).map_err(wrong)?;
    let mode = std::fs::metadata(path).map_or(0o600, |found| found.permissions().mode());
    memhost_files::durable::write(path, document.to_string().as_bytes(), mode & 0o7777)
        .map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_directory_is_ignored() {
        let of = |named: Option<&str>| {
            base(named.map(PathBuf::from), Some("/home/ann".into()), ".cache")
        };
        assert_eq!(of(Some("/var/cache")), Some("/var/cache".into()));
        assert_eq!(of(Some("cache")), Some("/home/ann/.cache".into()));
        assert_eq!(of(None), Some("/home/ann/.cache".into()));
        assert_eq!(base(Some("cache".into()), None, ".cache"), None);
    }
}
