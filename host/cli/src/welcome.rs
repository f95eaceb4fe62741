//! What somebody sees who types `memhost` and nothing else: what this is, how things stand, and the next command to type.

use clap::{Args, Command, FromArgMatches};

use super::args::HostArgs;
use super::output::line;
use super::profile::Target;
use super::{Backend, CliError};

pub(super) async fn run(profile: Option<String>) -> Result<(), CliError> {
    // Nothing but the environment says which host.
    let matches = HostArgs::augment_args(Command::new("memhost")).get_matches_from(["memhost"]);
    let mut host = HostArgs::from_arg_matches(&matches).map_err(CliError::host)?;
    host.profile = profile.or(host.profile);
    let target = Target::of(&host)?;
    let found = Backend::open(&host).await?.get("/control/v1/companies").await;
    line("memhost: one memory for a company of AI agents, with any provider, and none of them trusted.\n")?;
    line(&advice(&target, &found))?;
    line("\nAll commands: memhost --help")
}

/// How things stand, and what to type next.
fn advice(target: &Target, found: &Result<serde_json::Value, CliError>) -> String {
    let url = &target.url;
    let commands = |head: String, rows: &[(&str, &str)]| {
        let width = rows.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
        let rows: Vec<String> = rows.iter().map(|(command, what)| format!("  {command:<width$}  {what}")).collect();
        format!("{head}\n{}", rows.join("\n"))
    };
    match found {
        Err(CliError::Unreachable { .. }) => commands(
            format!("No host answers at {url}. Start one, or look first at what it does:"),
            &[("memhost serve", "prints a token once"), ("memhost demo", "shows the main job, then stays up")],
        ),
        Err(CliError::Problem { status: 401, .. }) => commands(
            format!("A host answers at {url} and asks who you are. Keep its token once:"),
            &[
                (&format!("memhost profile create main --url {url} --token -"), "reads the token from standard input"),
                ("memhost serve --new-token", "makes another one, if it is lost"),
            ],
        ),
        _ => match (&target.company, &target.profile) {
            (Some(company), _) => commands(
                format!("A host answers at {url}, and the company is {company}:"),
                &[
                    ("memhost note 'Deploys are frozen on Fridays'", "writes a record"),
                    ("memhost search 'when may I deploy?'", "finds it again"),
                    ("memhost tail", "shows what is done, live"),
                ],
            ),
            (None, profile) => {
                let verb = if profile.is_some() { "update" } else { "create main" };
                commands(
                    format!("A host answers at {url}. Name the company to work with; any name will do:"),
                    &[
                        (&format!("memhost profile {verb} --company acme"), "keeps it"),
                        ("memhost note 'Deploys are frozen on Fridays' -c acme", "or name it each time"),
                    ],
                )
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_state_names_the_next_command() {
        let target = |company: Option<&str>, profile: Option<&str>| Target {
            url: "http://h".to_owned(),
            control_url: "http://h".to_owned(),
            token: None,
            company: company.map(str::to_owned),
            agent: None,
            profile: profile.map(str::to_owned),
        };
        let away: Result<Value, _> =
            Err(CliError::Unreachable { url: "http://h".to_owned(), message: "refused".to_owned() });
        let unknown: Result<Value, _> = Err(CliError::Problem { status: 401, detail: String::new(), operation: None });
        let there = Ok(json!({ "items": [] }));
        for (target, found, next) in [
            (target(None, None), &away, "memhost serve "),
            (target(None, None), &unknown, "profile create main --url http://h --token -"),
            (target(None, None), &there, "memhost profile create main --company acme"),
            (target(None, Some("local")), &there, "memhost profile update --company acme"),
            (target(Some("acme"), None), &there, "memhost note "),
        ] {
            let advice = advice(&target, found);
            assert!(advice.contains(next) && advice.lines().count() <= 4, "{advice}");
        }
    }
}
