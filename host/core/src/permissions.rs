//! The data directory is for the host's user only: it is made so when a host opens it, and a health
//! check looks again.

use std::path::Path;

use crate::monitor::check::Check;
use memhost_files::{Directory, Found, Then, private};
use memhost_types::counted;

/// How many files the check looks at. A data directory has one for each build and some for the
/// store.
const MOST_FILES: u64 = 100_000;

/// The directory of a binding is closed to others, so what a provider has in it is not looked at:
/// `memory`, a company, the binding.
fn below(one: &Found<'_>) -> Then {
    match one.path.starts_with("memory") && one.path.components().count() > 2 {
        true => Then::Past,
        false => Then::Into,
    }
}

/// Takes from group and others what they may do with the data directory and the host's files in it.
pub(crate) fn tighten(data_dir: &Path) -> std::io::Result<()> {
    let count = private::tighten_tree(data_dir, below)?;
    if count > 0 {
        tracing::info!(count, path = %data_dir.display(), "files of the data directory are closed \
            to other users");
    }
    Ok(())
}

/// Warns where others than the host's user can use the data directory or a file of the host in it.
pub(crate) fn check(data_dir: &Path) -> Check {
    const NAME: &str = "file permissions";
    let advice = || {
        format!(
            "type `chmod -R go= '{}'`; if another user owns it, `chown -R` it to the host's",
            data_dir.display()
        )
    };
    let (mut seen, mut exposed, mut first) = (0_u64, 0_u64, None);
    let mut expose = |path: &Path, mode: u32, owner: u32| {
        exposed += 1;
        let of_another = if owner == private::own_user() {
            String::new()
        } else {
            format!(", owned by user {owner}")
        };
        first.get_or_insert_with(|| {
            format!("{} (mode {:03o}{of_another})", path.display(), mode & 0o777)
        });
    };
    let walked = private::mode_and_owner(data_dir).and_then(|(mode, owner)| {
        if mode & 0o077 != 0 || owner != private::own_user() {
            expose(data_dir, mode, owner);
        }
        Directory::open(data_dir)?.walk(|one| {
            seen += 1;
            // The store's library makes files while it works. Their directory is closed.
            let first =
                one.path.components().next().map(|first| first.as_os_str().as_encoded_bytes());
            let is_stores =
                first.is_some_and(|first| first == b"store" || first.starts_with(b"store."));
            let is_stores = is_stores && one.path.components().count() > 1;
            if !is_stores && private::is_exposed(one) {
                expose(&data_dir.join(one.path), one.mode(), one.owner());
            }
            Ok(if seen < MOST_FILES { below(one) } else { Then::Stop })
        })
    });
    match (walked, first) {
        (Err(error), _) => {
            Check::warning(NAME, format!("the data directory cannot be read: {error}"), advice())
        }
        (Ok(_), None) => Check::ok(NAME, "only the host's user can use the data directory"),
        (Ok(_), Some(first)) => Check::warning(
            NAME,
            format!(
                "others can use {} of the data directory, the first: {first}",
                counted(exposed, "file", "files")
            ),
            advice(),
        ),
    }
}
