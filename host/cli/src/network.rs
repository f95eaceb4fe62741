//! The flags with which an author lets a build reach the network, the same in `plugin run`,
//! `check`, `replay` and `dev`.

use clap::Args;
use ipnet::IpNet;

use crate::CliError;
use crate::argument::addresses;
use memhost_conformance::Network;
use memhost_types::SecretUse;

/// This machine: a stand-in for a service runs beside its author.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct NetworkArgs {
    /// Grant the origins and secrets that the provider requests, and allow network access.
    #[arg(long)]
    allow_network: bool,
    /// With --allow-network: secret to read from the environment variable of the same name, and
    /// where in a request it goes, such as KEY=query:key; repeatable [default place:
    /// header:authorization:Bearer].
    #[arg(long, requires = "allow_network", value_name = "NAME[=USE]")]
    secret_env: Vec<String>,
    /// With --allow-network: allow connections to this private address range, such as 10.0.0.0/8;
    /// repeatable [default: this machine].
    #[arg(long, requires = "allow_network", value_name = "CIDR", value_parser = addresses)]
    private_range: Vec<IpNet>,
}

impl NetworkArgs {
    /// What the build may reach; none without `--allow-network`.
    pub(crate) fn network(&self) -> Result<Option<Network>, CliError> {
        if !self.allow_network {
            return Ok(None);
        }
        let secrets =
            self.secret_env.iter().map(|given| secret(given)).collect::<Result<_, _>>()?;
        let private_ranges = match self.private_range.is_empty() {
            true => LOOPBACK.iter().filter_map(|range| range.parse().ok()).collect(),
            false => self.private_range.clone(),
        };
        Ok(Some(Network { secrets, private_ranges }))
    }
}

fn secret(given: &str) -> Result<(String, String, SecretUse), CliError> {
    let (name, used_as) = match given.split_once('=') {
        Some((name, used_as)) => {
            (name, used_as.parse().map_err(|error| CliError::input("--secret-env", error))?)
        }
        None => (given, SecretUse::bearer()),
    };
    match std::env::var(name) {
        Ok(value) => Ok((name.to_owned(), value, used_as)),
        Err(error) => Err(CliError::input("--secret-env", format!("{name}: {error}"))),
    }
}
