//! `memhost secret`: the secrets of a company.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use super::answer::Answer;
use super::args::{CompanyArgs, NamedArgs, PageArgs, ShowNamedArgs};
use super::page::{self, Columns};
use super::session::Session;
use super::texts::{escape, moment};
use super::{CliError, Result, argument};
use memhost_core::SecretView;
use memhost_http::ProblemCode;
use memhost_http::api::Items;
use memhost_types::SecretUse;

#[derive(Debug, Subcommand)]
pub(super) enum SecretCommand {
    /// List secrets, without their values.
    List(PageArgs),
    /// Show a secret, without its value.
    Show(ShowNamedArgs),
    /// Create a secret. The value is read from standard input or a file and never shown.
    #[command(mut_arg("origins", |arg| arg.required(true)))]
    #[command(mut_arg("used_as", |arg| arg.required(true)))]
    Create(SetArgs),
    /// Replace a secret's value, and its origins and its place if they are given.
    Update(SetArgs),
    /// Delete a secret; requests that name it are then refused.
    Delete(NamedArgs),
}

#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// Name of the secret: letters, digits, `_` and `-`.
    name: String,
    /// Origin that may receive the secret, such as https://api.example.com; repeatable.
    #[arg(long, value_name = "ORIGIN", id = "origins")]
    origin: Vec<String>,
    /// The one place of a request where it may be: header:NAME, header:NAME:WORD with a word before
    /// it such as Bearer, query:PARAMETER, or body:/JSON/POINTER. Or what the host does with it:
    /// basic (the value is USER:PASSWORD), or sigv4:SERVICE:REGION, which signs for AWS (the value
    /// is ACCESS-KEY-ID:SECRET-ACCESS-KEY[:SESSION-TOKEN]).
    #[arg(long = "as", value_name = "USE")]
    used_as: Option<SecretUse>,
    /// File with the value [default: standard input]; one trailing line break is removed.
    #[arg(long, value_name = "FILE", id = "value")]
    value_file: Option<PathBuf>,
    #[command(flatten)]
    company: CompanyArgs,
}

pub(super) async fn run(command: SecretCommand) -> Result<()> {
    match command {
        SecretCommand::List(page) => {
            let human = |all: &Items<_>| page::rows(&all.items, SECRETS);
            page::list_as(&page, "secrets", &[], human).await
        }
        SecretCommand::Show(args) => {
            let session = args.named.company.open().await?;
            let fetch = async || found(&session, &args.named.name).await;
            page::watch_details(&session, &args.watch, fetch).await
        }
        SecretCommand::Create(args) => {
            let (session, made) = args.company.open_or_make().await?;
            match present(&session, &args.name).await {
                Ok(Some(_)) => return Err(CliError::exists("secret", &args.name)),
                // The first secret makes the company.
                Ok(None)
                | Err(CliError::Problem { code: Some(ProblemCode::UnknownCompany), .. }) => {}
                Err(error) => return Err(error),
            }
            set(&session, args).await?;
            made.say()
        }
        SecretCommand::Update(mut args) => {
            let session = args.company.open().await?;
            let found = found(&session, &args.name).await?.read()?;
            if args.origin.is_empty() {
                args.origin = found.origins.iter().map(ToString::to_string).collect();
            }
            args.used_as = args.used_as.or(Some(found.used_as));
            set(&session, args).await
        }
        SecretCommand::Delete(named) => {
            let session = named.company.open().await?;
            let answer = session.delete(&format!("secrets/{}", escape(&named.name))).await?;
            session.gone(
                &answer,
                &format!(
                    "deleted the secret {}; requests that name it are now refused",
                    named.name
                ),
            )
        }
    }
}

async fn present(session: &Session, name: &str) -> Result<Option<Answer<SecretView>>> {
    let all: Answer<Items<SecretView>> = session.get("secrets").await?;
    all.find(|secret| secret.name == name)
}

async fn found(session: &Session, name: &str) -> Result<Answer<SecretView>> {
    present(session, name).await?.ok_or_else(|| page::missing("secret", name))
}

async fn set(session: &Session, args: SetArgs) -> Result<()> {
    let value = value(args.value_file.as_deref())?;
    let body = json!({ "value": value, "origins": args.origin, "usedAs": args.used_as });
    let answer = session.put(&format!("secrets/{}", escape(&args.name)), &body).await?;
    session.show(&answer, |secret| page::rows(std::slice::from_ref(secret), SECRETS))
}

fn value(file: Option<&Path>) -> Result<String> {
    let value = argument::input(file)?;
    let end = value.strip_suffix('\n').map(|value| value.strip_suffix('\r').unwrap_or(value));
    Ok(end.map(str::to_owned).unwrap_or(value))
}

const SECRETS: &Columns<SecretView> = &[
    ("name", |secret| secret.name.clone()),
    ("origins", |secret| {
        secret.origins.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }),
    ("used as", |secret| secret.used_as.to_string()),
    ("updated", |secret| moment(secret.set_at)),
];
