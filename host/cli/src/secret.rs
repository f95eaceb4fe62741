//! `memhost secret`: the secrets of a company.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::args::{CompanyArgs, NamedArgs, PageArgs, ShowNamedArgs};
use super::output::{details, escape, moment, table, text};
use super::page::{self, items};
use super::session::Session;
use super::{CliError, argument};

#[derive(Debug, Subcommand)]
pub(super) enum SecretCommand {
    /// List secrets, without their values.
    List(PageArgs),
    /// Show a secret, without its value.
    Show(ShowNamedArgs),
    /// Create a secret. The value is read from standard input or a file and never shown.
    Create(CreateArgs),
    /// Replace a secret's value, and its origins if any are given.
    Update(UpdateArgs),
    /// Delete a secret; requests that name it are then refused.
    Delete(NamedArgs),
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Name of the secret: letters, digits, `_` and `-`.
    name: String,
    /// Origin that may receive the secret, such as https://api.example.com; repeatable.
    #[arg(long, required = true, value_name = "ORIGIN")]
    origin: Vec<String>,
    /// Also allow the secret in JSON request bodies.
    #[arg(long)]
    in_body: bool,
    #[command(flatten)]
    value: ValueArgs,
    #[command(flatten)]
    company: CompanyArgs,
}

#[derive(Debug, Args)]
pub(super) struct UpdateArgs {
    /// Name of the secret: letters, digits, `_` and `-`.
    name: String,
    /// Origin that may receive the secret, such as https://api.example.com; repeatable.
    #[arg(long, value_name = "ORIGIN")]
    origin: Vec<String>,
    /// Also allow the secret in JSON request bodies.
    #[arg(long, conflicts_with = "not_in_body")]
    in_body: bool,
    /// Do not allow the secret in JSON request bodies.
    #[arg(long)]
    not_in_body: bool,
    #[command(flatten)]
    value: ValueArgs,
    #[command(flatten)]
    company: CompanyArgs,
}

#[derive(Debug, Args)]
struct ValueArgs {
    /// File with the value [default: standard input]; one trailing line break is removed.
    #[arg(long, value_name = "FILE")]
    value_file: Option<PathBuf>,
}

pub(super) async fn run(command: SecretCommand) -> Result<(), CliError> {
    match command {
        SecretCommand::List(page) => page::list_as(&page, "secrets", &[], |answer| rows(items(answer, "items"))).await,
        SecretCommand::Show(args) => {
            let session = args.named.company.open().await?;
            page::watch(&session, &args.watch, "", async || found(&session, &args.named.name).await, details).await
        }
        SecretCommand::Create(args) => {
            let session = args.company.open().await?;
            if present(&session, &args.name).await?.is_some() {
                return Err(CliError::exists("secret", &args.name));
            }
            set(&session, &args.name, &args.origin.into(), args.in_body, &args.value).await
        }
        SecretCommand::Update(args) => {
            let session = args.company.open().await?;
            let found = found(&session, &args.name).await?;
            let origins = if args.origin.is_empty() { found["origins"].clone() } else { args.origin.into() };
            let in_body = args.in_body || (found["inBody"] == true && !args.not_in_body);
            set(&session, &args.name, &origins, in_body, &args.value).await
        }
        SecretCommand::Delete(named) => {
            let session = named.company.open().await?;
            let answer = session.delete(&format!("secrets/{}", escape(&named.name))).await?;
            session.gone(&answer, &format!("deleted the secret {}; requests that name it are now refused", named.name))
        }
    }
}

async fn present(session: &Session, name: &str) -> Result<Option<Value>, CliError> {
    Ok(page::find(&session.get("secrets").await?, "items", "/name", name))
}

async fn found(session: &Session, name: &str) -> Result<Value, CliError> {
    present(session, name).await?.ok_or_else(|| page::missing("secret", name))
}

async fn set(session: &Session, name: &str, origins: &Value, in_body: bool, from: &ValueArgs) -> Result<(), CliError> {
    let body = json!({ "value": value(from.value_file.as_deref())?, "origins": origins, "inBody": in_body });
    let answer = session.put(&format!("secrets/{}", escape(name)), &body).await?;
    session.show(&answer, "", |answer| rows(std::slice::from_ref(answer)))
}

fn value(file: Option<&Path>) -> Result<String, CliError> {
    let value = argument::input(file)?;
    let end = value.strip_suffix('\n').map(|value| value.strip_suffix('\r').unwrap_or(value));
    Ok(end.map(str::to_owned).unwrap_or(value))
}

fn rows(secrets: &[Value]) -> String {
    let row = |secret: &Value| {
        let origins: Vec<String> = items(secret, "origins").iter().map(|origin| text(origin, "")).collect();
        let places = if secret["inBody"] == true { "headers, query, JSON bodies" } else { "headers, query" };
        vec![text(secret, "/name"), origins.join(", "), places.to_owned(), moment(&text(secret, "/setAt"))]
    };
    table(&["name", "origins", "allowed in", "updated"], secrets.iter().map(row).collect())
}
