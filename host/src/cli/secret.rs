//! Secrets of a company.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::binding::path;
use super::output::{escape, line, table, text};
use super::{Backend, CliError, CompanyArgs, output};

#[derive(Debug, Subcommand)]
pub(super) enum SecretCommand {
    /// Set a secret. Its value is read from standard input or a file, never from the command line, and never shown.
    Set(SetArgs),
    /// Show a company's secrets, without their values.
    List(CompanyArgs),
    /// Remove a secret.
    Remove {
        /// Its name.
        name: String,
        #[command(flatten)]
        company: CompanyArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// What placeholders and grants name: letters, digits, `_` and `-`.
    name: String,
    /// Where it may be sent, such as https://api.example.com; may be given again.
    #[arg(long, required = true, value_name = "ORIGIN")]
    origin: Vec<String>,
    /// Let it be put into JSON bodies too, where texts of third parties are.
    #[arg(long)]
    in_body: bool,
    /// A file that holds the value; standard input where absent. One line end after the value is left out.
    #[arg(long, value_name = "FILE")]
    value_file: Option<PathBuf>,
    #[command(flatten)]
    company: CompanyArgs,
}

pub(super) async fn run(command: SecretCommand) -> Result<(), CliError> {
    match command {
        SecretCommand::Set(args) => {
            let value = value(args.value_file.as_deref())?;
            let body = json!({ "value": value, "origins": args.origin, "inBody": args.in_body });
            let path = path(&args.company, &format!("secrets/{}", escape(&args.name)));
            let answer = Backend::open(&args.company.host).await?.put(&path, &body).await?;
            show(&args.company, &answer, std::slice::from_ref(&answer))
        }
        SecretCommand::List(company) => {
            let answer = Backend::open(&company.host).await?.get(&path(&company, "secrets")).await?;
            show(&company, &answer, answer["items"].as_array().map_or(&[], Vec::as_slice))
        }
        SecretCommand::Remove { name, company } => {
            let path = path(&company, &format!("secrets/{}", escape(&name)));
            Backend::open(&company.host).await?.delete(&path).await?;
            line(&format!("{name} is removed; requests that name it are refused from now on"))
        }
    }
}

fn value(file: Option<&Path>) -> Result<String, CliError> {
    let mut value = String::new();
    match file {
        Some(file) => std::fs::File::open(file)
            .and_then(|mut file| file.read_to_string(&mut value))
            .map_err(|error| CliError::input("--value-file", format!("{}: {error}", file.display())))?,
        None => std::io::stdin()
            .read_to_string(&mut value)
            .map_err(|error| CliError::input("standard input", error.to_string()))?,
    };
    let end = value.strip_suffix('\n').map(|value| value.strip_suffix('\r').unwrap_or(value));
    Ok(end.map(str::to_owned).unwrap_or(value))
}

fn show(company: &CompanyArgs, answer: &Value, secrets: &[Value]) -> Result<(), CliError> {
    if company.host.json {
        return output::json(answer);
    }
    let row = |secret: &Value| {
        let origins = secret["origins"].as_array().cloned().unwrap_or_default();
        let origins: Vec<String> = origins.iter().map(|origin| text(origin, "")).collect();
        let places = if secret["inBody"] == true { "headers, query, JSON bodies" } else { "headers, query" };
        vec![text(secret, "/name"), origins.join(", "), places.to_owned(), text(secret, "/setAt")]
    };
    table(&["name", "may go to", "in", "set"], secrets.iter().map(row).collect())
}
