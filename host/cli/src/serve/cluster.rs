//! Running a host that keeps memory in a database, alone or beside others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::listen::{addresses, bind, reached_by_others, ready, say_listening, until};
use super::{memory, token};
use crate::output::line;
use crate::{CliError, Result, context};
use memhost_core::{
    DatabaseError, Service, ServiceOptions, SharedParts, Tenure, Term, compile_ahead,
};
use memhost_server::{
    self as server, Address, AdminToken, ClusterOptions, Endpoint, ServeError, ServerOptions,
    Surfaces,
};

/// How long this host may take to be reached at its own URL.
const REACHED_WITHIN: Duration = Duration::from_secs(3);
/// How long a host that starts looks for plugins that others have brought.
const SHARED_WITHIN: Duration = Duration::from_secs(3);

/// Where the other hosts reach this one.
pub(super) struct Place {
    pub(super) listen: Option<SocketAddr>,
    pub(super) url: Option<String>,
    pub(super) allows_plain_http: bool,
}

/// How the host is started.
pub(super) struct Start<Closed> {
    pub(super) listen: Vec<(Address, Surfaces)>,
    pub(super) token: Option<AdminToken>,
    pub(super) makes_token: bool,
    pub(super) prints_json: bool,
    pub(super) closed: Option<Closed>,
}

/// The address of a database that a flag gives, which everybody sees in the list of processes.
pub(crate) fn database(flag: &str, url: String) -> Result<String> {
    let is_hidden = std::env::var("MEMHOST_STORE").is_ok_and(|named| named == url);
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
    let has_password = authority.is_some_and(|(user, _)| user.contains(':'))
        || url.split(['?', '&']).any(|part| part.starts_with("password="));
    if !is_hidden && has_password {
        let message = "has a password, which everybody on this machine sees in the list of \
                       processes; set MEMHOST_STORE, or `store` in the configuration file";
        return Err(CliError::input(flag, message));
    }
    Ok(url)
}

impl Place {
    /// A host with a store of its own has no place among others.
    pub(super) fn refuse(&self) -> Result<()> {
        match (self.listen, &self.url) {
            (None, None) => Ok(()),
            (Some(_), _) => Err(without_store("--peer-listen")),
            (None, Some(_)) => Err(without_store("--peer-url")),
        }
    }

    /// The address for other hosts, bound, and the URL under which they know it.
    async fn bind(self) -> Result<Option<(Endpoint, String)>> {
        let Some(address) = self.listen else {
            return match self.url {
                Some(_) => {
                    let message = "needs --peer-listen, the address at which this host listens";
                    Err(CliError::input("--peer-url", message))
                }
                None => Ok(None),
            };
        };
        if !self.allows_plain_http && !address.ip().is_loopback() {
            return Err(reached_by_others("--peer-listen", address));
        }
        if address.ip().is_unspecified() && self.url.is_none() {
            let message = "names no address that others can use; add --peer-url";
            return Err(CliError::input("--peer-listen", message));
        }
        let bound = Endpoint::bind(&Address::Tcp(address), Surfaces::All).await;
        let bound = bound.map_err(|error| match error {
            ServeError::Bind { address, message } => CliError::Host(format!(
                "cannot listen on {address}: {message}; choose another one with --peer-listen"
            )),
            error => CliError::host(error),
        })?;
        let url = self.url.unwrap_or_else(|| bound.address().to_string());
        let url = url.trim_end_matches('/').to_owned();
        let is_plain = url
            .strip_prefix("http://")
            .is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '?', '#', '@']));
        match is_plain {
            true => {
                reach(&url).await?;
                Ok(Some((bound, url)))
            }
            false => {
                let message = format!("is {url}; write http://ADDRESS:PORT");
                Err(CliError::input("--peer-url", message))
            }
        }
    }
}

/// Checks that something listens at the URL of this host: the others would wait for it in vain.
async fn reach(url: &str) -> Result<()> {
    let address = url.trim_start_matches("http://");
    let connecting = tokio::net::TcpStream::connect(address);
    let message = match tokio::time::timeout(REACHED_WITHIN, connecting).await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no connection within {} s", REACHED_WITHIN.as_secs()),
    };
    let message = format!("is {url}, and this host itself is not reached there: {message}");
    Err(CliError::input("--peer-url", message))
}

fn without_store(flag: &str) -> CliError {
    CliError::input(flag, "is for hosts that share a database; name it with --store")
}

/// Serves until the host is stopped.
pub(super) async fn serve(
    place: Place,
    start: Start<impl Future<Output = ()> + Send + 'static>,
    mut options: ServiceOptions,
    surfaces: ServerOptions,
) -> Result<()> {
    let peers = place.bind().await?;
    let (peers, peer_url) = peers.map_or((None, None), |(bound, url)| (Some(bound), Some(url)));
    if start.token.is_none() && peer_url.is_some() {
        let message = "is missing: all hosts on a database have the same operator token; set it or \
                       --token-from-stdin at each of them";
        return Err(CliError::input("MEMHOST_OPERATOR_TOKEN", message));
    }
    let has_peers = peer_url.is_some();
    if has_peers {
        // When this host takes over, callers wait for it.
        compile_ahead(&options).await.map_err(CliError::data_dir)?;
        options.waits_for_plugins = true;
    }
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (operator, made) = match start.token {
        Some(token) => (token, None),
        None => {
            options.make_data_dir().map_err(CliError::data_dir)?;
            AdminToken::of_data_dir(&options.data_dir, start.makes_token).map_err(CliError::host)?
        }
    };
    // At once: a later start makes no other one, and the database may not be reached.
    if let Some(made) = &made {
        token::tell(&options.data_dir, made, start.prints_json)?;
    }
    // Before this host joins: the first one says which keys all hosts have.
    let endpoints = bind(start.listen).await?;
    let joined = options.join(name, peer_url, operator.digest()).await.map_err(unusable)?;
    let stopped = crate::signals::stop();
    // What others brought is served from the beginning.
    let _ = tokio::time::timeout(SHARED_WITHIN, joined.plugins.update()).await;
    let membership = Arc::clone(&joined.membership);
    let shared = SharedParts::open(&options, &membership).await.map_err(unusable)?;
    let at = addresses(&endpoints);
    if start.prints_json {
        line(&ready(&at, joined.store_id))?;
    } else {
        say_listening(&at)?;
        if let (Some(made), Some((first, _)), Some((last, _))) = (&made, at.first(), at.last()) {
            let kept = context::remember(&first.to_string(), &last.to_string(), made)?;
            kept.map_or(Ok(()), |kept| line(&kept))?;
        }
    }
    let (tenant, parts) = (Arc::clone(&membership), Arc::clone(&shared));
    let open = move |term: Term| {
        let (membership, shared) = (Arc::clone(&tenant), Arc::clone(&parts));
        let tenure = Some(Tenure { membership, term, shared });
        Service::open(ServiceOptions { tenure, ..options.clone() })
    };
    let cluster = ClusterOptions { membership, shared, token: operator, peers, key: joined.peers };
    let stop = until(stopped, start.closed);
    let serving = server::run_cluster(endpoints, cluster, open, surfaces, stop);
    tokio::select! {
        served = serving => served.map_err(CliError::host),
        never = memory::give_back_when_idle() => never,
        never = joined.plugins.follow() => never,
    }
}

/// A database that is not reached has the exit code of a store that failed: another start may help.
/// What a start does not put right has that of a wrong argument.
pub(crate) fn unusable(error: memhost_core::OpenError) -> CliError {
    match error {
        memhost_core::OpenError::Database(
            error @ (DatabaseError::Unreachable { .. } | DatabaseError::Store(_)),
        ) => CliError::Store(error.to_string()),
        memhost_core::OpenError::Database(error) => {
            CliError::input("--store or MEMHOST_STORE", error)
        }
        error => CliError::data_dir(error),
    }
}
