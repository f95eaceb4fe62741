//! `install` and `uninstall`: writing our entries into a tool's settings, and removing them.
//!
//! The entries of others are not touched. When the file has not changed since `install`,
//! `uninstall` restores the file that was there before, byte for byte.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

use super::HooksError;
use super::agent_tool::{InstallScope, Place, SettingsFile};
use super::hook::{NAME, program};
use super::output::line;
use super::settings::{HookArgs, Settings, config_path, env_text, holds_token};
use super::settings_entries::{Entries, SettingsFormat};
use super::state::{State, open_private, short_hash};
use super::tools::Tool;
use super::whose_token;

/// Which settings are changed.
#[derive(Debug, Args)]
pub(super) struct PlaceArgs {
    /// Whose sessions the hooks are for
    #[arg(long, value_enum, default_value = "user")]
    scope: InstallScope,
    /// Show the changes, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Use the tool's `notify` program instead of its hooks, where it has one; it hears of ends of
    /// turns only
    #[arg(long)]
    notify: bool,
}

impl PlaceArgs {
    /// The flags that name the same settings again.
    fn words(&self) -> String {
        let scope = self.scope.to_possible_value().filter(|_| self.scope != InstallScope::User);
        let scope = scope.map(|scope| format!(" --scope {}", scope.get_name()));
        let notify = if self.notify { " --notify" } else { "" };
        scope.unwrap_or_default() + notify
    }
}

/// The arguments of `install`.
#[derive(Debug, Args)]
pub(super) struct InstallArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Keep the token of MEMHOST_TOKEN for this tool in the settings file of the hooks, which only
    /// you can read
    #[arg(long)]
    save_token: bool,
    #[command(flatten)]
    hook: HookArgs,
}

/// The changes of `install`, so that `uninstall` can undo them.
#[derive(Debug, Serialize, Deserialize)]
struct Installed {
    path: PathBuf,
    /// A copy of the settings without our entries. `None` if there was no file.
    backup: Option<PathBuf>,
    /// The hash of the settings with our entries.
    digest: String,
}

/// Adds our entries.
pub(super) fn install(tool: Tool, args: &InstallArgs) -> Result<(), HooksError> {
    let (settings, warnings) = Settings::resolve(&args.hook, tool.name());
    for warning in warnings {
        line(&format!("warning: {warning}"))?;
    }
    let company = settings.company.as_deref().ok_or_else(|| {
        let message =
            "is missing; add --company ID, or set MEMHOST_COMPANY or `company` in the settings \
             file of the hooks";
        HooksError::input("--company", message)
    })?;
    if args.save_token && !args.place.dry_run {
        save_token(tool, &args.hook, &settings)?;
    } else if settings.token.is_none() {
        line(
            "warning: there is no token; set MEMHOST_TOKEN where the tool runs, or install with \
             --save-token",
        )?;
    } else if !args.save_token {
        whose_token::warn(&settings, company)?;
    }
    let SettingsFile { path, format } = settings_file(tool, &args.place)?;
    let entries = Entries { format, tool: tool.name() };
    let command = command(tool, format, args)?;
    let events: Vec<&str> = tool.events().iter().map(|event| event.name).collect();
    let found = read(&path)?;
    let before = found.as_deref().unwrap_or_default();
    let wrong = |message: String| HooksError::input(path.display().to_string(), message);
    let without = entries.remove(before).map_err(wrong)?;
    let after = entries.add(before, &events, &command).map_err(wrong)?;
    if found.as_ref() == Some(&after) {
        return line(&format!("{} is up to date", path.display()));
    }
    show_changes(&path, before, &after)?;
    if args.place.dry_run {
        return line("nothing was written");
    }
    let state = State::open();
    let record = record_path(&state, &path)?;
    let earlier = read_record(&record)
        .filter(|earlier| found.as_deref().is_some_and(|text| digest(text) == earlier.digest));
    let backup = match (earlier, &found) {
        // Our own earlier entries are replaced: the backup of then is what `uninstall` restores.
        (Some(earlier), _) => earlier.backup,
        (None, None) => None,
        (None, Some(_)) => Some(back_up(&state, &path, &without)?),
    };
    write(&path, &after, None)?;
    let installed = Installed { path: path.clone(), backup, digest: digest(&after) };
    let text = serde_json::to_string_pretty(&installed).map_err(HooksError::Record)?;
    open_private(&record, true).and_then(|mut file| file.write_all(text.as_bytes()))?;
    if let Some(backup) = &installed.backup {
        line(&format!("backup: {}", backup.display()))?;
    }
    line(&format!("to undo: memhost {NAME} {} uninstall{}", tool.name(), args.place.words()))?;
    tool.after_install(format).map_or(Ok(()), line)
}

/// Removes our entries.
pub(super) fn uninstall(tool: Tool, args: &PlaceArgs) -> Result<(), HooksError> {
    let SettingsFile { path, format } = settings_file(tool, args)?;
    let state = State::open();
    let record = record_path(&state, &path)?;
    let Some(before) = read(&path)? else {
        return line(&format!("{} does not exist; nothing to remove", path.display()));
    };
    let installed = read_record(&record).filter(|installed| digest(&before) == installed.digest);
    let after = match &installed {
        Some(Installed { backup: None, .. }) => None,
        Some(Installed { backup: Some(backup), .. }) => Some(fs::read_to_string(backup)?),
        None => {
            let wrong = |message: String| HooksError::input(path.display().to_string(), message);
            Some(Entries { format, tool: tool.name() }.remove(&before).map_err(wrong)?)
        }
    };
    if after.as_ref() == Some(&before) {
        return line(&format!("{} has no hooks of memhost", path.display()));
    }
    show_changes(&path, &before, after.as_deref().unwrap_or_default())?;
    if args.dry_run {
        return line("nothing was written");
    }
    match after {
        Some(text) => write(&path, &text, None)?,
        None => fs::remove_file(&path)?,
    }
    let _ = fs::remove_file(record);
    line("removed")?;
    // Other settings of the same tool may use it.
    match config_path(&HookArgs::default()).filter(|path| holds_token(path, tool.name())) {
        Some(path) => line(&format!(
            "the token of {} stays in {}; `memhost token delete` revokes it",
            tool.title(),
            path.display()
        )),
        None => Ok(()),
    }
}

/// The tool's file. Settings are often a link to where a person keeps them: then that file is
/// changed, and the link stays.
fn settings_file(tool: Tool, args: &PlaceArgs) -> Result<SettingsFile, HooksError> {
    let place = Place { scope: args.scope, notify: args.notify, here: std::env::current_dir()? };
    let file = tool.settings_file(&place)?;
    Ok(SettingsFile { path: fs::canonicalize(&file.path).unwrap_or(file.path), ..file })
}

/// The command that the tool is to run.
fn command(
    tool: Tool,
    format: SettingsFormat,
    args: &InstallArgs,
) -> Result<Vec<String>, HooksError> {
    // A file that others share must not name a path of this machine.
    let is_shared = args.place.scope == InstallScope::Project;
    let program = if is_shared { "memhost".to_owned() } else { program()?.display().to_string() };
    let mut words = vec![program, NAME.to_owned(), tool.name().to_owned()];
    if format == SettingsFormat::NotifyToml {
        words.push("notify".to_owned());
    }
    // The environment of the tool may differ from that of this command.
    let mut hook = args.hook.clone();
    hook.company = hook.company.or_else(|| env_text("MEMHOST_COMPANY"));
    if !is_shared {
        hook.url = hook.url.or_else(|| env_text("MEMHOST_URL"));
        hook.agent = hook.agent.or_else(|| env_text("MEMHOST_AGENT"));
    }
    words.extend(hook.words());
    Ok(words)
}

fn read(path: &Path) -> Result<Option<String>, HooksError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(HooksError::input(path.display().to_string(), format!("cannot be read: {error}")))
        }
    }
}

/// Replaces the file in one step. It keeps its permissions, unless others are given.
fn write(path: &Path, text: &str, mode: Option<u32>) -> Result<(), HooksError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let kept = || fs::metadata(path).map_or(0o600, |found| found.permissions().mode());
    let mode = mode.unwrap_or_else(kept);
    Ok(memhost_files::durable::write(path, text.as_bytes(), mode & 0o7777)?)
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn record_path(state: &State, path: &Path) -> Result<PathBuf, HooksError> {
    Ok(state
        .directory("installed")?
        .join(format!("{}.json", short_hash(&[&path.to_string_lossy()]))))
}

fn read_record(record: &Path) -> Option<Installed> {
    serde_json::from_slice(&fs::read(record).ok()?).ok()
}

fn back_up(state: &State, path: &Path, text: &str) -> Result<PathBuf, HooksError> {
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%.6f").to_string();
    let name = format!("{}-{now}-{}", short_hash(&[&path.to_string_lossy()]), file_name(path));
    let backup = state.directory("backups")?.join(name);
    open_private(&backup, true).and_then(|mut file| file.write_all(text.as_bytes()))?;
    Ok(backup)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Prints the lines that change.
fn show_changes(path: &Path, before: &str, after: &str) -> Result<(), HooksError> {
    line(&path.display().to_string())?;
    for change in TextDiff::from_lines(before, after).iter_all_changes() {
        let text = change.value().trim_end_matches(['\n', '\r']);
        match change.tag() {
            ChangeTag::Delete => line(&format!("- {text}"))?,
            ChangeTag::Insert => line(&format!("+ {text}"))?,
            ChangeTag::Equal => {}
        }
    }
    Ok(())
}

/// Keeps the token for one tool: another tool of the same user may be another agent.
fn save_token(tool: Tool, args: &HookArgs, settings: &Settings) -> Result<(), HooksError> {
    let token = env_text("MEMHOST_TOKEN").ok_or_else(|| {
        HooksError::input("--save-token", "finds no token; set MEMHOST_TOKEN to the token")
    })?;
    let path = config_path(args).ok_or_else(|| {
        HooksError::input("--config", "is missing, and HOME is not set; add --config FILE")
    })?;
    let wrong = |message: String| HooksError::input(path.display().to_string(), message);
    let text = read(&path)?.unwrap_or_default();
    let mut document: toml_edit::DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| wrong(error.to_string()))?;
    let all =
        document.entry("tools").or_insert_with(|| toml_edit::Item::Table(toml_edit::Table::new()));
    if let Some(all) = all.as_table_mut() {
        all.set_implicit(true);
    }
    let own = all.as_table_like_mut().map(|all| {
        all.entry(tool.name()).or_insert_with(|| toml_edit::Item::Table(toml_edit::Table::new()))
    });
    let own = own.ok_or_else(|| wrong("has a `tools` that is not a table".to_owned()))?;
    own["token"] = toml_edit::value(token);
    own["url"] = toml_edit::value(&settings.url);
    write(&path, &document.to_string(), Some(0o600))?;
    line(&format!("the token is in {}", path.display()))
}
