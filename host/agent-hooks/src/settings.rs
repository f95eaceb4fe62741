//! The settings of a hook: which host, which company and agent, and what is asked and captured.
//!
//! The first of these that says something counts: flags, `MEMHOST_…`, the variables that Paperclip
//! sets for an agent's run, the settings file of the hooks, and the context that the other commands
//! use.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::http::Host;
use super::project::clean;
use super::trust::trusting;

const DEFAULT_URL: &str = "http://127.0.0.1:7600";

/// When memory is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum RecallAt {
    /// Never
    Off,
    /// When a session starts, goes on, or was shortened
    #[default]
    Session,
    /// Then, and at each prompt with the prompt as the query
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

/// The flags of a hook. There is none for the token: many can read the settings of a tool.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct HookArgs {
    /// The host: http://…, https://… or unix:/path/of/socket [env: MEMHOST_URL]
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,
    /// PEM file with the certificate authorities to trust for an https URL [env: MEMHOST_CA]
    #[arg(long, value_name = "FILE")]
    pub(super) ca: Option<PathBuf>,
    /// The company [env: MEMHOST_COMPANY, PAPERCLIP_COMPANY_ID]
    #[arg(long, short, value_name = "ID")]
    pub(super) company: Option<String>,
    /// The agent that acts, whose memory is used [env: MEMHOST_AGENT, PAPERCLIP_AGENT_ID]
    #[arg(long, value_name = "ID")]
    pub(super) agent: Option<String>,
    /// The project, instead of that of the working directory [env: MEMHOST_PROJECT]
    #[arg(long, value_name = "ID")]
    pub(super) project: Option<String>,
    /// The context for what is not set otherwise [env: MEMHOST_CONTEXT]
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,
    /// When memory is asked; the default is `session`
    #[arg(long, value_enum, value_name = "WHEN")]
    pub(super) recall: Option<RecallAt>,
    /// How long recall may take, in milliseconds, 20 to 30,000; the default is 1,000
    #[arg(long, value_name = "MS")]
    pub(super) deadline_ms: Option<u64>,
    /// How many tokens recall may have, 1 to 2,000; the default is 500
    #[arg(long, value_name = "N")]
    pub(super) token_budget: Option<u32>,
    /// Report sessions and tool calls, and capture nothing of what is said
    #[arg(long)]
    pub(super) no_capture: bool,
    /// The TOML file with settings and the token; the default is `memhost/agent-hooks.toml` in your
    /// configuration directory [env: MEMHOST_AGENT_HOOKS_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

impl HookArgs {
    /// The flags as arguments again, for a command line that is written into a tool's settings.
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
        add("--context", self.context.clone());
        add("--recall", self.recall.map(|at| at.as_str().to_owned()));
        add("--deadline-ms", self.deadline_ms.map(|ms| ms.to_string()));
        add("--token-budget", self.token_budget.map(|tokens| tokens.to_string()));
        // The command will run in another directory.
        add("--ca", self.ca.as_ref().map(|path| whole(path).display().to_string()));
        add("--config", self.config.as_ref().map(|path| whole(path).display().to_string()));
        if self.no_capture {
            words.push("--no-capture".to_owned());
        }
        words
    }
}

/// The settings file. Each key has the name of its flag.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SettingsFile {
    url: Option<String>,
    ca: Option<PathBuf>,
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
    /// The settings of each tool, by its name: two tools of one user can be two agents.
    tools: BTreeMap<String, ToolFile>,
}

/// The part of the settings file for one tool.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ToolFile {
    url: Option<String>,
    agent: Option<String>,
    token: Option<String>,
}

/// The file of contexts, without what a hook does not use: a command that prints a token takes
/// longer than a hook may.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContextsFile {
    default: Option<String>,
    contexts: BTreeMap<String, Context>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Context {
    url: Option<String>,
    ca: Option<PathBuf>,
    company: Option<String>,
    agent: Option<String>,
    token: Option<String>,
    token_file: Option<PathBuf>,
}

/// The settings of one call.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// The tool that they are for; empty outside of a tool.
    pub(super) tool: String,
    pub(super) url: String,
    /// The certificate authorities to trust.
    pub(super) ca: Option<PathBuf>,
    /// The company; without one there is nothing to do.
    pub(super) company: Option<String>,
    /// The agent that acts; the token may say it, too.
    pub(super) agent: Option<String>,
    /// The project, where it is not that of the working directory.
    pub(super) project: Option<String>,
    /// The run that Paperclip started the tool for.
    pub(super) run: Option<String>,
    /// The issue of that run.
    pub(super) issue: Option<String>,
    pub(super) token: Option<String>,
    /// Whether the settings file of the hooks has it.
    pub(super) has_own_token: bool,
    /// The file that has it, and for whom. Another token there has replaced it. `None`: it is of
    /// the environment.
    pub(super) token_place: Option<String>,
    /// The settings file that a flag named.
    pub(super) config: Option<PathBuf>,
    /// The context that was named, if not the default one.
    pub(super) context: Option<String>,
    pub(super) recall: RecallAt,
    /// The query at the start of a session.
    pub(super) query: Option<String>,
    /// How long recall may take, from the name look-up to the last byte.
    pub(super) deadline: Duration,
    /// How many tokens recall may have.
    pub(super) token_budget: u32,
    pub(super) capture: bool,
    /// How many requests may wait in one spool.
    pub(super) spool_files: usize,
    /// How many bytes they may have.
    pub(super) spool_bytes: u64,
}

impl Settings {
    /// Reads all sources, and says what is wrong with a file. The other sources still count then.
    /// The tool's part of the file goes before the part for all.
    pub(super) fn resolve(args: &HookArgs, tool: &str) -> (Self, Vec<String>) {
        let mut warnings = Vec::new();
        let mut file =
            config_path(args).map(|path| read_settings(&path, &mut warnings)).unwrap_or_default();
        let mut place = "token".to_owned();
        if let Some(own) = file.tools.remove(tool) {
            // A token is for the host beside it, so that both go together.
            if own.token.is_some() {
                (file.token, file.url) = (own.token, own.url.or(file.url));
                place = format!("tools.{tool}");
            }
            file.agent = own.agent.or(file.agent);
        }
        let context = context(args, &mut warnings);
        let beside = |file: Option<PathBuf>, ca: Option<PathBuf>| {
            ca.map(|ca| file.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).join(ca))
        };
        let ca = (args.ca.clone().or_else(|| env_path("MEMHOST_CA")))
            .or_else(|| beside(config_path(args), file.ca))
            .or_else(|| beside(contexts_path(), context.ca));
        if let Some(Err(why)) = ca.as_deref().map(trusting) {
            warnings.push(why);
        }
        let without_slash = |url: String| url.trim_end_matches('/').to_owned();
        let (of_file, of_context) = (file.url.map(without_slash), context.url.map(without_slash));
        let url = args.url.clone().or_else(|| env_text("MEMHOST_URL")).map(without_slash);
        let url = url
            .or_else(|| of_file.clone())
            .or_else(|| of_context.clone())
            .unwrap_or_else(|| DEFAULT_URL.to_owned());
        // A token beside the address of a host is for that host. Another host must not learn it.
        let is_for = |host: &Option<String>| host.as_ref().is_none_or(|host| *host == url);
        let own = file.token.filter(|_| is_for(&of_file));
        let has_own_token = own.is_some();
        let named = args.context.clone().or_else(|| env_text("MEMHOST_CONTEXT"));
        let token_place = match (env_text("MEMHOST_TOKEN"), has_own_token) {
            (Some(_), _) => None,
            (None, true) => config_path(args).map(|path| format!("{} {place}", path.display())),
            (None, false) => Some(format!("context {}", named.as_deref().unwrap_or_default())),
        };
        let stored = own.or_else(|| context.token.filter(|_| is_for(&of_context)));
        let token = env_text("MEMHOST_TOKEN")
            .or(stored)
            .filter(|token| token.chars().all(|c| c.is_ascii_graphic()));
        let either = |flag: &Option<String>, ours: &str, theirs: &str, stored: Option<String>| {
            flag.clone().or_else(|| env_text(ours)).or_else(|| env_text(theirs)).or(stored)
        };
        let company = file.company.or(context.company);
        let agent = file.agent.or(context.agent);
        let settings = Self {
            tool: tool.to_owned(),
            url,
            ca,
            company: either(&args.company, "MEMHOST_COMPANY", "PAPERCLIP_COMPANY_ID", company),
            agent: either(&args.agent, "MEMHOST_AGENT", "PAPERCLIP_AGENT_ID", agent),
            project: args
                .project
                .clone()
                .or_else(|| env_text("MEMHOST_PROJECT"))
                .or(file.project)
                .map(|id| clean(&id)),
            run: env_text("MEMHOST_RUN")
                .or_else(|| env_text("PAPERCLIP_RUN_ID"))
                .map(|id| clean(&id)),
            issue: env_text("PAPERCLIP_TASK_ID").map(|id| clean(&id)),
            token,
            has_own_token,
            token_place,
            config: args.config.as_ref().map(|path| whole(path)),
            context: named,
            recall: args.recall.or(file.recall).unwrap_or_default(),
            query: file.query,
            deadline: Duration::from_millis(
                args.deadline_ms.or(file.deadline_ms).unwrap_or(1_000).clamp(20, 30_000),
            ),
            token_budget: args.token_budget.or(file.token_budget).unwrap_or(500).clamp(1, 2_000),
            capture: !args.no_capture && file.capture.unwrap_or(true),
            spool_files: file.spool_files.unwrap_or(1_000).clamp(1, 100_000),
            spool_bytes: file.spool_bytes.unwrap_or(8 << 20).clamp(4 << 10, 1 << 30),
        };
        (settings, warnings)
    }

    /// The host that requests go to.
    pub(super) fn host(&self) -> Host<'_> {
        Host { url: &self.url, ca: self.ca.as_deref() }
    }
}

fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A variable that is set and not blank.
pub(super) fn env_text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// A path in a variable that is set and not empty.
pub(super) fn env_path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A file in the user's configuration directory.
fn configuration(name: &str) -> Option<PathBuf> {
    let base = env_path("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let base = base.or_else(|| Some(env_path("HOME")?.join(".config")))?;
    Some(base.join("memhost").join(name))
}

/// The path of the settings file, whether or not there is one.
pub(super) fn config_path(args: &HookArgs) -> Option<PathBuf> {
    args.config
        .clone()
        .or_else(|| env_path("MEMHOST_AGENT_HOOKS_CONFIG"))
        .or_else(|| configuration("agent-hooks.toml"))
}

fn contexts_path() -> Option<PathBuf> {
    env_path("MEMHOST_CLI_CONFIG").or_else(|| configuration("config.toml"))
}

/// Whether the settings file of the hooks has a token for this tool, or for all.
pub(super) fn holds_token(path: &Path, tool: &str) -> bool {
    let file: SettingsFile = read(path, &mut Vec::new());
    file.token.is_some() || file.tools.get(tool).is_some_and(|own| own.token.is_some())
}

fn read_settings(path: &Path, warnings: &mut Vec<String>) -> SettingsFile {
    let mut file: SettingsFile = read(path, warnings);
    let holds_one = file.token.is_some() || file.tools.values().any(|tool| tool.token.is_some());
    if holds_one && !is_private(path, warnings) {
        file.token = None;
        file.tools.values_mut().for_each(|tool| tool.token = None);
    }
    file
}

fn context(args: &HookArgs, warnings: &mut Vec<String>) -> Context {
    let Some(path) = contexts_path() else {
        return Context::default();
    };
    let mut file: ContextsFile = read(&path, warnings);
    let named = args.context.clone().or_else(|| env_text("MEMHOST_CONTEXT"));
    let Some(name) = named.or(file.default) else { return Context::default() };
    let Some(mut context) = file.contexts.remove(&name) else {
        warnings.push(format!("{} has no context `{name}`", path.display()));
        return Context::default();
    };
    context.url.get_or_insert_with(|| DEFAULT_URL.to_owned());
    let (holder, token) = match (context.token.take(), &context.token_file) {
        (Some(token), _) => (path, Some(token)),
        (None, Some(file)) => {
            let file = path.parent().unwrap_or(Path::new("")).join(file);
            let token = std::fs::read_to_string(&file).ok().map(|text| text.trim().to_owned());
            (file, token)
        }
        (None, None) => (path, None),
    };
    context.token = token.filter(|_| is_private(&holder, warnings));
    context
}

/// Reads TOML. A file that is not there, or that cannot be read, has no settings.
fn read<T: Default + DeserializeOwned>(path: &Path, warnings: &mut Vec<String>) -> T {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return T::default(),
        Err(error) => {
            warnings.push(format!("{} cannot be read: {error}", path.display()));
            return T::default();
        }
    };
    toml::from_str(&text).unwrap_or_else(|error| {
        // The error's own message shows the line, and that may be the one with the token.
        let at = error
            .span()
            .map_or(0, |span| text[..span.start.min(text.len())].lines().count().max(1));
        warnings.push(format!("{} has a mistake in line {at}, and is ignored", path.display()));
        T::default()
    })
}

fn is_private(path: &Path, warnings: &mut Vec<String>) -> bool {
    let mode = std::fs::metadata(path).map_or(0o777, |found| found.permissions().mode());
    let is_private = mode & 0o077 == 0;
    if !is_private {
        warnings.push(format!(
            "other users can read {path}, so its token is not used; type chmod 600 {path}",
            path = path.display()
        ));
    }
    is_private
}
