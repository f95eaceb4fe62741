//! Serving on addresses until the host is stopped.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use serde::Deserialize;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::ServerOptions;
use super::bodies::Bodies;
use super::connections::{Connections, Routes, open_files, stopped, within};
use super::routes::{Surfaces, router_of};
use super::starting;
use memhost_core::{OpenError, Service, ServiceError};
use memhost_http::AdminToken;

/// How long calls in progress may take after the host was stopped.
const GRACE: Duration = Duration::from_secs(10);
/// Connections that may wait to be accepted. The system drops the next one without a word, and its
/// client tries again after a second: a burst of others' connections must not do that to a health
/// check. Linux takes at most `net.core.somaxconn`.
const BACKLOG: u32 = 4_096;
/// How long to wait after a connection could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(10);

/// An address to listen on: `127.0.0.1:7600`, or `unix:/run/memhost.sock` for a socket in the file
/// system.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Address {
    /// An address of this machine and a port; 0 for any free port.
    Tcp(SocketAddr),
    /// A path. Only the user that the host runs as may connect.
    Unix(PathBuf),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.is_empty() {
                true => Err("`unix:` names no path, such as unix:/run/memhost.sock".to_owned()),
                false => Ok(Self::Unix(path.into())),
            };
        }
        text.parse().map(Self::Tcp).map_err(|_| {
            format!(
                "`{text}` is neither an address with a port, such as 127.0.0.1:7600, nor unix:PATH"
            )
        })
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "http://{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Why the host does not serve requests.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be used.
    #[error("cannot listen on {address}: {message}; choose another one with --listen")]
    Bind {
        /// Which.
        address: Address,
        /// The system's message.
        message: String,
    },
    /// Serving ended.
    #[error("serving ended: {0}")]
    Serve(String),
    /// The last flush failed.
    #[error("the last flush failed: {0}")]
    Flush(#[from] ServiceError),
    /// The host did not open when it was to lead.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Who connects to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clients {
    /// Hosts on the same database. Each stands for many clients, so no limit of one address holds.
    Hosts,
    /// Anybody else.
    Others,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Serves every connection until `stop`, and then those that have a request until they end.
    async fn serve(
        self,
        connections: Arc<Connections>,
        routes: Routes,
        stop: watch::Receiver<bool>,
        clients: Clients,
    ) {
        let mut open = JoinSet::new();
        let mut stopping = stop.clone();
        loop {
            let accepted = tokio::select! {
                () = stopped(&mut stopping) => break,
                accepted = self.accept() => accepted,
            };
            while open.try_join_next().is_some() {}
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    // Mostly the system has no more files: one connection that waits gives its file
                    // to the next.
                    connections.make_room();
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            };
            // The others are all at work, and so are the reserved ones.
            let address = address.filter(|_| clients == Clients::Others);
            let Some(place) = connections.admit(address) else { continue };
            match stream {
                Stream::Tcp(stream) => {
                    open.spawn(place.serve(stream, routes.clone(), stop.clone()))
                }
                Stream::Unix(stream) => {
                    open.spawn(place.serve(stream, routes.clone(), stop.clone()))
                }
            };
        }
        drop(self);
        while open.join_next().await.is_some() {}
    }

    async fn accept(&self) -> io::Result<(Stream, Option<IpAddr>)> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                (Stream::Tcp(stream), Some(address.ip().to_canonical()))
            }
            Self::Unix(listener) => (Stream::Unix(listener.accept().await?.0), None),
        })
    }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// An address that is bound, and its surfaces.
pub struct Endpoint {
    listener: Listener,
    address: Address,
    surfaces: Surfaces,
    file: Option<SocketFile>,
}

/// A socket's file. It is removed with the endpoint.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Endpoint {
    /// Binds an address. A socket of a host that was killed is replaced.
    ///
    /// # Errors
    /// If the address is in use or does not belong to this machine.
    pub async fn bind(address: &Address, surfaces: Surfaces) -> Result<Self, ServeError> {
        let failed = |error: io::Error| ServeError::Bind {
            address: address.clone(),
            message: error.to_string(),
        };
        let (listener, address, file) = match address {
            Address::Tcp(wanted) => {
                let listener = listen(*wanted).map_err(failed)?;
                let address = Address::Tcp(listener.local_addr().map_err(failed)?);
                (Listener::Tcp(listener), address, None)
            }
            Address::Unix(path) => {
                let listener = take_socket(path).await.map_err(failed)?;
                (Listener::Unix(listener), address.clone(), Some(SocketFile(path.clone())))
            }
        };
        Ok(Self { listener, address, surfaces, file })
    }

    /// The surfaces that it serves.
    pub fn surfaces(&self) -> Surfaces {
        self.surfaces
    }

    /// Serves its connections until `stop`.
    pub(crate) async fn serve(
        self,
        connections: Arc<Connections>,
        routes: Routes,
        stop: watch::Receiver<bool>,
        clients: Clients,
    ) {
        let _file = self.file;
        self.listener.serve(connections, routes, stop, clients).await;
    }

    /// The address, with the port that the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A host that is started again does not wait for connections of the one before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn take_socket(path: &Path) -> io::Result<UnixListener> {
    let is_socket =
        std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket {
        // A host that runs answers; one that was killed does not.
        if UnixStream::connect(path).await.is_ok() {
            return Err(io::Error::from(io::ErrorKind::AddrInUse));
        }
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Endpoints that are served. Until [`Listening::open`] only `/healthz` is answered well, and all
/// other requests are told that the host is starting. Dropping it closes the endpoints.
pub struct Listening {
    endpoints: Vec<(Surfaces, Routes)>,
    options: ServerOptions,
    stopping: watch::Sender<bool>,
    serving: JoinSet<()>,
}

impl Listening {
    /// Begins to serve. `doing` says what the host does, as in "opens its data directory".
    pub fn begin(
        endpoints: Vec<Endpoint>,
        options: ServerOptions,
        doing: impl Fn() -> String + Clone + Send + Sync + 'static,
    ) -> Self {
        let starting = || starting::router(doing.clone()).into();
        Self::with(endpoints.into_iter().map(|endpoint| (endpoint, starting())), options)
    }

    fn with(endpoints: impl Iterator<Item = (Endpoint, Routes)>, options: ServerOptions) -> Self {
        let (stopping, stopped) = watch::channel(false);
        let connections = Connections::new(within(options.connections, open_files()));
        let (mut served, mut serving) = (Vec::new(), JoinSet::new());
        for (endpoint, routes) in endpoints {
            served.push((endpoint.surfaces, routes.clone()));
            let (connections, stopped) = (Arc::clone(&connections), stopped.clone());
            serving.spawn(endpoint.serve(connections, routes, stopped, Clients::Others));
        }
        Self { endpoints: served, options, stopping, serving }
    }

    /// From here on the routes of this host answer.
    pub fn open(&self, service: &Arc<Service>, token: &AdminToken) {
        let surfaces = self.endpoints.iter().map(|(surfaces, _)| *surfaces);
        let opened = routers(surfaces, service, token, &self.options);
        for ((_, routes), opened) in self.endpoints.iter().zip(opened) {
            routes.replace(opened);
        }
    }

    /// Serves until `stop` resolves. Then finishes calls in progress and flushes.
    ///
    /// # Errors
    /// If accepting or the last flush fails.
    pub async fn until(
        mut self,
        service: Arc<Service>,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        tokio::select! {
            () = stop => {}
            // An endpoint ends only because of an error.
            Some(ended) = self.serving.join_next() => ended.map_err(
                |error| ServeError::Serve(error.to_string())
            )?,
        }
        // Streams of events do not end by themselves.
        service.control().stop_following();
        end(&[service], &self.stopping, self.serving).await
    }
}

/// Serves a host that is open at all endpoints until `stop` resolves. Then finishes calls in
/// progress and flushes.
///
/// # Errors
/// If accepting or the last flush fails.
pub async fn run(
    endpoints: Vec<Endpoint>,
    service: Arc<Service>,
    token: AdminToken,
    options: ServerOptions,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let surfaces = endpoints.iter().map(Endpoint::surfaces);
    let routes = routers(surfaces, &service, &token, &options).into_iter().map(Routes::from);
    let listening = Listening::with(endpoints.into_iter().zip(routes), options);
    listening.until(service, stop).await
}

/// The routers of addresses with these surfaces. They share the memory of bodies.
fn routers(
    surfaces: impl Iterator<Item = Surfaces>,
    service: &Arc<Service>,
    token: &AdminToken,
    options: &ServerOptions,
) -> Vec<Router> {
    let bodies = Bodies::new(options.connections.max_bodies_bytes);
    let router =
        |surfaces| router_of(surfaces, Arc::clone(service), token.clone(), options, &bodies);
    surfaces.map(router).collect()
}

/// Finishes the calls in progress of endpoints, and flushes what services have.
pub(crate) async fn end(
    services: &[Arc<Service>],
    stopping: &watch::Sender<bool>,
    mut serving: JoinSet<()>,
) -> Result<(), ServeError> {
    let _ = stopping.send(true);
    let all = async {
        while serving.join_next().await.is_some() {}
        memhost_http::detached_work_ended().await;
    };
    if tokio::time::timeout(GRACE, all).await.is_err() {
        tracing::warn!(
            "calls were still in progress after {} s; they are cut off",
            GRACE.as_secs()
        );
    }
    let mut ending = JoinSet::new();
    for service in services.iter().map(Arc::clone) {
        ending.spawn(async move {
            service.background().shutdown(GRACE).await;
            // A database that does not answer must not keep the process.
            match tokio::time::timeout(GRACE, service.control().flush()).await {
                Ok(flushed) => Ok(flushed?),
                Err(_) => {
                    let message = format!("the disk did not answer within {} s", GRACE.as_secs());
                    Err(ServeError::Serve(message))
                }
            }
        });
    }
    ending.join_all().await.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_burst_of_connections_waits_and_is_not_dropped() {
        crate::connections::raise_open_files();
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        // Nobody accepts. What the system drops is tried again after a second.
        let patience = Duration::from_millis(900);
        let connect = || std::net::TcpStream::connect_timeout(&address, patience);
        let open: Vec<_> =
            (0..1_500).map(|number| connect().map_err(|error| (number, error)).unwrap()).collect();
        assert_eq!(open.len(), 1_500);
    }
}
