//! Reading a TOML file, and changing one that a person writes, too: comments and formatting stay.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml_edit::DocumentMut;

use super::CliError;
use memhost_types::{Plain, plain};

/// The text of a file; empty if there is none.
pub(super) fn read(path: &Path) -> Result<String, CliError> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|error| CliError::file(path, &error)),
    }
}

/// Reads the values of a text. An error names the line and the key, and for an unknown key the
/// nearest known one.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let said = |error: toml::de::Error| error.to_string().trim_end().to_owned();
    let reader = toml::Deserializer::parse(text).map_err(said)?;
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let path = error.path().to_string();
        let path = path.trim_matches(['.', '?']);
        let error = error.into_inner();
        let Plain { field, text: said } = plain(error.message());
        let key = match field {
            Some(field) if path.is_empty() => field,
            Some(field) if path != field && !path.ends_with(&format!(".{field}")) => {
                format!("{path}.{field}")
            }
            _ => path.to_owned(),
        };
        let line =
            error.span().and_then(|span| Some(text.get(..span.start)?.matches('\n').count() + 1));
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        format!("{line}`{key}` {said}")
    })
}

/// Changes a file in one step, so that a program that reads it meanwhile sees the old or the new
/// one. A new file is readable by its owner only.
pub(super) fn edit(
    path: &Path,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), CliError>,
) -> Result<(), CliError> {
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
