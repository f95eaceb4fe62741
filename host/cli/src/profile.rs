//! Profiles: a host, a token and a company under one name, for people who work with several hosts.
//!
//! A flag goes before an environment variable, that before the profile, and the profile before the default.

mod file;

use std::io::IsTerminal;
use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toml_edit::{Item, Table, value};

use self::file::{File, Profile};
use super::args::{HostArgs, OutputArgs, Paging};
use super::output::{details, line};
use super::page::{self, Columns};
use super::{CliError, memory};

/// What `memhost profile --help` says at its end.
pub(super) const ORDER: &str = "Profiles are kept in ~/.config/memhost/config.toml, or in the file that \
    MEMHOST_CLI_CONFIG names. A flag goes before an environment variable, that before the profile, and the profile \
    before the default. A profile's token goes to the profile's host only.";

const DEFAULT_URL: &str = "http://127.0.0.1:7600";

#[derive(Debug, Subcommand)]
pub(super) enum ProfileCommand {
    /// Show your profiles, without their tokens.
    List {
        #[command(flatten)]
        paging: Paging,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show one profile, without its token; the one in use where none is named.
    Show {
        /// Its name.
        name: Option<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Make a profile. The first one is used from then on.
    Create {
        /// Its name.
        name: String,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Change a profile; the one in use where none is named. An empty value takes a setting away.
    Update {
        /// Its name.
        name: Option<String>,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Delete a profile.
    Delete {
        /// Its name.
        name: String,
    },
    /// Use a profile wherever no other one is named.
    Use {
        /// Its name.
        name: String,
    },
}

/// What a profile holds. No environment variable stands in for a flag here: a token must not be kept by accident.
#[derive(Debug, Args)]
pub(super) struct Settings {
    /// The host's address.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Where its control plane is, if it listens by itself.
    #[arg(long, value_name = "URL")]
    control_url: Option<String>,
    /// The token itself; `-` reads it from standard input, so that no history of commands has it.
    #[arg(long, value_name = "TOKEN", group = "secret")]
    token: Option<String>,
    /// A file that holds the token, relative to the file of profiles.
    #[arg(long, value_name = "FILE", group = "secret")]
    token_file: Option<String>,
    /// A command that prints the token, run by `sh`.
    #[arg(long, value_name = "COMMAND", group = "secret")]
    token_command: Option<String>,
    /// The company to work with.
    #[arg(long, short, value_name = "ID")]
    company: Option<String>,
    /// The agent to act as.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

const COLUMNS: &Columns = &[
    ("used", "/used"),
    ("name", "/name"),
    ("url", "/url"),
    ("company", "/company"),
    ("agent", "/agent"),
    ("token", "/token"),
];

/// Where a command goes, as whom and for whom.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) url: String,
    /// Where its control plane is.
    pub(super) control_url: String,
    pub(super) token: Option<String>,
    pub(super) company: Option<String>,
    pub(super) agent: Option<String>,
    /// The profile that had a say.
    pub(super) profile: Option<String>,
}

impl Target {
    /// Out of the command line, the environment and the file of profiles.
    pub(super) fn of(args: &HostArgs) -> Result<Self, CliError> {
        Self::among(args, &File::read()?)
    }

    fn among(args: &HostArgs, file: &File) -> Result<Self, CliError> {
        let name = args.profile.as_ref().filter(|name| !name.is_empty()).or(file.default.as_ref());
        let none = Profile::default();
        let profile = name.map_or(Ok(&none), |name| file.get(name))?;
        let address = |text: &str| text.trim_end_matches('/').to_owned();
        let kept = address(profile.url.as_deref().unwrap_or(DEFAULT_URL));
        let kept_control = profile.control_url.as_deref().map_or_else(|| kept.clone(), address);
        // An empty variable is as good as none.
        let given = |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map(str::to_owned);
        let url = given(&args.url).map_or_else(|| kept.clone(), |url| address(&url));
        let control_url = match (given(&args.control_url), given(&args.url)) {
            (Some(control), _) => address(&control),
            // Another host has another control plane.
            (None, Some(_)) if url != kept => url.clone(),
            (None, _) => kept_control.clone(),
        };
        // A profile's token is for the profile's host: another one must not learn it.
        let token = match given(&args.token) {
            Some(token) => Some(token),
            None if args.data_dir.is_none() && url == kept && control_url == kept_control => file.token(profile)?,
            None => None,
        };
        Ok(Self {
            url,
            control_url,
            token,
            company: profile.company.clone(),
            agent: profile.agent.clone(),
            profile: name.cloned(),
        })
    }
}

/// `in_use` is the profile that the command line or the environment names.
pub(super) async fn run(command: ProfileCommand, in_use: Option<String>) -> Result<(), CliError> {
    let file = File::read()?;
    match command {
        ProfileCommand::List { paging, output } => {
            let items: Vec<Value> = file.profiles.iter().map(|(name, profile)| view(&file, name, profile)).collect();
            let fetch = async |_| Ok(json!({ "items": items }));
            let human = |answer: &Value| match page::items(answer, "items") {
                [] => "no profiles; `memhost profile create NAME --url URL --token -` makes one".to_owned(),
                items => page::rows(items, COLUMNS),
            };
            page::pages(output.format(), &paging, "items", fetch, human).await
        }
        ProfileCommand::Show { name, output } => {
            let name = named(&file, name.or(in_use))?;
            shown(&file, &name, &output)
        }
        ProfileCommand::Create { name, settings, output } => {
            if file.profiles.contains_key(&name) {
                let message = format!("there is a profile `{name}` already; `memhost profile update` changes it");
                return Err(CliError::input("NAME", message));
            }
            keep(&file, &name, settings)?;
            shown(&File::read()?, &name, &output)
        }
        ProfileCommand::Update { name, settings, output } => {
            let name = named(&file, name.or(in_use))?;
            file.get(&name)?;
            keep(&file, &name, settings)?;
            shown(&File::read()?, &name, &output)
        }
        ProfileCommand::Delete { name } => {
            file.get(&name)?;
            file::edit(&file.path, |document| {
                file::profiles(document)?.remove(&name);
                if file.default.as_ref() == Some(&name) {
                    document.remove("default");
                }
                Ok(())
            })?;
            line(&format!("{name} is deleted"))
        }
        ProfileCommand::Use { name } => {
            file.get(&name)?;
            file::edit(&file.path, |document| {
                document["default"] = value(&name);
                Ok(())
            })?;
            line(&format!("{name} is used where no other profile is named"))
        }
    }
}

/// Keeps the token that a host has just made for the person who started it, so that the commands on this machine work
/// without another word. Only where a person is there to read about it: nobody wants the token of a service or a
/// container in a home directory.
pub(super) fn remember(url: &str, control_url: &str, token: &str) -> Result<(), CliError> {
    if !std::io::stdout().is_terminal() {
        return Ok(());
    }
    let file = File::read()?;
    match keep_local(&file, url, control_url, token)? {
        true => {
            line(&format!("it is kept as the profile `{LOCAL}` in {}, for your commands here", file.path.display()))
        }
        false => line(&format!("keep it with `memhost profile create NAME --url {url} --token -`")),
    }
}

/// The profile of a host on this machine.
const LOCAL: &str = "local";

/// Whether it could be kept: not where there is no home, and not where the name is another host's.
fn keep_local(file: &File, url: &str, control_url: &str, token: &str) -> Result<bool, CliError> {
    let is_ours = |profile: &Profile| profile.url.as_deref().is_none_or(|kept| kept == url);
    if file.path.as_os_str().is_empty() || !file.profiles.get(LOCAL).is_none_or(is_ours) {
        return Ok(false);
    }
    let control_url = if control_url == url { "" } else { control_url };
    let nothing = ["token_file", "token_command"].map(|name| (name, Some("")));
    let all = [("url", Some(url)), ("control_url", Some(control_url)), ("token", Some(token)), nothing[0], nothing[1]];
    set(file, LOCAL, &all)?;
    Ok(true)
}

fn named(file: &File, name: Option<String>) -> Result<String, CliError> {
    name.or_else(|| file.default.clone()).ok_or_else(|| {
        CliError::input("NAME", "no profile is in use; name one, or make one with `memhost profile create`")
    })
}

fn keep(file: &File, name: &str, settings: Settings) -> Result<(), CliError> {
    if file.path.as_os_str().is_empty() {
        let message = format!("there is no home directory; set {}", file::VARIABLE);
        return Err(CliError::input("profiles", message));
    }
    let token = settings.token.map(|token| memory::input(&token)).transpose()?;
    let mut all = vec![
        ("url", settings.url.as_deref()),
        ("control_url", settings.control_url.as_deref()),
        ("company", settings.company.as_deref()),
        ("agent", settings.agent.as_deref()),
    ];
    let secrets = [
        ("token", token.as_deref().map(str::trim)),
        ("token_file", settings.token_file.as_deref()),
        ("token_command", settings.token_command.as_deref()),
    ];
    if secrets.iter().any(|(_, given)| given.is_some()) {
        // There is one way to the token: the one that was said last.
        all.extend(secrets.map(|(name, given)| (name, Some(given.unwrap_or_default()))));
    }
    set(file, name, &all)
}

fn set(file: &File, name: &str, settings: &[(&str, Option<&str>)]) -> Result<(), CliError> {
    let is_first = file.profiles.is_empty() && file.default.is_none();
    file::edit(Path::new(&file.path), |document| {
        if is_first {
            document["default"] = value(name);
        }
        let table = file::profiles(document)?.entry(name).or_insert_with(|| Item::Table(Table::new()));
        let table = table.as_table_mut();
        file::put(table.ok_or_else(|| CliError::input(name, "is no table; write [profiles.NAME]"))?, settings);
        Ok(())
    })
}

fn shown(file: &File, name: &str, output: &OutputArgs) -> Result<(), CliError> {
    let view = view(file, name, file.get(name)?);
    line(&output.format().render(&view, "", details)?)
}

/// A profile without its token.
fn view(file: &File, name: &str, profile: &Profile) -> Value {
    let token = match profile {
        Profile { token: Some(_), .. } => "kept here".to_owned(),
        Profile { token_file: Some(path), .. } => format!("in {}", path.display()),
        Profile { token_command: Some(command), .. } => format!("from `{command}`"),
        _ => "none".to_owned(),
    };
    let mut view = json!({ "name": name, "url": profile.url.as_deref().unwrap_or(DEFAULT_URL), "token": token });
    for (name, value) in
        [("controlUrl", &profile.control_url), ("company", &profile.company), ("agent", &profile.agent)]
    {
        if let Some(value) = value {
            view[name] = value.as_str().into();
        }
    }
    if file.default.as_deref() == Some(name) {
        view["used"] = "*".into();
    }
    view
}

#[cfg(test)]
mod tests;
