//! Where the adapter sends what it is told, and as whom: flags, then `MEMHOST_…`, then what Paperclip sets for an agent's
//! run, then a file.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Deserialize;

use super::project::clean;

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
    /// The file of settings and the token, TOML; `memhost/adapter.toml` in the user's configuration directory where
    /// nobody says. [env: MEMHOST_ADAPTER_CONFIG]
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
        add("--recall", self.recall.map(|at| at.as_str().to_owned()));
        add("--deadline-ms", self.deadline_ms.map(|ms| ms.to_string()));
        add("--token-budget", self.token_budget.map(|tokens| tokens.to_string()));
        add("--config", self.config.as_ref().map(|path| path.display().to_string()));
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
    /// Settles what this call goes by. What is wrong with the file is a complaint, and the rest still counts.
    pub(super) fn of(args: &HookArgs) -> (Self, Vec<String>) {
        let mut complaints = Vec::new();
        let file = config_path(args).map(|path| read(&path, &mut complaints)).unwrap_or_default();
        let env = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let settings = Self {
            url: args
                .url
                .clone()
                .or_else(|| env("MEMHOST_URL"))
                .or(file.url)
                .map_or_else(|| "http://127.0.0.1:7600".to_owned(), |url| url.trim_end_matches('/').to_owned()),
            company: args
                .company
                .clone()
                .or_else(|| env("MEMHOST_COMPANY"))
                .or_else(|| env("PAPERCLIP_COMPANY_ID"))
                .or(file.company),
            agent: args
                .agent
                .clone()
                .or_else(|| env("MEMHOST_AGENT"))
                .or_else(|| env("PAPERCLIP_AGENT_ID"))
                .or(file.agent),
            project: args.project.clone().or_else(|| env("MEMHOST_PROJECT")).or(file.project).map(|id| clean(&id)),
            run: env("MEMHOST_RUN").or_else(|| env("PAPERCLIP_RUN_ID")).map(|id| clean(&id)),
            issue: env("PAPERCLIP_TASK_ID").map(|id| clean(&id)),
            token: env("MEMHOST_TOKEN").or(file.token).filter(|token| token.chars().all(|c| c.is_ascii_graphic())),
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

/// Where the file is, whether or not there is one.
pub(super) fn config_path(args: &HookArgs) -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    args.config
        .clone()
        .or_else(|| of("MEMHOST_ADAPTER_CONFIG"))
        .or_else(|| of("XDG_CONFIG_HOME").map(|base| base.join("memhost/adapter.toml")))
        .or_else(|| of("HOME").map(|home| home.join(".config/memhost/adapter.toml")))
}

fn read(path: &Path, complaints: &mut Vec<String>) -> SettingsFile {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return SettingsFile::default(),
        Err(error) => {
            complaints.push(format!("{} cannot be read: {error}", path.display()));
            return SettingsFile::default();
        }
    };
    let mut file: SettingsFile = match toml::from_str(&text) {
        Ok(file) => file,
        Err(error) => {
            // The message of the error shows the line, and that may be the token's.
            let at = error.span().map_or(0, |span| text[..span.start.min(text.len())].lines().count());
            complaints.push(format!("{} is not as it should be, at line {at}; nothing of it counts", path.display()));
            return SettingsFile::default();
        }
    };
    let mode = std::fs::metadata(path).map_or(0, |found| found.permissions().mode());
    if file.token.is_some() && mode & 0o077 != 0 {
        complaints.push(format!("{} can be read by others: its token is not used; chmod 600 it", path.display()));
        file.token = None;
    }
    file
}
