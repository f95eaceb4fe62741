//! Where the adapter sends what it is told, and as whom: flags, then `MEMHOST_…`, then what Paperclip sets for an agent's
//! run, then the adapter's own file, then the profile that the other commands use.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::project::clean;

const DEFAULT_URL: &str = "http://127.0.0.1:7600";

/// When memory is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum RecallAt {
    /// Never.
    Off,
    /// When a session starts, goes on, or was shortened.
    #[default]
    Session,
    /// Then, and at each prompt with the prompt as the question.
    Prompts,
}

impl RecallAt {
    fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Session => "session",
            Self::Prompts => "prompts",
        }
    }
}

/// What a hook's command line may say. The token is not among it: what is in the settings of a tool is read by many.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct HookArgs {
    /// The host: http://…, https://… or unix:/path/of/a/socket. [env: MEMHOST_URL]
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,
    /// The company. [env: MEMHOST_COMPANY, PAPERCLIP_COMPANY_ID]
    #[arg(long, short, value_name = "ID")]
    pub(super) company: Option<String>,
    /// The agent that acts; memory is then its own. [env: MEMHOST_AGENT, PAPERCLIP_AGENT_ID]
    #[arg(long, value_name = "ID")]
    pub(super) agent: Option<String>,
    /// The project, instead of the one that the working directory is in. [env: MEMHOST_PROJECT]
    #[arg(long, value_name = "ID")]
    pub(super) project: Option<String>,
    /// Which of your profiles stands in for what nobody says. [env: MEMHOST_PROFILE]
    #[arg(long, value_name = "NAME")]
    pub(super) profile: Option<String>,
    /// When memory is asked; `session` where nobody says.
    #[arg(long, value_enum, value_name = "WHEN")]
    pub(super) recall: Option<RecallAt>,
    /// How long recall may take, in milliseconds, 20 to 30,000; 1,000 where nobody says.
    #[arg(long, value_name = "MS")]
    pub(super) deadline_ms: Option<u64>,
    /// How many tokens recall may have, 1 to 2,000; 500 where nobody says.
    #[arg(long, value_name = "N")]
    pub(super) token_budget: Option<u32>,
    /// Tell of sessions and tools, and capture nothing of what is said.
    #[arg(long)]
    pub(super) no_capture: bool,
    /// The file of settings and the token, TOML; `memhost/agent-hooks.toml` in the user's configuration directory where
    /// nobody says. [env: MEMHOST_AGENT_HOOKS_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

impl HookArgs {
    /// The same once more as arguments, for a command line that is written into a tool's settings.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([flag.to_owned(), value]);
            }
        };
        add("--url", self.url.clone());
        add("--company", self.company.clone());
        add("--agent", self.agent.clone());
        add("--project", self.project.clone());
        add("--profile", self.profile.clone());
        add("--recall", self.recall.map(|at| at.as_str().to_owned()));
        add("--deadline-ms", self.deadline_ms.map(|ms| ms.to_string()));
        add("--token-budget", self.token_budget.map(|tokens| tokens.to_string()));
        // Whoever runs them is somewhere else.
        let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        add("--config", self.config.as_ref().map(|path| whole(path).display().to_string()));
        if self.no_capture {
            words.push("--no-capture".to_owned());
        }
        words
    }
}

/// The file, TOML. Every key has its flag's name.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SettingsFile {
    url: Option<String>,
    company: Option<String>,
    agent: Option<String>,
    project: Option<String>,
    token: Option<String>,
    recall: Option<RecallAt>,
    query: Option<String>,
    deadline_ms: Option<u64>,
    token_budget: Option<u32>,
    capture: Option<bool>,
    spool_files: Option<usize>,
    spool_bytes: Option<u64>,
}

/// The file of profiles, as far as it matters here: a command that prints a token takes longer than a hook may.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProfilesFile {
    default: Option<String>,
    profiles: BTreeMap<String, Profile>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Profile {
    url: Option<String>,
    company: Option<String>,
    agent: Option<String>,
    token: Option<String>,
    token_file: Option<PathBuf>,
}

/// All of it, settled.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// The host.
    pub(super) url: String,
    /// Whose memory; without one there is nothing to do.
    pub(super) company: Option<String>,
    /// Who acts; the token may say it as well.
    pub(super) agent: Option<String>,
    /// The project, where it is not to be found out.
    pub(super) project: Option<String>,
    /// The run that Paperclip started the tool for.
    pub(super) run: Option<String>,
    /// The issue of that run.
    pub(super) issue: Option<String>,
    /// The token.
    pub(super) token: Option<String>,
    /// When memory is asked.
    pub(super) recall: RecallAt,
    /// What it is asked at the start of a session.
    pub(super) query: Option<String>,
    /// How long recall may take in all.
    pub(super) deadline: Duration,
    /// How many tokens recall may have.
    pub(super) token_budget: u32,
    /// Whether exchanges are captured.
    pub(super) capture: bool,
    /// How many events wait at most, for one destination.
    pub(super) spool_files: usize,
    /// How many bytes of them.
    pub(super) spool_bytes: u64,
}

impl Settings {
    /// Settles what this call goes by. What is wrong with a file is a complaint, and the rest still counts.
    pub(super) fn of(args: &HookArgs) -> (Self, Vec<String>) {
        let mut complaints = Vec::new();
        let file = config_path(args).map(|path| read_settings(&path, &mut complaints)).unwrap_or_default();
        let profile = profile(args, &mut complaints);
        let env = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let bare = |url: String| url.trim_end_matches('/').to_owned();
        let (of_file, of_profile) = (file.url.map(bare), profile.url.map(bare));
        let url = args.url.clone().or_else(|| env("MEMHOST_URL")).map(bare);
        let url =
            url.or_else(|| of_file.clone()).or_else(|| of_profile.clone()).unwrap_or_else(|| DEFAULT_URL.to_owned());
        // A token that is kept beside a host's address is for that host: another one must not learn it.
        let is_for = |host: &Option<String>| host.as_ref().is_none_or(|host| *host == url);
        let kept = file.token.filter(|_| is_for(&of_file)).or_else(|| profile.token.filter(|_| is_for(&of_profile)));
        let token = env("MEMHOST_TOKEN").or(kept).filter(|token| token.chars().all(|c| c.is_ascii_graphic()));
        let either = |flag: &Option<String>, ours: &str, theirs: &str, kept: Option<String>| {
            flag.clone().or_else(|| env(ours)).or_else(|| env(theirs)).or(kept)
        };
        let company = file.company.or(profile.company);
        let agent = file.agent.or(profile.agent);
        let settings = Self {
            url,
            company: either(&args.company, "MEMHOST_COMPANY", "PAPERCLIP_COMPANY_ID", company),
            agent: either(&args.agent, "MEMHOST_AGENT", "PAPERCLIP_AGENT_ID", agent),
            project: args.project.clone().or_else(|| env("MEMHOST_PROJECT")).or(file.project).map(|id| clean(&id)),
            run: env("MEMHOST_RUN").or_else(|| env("PAPERCLIP_RUN_ID")).map(|id| clean(&id)),
            issue: env("PAPERCLIP_TASK_ID").map(|id| clean(&id)),
            token,
            recall: args.recall.or(file.recall).unwrap_or_default(),
            query: file.query,
            deadline: Duration::from_millis(args.deadline_ms.or(file.deadline_ms).unwrap_or(1_000).clamp(20, 30_000)),
            token_budget: args.token_budget.or(file.token_budget).unwrap_or(500).clamp(1, 2_000),
            capture: !args.no_capture && file.capture.unwrap_or(true),
            spool_files: file.spool_files.unwrap_or(1_000).clamp(1, 100_000),
            spool_bytes: file.spool_bytes.unwrap_or(8 << 20).clamp(4 << 10, 1 << 30),
        };
        (settings, complaints)
    }
}

/// A path of the environment.
fn env_path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A file in the user's directory of configurations.
fn configuration(name: &str) -> Option<PathBuf> {
    let base = env_path("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let base = base.or_else(|| Some(env_path("HOME")?.join(".config")))?;
    Some(base.join("memhost").join(name))
}

/// Where the adapter's file is, whether or not there is one.
pub(super) fn config_path(args: &HookArgs) -> Option<PathBuf> {
    args.config.clone().or_else(|| env_path("MEMHOST_AGENT_HOOKS_CONFIG")).or_else(|| configuration("agent-hooks.toml"))
}

fn read_settings(path: &Path, complaints: &mut Vec<String>) -> SettingsFile {
    let mut file: SettingsFile = read(path, complaints);
    if file.token.is_some() && !is_private(path, complaints) {
        file.token = None;
    }
    file
}

fn profile(args: &HookArgs, complaints: &mut Vec<String>) -> Profile {
    let Some(path) = env_path("MEMHOST_CLI_CONFIG").or_else(|| configuration("config.toml")) else {
        return Profile::default();
    };
    let mut file: ProfilesFile = read(&path, complaints);
    let named = args.profile.clone().or_else(|| std::env::var("MEMHOST_PROFILE").ok().filter(|name| !name.is_empty()));
    let Some(name) = named.or(file.default) else { return Profile::default() };
    let Some(mut profile) = file.profiles.remove(&name) else {
        complaints.push(format!("there is no profile `{name}` in {}", path.display()));
        return Profile::default();
    };
    profile.url.get_or_insert_with(|| DEFAULT_URL.to_owned());
    let (holder, token) = match (profile.token.take(), &profile.token_file) {
        (Some(token), _) => (path, Some(token)),
        (None, Some(file)) => {
            let file = path.parent().unwrap_or(Path::new("")).join(file);
            let token = std::fs::read_to_string(&file).ok().map(|text| text.trim().to_owned());
            (file, token)
        }
        (None, None) => (path, None),
    };
    profile.token = token.filter(|_| is_private(&holder, complaints));
    profile
}

/// Reads TOML; the default where there is no file, or none that can be read.
fn read<T: Default + DeserializeOwned>(path: &Path, complaints: &mut Vec<String>) -> T {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return T::default(),
        Err(error) => {
            complaints.push(format!("{} cannot be read: {error}", path.display()));
            return T::default();
        }
    };
    toml::from_str(&text).unwrap_or_else(|error| {
        // The message of the error shows the line, and that may be the token's.
        let at = error.span().map_or(0, |span| text[..span.start.min(text.len())].lines().count().max(1));
        complaints.push(format!("{} is not as it should be, in line {at}; nothing of it counts", path.display()));
        T::default()
    })
}

fn is_private(path: &Path, complaints: &mut Vec<String>) -> bool {
    let mode = std::fs::metadata(path).map_or(0o777, |found| found.permissions().mode());
    let is_private = mode & 0o077 == 0;
    if !is_private {
        complaints.push(format!("{} can be read by others: its token is not used; chmod 600 it", path.display()));
    }
    is_private
}
