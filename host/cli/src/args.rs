//! Arguments that several commands share: host, company, scope, page and output format.

use std::path::PathBuf;

use clap::Args;
use ipnet::IpNet;

use super::argument::{addresses, day};
use super::output::Format;
use super::{CliError, Result};
use memhost_conformance::Network;
use memhost_sandbox::Secret;
use memhost_types::SecretUse;

/// How the answer is shown.
#[derive(Debug, Clone, Args)]
pub(super) struct OutputArgs {
    /// Output format: a table, the host's JSON, JSON lines with one item each, or YAML.
    #[arg(long, short, global = true, value_enum, value_name = "FORM", help_heading = "Output")]
    output: Option<Format>,
}

impl OutputArgs {
    pub(super) fn format(&self) -> Format {
        self.output.unwrap_or_default()
    }
}

/// Which host.
#[derive(Debug, Clone, Args)]
pub(super) struct HostArgs {
    /// The host's URL, http://… or unix:PATH [default: the context's, or http://127.0.0.1:7600].
    #[arg(long, env = "MEMHOST_URL", value_name = "URL", help_heading = "Host")]
    pub(super) url: Option<String>,
    /// URL of the host's control plane if it has its own [default: --url].
    #[arg(long, env = "MEMHOST_CONTROL_URL", value_name = "URL", help_heading = "Host")]
    pub(super) control_url: Option<String>,
    /// PEM file with the certificate authorities to trust for an https URL, in place of the
    /// well-known ones [default: the context's].
    #[arg(long, env = "MEMHOST_CA", value_name = "FILE", help_heading = "Host")]
    pub(super) ca: Option<PathBuf>,
    /// Access token [default: the context's].
    #[arg(
        long,
        env = "MEMHOST_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN",
        help_heading = "Host"
    )]
    pub(super) token: Option<String>,
    /// The context to use: a host, a token and a company under one name. See `memhost context`.
    #[arg(
        long,
        global = true,
        env = "MEMHOST_CONTEXT",
        value_name = "NAME",
        help_heading = "Host"
    )]
    pub(super) context: Option<String>,
    /// Open this data directory instead of connecting to a running host.
    #[arg(long, value_name = "DIR", help_heading = "Host")]
    pub(super) data_dir: Option<PathBuf>,
    /// With --data-dir: the plugins directory.
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
    /// Company ID [default: the context's].
    #[arg(long, short, env = "MEMHOST_COMPANY", value_name = "ID", id = "companyId")]
    pub(super) company: Option<String>,
    #[command(flatten)]
    pub(super) host: HostArgs,
}

/// Whose memory, and in which scope.
#[derive(Debug, Clone, Args)]
pub(super) struct ScopeArgs {
    #[command(flatten)]
    pub(super) company: CompanyArgs,
    /// Agent ID that the command acts as [default: the context's].
    #[arg(
        long,
        env = "MEMHOST_AGENT",
        value_name = "ID",
        help_heading = "Scope",
        id = "scope.agentId"
    )]
    pub(super) agent: Option<String>,
    /// Binding to use instead of the assigned one.
    #[arg(long, value_name = "KEY", help_heading = "Scope", id = "bindingKey")]
    pub(super) binding: Option<String>,
    /// Project ID of the scope.
    #[arg(long, value_name = "ID", help_heading = "Scope", id = "scope.projectId")]
    pub(super) project: Option<String>,
    /// Issue ID of the scope.
    #[arg(long, value_name = "ID", help_heading = "Scope", id = "scope.issueId")]
    pub(super) issue: Option<String>,
    /// Run ID of the scope.
    #[arg(long, value_name = "ID", help_heading = "Scope", id = "scope.runId")]
    pub(super) run: Option<String>,
    /// Subject ID of the scope: an external or user identity.
    #[arg(long, value_name = "ID", help_heading = "Scope", id = "scope.subjectId")]
    pub(super) subject: Option<String>,
    /// Session key of the scope.
    #[arg(long, value_name = "KEY", help_heading = "Scope", id = "scope.sessionKey")]
    pub(super) session: Option<String>,
    /// Namespace of the scope: an explicit partition.
    #[arg(long, value_name = "NAME", help_heading = "Scope", id = "scope.namespace")]
    pub(super) namespace: Option<String>,
}

/// Which part of a list.
#[derive(Debug, Clone, Args)]
pub(super) struct Paging {
    /// Continue after the page that returned this cursor.
    #[arg(long, value_name = "CURSOR", help_heading = "Output")]
    pub(super) cursor: Option<String>,
    /// Maximum number of items on a page [default: 20].
    #[arg(
        long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000),
        help_heading = "Output"
    )]
    pub(super) limit: Option<u32>,
    /// Fetch all pages.
    #[arg(long, help_heading = "Output")]
    pub(super) all: bool,
    #[command(flatten)]
    pub(super) watch: WatchArgs,
}

/// Repeating a command.
#[derive(Debug, Clone, Args)]
pub(super) struct WatchArgs {
    /// Repeat every SECONDS (2 if no value is given) and show what changed.
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
        _ => Err("must be a number of seconds from 0.1 to 86400".to_owned()),
    }
}

/// A list of one company.
#[derive(Debug, Clone, Args)]
pub(super) struct PageArgs {
    #[command(flatten)]
    pub(super) company: CompanyArgs,
    #[command(flatten)]
    pub(super) paging: Paging,
}

/// Filters of a list. A row declares a flag: its name and, in angle brackets, the name of its
/// value, what reads the value where not every text is valid, then the host's parameter and the
/// help.
macro_rules! filters {
    (@parser) => { clap::builder::NonEmptyStringValueParser::new() };
    (@parser [$parser:expr]) => { $parser };
    ($name:ident { $($flag:ident <$value:tt> $([$parser:expr])? = $parameter:tt, $help:tt;)* }) => {
        #[derive(Debug, clap::Args)]
        pub(super) struct $name {
            $(
                #[doc = $help]
                #[arg(
                    long, id = $parameter, value_name = $value,
                    value_parser = $crate::args::filters!(@parser $([$parser])?)
                )]
                $flag: Option<String>,
            )*
        }

        impl $name {
            /// The parameters of the request, with the values that were given.
            fn parameters(&self) -> Vec<(&'static str, Option<&str>)> {
                vec![$(($parameter, self.$flag.as_deref())),*]
            }
        }
    };
}
pub(super) use filters;

/// This machine: a stand-in for a service runs beside its author.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

/// The flags with which an author lets a build reach the network.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct NetworkArgs {
    /// Grant the origins and secrets that the provider requests, and allow network access.
    #[arg(long)]
    allow_network: bool,
    /// With --allow-network: secret to read from the environment variable of the same name, and
    /// where in a request it goes, such as KEY=query:key; repeatable [default place:
    /// header:authorization:Bearer].
    #[arg(long, requires = "allow_network", value_name = "NAME[=USE]")]
    secret_env: Vec<String>,
    /// With --allow-network: allow connections to this private address range, such as 10.0.0.0/8;
    /// repeatable [default: this machine].
    #[arg(long, requires = "allow_network", value_name = "CIDR", value_parser = addresses)]
    private_range: Vec<IpNet>,
}

impl NetworkArgs {
    /// What the build may reach; none without `--allow-network`.
    pub(crate) fn network(&self) -> Result<Option<Network>> {
        if !self.allow_network {
            return Ok(None);
        }
        let secrets =
            self.secret_env.iter().map(|given| secret(given)).collect::<Result<_, _>>()?;
        let private_ranges = match self.private_range.is_empty() {
            true => LOOPBACK.iter().filter_map(|range| range.parse().ok()).collect(),
            false => self.private_range.clone(),
        };
        Ok(Some(Network { secrets, private_ranges }))
    }
}

fn secret(given: &str) -> Result<(String, String, SecretUse)> {
    let (name, used_as) = match given.split_once('=') {
        Some((name, used_as)) => {
            (name, used_as.parse().map_err(|error| CliError::input("--secret-env", error))?)
        }
        None => (given, SecretUse::bearer()),
    };
    match std::env::var(name) {
        Ok(value) => match Secret::new(name, value.as_str()) {
            Ok(_) => Ok((name.to_owned(), value, used_as)),
            Err(error) => Err(CliError::input("--secret-env", error)),
        },
        Err(error) => Err(CliError::input("--secret-env", format!("{name}: {error}"))),
    }
}

/// One item of a company.
#[derive(Debug, Clone, Args)]
pub(super) struct OneArgs {
    /// The ID.
    #[arg(id = "operationId|jobId|deliveryId|reviewId", value_name = "ID")]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) company: CompanyArgs,
}

/// One item of a company, shown.
#[derive(Debug, Clone, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    pub(super) one: OneArgs,
    #[command(flatten)]
    pub(super) watch: WatchArgs,
}

/// The revision of a binding that somebody has seen.
#[derive(Debug, Args)]
pub(super) struct SeenArgs {
    /// Fail with a conflict unless the binding still has this revision.
    #[arg(long, value_name = "NUMBER")]
    pub(super) revision: Option<u64>,
}

/// One item of a company that has a name instead of an ID.
#[derive(Debug, Clone, Args)]
pub(super) struct NamedArgs {
    /// The key or name.
    #[arg(id = "name|key|bindingKey", value_name = "NAME")]
    pub(super) name: String,
    #[command(flatten)]
    pub(super) company: CompanyArgs,
}

/// One item with a name, shown.
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
    /// First day, in UTC, such as 2026-11-01 [default: 30 days before --until].
    #[arg(long, value_name = "DAY", value_parser = day)]
    pub(super) since: Option<String>,
    /// Last day, in UTC [default: today].
    #[arg(long, value_name = "DAY", value_parser = day)]
    pub(super) until: Option<String>,
}
