//! Bindings.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::json;

use self::change::{UpdateArgs, policy};
use self::grant::GrantArgs;
use self::shown::{BINDINGS, deletion, kept_instead, one, reroute, resolved};
use super::answer::Answer;
use super::args::{CompanyArgs, NamedArgs, PageArgs, SeenArgs, ShowNamedArgs};
use super::argument::{confirm, input, object, versions, without_nulls};
use super::page;
use super::texts::escape;
use super::{CliError, Result};
use memhost_core::BindingView;
use memhost_http::ProblemCode;
use memhost_http::api::{Items, TargetView};
use memhost_types::VersionChoice;

mod change;
mod grant;
mod shown;

#[derive(Debug, Subcommand)]
pub(super) enum BindingCommand {
    /// List bindings.
    List(PageArgs),
    /// Show a binding.
    Show(ShowNamedArgs),
    /// Create a binding.
    Create(CreateArgs),
    /// Update a binding's configuration, limits, policy or versions, or disable it.
    #[command(after_help = change::WHOLE)]
    Update(UpdateArgs),
    /// Delete a binding and everything that its provider stored in the host.
    Delete {
        #[command(flatten)]
        named: NamedArgs,
        #[command(flatten)]
        seen: SeenArgs,
        /// Do it without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Show the permissions that a binding's provider requests, and grant them.
    Grant(GrantArgs),
    /// Assign a binding to the company or to one agent, or remove the assignment.
    Assign {
        /// Binding key.
        #[arg(id = "bindingKey", value_name = "KEY", required_unless_present = "none")]
        key: Option<String>,
        /// Remove the assignment.
        #[arg(long, conflicts_with = "bindingKey")]
        none: bool,
        /// Assign for this agent only.
        #[arg(long, value_name = "ID", id = "agentId")]
        agent: Option<String>,
        /// Do it without asking.
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        company: CompanyArgs,
    },
    /// Show which binding is used, and why.
    Resolve {
        /// Resolve for this agent.
        #[arg(long, value_name = "ID", id = "agentId")]
        agent: Option<String>,
        /// Resolve as for a request that names this binding.
        #[arg(long, value_name = "KEY", id = "bindingKey")]
        binding: Option<String>,
        /// Show the result of every resolution rule.
        #[arg(long)]
        why: bool,
        #[command(flatten)]
        company: CompanyArgs,
    },
    /// Close a binding's circuit breaker and retry its rejected versions.
    Reset(NamedArgs),
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Binding key, unique in the company.
    key: String,
    #[command(flatten)]
    company: CompanyArgs,
    /// Provider key.
    #[arg(long, default_value = "local-markdown", value_name = "KEY", id = "providerKey")]
    provider: String,
    /// Provider configuration, a JSON object, or @FILE.
    #[arg(long, default_value = "{}", value_name = "JSON")]
    config: String,
    /// Read the provider configuration from this file.
    #[arg(long, conflicts_with = "config", value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// Provider versions: a range such as '^1.2', or the digest of one build.
    #[arg(
        long, value_name = "RANGE|DIGEST", value_parser = versions,
        id = "version|version.follow|version.pin"
    )]
    versions: Option<VersionChoice>,
    /// Grants as a JSON object, such as '{"storageBytes":1000000}' [default: none].
    #[arg(long, value_name = "JSON")]
    grants: Option<String>,
    /// Limits as a JSON object, such as '{"callTimeoutMs":5000}'.
    #[arg(long, value_name = "JSON")]
    limits: Option<String>,
    /// Policy as a JSON object with hooks, review, pii, onBudget, retention, mcp, attribution,
    /// sharing and protectAdministrators, such as '{"pii":"redact"}'.
    #[arg(long, value_name = "JSON")]
    policy: Option<String>,
    /// Whether only administrators and operators may change or forget what one of them wrote: the
    /// policy's protectAdministrators.
    #[arg(long, value_name = "BOOL", id = "policy.protectAdministrators")]
    protect_administrators: Option<bool>,
    /// Assign the binding to the whole company.
    #[arg(long)]
    default: bool,
    /// Make sure that the company has a default binding: one that is there stays as it is.
    #[arg(long, conflicts_with = "default")]
    if_missing: bool,
    /// Fail at once if the host is still compiling the provider, instead of waiting up to 60
    /// seconds.
    #[arg(long)]
    no_wait: bool,
}

/// How long `create` waits for a provider that is being compiled, and how often it asks again.
const LOADING: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(500);
/// How long a plugin's file may be there before the host looks at it.
const UNSEEN: Duration = Duration::from_secs(1);

pub(super) async fn run(command: BindingCommand) -> Result<()> {
    match command {
        BindingCommand::List(page) => page::list(&page, "bindings", &[], BINDINGS).await,
        BindingCommand::Show(args) => {
            page::show(&args.named.company, &args.watch, "bindings", &args.named.name).await
        }
        BindingCommand::Create(args) => create(args).await,
        BindingCommand::Update(args) => change::update(args).await,
        BindingCommand::Delete { named, seen, yes } => {
            let session = named.company.open().await?;
            let binding = session.get(&format!("bindings/{}", escape(&named.name))).await?;
            confirm(yes, &deletion(&binding.read()?))?;
            let path = session.path(&format!("bindings/{}", escape(&named.name)));
            let answer = session.host.delete(&path, seen.revision).await?;
            session.gone(&answer, &format!("deleted the binding {}", named.name))
        }
        BindingCommand::Grant(args) => grant::grant(args).await,
        BindingCommand::Assign { key, none: _, agent, yes, company } => {
            let session = company.open().await?;
            if agent.is_none() {
                let targets: Items<TargetView> = session.get("targets").await?.read()?;
                let present = targets.items.iter().find(|target| target.agent_id.is_none());
                let present = present.map(|target| target.binding_key.as_str());
                if let Some(question) = present.and_then(|now| reroute(now, key.as_deref())) {
                    confirm(yes, &question)?;
                }
            }
            let answer =
                session.put("targets", &json!({ "bindingKey": key, "agentId": agent })).await?;
            let whose = agent
                .map_or_else(|| "the company".to_owned(), |agent| format!("the agent {agent}"));
            match key {
                Some(key) => {
                    session.gone(&answer, &format!("assigned the binding {key} to {whose}"))
                }
                None => session.gone(&answer, &format!("removed the assignment of {whose}")),
            }
        }
        BindingCommand::Resolve { agent, binding, why, company } => {
            let session = company.open().await?;
            let query =
                page::query(&[("agentId", agent.as_deref()), ("bindingKey", binding.as_deref())]);
            let answer = session.get(&format!("resolve?{query}")).await?;
            session.show_list(&answer, |answer| resolved(answer, why))
        }
        BindingCommand::Reset(named) => {
            let session = named.company.open().await?;
            let answer = session
                .post(&format!("bindings/{}/reset", escape(&named.name)), &json!({}))
                .await?;
            session.show(&answer, one)
        }
    }
}

async fn create(args: CreateArgs) -> Result<()> {
    let config = args.config_file.as_deref().map_or(Ok(args.config), |file| input(Some(file)))?;
    let body = without_nulls(json!({
        "key": args.key,
        "providerKey": args.provider,
        "config": object("--config", Some(&config))?,
        "default": args.default,
        "version": args.versions,
        "grants": object("--grants", args.grants.as_deref())?,
        "limits": object("--limits", args.limits.as_deref())?,
        "policy": policy(args.policy.as_deref(), args.protect_administrators)?,
    }));
    let (session, made) = args.company.open_or_make().await?;
    let send = async || match args.if_missing {
        true => session.put("default-binding", &body).await,
        false => session.post("bindings", &body).await,
    };
    let answer =
        if args.no_wait { send().await? } else { once_loaded(&args.provider, send).await? };
    made.say()?;
    session.show(&answer, one)?;
    if !args.if_missing {
        return Ok(());
    }
    let present = answer.read()?.binding;
    match kept_instead(&present, &args.key, &args.provider, &session.company) {
        Some(said) => Ok(writeln!(std::io::stderr(), "{said}")?),
        None => Ok(()),
    }
}

/// Sends a request again until the provider is compiled or the time is up. Returns any other answer
/// at once.
async fn once_loaded(
    provider: &str,
    send: impl AsyncFn() -> Result<Answer<BindingView>>,
) -> Result<Answer<BindingView>> {
    let (began, mut is_told) = (Instant::now(), false);
    loop {
        let answer = send().await;
        let code = match &answer {
            Err(CliError::Problem { code, .. }) => *code,
            _ => None,
        };
        let most = match code {
            Some(ProblemCode::ProviderLoading) => LOADING,
            // It may have been copied into the plugins directory a moment ago.
            Some(ProblemCode::NoProvider) => UNSEEN,
            _ => return answer,
        };
        if began.elapsed() >= most {
            return answer;
        }
        if code == Some(ProblemCode::ProviderLoading) && !is_told {
            is_told = true;
            let seconds = LOADING.as_secs();
            writeln!(
                std::io::stderr(),
                "the host is still compiling plugins; waiting up to {seconds} s for the provider \
                 {provider} (--no-wait: do not wait)"
            )?;
        }
        tokio::time::sleep(AGAIN).await;
    }
}
