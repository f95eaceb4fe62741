//! What commands have in common: which host, whose memory, in which scope, which page, and how the answer is shown. One
//! name means one thing in all of them.

use std::path::PathBuf;

use clap::Args;

use super::output::Format;

/// How the answer is shown.
#[derive(Debug, Clone, Args)]
pub(super) struct OutputArgs {
    /// How the answer is shown: a table for people, the host's JSON, one item of it on each line, or YAML.
    #[arg(long, short, global = true, value_enum, value_name = "FORM", help_heading = "Output")]
    output: Option<Format>,
    /// The same as `--output json`.
    #[arg(long, global = true, hide = true, conflicts_with = "output")]
    json: bool,
}

impl OutputArgs {
    /// What was asked for.
    pub(super) fn format(&self) -> Format {
        match (self.output, self.json) {
            (Some(format), _) => format,
            (None, true) => Format::Json,
            (None, false) => Format::Table,
        }
    }
}

/// Which host.
#[derive(Debug, Clone, Args)]
pub(super) struct HostArgs {
    /// A host that runs, http://… or unix:PATH; http://127.0.0.1:7600 where neither this nor the profile names one.
    #[arg(long, env = "MEMHOST_URL", value_name = "URL", help_heading = "Host")]
    pub(super) url: Option<String>,
    /// Where the host's control plane is, if it listens by itself; the same as --url where absent.
    #[arg(long, env = "MEMHOST_CONTROL_URL", value_name = "URL", help_heading = "Host")]
    pub(super) control_url: Option<String>,
    /// The token that says who you are to it; the profile's where absent.
    #[arg(long, env = "MEMHOST_TOKEN", hide_env_values = true, value_name = "TOKEN", help_heading = "Host")]
    pub(super) token: Option<String>,
    /// Which of your profiles: a host, a token and a company under one name; see `memhost profile`.
    #[arg(long, global = true, env = "MEMHOST_PROFILE", value_name = "NAME", help_heading = "Host")]
    pub(super) profile: Option<String>,
    /// Instead of a running host: a data directory, opened for this command.
    #[arg(long, value_name = "DIR", help_heading = "Host")]
    pub(super) data_dir: Option<PathBuf>,
    /// With --data-dir: where its plugins are.
    #[arg(long, requires = "data_dir", value_name = "DIR", help_heading = "Host")]
    pub(super) plugins_dir: Option<PathBuf>,
    /// With --data-dir: the host's configuration file.
    #[arg(long, env = "MEMHOST_CONFIG", value_name = "FILE", help_heading = "Host")]
    pub(super) host_config: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Whose memory.
#[derive(Debug, Clone, Args)]
pub(super) struct CompanyArgs {
    /// The company; the profile's where absent.
    #[arg(long, short, env = "MEMHOST_COMPANY", value_name = "ID")]
    pub(super) company: Option<String>,
    #[command(flatten)]
    pub(super) host: HostArgs,
}

/// Whose memory, and in which scope.
#[derive(Debug, Clone, Args)]
pub(super) struct ScopeArgs {
    #[command(flatten)]
    pub(super) company: CompanyArgs,
    /// The agent that acts; the profile's where absent.
    #[arg(long, env = "MEMHOST_AGENT", value_name = "ID", help_heading = "Scope")]
    pub(super) agent: Option<String>,
    /// A binding instead of the one that is active.
    #[arg(long, value_name = "KEY", help_heading = "Scope")]
    pub(super) binding: Option<String>,
    /// The project, as context.
    #[arg(long, value_name = "ID", help_heading = "Scope")]
    pub(super) project: Option<String>,
    /// The issue, as context.
    #[arg(long, value_name = "ID", help_heading = "Scope")]
    pub(super) issue: Option<String>,
    /// The run, as context.
    #[arg(long, value_name = "ID", help_heading = "Scope")]
    pub(super) run: Option<String>,
    /// An external or user identity.
    #[arg(long, value_name = "ID", help_heading = "Scope")]
    pub(super) subject: Option<String>,
    /// The session, as context.
    #[arg(long, value_name = "KEY", help_heading = "Scope")]
    pub(super) session: Option<String>,
    /// An explicit partition.
    #[arg(long, value_name = "NAME", help_heading = "Scope")]
    pub(super) namespace: Option<String>,
}

/// Which part of a list.
#[derive(Debug, Clone, Args)]
pub(super) struct Paging {
    /// Where the page before ended.
    #[arg(long, value_name = "CURSOR", help_heading = "Output")]
    pub(super) cursor: Option<String>,
    /// At most this many on a page; 20 of a long list where absent.
    #[arg(long, value_name = "NUMBER", help_heading = "Output")]
    pub(super) limit: Option<u32>,
    /// Every page, one after the other.
    #[arg(long, help_heading = "Output")]
    pub(super) all: bool,
    #[command(flatten)]
    pub(super) watch: WatchArgs,
}

/// Looking again and again.
#[derive(Debug, Clone, Args)]
pub(super) struct WatchArgs {
    /// Look again every so many seconds, 2 where none are named, and show what has changed.
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2",
        value_parser = seconds,
        help_heading = "Output"
    )]
    pub(super) watch: Option<f64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("is no number of seconds from 0.1 to 86400".to_owned()),
    }
}

/// A list of a company.
#[derive(Debug, Clone, Args)]
pub(super) struct PageArgs {
    #[command(flatten)]
    pub(super) company: CompanyArgs,
    #[command(flatten)]
    pub(super) paging: Paging,
}

/// One thing of a company.
#[derive(Debug, Clone, Args)]
pub(super) struct OneArgs {
    /// Its id.
    pub(super) id: String,
    #[command(flatten)]
    pub(super) company: CompanyArgs,
}

/// One thing of a company, looked at.
#[derive(Debug, Clone, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    pub(super) one: OneArgs,
    #[command(flatten)]
    pub(super) watch: WatchArgs,
}

/// One thing of a company that has a name instead of an id.
#[derive(Debug, Clone, Args)]
pub(super) struct NamedArgs {
    /// Its key or name.
    pub(super) name: String,
    #[command(flatten)]
    pub(super) company: CompanyArgs,
}

/// The same, looked at.
#[derive(Debug, Clone, Args)]
pub(super) struct ShowNamedArgs {
    #[command(flatten)]
    pub(super) named: NamedArgs,
    #[command(flatten)]
    pub(super) watch: WatchArgs,
}

/// Which days.
#[derive(Debug, Clone, Args)]
pub(super) struct DaysArgs {
    /// The first day, such as 2026-11-01; 30 days before the last where absent.
    #[arg(long, alias = "since", value_name = "DAY")]
    pub(super) from: Option<String>,
    /// The last day; today where absent. Days are days in UTC.
    #[arg(long, alias = "until", value_name = "DAY")]
    pub(super) to: Option<String>,
}
