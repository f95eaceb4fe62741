//! The user's directories, by the XDG base directory specification.

use std::path::{Path, PathBuf};

use super::CliError;

/// The variable that names another cache directory.
const CACHE_VARIABLE: &str = "MEMHOST_CACHE_DIR";

/// The user's configuration directory.
pub(super) fn config() -> Option<PathBuf> {
    below("XDG_CONFIG_HOME", ".config")
}

/// The directory of compiled components for hosts that a command opens, so that the next command
/// need not compile them: `$MEMHOST_CACHE_DIR/compiled`, or in the user's cache directory. None if
/// neither is known.
pub(super) fn compiled() -> Option<PathBuf> {
    Some(given(CACHE_VARIABLE).or_else(|| below("XDG_CACHE_HOME", ".cache"))?.join("compiled"))
}

/// Checks that a directory is a host's: a command that reads must not make one, and say that all is
/// well in it.
pub(super) fn check_data(argument: &str, data_dir: &Path) -> Result<(), CliError> {
    let shown = data_dir.display();
    let message = match (data_dir.join("FORMAT").exists(), data_dir.is_dir()) {
        (true, _) => return Ok(()),
        (false, true) if data_dir.join("store.backup").exists() => format!(
            "{shown} is a backup; `memhost store verify --backup {shown}` verifies it, and \
             `memhost store restore {shown} \
             --data-dir DIR` makes a data directory of it"
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
