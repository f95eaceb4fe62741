//! Who may call: tokens of a company, and of operators.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::output::{escape, json as print_json, line};
use super::page::{Columns, rows};
use super::{Backend, CliError, HostArgs};

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token. Its value is shown this once.
    Create(CreateArgs),
    /// Show the tokens of a company, or of operators, without their values.
    List(WhoseArgs),
    /// Give a token another value, shown this once. The one before is good for nothing then.
    Rotate(OneToken),
    /// Take a token back, for good.
    Revoke(OneToken),
}

#[derive(Debug, Args)]
pub(super) struct WhoseArgs {
    /// The company; operators' tokens where absent.
    #[arg(long, short, env = "MEMHOST_COMPANY", value_name = "ID")]
    company: Option<String>,
    #[command(flatten)]
    host: HostArgs,
}

#[derive(Debug, Args)]
pub(super) struct OneToken {
    /// Its id.
    id: String,
    #[command(flatten)]
    whose: WhoseArgs,
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// What to call it.
    name: String,
    #[command(flatten)]
    whose: WhoseArgs,
    /// What its bearer is: operator, company_administrator, agent or auditor.
    #[arg(long)]
    role: String,
    /// Which agent; for agents only.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// The only run that it is good for; for agents only.
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// The only memory operation that it is good for, such as query; may be given again.
    #[arg(long, value_name = "KIND")]
    operation: Vec<String>,
    /// From when on it is good for nothing, RFC 3339.
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
}

const COLUMNS: &Columns = &[
    ("name", "/name"),
    ("role", "/role"),
    ("agent", "/agentId"),
    ("created", "/createdAt"),
    ("expires", "/expiresAt"),
    ("revoked", "/revokedAt"),
    ("id", "/id"),
];

fn path(whose: &WhoseArgs, rest: &str) -> String {
    match &whose.company {
        Some(company) => format!("/control/v1/companies/{}/tokens{rest}", escape(company)),
        None => format!("/control/v1/tokens{rest}"),
    }
}

pub(super) async fn run(command: TokenCommand) -> Result<(), CliError> {
    match command {
        TokenCommand::Create(args) => {
            let mut body = json!({ "name": args.name, "role": args.role });
            for (name, value) in [("agentId", args.agent), ("runId", args.run), ("expiresAt", args.expires_at)] {
                if let Some(value) = value {
                    body[name] = value.into();
                }
            }
            if !args.operation.is_empty() {
                body["operations"] = args.operation.into();
            }
            let made = Backend::open(&args.whose.host).await?.post(&path(&args.whose, ""), &body).await?;
            value(&args.whose, &made)
        }
        TokenCommand::List(whose) => {
            let answer = Backend::open(&whose.host).await?.get(&path(&whose, "")).await?;
            shown(&whose, &answer, answer["items"].as_array().map_or(&[], Vec::as_slice))
        }
        TokenCommand::Rotate(OneToken { id, whose }) => {
            let path = path(&whose, &format!("/{}/rotate", escape(&id)));
            value(&whose, &Backend::open(&whose.host).await?.post(&path, &json!({})).await?)
        }
        TokenCommand::Revoke(OneToken { id, whose }) => {
            let answer = Backend::open(&whose.host).await?.delete(&path(&whose, &format!("/{}", escape(&id)))).await?;
            shown(&whose, &answer, std::slice::from_ref(&answer))
        }
    }
}

fn shown(whose: &WhoseArgs, answer: &Value, items: &[Value]) -> Result<(), CliError> {
    if whose.host.json { print_json(answer) } else { rows(items, COLUMNS) }
}

fn value(whose: &WhoseArgs, made: &Value) -> Result<(), CliError> {
    if whose.host.json {
        return print_json(made);
    }
    rows(std::slice::from_ref(made), COLUMNS)?;
    line(&format!("\nits value, shown this once:\n  {}", made["value"].as_str().unwrap_or_default()))
}
