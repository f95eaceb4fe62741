//! `memhost token`: the tokens of a company and of operators.

use clap::{Args, Subcommand};
use serde_json::json;

use super::answer::Answer;
use super::args::{CompanyArgs, Paging, WatchArgs};
use super::argument::{self, duration, one_of, time, without_nulls};
use super::page::{self, Columns, rows};
use super::session::Session;
use super::texts::{cell, escape, hour, moment, text};
use super::{CliError, Result};
use memhost_http::api::Items;
use memhost_types::{Act, FoundToken, NewToken, Role, Token};

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// List the tokens of a company, or of operators, without their values.
    List {
        #[command(flatten)]
        whose: WhoseArgs,
        #[command(flatten)]
        paging: Paging,
    },
    /// Find out whose a token's value is, read from standard input.
    Find {
        #[command(flatten)]
        whose: WhoseArgs,
    },
    /// Show a token, without its value.
    Show {
        #[command(flatten)]
        one: OneToken,
        #[command(flatten)]
        watch: WatchArgs,
    },
    /// Create a token and print its value once.
    Create(CreateArgs),
    /// Replace a token's value and print the new one once; the old one stops working.
    Rotate(RotateArgs),
    /// Revoke a token. This cannot be undone.
    Delete(OneToken),
}

#[derive(Debug, Args)]
pub(super) struct WhoseArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Use operator tokens, which reach every company [default if no company is given].
    #[arg(long)]
    operators: bool,
}

#[derive(Debug, Args)]
pub(super) struct OneToken {
    /// The ID, or with `rotate` and `delete` the name.
    #[arg(id = "tokenId", value_name = "TOKEN")]
    id: String,
    #[command(flatten)]
    whose: WhoseArgs,
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Name of the token.
    name: String,
    #[command(flatten)]
    whose: WhoseArgs,
    /// Role.
    #[arg(long, value_parser = one_of(Role::ALL, Role::as_str))]
    role: String,
    /// Agent that the token is for.
    #[arg(long, value_name = "ID", id = "agentId")]
    agent: Option<String>,
    /// Run that the token is limited to.
    #[arg(long, value_name = "ID", id = "runId")]
    run: Option<String>,
    /// Allow only this, such as query, hooks or administer; repeatable.
    #[arg(
        long, value_name = "OPERATION", value_parser = one_of(Act::ALL, Act::as_str),
        id = "operations"
    )]
    operation: Vec<String>,
    /// Expiry time, RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = time)]
    expires_at: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct RotateArgs {
    #[command(flatten)]
    one: OneToken,
    /// How long the old value works, too, such as 1h or 7d, at most 30d [default: 0s].
    #[arg(long, value_name = "DURATION", value_parser = overlap, id = "overlapSeconds")]
    overlap: Option<u32>,
}

/// The longest overlap, in days; the host has the same limit.
const MAX_OVERLAP_DAYS: u32 = 30;

fn overlap(text: &str) -> Result<u32, String> {
    match duration(text)? {
        seconds if seconds <= MAX_OVERLAP_DAYS * 24 * 3_600 => Ok(seconds),
        _ => Err(format!("is too long; at most {MAX_OVERLAP_DAYS}d")),
    }
}

const COLUMNS: &Columns<Token> = &[
    ("name", |token| cell(&token.name)),
    ("role", |token| cell(&token.role)),
    ("agent", |token| cell(&token.agent_id)),
    ("created", |token| moment(token.created_at)),
    ("expires", |token| moment(token.expires_at)),
    ("last used", |token| hour(token.last_used_at)),
    ("revoked", |token| moment(token.revoked_at)),
    ("id", |token| cell(&token.id)),
];

impl WhoseArgs {
    /// The host, and the path of these tokens.
    async fn open(&self) -> Result<(Session, String)> {
        let session = self.company.host.open().await?;
        let path = match self.company.named(&session.connection).filter(|_| !self.operators) {
            Some(company) => format!("/control/v1/companies/{}/tokens", escape(&company)),
            None => "/control/v1/tokens".to_owned(),
        };
        Ok((session, path))
    }
}

/// The id of a token that is named by its id or its name. Two tokens may have one name.
async fn id_of(session: &Session, path: &str, given: &str) -> Result<String> {
    if given.parse::<uuid::Uuid>().is_ok() {
        return Ok(given.to_owned());
    }
    if given.starts_with("mh_") {
        // Not shown again: it is a secret.
        let message = "is a token's value; give its name or id, which `memhost token list` shows";
        return Err(CliError::input("TOKEN", message));
    }
    let all: Items<Token> = session.host.get(path).await?.read()?;
    let named: Vec<&Token> = all
        .items
        .iter()
        .filter(|token| token.name == given && token.revoked_at.is_none())
        .collect();
    match named.as_slice() {
        [] => Err(page::missing("token", given)),
        [token] => Ok(text(&token.id)),
        several => {
            let ids: Vec<String> = several.iter().map(|token| text(&token.id)).collect();
            let message =
                format!("`{given}` is the name of several; give an id: {}", ids.join(", "));
            Err(CliError::input("TOKEN", message))
        }
    }
}

pub(super) async fn run(command: TokenCommand) -> Result<()> {
    match command {
        TokenCommand::List { whose, paging } => {
            let (session, path) = whose.open().await?;
            let human = |all: &Items<Token>| rows(&all.items, COLUMNS);
            page::list_of_host(&session, &paging, &path, human).await
        }
        TokenCommand::Find { whose } => {
            // Not an argument: those stay in the history of a shell.
            let read = argument::input(None)?;
            let value = read.trim();
            if value.is_empty() {
                let message = "has no value; pass it like `memhost token find < FILE`";
                return Err(CliError::input("standard input", message));
            }
            let (session, path) = whose.open().await?;
            let found: Answer<FoundToken> =
                session.host.post(&format!("{path}/find"), &json!({"value": value})).await?;
            session.show(&found, whose_value)
        }
        TokenCommand::Show { one, watch } => {
            let (session, path) = one.whose.open().await?;
            let fetch = async || {
                let all: Answer<Items<Token>> = session.host.get(&path).await?;
                let found = all.find(|token| text(&token.id) == one.id)?;
                found.ok_or_else(|| page::missing("token", &one.id))
            };
            page::watch_details(&session, &watch, fetch).await
        }
        TokenCommand::Create(args) => {
            let operations = Some(args.operation).filter(|operations| !operations.is_empty());
            let body = without_nulls(json!({
                "name": args.name, "role": args.role, "agentId": args.agent, "runId": args.run,
                "expiresAt": args.expires_at, "operations": operations,
            }));
            let (session, path) = args.whose.open().await?;
            let company = args.whose.company.named(&session.connection);
            let new = match company.filter(|_| !args.whose.operators) {
                Some(company) => Some(session.may_make(&company).await?),
                None => None,
            };
            let made = session.host.post(&path, &body).await?;
            new.map_or(Ok(()), |new| new.say())?;
            session.show(&made, value)
        }
        TokenCommand::Rotate(RotateArgs { one: OneToken { id, whose }, overlap }) => {
            let (session, path) = whose.open().await?;
            let id = id_of(&session, &path, &id).await?;
            let body = without_nulls(json!({"overlapSeconds": overlap}));
            let made = session.host.post(&format!("{path}/{}/rotate", escape(&id)), &body).await?;
            session.show(&made, value)
        }
        TokenCommand::Delete(OneToken { id, whose }) => {
            let (session, path) = whose.open().await?;
            let id = id_of(&session, &path, &id).await?;
            let answer = session.host.delete(&format!("{path}/{}", escape(&id)), None).await?;
            session.show(&answer, |token| rows(std::slice::from_ref(token), COLUMNS))
        }
    }
}

fn whose_value(found: &FoundToken) -> String {
    match (&found.token, &found.ended) {
        (None, _) => "no token that you may list has this value".to_owned(),
        (Some(token), None) => rows(std::slice::from_ref(token), COLUMNS),
        (Some(token), Some(why)) => {
            format!(
                "{}\n\nthe value does not work: the token {why}",
                rows(std::slice::from_ref(token), COLUMNS)
            )
        }
    }
}

fn value(made: &NewToken) -> String {
    let table = rows(std::slice::from_ref(&made.token), COLUMNS);
    format!("{table}\n\ntoken value, shown only once:\n  {}", made.value)
}
