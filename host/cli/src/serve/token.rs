//! Where a new operator token goes: onto the terminal of the person who starts the host, or else
//! into a file, because what is printed elsewhere is kept in logs.

use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};

use crate::output::line;
use crate::{CliError, Result};

/// The file of a new token, in the data directory.
const FILE: &str = "operator-token";

/// Says what the new token is, or which file has it. `is_json`: standard output is for a program.
pub(super) fn tell(data_dir: &Path, token: &str, is_json: bool) -> Result<()> {
    let Some(file) = keep(data_dir, token, is_json)? else {
        return line(&format!("the operator token, shown only once:\n  {token}"));
    };
    let shown = file.display();
    let said = format!(
        "a new operator token is in {shown}, which only this user can read; use it with \
         MEMHOST_TOKEN=\"$(cat '{shown}')\", and delete the file once the token is kept elsewhere"
    );
    if is_json {
        tracing::warn!("{said}");
        return Ok(());
    }
    line(&said)
}

/// How a line for a shell gets the new token.
pub(crate) fn for_shell(data_dir: &Path, token: &str) -> Result<String> {
    let file = keep(data_dir, token, false)?;
    Ok(file.map_or_else(|| token.to_owned(), |file| format!("\"$(cat '{}')\"", file.display())))
}

/// Keeps a new token in its file, with mode 0600. `None`: a person sees it on the terminal, and no
/// file has one any more.
fn keep(data_dir: &Path, token: &str, is_json: bool) -> Result<Option<PathBuf>> {
    let file = std::path::absolute(data_dir.join(FILE))?;
    let failed = |error: std::io::Error| {
        let shown = file.display();
        CliError::Host(format!(
            "the new operator token cannot be kept in {shown}: {error}; make room for it, and \
             start with --new-token to make another one"
        ))
    };
    if std::io::stdout().is_terminal() && !is_json {
        return match std::fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(None),
        };
    }
    let content = format!("{token}\n");
    memhost_files::durable::write(&file, content.as_bytes(), 0o600).map_err(failed)?;
    Ok(Some(file))
}
