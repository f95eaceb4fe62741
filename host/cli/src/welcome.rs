//! The output of `memhost` without a command: the state of the host, and the next command to type.

use clap::{Args, Command, FromArgMatches};

use super::args::HostArgs;
use super::connection::Connection;
use super::output::line;
use super::{CliError, Result};
use memhost_http::api::CompaniesView;

pub(super) async fn run(context: Option<String>) -> Result<()> {
    // Only the environment and the contexts file name the host.
    let matches = HostArgs::augment_args(Command::new("memhost")).get_matches_from(["memhost"]);
    let mut host = HostArgs::from_arg_matches(&matches).map_err(CliError::host)?;
    host.context = context.or(host.context);
    let (connection, host) = host.connect().await?;
    let found = host.get::<CompaniesView>("/control/v1/companies").await.map(drop);
    line("memhost: shared memory for a company of AI agents, with sandboxed providers.\n")?;
    line(&advice(&connection, &found))?;
    line("\nAll commands: memhost --help")
}

/// The state of the host, and the next command to type.
fn advice(connection: &Connection, found: &Result<()>) -> String {
    let url = &connection.url;
    let commands = |head: String, rows: &[(&str, &str)]| {
        let width = rows.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
        let rows: Vec<String> =
            rows.iter().map(|(command, what)| format!("  {command:<width$}  {what}")).collect();
        format!("{head}\n{}", rows.join("\n"))
    };
    match found {
        Err(CliError::Unreachable { .. }) => commands(
            format!("No host is running at {url}. Start one, or run the demonstration:"),
            &[
                ("memhost serve", "runs a host and makes its token"),
                ("memhost demo", "runs a demonstration host"),
            ],
        ),
        Err(CliError::Problem { status: 401, .. }) => commands(
            format!("The host at {url} requires a token. Save it in a context:"),
            &[
                (
                    &format!("memhost context create main --url {url} --token -"),
                    "reads the token from standard input",
                ),
                ("memhost serve --new-token", "after you stopped the host: replaces a lost token"),
            ],
        ),
        _ => match (&connection.company, &connection.context) {
            (Some(company), _) => commands(
                format!("Connected to {url}, company {company}:"),
                &[
                    ("memhost note 'Deploys are frozen on Fridays'", "creates a record"),
                    ("memhost search 'when may I deploy?'", "searches records"),
                    ("memhost tail", "streams operations"),
                ],
            ),
            (None, context) => {
                let verb = if context.is_some() { "update" } else { "create main" };
                commands(
                    format!("Connected to {url}. Choose a company:"),
                    &[
                        (
                            &format!("memhost context {verb} --company acme"),
                            "saves it in the context",
                        ),
                        (
                            "memhost note 'Deploys are frozen on Fridays' -c acme",
                            "creates the company with its first record",
                        ),
                    ],
                )
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_names_the_next_command() {
        let connection = |company: Option<&str>, context: Option<&str>| Connection {
            url: "http://h".to_owned(),
            control_url: "http://h".to_owned(),
            token: None,
            ca: None,
            company: company.map(str::to_owned),
            agent: None,
            context: context.map(str::to_owned),
        };
        let away: Result<(), _> = Err(CliError::Unreachable {
            url: "http://h".to_owned(),
            message: "refused".to_owned(),
        });
        let unknown: Result<(), _> = Err(CliError::Problem {
            status: 401,
            detail: String::new(),
            operation: None,
            code: None,
        });
        let there = Ok(());
        for (connection, found, next) in [
            (connection(None, None), &away, "memhost serve "),
            (connection(None, None), &unknown, "context create main --url http://h --token -"),
            (connection(None, None), &there, "memhost context create main --company acme"),
            (connection(None, Some("local")), &there, "memhost context update --company acme"),
            (connection(Some("acme"), None), &there, "memhost note "),
        ] {
            let advice = advice(&connection, found);
            assert!(advice.contains(next) && advice.lines().count() <= 4, "{advice}");
        }
    }
}
