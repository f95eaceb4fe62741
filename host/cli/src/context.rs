//! Contexts: a host, a token and a company under one name, for people who work with several hosts.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::json;
use toml_edit::{Item, Table, value};

use super::answer::Answer;
use super::args::{OutputArgs, Paging};
use super::connection::file::{self, Context, File};
use super::connection::{DEFAULT_URL, check_url};
use super::output::line;
use super::page::{self, Columns};
use super::texts::cell;
use super::{CliError, Result, argument, user_files};
use memhost_http::api::Items;

/// The end of `memhost context --help`.
pub(super) const ORDER: &str = "Contexts are stored in ~/.config/memhost/config.toml, or in the \
                                file that \
    MEMHOST_CLI_CONFIG names. Flags override environment variables, environment variables override \
    the context, and \
    the context overrides the defaults. A context's token is sent only to the context's host.";

#[derive(Debug, Subcommand)]
pub(super) enum ContextCommand {
    /// List contexts, without their tokens.
    List {
        #[command(flatten)]
        paging: Paging,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show a context, without its token [default: the current context].
    Show {
        /// Name of the context.
        name: Option<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Create a context. The first one becomes the current context.
    Create {
        /// Name of the context.
        name: String,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Update a context [default: the current context]. An empty value removes a setting.
    Update {
        /// Name of the context.
        name: Option<String>,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Delete a context.
    Delete {
        /// Name of the context.
        name: String,
    },
    /// Set the current context.
    Use {
        /// Name of the context.
        name: String,
    },
}

/// The settings of a context. No environment variable replaces a flag here, so that no token is
/// stored by accident.
#[derive(Debug, Args)]
pub(super) struct Settings {
    /// The host's URL.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// URL of the host's control plane if it has its own.
    #[arg(long, value_name = "URL")]
    control_url: Option<String>,
    /// PEM file with the certificate authorities to trust for an https URL.
    #[arg(long, value_name = "FILE")]
    ca: Option<String>,
    /// Access token; `-` reads standard input, which keeps the token out of the shell's history.
    #[arg(long, value_name = "TOKEN", group = "secret")]
    token: Option<String>,
    /// File with the token.
    #[arg(long, value_name = "FILE", group = "secret")]
    token_file: Option<String>,
    /// Command that prints the token, run by `sh`.
    #[arg(long, value_name = "COMMAND", group = "secret")]
    token_command: Option<String>,
    /// Company ID.
    #[arg(long, short, value_name = "ID")]
    company: Option<String>,
    /// Agent ID to act as.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

impl Settings {
    fn is_empty(&self) -> bool {
        let Self { url, control_url, ca, token, token_file, token_command, company, agent } = self;
        ca.is_none()
            && [url, control_url, token, token_file, token_command, company, agent]
                .into_iter()
                .all(Option::is_none)
    }
}

/// A context without its token.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContextView {
    name: String,
    url: String,
    /// Where the token is.
    token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ca: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    company: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// Whether commands use it that name none; absent: they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<bool>,
}

const COLUMNS: &Columns<ContextView> = &[
    ("current", |view| cell(&view.current)),
    ("name", |view| cell(&view.name)),
    ("url", |view| cell(&view.url)),
    ("company", |view| cell(&view.company)),
    ("agent", |view| cell(&view.agent)),
    ("token", |view| cell(&view.token)),
];

/// `selected` is the context that the command line or the environment names.
pub(super) async fn run(command: ContextCommand, selected: Option<String>) -> Result<()> {
    let file = File::read()?;
    match command {
        ContextCommand::List { paging, output } => {
            let items: Vec<_> =
                file.contexts.iter().map(|(name, context)| view(&file, name, context)).collect();
            let fetch = async |_| Ok(Answer::new(json!({ "items": items })));
            let human = |all: &Items<ContextView>| match all.items.as_slice() {
                [] => {
                    "no contexts; create one with `memhost context create NAME --url URL --token -`"
                        .to_owned()
                }
                items => page::rows(items, COLUMNS),
            };
            page::pages(output.format(), &paging, fetch, human).await
        }
        ContextCommand::Show { name, output } => {
            let name = named(&file, name.or(selected))?;
            shown(&file, &name, &output)
        }
        ContextCommand::Create { name, settings, output } => {
            if file.contexts.contains_key(&name) {
                let message =
                    format!("the context `{name}` exists; change it with `memhost context update`");
                return Err(CliError::input("NAME", message));
            }
            keep(&file, &name, settings)?;
            shown(&File::read()?, &name, &output)
        }
        ContextCommand::Update { name, settings, output } => {
            let name = named(&file, name.or(selected))?;
            file.get(&name)?;
            if settings.is_empty() {
                return Err(argument::nothing_to_change(
                    "--url, --control-url, --ca, --token, --token-file, --token-command, --company \
                     and --agent",
                ));
            }
            keep(&file, &name, settings)?;
            shown(&File::read()?, &name, &output)
        }
        ContextCommand::Delete { name } => {
            file.get(&name)?;
            user_files::edit(&file.path, |document| {
                file::contexts(document)?.remove(&name);
                if file.default.as_ref() == Some(&name) {
                    document.remove("default");
                }
                Ok(())
            })?;
            line(&format!("deleted the context {name}"))
        }
        ContextCommand::Use { name } => {
            file.get(&name)?;
            user_files::edit(&file.path, |document| {
                document["default"] = value(&name);
                Ok(())
            })?;
            line(&format!("switched to the context {name}"))
        }
    }
}

/// Saves the token of a new host as a context, so that commands on this machine work at once, and
/// answers what to say. Does so only on a terminal: the token of a service or a container does not
/// belong in a home directory.
pub(super) fn remember(url: &str, control_url: &str, token: &str) -> Result<Option<String>> {
    if !std::io::stdout().is_terminal() {
        return Ok(None);
    }
    let file = File::read()?;
    Ok(Some(match keep_local(&file, url, control_url, token)? {
        true => format!("saved as the context `{LOCAL}` in {}", file.path.display()),
        false => format!("save it with `memhost context create NAME --url {url} --token -`"),
    }))
}

/// The context of a host on this machine.
const LOCAL: &str = "local";

/// Answers false where there is no home directory, or the name belongs to another host.
fn keep_local(file: &File, url: &str, control_url: &str, token: &str) -> Result<bool> {
    let is_ours = |context: &Context| context.url.as_deref().is_none_or(|kept| kept == url);
    if file.path.as_os_str().is_empty() || !file.contexts.get(LOCAL).is_none_or(is_ours) {
        return Ok(false);
    }
    let control_url = if control_url == url { "" } else { control_url };
    let nothing = ["token_file", "token_command"].map(|name| (name, Some("")));
    let all = [
        ("url", Some(url)),
        ("control_url", Some(control_url)),
        ("token", Some(token)),
        nothing[0],
        nothing[1],
    ];
    set(file, LOCAL, &all)?;
    Ok(true)
}

fn named(file: &File, name: Option<String>) -> Result<String> {
    name.or_else(|| file.default.clone()).ok_or_else(|| {
        let message = match file.contexts.keys().next() {
            Some(one) => format!("no context is selected; name one, such as `{one}`"),
            // The first `memhost serve` on a terminal makes one.
            None => "there is no context yet. If `memhost serve` is still starting, wait until it \
                     says `listening`; else create one with `memhost context create`"
                .to_owned(),
        };
        CliError::input("NAME", message)
    })
}

fn keep(file: &File, name: &str, settings: Settings) -> Result<()> {
    if file.path.as_os_str().is_empty() {
        let message = format!("no home directory was found; set {}", file::VARIABLE);
        return Err(CliError::input("contexts", message));
    }
    for (flag, url) in [("--url", &settings.url), ("--control-url", &settings.control_url)] {
        // An empty value removes the setting.
        if let Some(url) = url.as_deref().filter(|url| !url.is_empty()) {
            check_url(flag, url)?;
        }
    }
    let token = settings.token.map(|token| argument::text(&token)).transpose()?;
    let token_file = absolute("--token-file", settings.token_file)?;
    let ca = absolute("--ca", settings.ca)?;
    if let Some(ca) = ca.as_deref().filter(|ca| !ca.is_empty()) {
        memhost_agent_hooks::trusting(Path::new(ca)).map_err(|why| CliError::input("--ca", why))?;
    }
    let mut all = vec![
        ("url", settings.url.as_deref()),
        ("control_url", settings.control_url.as_deref()),
        ("ca", ca.as_deref()),
        ("company", settings.company.as_deref()),
        ("agent", settings.agent.as_deref()),
    ];
    let secrets = [
        ("token", token.as_deref().map(str::trim)),
        ("token_file", token_file.as_deref()),
        ("token_command", settings.token_command.as_deref()),
    ];
    if secrets.iter().any(|(_, given)| given.is_some()) {
        // A context has one source of the token: the last one that was set.
        all.extend(secrets.map(|(name, given)| (name, Some(given.unwrap_or_default()))));
    }
    set(file, name, &all)
}

/// The file of contexts is in another directory, and its own relative paths start there.
fn absolute(flag: &str, path: Option<String>) -> Result<Option<String>> {
    let whole = path.map(|path| match path.is_empty() {
        true => Ok(path),
        false => std::path::absolute(&path).map(|path| path.display().to_string()),
    });
    whole.transpose().map_err(|error| CliError::input(flag, error))
}

fn set(file: &File, name: &str, settings: &[(&str, Option<&str>)]) -> Result<()> {
    let is_first = file.contexts.is_empty() && file.default.is_none();
    user_files::edit(Path::new(&file.path), |document| {
        if is_first {
            document["default"] = value(name);
        }
        let table =
            file::contexts(document)?.entry(name).or_insert_with(|| Item::Table(Table::new()));
        let table = table.as_table_mut();
        file::put(
            table.ok_or_else(|| CliError::input(name, "is not a table; write [contexts.NAME]"))?,
            settings,
        );
        Ok(())
    })
}

fn shown(file: &File, name: &str, output: &OutputArgs) -> Result<()> {
    let view = view(file, name, file.get(name)?);
    line(&output.format().tell_all(&view)?)
}

fn view(file: &File, name: &str, context: &Context) -> ContextView {
    let token = match context {
        Context { token: Some(_), .. } => "kept here".to_owned(),
        Context { token_file: Some(path), .. } => format!("in {}", path.display()),
        Context { token_command: Some(command), .. } => format!("from `{command}`"),
        _ => "none".to_owned(),
    };
    ContextView {
        name: name.to_owned(),
        url: context.url.as_deref().unwrap_or(DEFAULT_URL).to_owned(),
        token,
        control_url: context.control_url.clone(),
        ca: context.ca.clone(),
        company: context.company.clone(),
        agent: context.agent.clone(),
        current: (file.default.as_deref() == Some(name)).then_some(true),
    }
}

#[cfg(test)]
mod tests;
