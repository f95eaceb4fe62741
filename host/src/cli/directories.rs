//! Directories of the person who types, as the XDG base directory specification has them.

use std::path::PathBuf;

/// Names another directory than that of the person's caches.
const CACHE_VARIABLE: &str = "MEMHOST_CACHE_DIR";

/// Where a person's configuration is.
pub(super) fn config() -> Option<PathBuf> {
    below("XDG_CONFIG_HOME", ".config")
}

/// Where hosts that live as long as one command keep compiled components, so that the next command need not compile
/// them: `$MEMHOST_CACHE_DIR/compiled`, or that of the person's caches. None where neither is known.
pub(super) fn compiled() -> Option<PathBuf> {
    Some(given(CACHE_VARIABLE).or_else(|| below("XDG_CACHE_HOME", ".cache"))?.join("compiled"))
}

pub(super) fn given(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn below(variable: &str, in_home: &str) -> Option<PathBuf> {
    // A relative path there is to be ignored, says the specification.
    let base = given(variable).filter(|path| path.is_absolute());
    Some(base.or_else(|| Some(given("HOME")?.join(in_home)))?.join("memhost"))
}
