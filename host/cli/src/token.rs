//! Who may call: tokens of a company, and of operators.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::CliError;
use super::args::{CompanyArgs, Paging, WatchArgs};
use super::output::{details, escape};
use super::page::{self, Asked, Columns, items, rows};
use super::profile::Target;
use super::session::Session;

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Show the tokens of a company, or of operators, without their values.
    List {
        #[command(flatten)]
        whose: WhoseArgs,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show one token, without its value.
    Show {
        #[command(flatten)]
        one: OneToken,
        #[command(flatten)]
        watch: WatchArgs,
    },
    /// Make a token. Its value is shown this once.
    Create(CreateArgs),
    /// Give a token another value, shown this once. The one before is good for nothing then.
    Rotate(OneToken),
    /// Take a token back, for good.
    #[command(alias = "revoke")]
    Delete(OneToken),
}

#[derive(Debug, Args)]
pub(super) struct WhoseArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Tokens of operators, who reach every company; these are also meant where no company is named.
    #[arg(long)]
    operators: bool,
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
    /// Only of, or for, this agent.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Only of, or for, this run.
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

impl WhoseArgs {
    /// The host, and where these tokens are.
    async fn open(&self) -> Result<(Session, String), CliError> {
        let session = self.company.host.open().await?;
        let company = self.company.company.clone().filter(|company| !company.is_empty());
        let company = match company {
            _ if self.operators => None,
            Some(company) => Some(company),
            None => Target::of(&self.company.host)?.company,
        };
        let path = match company {
            Some(company) => format!("/control/v1/companies/{}/tokens", escape(&company)),
            None => "/control/v1/tokens".to_owned(),
        };
        Ok((session, path))
    }
}

pub(super) async fn run(command: TokenCommand) -> Result<(), CliError> {
    match command {
        TokenCommand::List { whose, paging } => {
            let (session, path) = whose.open().await?;
            let fetch = async |asked: Asked| session.host.get(&format!("{path}?{}", asked.query(&[]))).await;
            page::pages(session.format, &paging, "items", fetch, |answer| rows(items(answer, "items"), COLUMNS)).await
        }
        TokenCommand::Show { one, watch } => {
            let (session, path) = one.whose.open().await?;
            let look = async || {
                let found = page::find(&session.host.get(&path).await?, "items", "/id", &one.id);
                session.format.render(&found.ok_or_else(|| page::missing("token", &one.id))?, "", details)
            };
            page::watched(&watch, look).await
        }
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
            let (session, path) = args.whose.open().await?;
            let made = session.host.post(&path, &body).await?;
            session.show(&made, "", value)
        }
        TokenCommand::Rotate(OneToken { id, whose }) => {
            let (session, path) = whose.open().await?;
            let made = session.host.post(&format!("{path}/{}/rotate", escape(&id)), &json!({})).await?;
            session.show(&made, "", value)
        }
        TokenCommand::Delete(OneToken { id, whose }) => {
            let (session, path) = whose.open().await?;
            let answer = session.host.delete(&format!("{path}/{}", escape(&id))).await?;
            session.show(&answer, "", |answer| rows(std::slice::from_ref(answer), COLUMNS))
        }
    }
}

fn value(made: &Value) -> String {
    let table = rows(std::slice::from_ref(made), COLUMNS);
    format!("{table}\n\nits value, shown this once:\n  {}", made["value"].as_str().unwrap_or_default())
}
