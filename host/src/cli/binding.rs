//! Bindings.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use self::grant::{GrantArgs, SetArgs};
use super::output::{escape, line, table, text};
use super::{Backend, CliError, CompanyArgs, output, page};

mod grant;

#[derive(Debug, Subcommand)]
pub(super) enum BindingCommand {
    /// Make a binding.
    Create(CreateArgs),
    /// Show a company's bindings.
    List(CompanyArgs),
    /// Show one binding.
    Show {
        /// Its key.
        key: String,
        #[command(flatten)]
        company: CompanyArgs,
    },
    /// Show which binding answers, and why.
    Resolve {
        /// For this agent.
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// Where a request names this binding.
        #[arg(long, value_name = "KEY")]
        binding: Option<String>,
        /// Show every rule and what it says.
        #[arg(long)]
        why: bool,
        #[command(flatten)]
        company: CompanyArgs,
    },
    /// Delete a binding, with what its provider has stored through the host.
    Delete {
        /// Its key.
        key: String,
        /// The revision that you have seen; another one is a conflict.
        #[arg(long, value_name = "NUMBER")]
        revision: Option<u64>,
        #[command(flatten)]
        company: CompanyArgs,
    },
    /// Change a binding: its configuration, limits, versions, or whether it takes operations.
    Set(SetArgs),
    /// Show what a binding's provider asks for, and grant it, entirely or in part.
    Grant(GrantArgs),
    /// Close a binding's circuit breaker and try again the versions that were kept from it.
    Reset {
        /// Its key.
        key: String,
        #[command(flatten)]
        company: CompanyArgs,
    },
    /// Point the company, or one agent, at a binding, or at none.
    Target {
        /// The binding's key.
        #[arg(required_unless_present = "none")]
        key: Option<String>,
        /// No binding any more.
        #[arg(long, conflicts_with = "key")]
        none: bool,
        /// This agent only.
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        #[command(flatten)]
        company: CompanyArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// The binding's key, unique in the company.
    key: String,
    #[command(flatten)]
    company: CompanyArgs,
    /// Which provider answers.
    #[arg(long, default_value = "local-markdown", value_name = "KEY")]
    provider: String,
    /// The provider's configuration, a JSON object.
    #[arg(long, default_value = "{}", value_name = "JSON")]
    config: String,
    /// The same, from a file.
    #[arg(long, conflicts_with = "config", value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// Which of its versions: a range such as '^1.2', or the digest of one build.
    #[arg(long, value_name = "RANGE|DIGEST")]
    versions: Option<String>,
    /// What the provider may reach, such as '{"storageBytes":1000000}'; nothing by default.
    #[arg(long, value_name = "JSON")]
    grants: Option<String>,
    /// What the provider may use, such as '{"callTimeoutMs":5000}'.
    #[arg(long, value_name = "JSON")]
    limits: Option<String>,
    /// What it does with what passes, such as '{"pii":"redact"}': hooks, review, pii, onBudget, retention.
    #[arg(long, value_name = "JSON")]
    policy: Option<String>,
    /// Make it the company's default.
    #[arg(long)]
    default: bool,
}

pub(super) async fn run(command: BindingCommand) -> Result<(), CliError> {
    match command {
        BindingCommand::Create(args) => create(args).await,
        BindingCommand::List(company) => {
            let answer = Backend::open(&company.host).await?.get(&path(&company, "bindings")).await?;
            show(&company, &answer, answer["items"].as_array().map_or(&[], Vec::as_slice))
        }
        BindingCommand::Show { key, company } => {
            let path = path(&company, &format!("bindings/{}", escape(&key)));
            let answer = Backend::open(&company.host).await?.get(&path).await?;
            output::json(&answer)
        }
        BindingCommand::Resolve { agent, binding, why, company } => {
            let query = page::query(&[("agentId", agent.as_deref()), ("bindingKey", binding.as_deref())]);
            let path = path(&company, &format!("resolve?{query}"));
            let answer = Backend::open(&company.host).await?.get(&path).await?;
            if company.host.json {
                return output::json(&answer);
            }
            let (key, provider) = (text(&answer, "/binding/key"), text(&answer, "/binding/providerKey"));
            line(&format!("{key} ({provider}), by {}", text(&answer, "/why").replace('_', " ")))?;
            for step in answer["steps"].as_array().into_iter().flatten().filter(|_| why) {
                let mark = if step["decides"] == true { "decides" } else { "       " };
                line(&format!("  {mark}  {}: {}", text(step, "/rule").replace('_', " "), text(step, "/says")))?;
            }
            Ok(())
        }
        BindingCommand::Delete { key, revision, company } => {
            let path = path(&company, &format!("bindings/{}", escape(&key)));
            let host = Backend::open(&company.host).await?;
            match revision {
                Some(revision) => host.delete_if(&path, &format!("\"{revision}\"")).await?,
                None => host.delete(&path).await?,
            };
            line(&format!("{key} is deleted"))
        }
        BindingCommand::Set(args) => grant::set(args).await,
        BindingCommand::Grant(args) => grant::grant(args).await,
        BindingCommand::Reset { key, company } => {
            let path = path(&company, &format!("bindings/{}/reset", escape(&key)));
            let answer = Backend::open(&company.host).await?.post(&path, &json!({})).await?;
            show(&company, &answer, std::slice::from_ref(&answer))
        }
        BindingCommand::Target { key, none: _, agent, company } => {
            let body = json!({ "bindingKey": key, "agentId": agent });
            Backend::open(&company.host).await?.put(&path(&company, "targets"), &body).await?;
            match key {
                Some(key) => line(&format!("{key} answers now")),
                None => line("no binding of its own any more"),
            }
        }
    }
}

async fn create(args: CreateArgs) -> Result<(), CliError> {
    let config = match &args.config_file {
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| CliError::input("--config-file", format!("{}: {error}", file.display())))?,
        None => args.config,
    };
    let mut body = json!({
        "key": args.key,
        "providerKey": args.provider,
        "config": json_argument("--config", &config)?,
        "default": args.default,
    });
    if let Some(version) = &args.versions {
        body["version"] = grant::version(version);
    }
    let given =
        [("grants", "--grants", args.grants), ("limits", "--limits", args.limits), ("policy", "--policy", args.policy)];
    for (name, argument, given) in given {
        if let Some(given) = given {
            body[name] = json_argument(argument, &given)?;
        }
    }
    let company = &args.company;
    let answer = Backend::open(&company.host).await?.post(&path(company, "bindings"), &body).await?;
    show(company, &answer, std::slice::from_ref(&answer))
}

pub(super) fn json_argument(argument: &str, json: &str) -> Result<Value, CliError> {
    serde_json::from_str(json).map_err(|error| CliError::input(argument, format!("is no JSON: {error}")))
}

pub(super) fn path(company: &CompanyArgs, rest: &str) -> String {
    format!("/control/v1/companies/{}/{rest}", escape(&company.company))
}

pub(super) fn show(company: &CompanyArgs, answer: &Value, bindings: &[Value]) -> Result<(), CliError> {
    if company.host.json {
        return output::json(answer);
    }
    let row = |binding: &Value| {
        let agents = binding["agents"].as_array().cloned().unwrap_or_default();
        let mut answers_for: Vec<String> = agents.iter().map(|agent| text(agent, "")).collect();
        if binding["isDefault"] == true {
            answers_for.insert(0, "the company".to_owned());
        }
        vec![
            text(binding, "/key"),
            format!("{} {}", text(binding, "/providerKey"), text(binding, "/serving/version")).trim_end().to_owned(),
            answers_for.join(", "),
            state(binding),
            text(binding, "/createdAt"),
        ]
    };
    table(&["key", "provider", "answers for", "state", "created"], bindings.iter().map(row).collect())
}

/// What a person should know of a binding, in a few words.
fn state(binding: &Value) -> String {
    let mut all = Vec::new();
    if binding["enabled"] == false {
        all.push("disabled".to_owned());
    }
    match binding["breaker"]["state"].as_str() {
        Some("open") => all.push("its provider fails, left alone for a while".to_owned()),
        Some("half_open") => all.push("its provider fails, on trial".to_owned()),
        _ => {}
    }
    for waiting in binding["waiting"].as_array().into_iter().flatten() {
        all.push(format!("version {} waits for a grant", text(waiting, "/version")));
    }
    for kept in binding["keptFrom"].as_array().into_iter().flatten() {
        all.push(format!("version {} is kept from it", text(kept, "/version")));
    }
    all.extend(binding["warnings"].as_array().into_iter().flatten().map(|warning| text(warning, "")));
    if all.is_empty() { "enabled".to_owned() } else { all.join("; ") }
}
