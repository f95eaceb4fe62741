//! Bindings.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use self::change::UpdateArgs;
use self::grant::GrantArgs;
use super::CliError;
use super::args::{CompanyArgs, NamedArgs, PageArgs, ShowNamedArgs};
use super::argument::{confirm, input, object, versions, without_nulls};
use super::output::{escape, moment, table, text};
use super::page::{self, items};

mod change;
mod grant;

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
        #[arg(required_unless_present = "none")]
        key: Option<String>,
        /// Remove the assignment.
        #[arg(long, conflicts_with = "key")]
        none: bool,
        /// Assign for this agent only.
        #[arg(long, value_name = "ID")]
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
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// Resolve as for a request that names this binding.
        #[arg(long, value_name = "KEY")]
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
pub(super) struct SeenArgs {
    /// Fail with a conflict unless the binding still has this revision.
    #[arg(long, value_name = "NUMBER")]
    revision: Option<u64>,
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Binding key, unique in the company.
    key: String,
    #[command(flatten)]
    company: CompanyArgs,
    /// Provider key.
    #[arg(long, default_value = "local-markdown", value_name = "KEY")]
    provider: String,
    /// Provider configuration, a JSON object.
    #[arg(long, default_value = "{}", value_name = "JSON")]
    config: String,
    /// Read the provider configuration from this file.
    #[arg(long, conflicts_with = "config", value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// Provider versions: a range such as '^1.2', or the digest of one build.
    #[arg(long, value_name = "RANGE|DIGEST", value_parser = versions)]
    versions: Option<String>,
    /// Grants as a JSON object, such as '{"storageBytes":1000000}' [default: none].
    #[arg(long, value_name = "JSON")]
    grants: Option<String>,
    /// Limits as a JSON object, such as '{"callTimeoutMs":5000}'.
    #[arg(long, value_name = "JSON")]
    limits: Option<String>,
    /// Policy as a JSON object with hooks, review, pii, onBudget, retention, mcp, attribution and
    /// sharing, such as '{"pii":"redact"}'.
    #[arg(long, value_name = "JSON")]
    policy: Option<String>,
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

pub(super) async fn run(command: BindingCommand) -> Result<(), CliError> {
    match command {
        BindingCommand::List(page) => {
            page::list_as(&page, "bindings", &[], |answer| rows(items(answer, "items"))).await
        }
        BindingCommand::Show(args) => {
            page::show(&args.named.company, &args.watch, "bindings", &args.named.name).await
        }
        BindingCommand::Create(args) => create(args).await,
        BindingCommand::Update(args) => change::update(args).await,
        BindingCommand::Delete { named, seen, yes } => {
            let session = named.company.open().await?;
            let binding = session.get(&format!("bindings/{}", escape(&named.name))).await?;
            confirm(yes, &deletion(&binding))?;
            let path = session.path(&format!("bindings/{}", escape(&named.name)));
            let answer = session.host.delete(&path, seen.revision).await?;
            session.gone(&answer, &format!("deleted the binding {}", named.name))
        }
        BindingCommand::Grant(args) => grant::grant(args).await,
        BindingCommand::Assign { key, none: _, agent, yes, company } => {
            let session = company.open().await?;
            if agent.is_none() {
                let targets = session.get("targets").await?;
                let present =
                    items(&targets, "items").iter().find(|target| target["agentId"].is_null());
                if let Some(question) = reroute(present, key.as_deref()) {
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
            session.show(&answer, "steps", |answer| resolved(answer, why))
        }
        BindingCommand::Reset(named) => {
            let session = named.company.open().await?;
            let answer = session
                .post(&format!("bindings/{}/reset", escape(&named.name)), &json!({}))
                .await?;
            session.show(&answer, "", one)
        }
    }
}

/// What the deletion of a binding means.
fn deletion(binding: &Value) -> String {
    let key = text(binding, "/key");
    let agents: Vec<String> =
        items(binding, "agents").iter().map(|agent| text(agent, "")).collect();
    let whom = match (binding["isDefault"] == true, agents.is_empty()) {
        (true, true) => "answers for the whole company".to_owned(),
        (true, false) => format!("answers for the whole company and for {}", agents.join(", ")),
        (false, false) => format!("answers for {}", agents.join(", ")),
        (false, true) => "answers for nobody who does not name it".to_owned(),
    };
    format!(
        "The binding {key} {whom}. Delete it, with everything that its provider stored in the host?"
    )
}

/// What another default of the company means; none where nothing changes for anybody.
fn reroute(present: Option<&Value>, key: Option<&str>) -> Option<String> {
    let present = text(present?, "/bindingKey");
    match key {
        Some(key) if key == present => None,
        Some(key) => Some(format!(
            "The whole company uses {present}, except for agents with their own. Let it use {key} \
             from now on?"
        )),
        None => Some(format!(
            "The whole company uses {present}, except for agents with their own. Let it use none?"
        )),
    }
}

/// The resolved binding; with `why` also the result of every rule.
fn resolved(answer: &Value, why: bool) -> String {
    let (key, provider) = (text(answer, "/binding/key"), text(answer, "/binding/providerKey"));
    let mut lines =
        vec![format!("{key} ({provider}), by {}", text(answer, "/why").replace('_', " "))];
    for step in items(answer, "steps").iter().filter(|_| why) {
        let mark = if step["decides"] == true { "decides" } else { "       " };
        lines.push(format!(
            "  {mark}  {}: {}",
            text(step, "/rule").replace('_', " "),
            text(step, "/says")
        ));
    }
    lines.join("\n")
}

async fn create(args: CreateArgs) -> Result<(), CliError> {
    let config = args.config_file.as_deref().map_or(Ok(args.config), |file| input(Some(file)))?;
    let body = without_nulls(json!({
        "key": args.key,
        "providerKey": args.provider,
        "config": object("--config", Some(&config))?,
        "default": args.default,
        "version": args.versions.as_deref().map(change::version),
        "grants": object("--grants", args.grants.as_deref())?,
        "limits": object("--limits", args.limits.as_deref())?,
        "policy": object("--policy", args.policy.as_deref())?,
    }));
    let session = args.company.open().await?;
    let send = async || match args.if_missing {
        true => session.put("default-binding", &body).await,
        false => session.post("bindings", &body).await,
    };
    let answer =
        if args.no_wait { send().await? } else { once_loaded(&args.provider, send).await? };
    session.show(&answer, "", one)?;
    match kept_instead(&answer, &args.key, &args.provider, &session.company)
        .filter(|_| args.if_missing)
    {
        Some(said) => Ok(writeln!(std::io::stderr(), "{said}")?),
        None => Ok(()),
    }
}

/// Sends a request again until the provider is compiled or the time is up. Returns any other answer
/// at once.
async fn once_loaded(
    provider: &str,
    send: impl AsyncFn() -> Result<Value, CliError>,
) -> Result<Value, CliError> {
    let (began, mut is_told) = (Instant::now(), false);
    loop {
        let answer = send().await;
        let code = match &answer {
            Err(CliError::Problem { code, .. }) => code.as_deref(),
            _ => None,
        };
        let most = match code {
            Some("provider_loading") => LOADING,
            // It may have been copied into the plugins directory a moment ago.
            Some("no_provider") => UNSEEN,
            _ => return answer,
        };
        if began.elapsed() >= most {
            return answer;
        }
        if code == Some("provider_loading") && !is_told {
            is_told = true;
            let seconds = LOADING.as_secs();
            writeln!(
                std::io::stderr(),
                "the host is still compiling plugins; waiting up to {seconds} s for the provider \
                 {provider} \
                 (--no-wait: do not wait)"
            )?;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// What is said where a company has a default binding and the one that was asked for was not made.
fn kept_instead(present: &Value, key: &str, provider: &str, company: &str) -> Option<String> {
    let (own, of) = (text(present, "/key"), text(present, "/providerKey"));
    match (own == key, of == provider) {
        (true, true) => None,
        (true, false) => Some(format!(
            "the binding `{own}` is there already, with the provider `{of}`; nothing was changed"
        )),
        (false, _) => {
            Some(format!("{company} has the default binding `{own}`; `{key}` was not made"))
        }
    }
}

/// One binding as a table.
pub(super) fn one(binding: &Value) -> String {
    rows(std::slice::from_ref(binding))
}

fn rows(bindings: &[Value]) -> String {
    let row = |binding: &Value| {
        let agents = binding["agents"].as_array().cloned().unwrap_or_default();
        let mut assigned_to: Vec<String> = agents.iter().map(|agent| text(agent, "")).collect();
        if binding["isDefault"] == true {
            assigned_to.insert(0, "company".to_owned());
        }
        vec![
            text(binding, "/key"),
            format!("{} {}", text(binding, "/providerKey"), text(binding, "/serving/version"))
                .trim_end()
                .to_owned(),
            assigned_to.join(", "),
            state(binding),
            moment(&text(binding, "/createdAt")),
        ]
    };
    table(
        &["key", "provider", "assigned to", "state", "created"],
        bindings.iter().map(row).collect(),
    )
}

/// The state of a binding, in a few words.
fn state(binding: &Value) -> String {
    let mut all = Vec::new();
    if binding["enabled"] == false {
        all.push("disabled".to_owned());
    }
    match binding["breaker"]["state"].as_str() {
        Some("open") => {
            let why = binding["failing"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
            all.push(format!("circuit open because the provider keeps failing{why}"));
        }
        Some("half_open") => {
            all.push("circuit half open: the provider is being retried".to_owned());
        }
        _ => {}
    }
    for waiting in binding["waiting"].as_array().into_iter().flatten() {
        all.push(format!("version {} waits for a grant", text(waiting, "/version")));
    }
    for kept in binding["rejectedVersions"].as_array().into_iter().flatten() {
        all.push(format!("version {} was rejected", text(kept, "/version")));
    }
    all.extend(
        binding["warnings"].as_array().into_iter().flatten().map(|warning| text(warning, "")),
    );
    if all.is_empty() { "enabled".to_owned() } else { all.join("; ") }
}
