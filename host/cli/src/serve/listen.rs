//! The addresses of a host that runs.

use std::net::SocketAddr;

use uuid::Uuid;

use crate::output::line;
use crate::{CliError, Result};
use memhost_server::{Address, Endpoint, Surfaces};

pub(super) async fn bind(listen: Vec<(Address, Surfaces)>) -> Result<Vec<Endpoint>> {
    let mut endpoints = Vec::new();
    for (address, surfaces) in listen {
        endpoints.push(Endpoint::bind(&address, surfaces).await.map_err(CliError::host)?);
    }
    Ok(endpoints)
}

/// The addresses of endpoints, and what is served there.
pub(super) fn addresses(endpoints: &[Endpoint]) -> Vec<(Address, Surfaces)> {
    let one = |endpoint: &Endpoint| (endpoint.address().clone(), endpoint.surfaces());
    endpoints.iter().map(one).collect()
}

pub(super) fn say_listening(at: &[(Address, Surfaces)]) -> Result<()> {
    at.iter().try_for_each(|(address, surfaces)| {
        let plane = match surfaces {
            Surfaces::All => "",
            Surfaces::Runtime => " (runtime plane)",
            Surfaces::Control => " (control plane)",
        };
        line(&format!("memhost is listening on {address}{plane}"))
    })
}

/// Resolves when the host is to stop.
pub(super) async fn until(
    stopped: impl Future<Output = ()>,
    closed: Option<impl Future<Output = ()>>,
) {
    match closed {
        Some(closed) => tokio::select! {
            () = stopped => {}
            () = closed => tracing::info!("stopping: standard input was closed"),
        },
        None => stopped.await,
    }
}

/// One line that says where the host listens.
pub(super) fn ready(at: &[(Address, Surfaces)], store_id: Uuid) -> String {
    let address = |one: Option<&(Address, Surfaces)>| one.map(|(address, _)| address.to_string());
    let ready = serde_json::json!({
        "pid": std::process::id(),
        "version": env!("CARGO_PKG_VERSION"),
        "storeId": store_id,
        "runtime": address(at.first()),
        "control": address(at.last()),
    });
    ready.to_string()
}

/// Refuses an address that other machines reach: tokens and memories would go over the network as
/// they are.
pub(crate) fn check_address(address: &Address, surfaces: Surfaces) -> Result<()> {
    let Address::Tcp(socket) = address else { return Ok(()) };
    if socket.ip().is_loopback() {
        return Ok(());
    }
    let flag = if surfaces == Surfaces::Control { "--control-listen" } else { "--listen" };
    Err(reached_by_others(flag, *socket))
}

/// An address that other machines reach, where requests go over the network as they are.
pub(super) fn reached_by_others(flag: &str, socket: SocketAddr) -> CliError {
    let message = format!(
        "{socket} is reached by other machines, and this host has no TLS; listen on 127.0.0.1:{} \
         and put a proxy with \
         TLS in front, or add --allow-plain-http if the network protects every request",
        socket.port()
    );
    CliError::input(flag, message)
}
