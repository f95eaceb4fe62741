//! One connection: resolve once, look at every address, connect to the one that was checked. No
//! redirect is followed, no proxy is asked.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::{TrySendError, http1};
use ipnet::IpNet;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use wasmtime_wasi::runtime::AbortOnDropJoinHandle;
use wasmtime_wasi_http::io::TokioIo;

use super::error::Phase;
use super::{EgressError, address};
use memhost_types::{Host, HttpTarget, Scheme};

/// The most bytes of a response's head.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The client of all bindings' requests.
pub(crate) struct Client {
    tls: TlsConnector,
}

impl Client {
    /// Believes the well-known certificate authorities, and those of a PEM file if one is given.
    pub(crate) fn new(more_roots: Option<&Path>) -> Result<Self, String> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(path) = more_roots {
            let read = |error: &dyn std::fmt::Display| {
                format!("the certificate authorities in {} cannot be read: {error}", path.display())
            };
            let before = roots.len();
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| read(&error))? {
                let certificate = certificate.map_err(|error| read(&error))?;
                roots.add(certificate).map_err(|error| read(&error))?;
            }
            if roots.len() == before {
                return Err(read(
                    &"it has no certificate in PEM form, which begins with `-----BEGIN \
                      CERTIFICATE-----`",
                ));
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { tls: TlsConnector::from(Arc::new(config)) })
    }

    /// A connection to the target at an address that may be connected to.
    pub(super) async fn connect(
        &self,
        target: &HttpTarget,
        ranges: &[IpNet],
        timeout: Duration,
    ) -> Result<Connection, EgressError> {
        within(Phase::Connecting, timeout, async {
            let (name, resolved) = resolve(target).await?;
            let ip = address::choose(&name, &resolved, ranges)?;
            let failed = |error: std::io::Error| EgressError::Connect {
                target: target.to_string(),
                message: error.to_string(),
            };
            let stream = TcpStream::connect((ip, target.port())).await.map_err(failed)?;
            if stream.peer_addr().map_err(failed)?.ip() != ip {
                return Err(failed(std::io::Error::other(
                    "the connection leads to another address",
                )));
            }
            stream.set_nodelay(true).map_err(failed)?;
            match target.scheme() {
                Scheme::Http => Connection::over(stream).await,
                Scheme::Https => {
                    let tls =
                        |message: String| EgressError::Tls { target: target.to_string(), message };
                    let server = match target.host() {
                        Host::Ip(ip) => ServerName::IpAddress((*ip).into()),
                        _ => ServerName::try_from(name).map_err(|error| tls(error.to_string()))?,
                    };
                    let stream = self
                        .tls
                        .connect(server, stream)
                        .await
                        .map_err(|error| tls(error.to_string()))?;
                    Connection::over(stream).await
                }
            }
        })
        .await
    }
}

async fn resolve(target: &HttpTarget) -> Result<(String, Vec<IpAddr>), EgressError> {
    match target.host() {
        Host::Ip(ip) => Ok((ip.to_string(), vec![*ip])),
        Host::Domain(name) | Host::Wildcard(name) => {
            let resolved = tokio::net::lookup_host((name.as_str(), target.port())).await;
            let resolved = resolved.map_err(|error| EgressError::Resolve {
                name: name.clone(),
                message: error.to_string(),
            })?;
            Ok((name.clone(), resolved.map(|address| address.ip()).collect()))
        }
    }
}

/// How long a connection that was used may take to be ready for the next request. It is ready at
/// once or closed.
const READY: Duration = Duration::from_millis(50);

/// A connection, with the task that moves its bytes. Dropping it closes it.
pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    _driver: AbortOnDropJoinHandle<()>,
    pub(super) opened: Instant,
}

/// Why a request got no answer.
pub(super) struct RequestFailed {
    pub(super) error: EgressError,
    /// The request, if the server has certainly not got it.
    pub(super) unsent: Option<http::Request<Full<Bytes>>>,
}

impl Connection {
    pub(super) async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Self, EgressError> {
        let handshake = http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = handshake.map_err(exchange)?;
        let driver = wasmtime_wasi::runtime::spawn(async move {
            // The task that waits for the response gets the same error.
            let _ = connection.await;
        });
        Ok(Self { sender, _driver: driver, opened: Instant::now() })
    }

    /// Whether the next request can be sent. A server that closed the connection has made it not
    /// so.
    pub(super) async fn is_ready(&mut self) -> bool {
        matches!(tokio::time::timeout(READY, self.sender.ready()).await, Ok(Ok(())))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    pub(super) async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
        timeout: Duration,
    ) -> Result<http::Response<Incoming>, RequestFailed> {
        let sent = tokio::time::timeout(timeout, self.sender.try_send_request(request)).await;
        match sent {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(mut failed)) => {
                let unsent = TrySendError::take_message(&mut failed);
                Err(RequestFailed { error: exchange(failed.into_error()), unsent })
            }
            Err(_) => {
                let error =
                    EgressError::TimedOut { phase: Phase::Response, ms: timeout.as_millis() };
                Err(RequestFailed { error, unsent: None })
            }
        }
    }
}

/// A whole body, where `take` lets each part of it through and none takes longer than `timeout`.
pub(super) async fn collect<B>(
    mut body: B,
    timeout: Duration,
    take: impl Fn(u64) -> Result<(), EgressError>,
) -> Result<Bytes, EgressError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let mut all = BytesMut::new();
    while let Some(frame) = within(Phase::Body, timeout, async { Ok(body.frame().await) }).await? {
        if let Ok(data) = frame.map_err(exchange)?.into_data() {
            take(data.len() as u64)?;
            all.extend_from_slice(&data);
        }
    }
    Ok(all.freeze())
}

#[allow(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn exchange(error: impl std::fmt::Display) -> EgressError {
    EgressError::Exchange(error.to_string())
}

async fn within<T>(
    phase: Phase,
    timeout: Duration,
    work: impl Future<Output = Result<T, EgressError>>,
) -> Result<T, EgressError> {
    let timed_out = |_| EgressError::TimedOut { phase, ms: timeout.as_millis() };
    tokio::time::timeout(timeout, work).await.map_err(timed_out)?
}
