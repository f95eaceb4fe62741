//! The file of profiles: `~/.config/memhost/config.toml`, for its owner's eyes only. What a person wrote into it, comments
//! too, stays as it is.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Table, value};

use crate::{CliError, directories};

/// Where it is, instead of in the directory of configurations.
pub(super) const VARIABLE: &str = "MEMHOST_CLI_CONFIG";

/// What it says.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    /// The profile that is used where none is named.
    pub(super) default: Option<String>,
    pub(super) profiles: BTreeMap<String, Profile>,
    /// Where it was read from; relative paths in it begin there.
    #[serde(skip)]
    pub(super) path: PathBuf,
}

/// A host, who one is to it, and whose memory is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Profile {
    pub(super) url: Option<String>,
    pub(super) control_url: Option<String>,
    pub(super) token: Option<String>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) token_command: Option<String>,
    pub(super) company: Option<String>,
    pub(super) agent: Option<String>,
}

/// Where the file is.
pub(super) fn path() -> Option<PathBuf> {
    directories::given(VARIABLE).or_else(|| Some(directories::config()?.join("config.toml")))
}

impl File {
    /// Reads the file of this person; empty where there is none.
    pub(super) fn read() -> Result<Self, CliError> {
        match path() {
            Some(path) => Self::at(&path),
            None => Ok(Self::default()),
        }
    }

    /// Reads a file; empty where there is none.
    pub(super) fn at(path: &Path) -> Result<Self, CliError> {
        let wrong = |message: String| CliError::input(path.display().to_string(), message);
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(wrong(format!("{error}; {VARIABLE} names another file"))),
        };
        let mut file: Self = toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        file.path = path.to_owned();
        if file.profiles.values().any(|profile| profile.token.is_some()) {
            let mode = std::fs::metadata(path).map(|found| found.permissions().mode()).unwrap_or_default();
            if mode & 0o077 != 0 {
                return Err(wrong("has a token and can be read by others; do `chmod 600` on it".to_owned()));
            }
        }
        Ok(file)
    }

    /// The profile of this name.
    pub(super) fn get(&self, name: &str) -> Result<&Profile, CliError> {
        self.profiles.get(name).ok_or_else(|| {
            let near = |known: &&String| strsim::jaro_winkler(known, name);
            let nearest = self.profiles.keys().max_by(|a, b| near(a).total_cmp(&near(b)));
            let advice = match nearest {
                Some(nearest) => format!("the nearest one is `{nearest}`"),
                None => "`memhost profile create` makes one".to_owned(),
            };
            let detail = format!("there is no profile `{name}` in {}; {advice}", self.path.display());
            CliError::Problem { status: 404, detail, operation: None }
        })
    }

    /// The token of a profile, from wherever it says.
    pub(super) fn token(&self, profile: &Profile) -> Result<Option<String>, CliError> {
        if let Some(token) = &profile.token {
            return Ok(Some(token.clone()));
        }
        if let Some(file) = &profile.token_file {
            let file = self.path.parent().unwrap_or(Path::new("")).join(file);
            let text = std::fs::read_to_string(&file);
            let text = text.map_err(|error| CliError::input("token_file", format!("{}: {error}", file.display())))?;
            return Ok(Some(text.trim().to_owned()));
        }
        let Some(command) = &profile.token_command else { return Ok(None) };
        let wrong = |message: String| CliError::input("token_command", format!("`{command}`: {message}"));
        // What it has to say to a person, such as asking for a passphrase, goes where ours goes.
        let run = Command::new("sh").args(["-c", command]).stdin(Stdio::inherit()).stderr(Stdio::inherit()).output();
        let run = run.map_err(|error| wrong(error.to_string()))?;
        if !run.status.success() {
            return Err(wrong(format!("it ended with {}", run.status)));
        }
        match String::from_utf8_lossy(&run.stdout).trim() {
            "" => Err(wrong("it printed nothing".to_owned())),
            token => Ok(Some(token.to_owned())),
        }
    }
}

/// Changes the file: whole or not at all, and for its owner's eyes only.
pub(super) fn edit(path: &Path, change: impl FnOnce(&mut DocumentMut) -> Result<(), CliError>) -> Result<(), CliError> {
    let wrong = |message: String| CliError::input(path.display().to_string(), message);
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| wrong(error.to_string()))?;
    change(&mut document)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| wrong(error.to_string()))?;
    // A temporary file is its owner's alone, and keeps that under its new name.
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(|error| wrong(error.to_string()))?;
    std::io::Write::write_all(&mut file, document.to_string().as_bytes()).map_err(|error| wrong(error.to_string()))?;
    file.persist(path).map_err(|error| wrong(error.error.to_string()))?;
    Ok(())
}

/// The table of all profiles, made where it is missing.
pub(super) fn profiles(document: &mut DocumentMut) -> Result<&mut Table, CliError> {
    let table = document.entry("profiles").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    table.as_table_mut().ok_or_else(|| CliError::input("profiles", "is no table; write [profiles.NAME]"))
}

/// Sets what is given; an empty text takes a setting away.
pub(super) fn put(table: &mut Table, settings: &[(&str, Option<&str>)]) {
    for (name, given) in settings {
        match given {
            None => {}
            Some("") => drop(table.remove(name)),
            Some(text) => table[name] = value(*text),
        }
    }
}
