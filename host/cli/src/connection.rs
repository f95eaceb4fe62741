//! The host, the token and the company of a command.
//!
//! Flags override environment variables, these override the context, and the context overrides the
//! defaults.

pub(super) mod file;

use std::path::PathBuf;

use self::file::{Context, File};
use super::args::HostArgs;
use super::{CliError, Result};

/// The address of a host on this machine.
pub(super) const DEFAULT_URL: &str = "http://127.0.0.1:7600";

/// The host, the token and the company of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) url: String,
    pub(super) control_url: String,
    pub(super) token: Option<String>,
    /// The file of the certificate authorities to trust.
    pub(super) ca: Option<PathBuf>,
    pub(super) company: Option<String>,
    pub(super) agent: Option<String>,
    /// The name of the context in use.
    pub(super) context: Option<String>,
}

/// Checks that a text is the address of a host; `flag` names it in the error.
pub(super) fn check_url(flag: &str, url: &str) -> Result<()> {
    if ["http://", "https://", "unix:"].iter().any(|scheme| url.starts_with(scheme)) {
        return Ok(());
    }
    let message =
        format!("`{url}` is no address of a host; write it like {DEFAULT_URL} or unix:PATH");
    Err(CliError::input(flag, message))
}

impl Connection {
    /// From the command line, the environment and the contexts file.
    pub(super) fn of(args: &HostArgs) -> Result<Self> {
        Self::among(args, &File::read()?)
    }

    pub(super) fn among(args: &HostArgs, file: &File) -> Result<Self> {
        let name = args.context.as_ref().filter(|name| !name.is_empty()).or(file.default.as_ref());
        let none = Context::default();
        let context = name.map_or(Ok(&none), |name| file.get(name))?;
        let address = |text: &str| text.trim_end_matches('/').to_owned();
        let kept = address(context.url.as_deref().unwrap_or(DEFAULT_URL));
        let kept_control = context.control_url.as_deref().map_or_else(|| kept.clone(), address);
        // An empty variable counts as absent.
        let given = |text: &Option<String>| {
            text.as_deref().filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let url = given(&args.url).map_or_else(|| kept.clone(), |url| address(&url));
        let control_url = match (given(&args.control_url), given(&args.url)) {
            (Some(control), _) => address(&control),
            // Another host has another control plane.
            (None, Some(_)) if url != kept => url.clone(),
            (None, _) => kept_control.clone(),
        };
        for (flag, url) in [("--url", &url), ("--control-url", &control_url)] {
            check_url(flag, url)?;
        }
        // Another host must not receive the context's token.
        let token = match given(&args.token) {
            Some(token) => Some(token),
            None if args.data_dir.is_none() && url == kept && control_url == kept_control => {
                file.token(context)?
            }
            None => None,
        };
        let ca = args.ca.as_ref().filter(|ca| !ca.as_os_str().is_empty()).cloned();
        Ok(Self {
            url,
            control_url,
            token,
            ca: ca.or_else(|| Some(file.beside(context.ca.as_ref()?))),
            company: context.company.clone(),
            agent: context.agent.clone(),
            context: name.cloned(),
        })
    }
}
