//! The contexts file: `~/.config/memhost/config.toml`, readable by its owner only. Comments and
//! formatting of a person survive changes.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Table, value};

use crate::{CliError, Result, user_files};
use memhost_types::nearest;

/// The variable that names another contexts file.
pub(crate) const VARIABLE: &str = "MEMHOST_CLI_CONFIG";

/// The content of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) default: Option<String>,
    pub(crate) contexts: BTreeMap<String, Context>,
    /// The file's path; relative paths in the file start from its directory.
    #[serde(skip)]
    pub(crate) path: PathBuf,
}

/// A host, a token for it, and a company.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Context {
    pub(crate) url: Option<String>,
    pub(crate) control_url: Option<String>,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) token: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) token_command: Option<String>,
    pub(crate) company: Option<String>,
    pub(crate) agent: Option<String>,
}

/// The path of the file.
pub(crate) fn path() -> Option<PathBuf> {
    user_files::given(VARIABLE).or_else(|| Some(user_files::config_dir()?.join("config.toml")))
}

impl File {
    /// Reads this person's contexts file; empty where there is none.
    pub(crate) fn read() -> Result<Self> {
        match path() {
            Some(path) => Self::at(&path),
            None => Ok(Self::default()),
        }
    }

    /// Reads a file; empty where there is none.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let wrong = |message: String| CliError::input(path.display().to_string(), message);
        let text = user_files::read(path)?;
        let mut file: Self = user_files::parse(&text).map_err(wrong)?;
        file.path = path.to_owned();
        if file.contexts.values().any(|context| context.token.is_some()) {
            let mode =
                std::fs::metadata(path).map(|found| found.permissions().mode()).unwrap_or_default();
            if mode & 0o077 != 0 {
                return Err(wrong(
                    "holds a token and is readable by others; run `chmod 600` on it".to_owned(),
                ));
            }
        }
        Ok(file)
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Context> {
        self.contexts.get(name).ok_or_else(|| {
            let advice = match nearest(name, self.contexts.keys().map(String::as_str)) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => "`memhost context list` shows those that there are".to_owned(),
            };
            let detail = format!("no context `{name}` in {}; {advice}", self.path.display());
            CliError::Problem { status: 404, detail, operation: None, code: None }
        })
    }

    /// A path in the file: relative ones start from its directory.
    pub(crate) fn beside(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }

    /// The token of a context, from its value, file or command.
    pub(crate) fn token(&self, context: &Context) -> Result<Option<String>> {
        if let Some(token) = &context.token {
            return Ok(Some(token.clone()));
        }
        if let Some(file) = &context.token_file {
            let file = self.beside(file);
            let text = std::fs::read_to_string(&file);
            let text = text.map_err(|error| {
                CliError::input("token_file", format!("{}: {error}", file.display()))
            })?;
            return Ok(Some(text.trim().to_owned()));
        }
        let Some(command) = &context.token_command else { return Ok(None) };
        let wrong =
            |message: String| CliError::input("token_command", format!("`{command}`: {message}"));
        // The command may ask for a passphrase on the terminal.
        let run = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::inherit())
            .stderr(Stdio::inherit())
            .output();
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

/// The table of all contexts, created where it is missing.
pub(crate) fn contexts(document: &mut DocumentMut) -> Result<&mut Table> {
    let table = document.entry("contexts").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    table
        .as_table_mut()
        .ok_or_else(|| CliError::input("contexts", "is not a table; write [contexts.NAME]"))
}

/// Sets the given settings; an empty text removes a setting.
pub(crate) fn put(table: &mut Table, settings: &[(&str, Option<&str>)]) {
    for (name, given) in settings {
        match given {
            None => {}
            Some("") => drop(table.remove(name)),
            Some(text) => table[name] = value(*text),
        }
    }
}
