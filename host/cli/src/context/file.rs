//! The contexts file: `~/.config/memhost/config.toml`, readable by its owner only. Comments and formatting of a person
//! survive changes.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Table, value};

use crate::{CliError, directories};

/// The variable that names another contexts file.
pub(super) const VARIABLE: &str = "MEMHOST_CLI_CONFIG";

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    /// The current context.
    pub(super) default: Option<String>,
    pub(super) contexts: BTreeMap<String, Context>,
    /// The file's path; relative paths in the file start from its directory.
    #[serde(skip)]
    pub(super) path: PathBuf,
}

/// A host, a token for it, and a company.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Context {
    pub(super) url: Option<String>,
    pub(super) control_url: Option<String>,
    pub(super) token: Option<String>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) token_command: Option<String>,
    pub(super) company: Option<String>,
    pub(super) agent: Option<String>,
}

/// The path of the file.
pub(super) fn path() -> Option<PathBuf> {
    directories::given(VARIABLE).or_else(|| Some(directories::config()?.join("config.toml")))
}

impl File {
    /// Reads this person's contexts file; empty where there is none.
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
        if file.contexts.values().any(|context| context.token.is_some()) {
            let mode = std::fs::metadata(path).map(|found| found.permissions().mode()).unwrap_or_default();
            if mode & 0o077 != 0 {
                return Err(wrong("holds a token and is readable by others; run `chmod 600` on it".to_owned()));
            }
        }
        Ok(file)
    }

    /// The context of this name.
    pub(super) fn get(&self, name: &str) -> Result<&Context, CliError> {
        self.contexts.get(name).ok_or_else(|| {
            let near = |known: &&String| strsim::jaro_winkler(known, name);
            let nearest = self.contexts.keys().max_by(|a, b| near(a).total_cmp(&near(b)));
            let advice = match nearest {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => "create it with `memhost context create`".to_owned(),
            };
            let detail = format!("no context `{name}` in {}; {advice}", self.path.display());
            CliError::Problem { status: 404, detail, operation: None }
        })
    }

    /// The token of a context, from its value, file or command.
    pub(super) fn token(&self, context: &Context) -> Result<Option<String>, CliError> {
        if let Some(token) = &context.token {
            return Ok(Some(token.clone()));
        }
        if let Some(file) = &context.token_file {
            let file = self.path.parent().unwrap_or(Path::new("")).join(file);
            let text = std::fs::read_to_string(&file);
            let text = text.map_err(|error| CliError::input("token_file", format!("{}: {error}", file.display())))?;
            return Ok(Some(text.trim().to_owned()));
        }
        let Some(command) = &context.token_command else { return Ok(None) };
        let wrong = |message: String| CliError::input("token_command", format!("`{command}`: {message}"));
        // The command may ask for a passphrase on the terminal.
        let run = Command::new("sh").args(["-c", command]).stdin(Stdio::inherit()).stderr(Stdio::inherit()).output();
        let run = run.map_err(|error| wrong(error.to_string()))?;
        if !run.status.success() {
            return Err(wrong(format!("exited with {}", run.status)));
        }
        match String::from_utf8_lossy(&run.stdout).trim() {
            "" => Err(wrong("printed nothing".to_owned())),
            token => Ok(Some(token.to_owned())),
        }
    }
}

/// Changes the file atomically; only its owner can read it.
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
    // A temporary file is readable by its owner only, also after the rename.
    let mut file = tempfile::NamedTempFile::new_in(directory).map_err(|error| wrong(error.to_string()))?;
    std::io::Write::write_all(&mut file, document.to_string().as_bytes()).map_err(|error| wrong(error.to_string()))?;
    file.persist(path).map_err(|error| wrong(error.error.to_string()))?;
    Ok(())
}

/// The table of all contexts, created where it is missing.
pub(super) fn contexts(document: &mut DocumentMut) -> Result<&mut Table, CliError> {
    let table = document.entry("contexts").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    table.as_table_mut().ok_or_else(|| CliError::input("contexts", "is not a table; write [contexts.NAME]"))
}

/// Sets the given settings; an empty text removes a setting.
pub(super) fn put(table: &mut Table, settings: &[(&str, Option<&str>)]) {
    for (name, given) in settings {
        match given {
            None => {}
            Some("") => drop(table.remove(name)),
            Some(text) => table[name] = value(*text),
        }
    }
}
