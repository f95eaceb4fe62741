//! Writing the adapter into a tool's settings, and taking it out again. Only our own entries are touched; where nobody has
//! changed the file since, taking them out gives back the file that was there before, byte for byte.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::HooksError;
use super::entries::{self, Edit};
use super::hook::program;
use super::output::line;
use super::payload::Tool;
use super::settings::{HookArgs, RecallAt, Settings, config_path};
use super::state::{State, private, short_hash};

/// Whose sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum InstallScope {
    /// All of this user's.
    User,
    /// Those in this directory, of everybody who has the file and `memhost` on their path.
    Project,
    /// Those in this directory, of this user. Claude Code only.
    Local,
}

#[derive(Debug, Args)]
pub(super) struct PlaceArgs {
    /// Whose sessions: this user's, or those in this directory.
    #[arg(long, value_enum, default_value = "user")]
    scope: InstallScope,
    /// Show what would be written, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Codex: its older `notify` program in config.toml instead of hooks. Then only ends of turns are told.
    #[arg(long)]
    notify: bool,
}

#[derive(Debug, Args)]
pub(super) struct InstallArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Put the token of MEMHOST_TOKEN into the adapter's own file, which nobody else can read.
    #[arg(long)]
    save_token: bool,
    #[command(flatten)]
    hook: HookArgs,
}

/// What was there before, and what we left: beside the backup, so that `uninstall` finds it.
#[derive(Debug, Serialize, Deserialize)]
struct Installed {
    path: PathBuf,
    /// The file without our entries; none where there was no file.
    backup: Option<PathBuf>,
    /// The digest of the file as we left it.
    digest: String,
}

/// Writes our entries.
pub(super) fn install(tool: Tool, args: &InstallArgs) -> Result<(), HooksError> {
    let (settings, complaints) = Settings::of(&args.hook);
    for complaint in complaints {
        line(&format!("note: {complaint}"))?;
    }
    if settings.company.is_none() {
        return Err(HooksError::input(
            "--company",
            "is missing; name it here, in MEMHOST_COMPANY or in the adapter's file",
        ));
    }
    if args.save_token && !args.place.dry_run {
        save_token(&args.hook, &settings.url)?;
    } else if settings.token.is_none() {
        line("note: there is no token yet; set MEMHOST_TOKEN where the tool runs, or install with --save-token")?;
    }
    let edit = edit_of(tool, &args.place);
    let path = place(tool, &args.place)?;
    let command = command(tool, args)?;
    let mut events: Vec<&str> = match tool {
        Tool::Claude => {
            vec!["SessionStart", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "PreCompact", "SessionEnd"]
        }
        Tool::Codex => vec!["SessionStart", "PreToolUse", "PostToolUse", "Stop", "PreCompact"],
    };
    if settings.recall == RecallAt::Prompts {
        events.insert(1, "UserPromptSubmit");
    }
    let before = read(&path)?;
    let wrong = |message: String| HooksError::input(path.display().to_string(), message);
    let base = entries::without(edit, before.as_deref().unwrap_or_default()).map_err(wrong)?;
    let after = entries::with(edit, before.as_deref().unwrap_or_default(), &events, &command).map_err(wrong)?;
    if before.as_ref() == Some(&after) {
        return line(&format!("{} has it already", path.display()));
    }
    show(&path, before.as_deref().unwrap_or_default(), &after)?;
    if args.place.dry_run {
        return line("nothing was written");
    }
    let state = State::open();
    let record = record_path(&state, &path)?;
    let known = known(&record).filter(|known| before.as_ref().is_some_and(|text| digest(text) == known.digest));
    let backup = match (known, &before) {
        // Installed over ourselves: what was there before us is what is to come back.
        (Some(known), _) => known.backup,
        (None, None) => None,
        (None, Some(_)) => Some(back_up(&state, &path, &base)?),
    };
    write(&path, &after)?;
    let installed = Installed { path: path.clone(), backup, digest: digest(&after) };
    let text = serde_json::to_string_pretty(&installed).map_err(HooksError::Record)?;
    private(&record, true).and_then(|mut file| file.write_all(text.as_bytes()))?;
    if let Some(backup) = &installed.backup {
        line(&format!("the file as it was: {}", backup.display()))?;
    }
    line(&format!("`memhost agent-hooks {} uninstall` takes it out again", tool.kind()))?;
    if tool == Tool::Codex && !args.place.notify {
        line("Codex runs a hook once you have looked at it and trusted it: type /hooks in Codex")?;
    }
    Ok(())
}

/// Takes our entries out.
pub(super) fn uninstall(tool: Tool, args: &PlaceArgs) -> Result<(), HooksError> {
    let path = place(tool, args)?;
    let state = State::open();
    let record = record_path(&state, &path)?;
    let Some(before) = read(&path)? else {
        return line(&format!("there is no {}", path.display()));
    };
    let known = known(&record).filter(|known| digest(&before) == known.digest);
    let after = match &known {
        Some(Installed { backup: None, .. }) => None,
        Some(Installed { backup: Some(backup), .. }) => Some(fs::read_to_string(backup)?),
        None => {
            let wrong = |message: String| HooksError::input(path.display().to_string(), message);
            Some(entries::without(edit_of(tool, args), &before).map_err(wrong)?)
        }
    };
    if after.as_ref() == Some(&before) {
        return line(&format!("{} has nothing of ours", path.display()));
    }
    show(&path, &before, after.as_deref().unwrap_or_default())?;
    if args.dry_run {
        return line("nothing was written");
    }
    match after {
        Some(text) => write(&path, &text)?,
        None => fs::remove_file(&path)?,
    }
    let _ = fs::remove_file(record);
    line("taken out")
}

fn edit_of(tool: Tool, args: &PlaceArgs) -> Edit {
    match (tool, args.notify) {
        (Tool::Codex, true) => Edit::Notify,
        (tool, _) => Edit::Hooks(tool),
    }
}

/// Which file.
fn place(tool: Tool, args: &PlaceArgs) -> Result<PathBuf, HooksError> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || of("HOME").ok_or_else(|| HooksError::input("HOME", "is not set; the tool's settings are there"));
    let here = std::env::current_dir()?;
    let file = match (tool, args.scope) {
        (Tool::Claude, InstallScope::User) => match of("CLAUDE_CONFIG_DIR") {
            Some(directory) => directory.join("settings.json"),
            None => home()?.join(".claude/settings.json"),
        },
        (Tool::Claude, InstallScope::Project) => here.join(".claude/settings.json"),
        (Tool::Claude, InstallScope::Local) => here.join(".claude/settings.local.json"),
        (Tool::Codex, scope) => {
            let directory = match scope {
                InstallScope::User => of("CODEX_HOME").map_or_else(|| home().map(|home| home.join(".codex")), Ok)?,
                InstallScope::Project => here.join(".codex"),
                InstallScope::Local => {
                    return Err(HooksError::input("--scope", "`local` is Claude Code's; use `project`"));
                }
            };
            if args.notify && scope != InstallScope::User {
                return Err(HooksError::input(
                    "--notify",
                    "is for all sessions: Codex reads it in its user's file only",
                ));
            }
            directory.join(if args.notify { "config.toml" } else { "hooks.json" })
        }
    };
    // Settings are often a link to where somebody keeps them: that file is changed, and the link stays.
    Ok(fs::canonicalize(&file).unwrap_or(file))
}

fn command(tool: Tool, args: &InstallArgs) -> Result<Vec<String>, HooksError> {
    // What others share is not where it is on this machine.
    let program = match args.place.scope {
        InstallScope::Project => "memhost".to_owned(),
        InstallScope::User | InstallScope::Local => program()?.display().to_string(),
    };
    let mut words = vec![program, "agent-hooks".to_owned(), tool.kind().to_owned()];
    if args.place.notify && tool == Tool::Codex {
        words.push("notify".to_owned());
    }
    // What the environment says here and now need not be what it says where the tool runs.
    let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut hook = args.hook.clone();
    hook.company = hook.company.or_else(|| env("MEMHOST_COMPANY"));
    if args.place.scope != InstallScope::Project {
        hook.url = hook.url.or_else(|| env("MEMHOST_URL"));
        hook.agent = hook.agent.or_else(|| env("MEMHOST_AGENT"));
    }
    words.extend(hook.words());
    Ok(words)
}

fn read(path: &Path) -> Result<Option<String>, HooksError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(HooksError::input(path.display().to_string(), format!("cannot be read: {error}"))),
    }
}

/// Whole or not at all, with the permissions that it had.
fn write(path: &Path, text: &str) -> Result<(), HooksError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    let mode = fs::metadata(path).map_or(0o600, |found| found.permissions().mode());
    file.as_file().set_permissions(fs::Permissions::from_mode(mode & 0o7777))?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn record_path(state: &State, path: &Path) -> Result<PathBuf, HooksError> {
    Ok(state.directory("installed")?.join(format!("{}.json", short_hash(&[&path.to_string_lossy()]))))
}

fn known(record: &Path) -> Option<Installed> {
    serde_json::from_slice(&fs::read(record).ok()?).ok()
}

fn back_up(state: &State, path: &Path, text: &str) -> Result<PathBuf, HooksError> {
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%.6f").to_string();
    let name = format!("{}-{now}-{}", short_hash(&[&path.to_string_lossy()]), file_name(path));
    let backup = state.directory("backups")?.join(name);
    private(&backup, true).and_then(|mut file| file.write_all(text.as_bytes()))?;
    Ok(backup)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The lines that change, from the first to the last.
fn show(path: &Path, before: &str, after: &str) -> Result<(), HooksError> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[same..], &new[same..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    line(&path.display().to_string())?;
    for text in &old[..old.len() - tail] {
        line(&format!("- {text}"))?;
    }
    for text in &new[..new.len() - tail] {
        line(&format!("+ {text}"))?;
    }
    Ok(())
}

fn save_token(args: &HookArgs, url: &str) -> Result<(), HooksError> {
    let token = std::env::var("MEMHOST_TOKEN").ok().filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| HooksError::input("--save-token", "needs the token in MEMHOST_TOKEN"))?;
    let path = config_path(args).ok_or_else(|| HooksError::input("--config", "is needed where HOME is not set"))?;
    let wrong = |message: String| HooksError::input(path.display().to_string(), message);
    let text = read(&path)?.unwrap_or_default();
    let mut document: toml_edit::DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| wrong(error.to_string()))?;
    document["token"] = toml_edit::value(token);
    document["url"] = toml_edit::value(url);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(document.to_string().as_bytes())?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o600))?;
    file.persist(&path).map_err(|error| error.error)?;
    line(&format!("the token is in {}", path.display()))
}
