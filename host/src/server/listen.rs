//! Serving until it is told to stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use super::routes::router;
use crate::edge::AdminToken;
use crate::service::{Service, ServiceError};

/// How long calls that are under way may take after the host was told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Why the host does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {message}; choose another one with --listen")]
    Bind {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        message: String,
    },
    /// Serving ended.
    #[error("serving ended: {0}")]
    Serve(String),
    /// The last flush failed.
    #[error("the last flush failed: {0}")]
    Flush(#[from] ServiceError),
}

/// Takes the address.
///
/// # Errors
/// Where it is in use or not this machine's.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|error| ServeError::Bind { address, message: error.to_string() })
}

/// Serves until `stop` resolves; then finishes what is under way and flushes.
///
/// # Errors
/// Where accepting or the last flush fails.
pub async fn run(
    listener: TcpListener,
    service: Arc<Service>,
    token: AdminToken,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let (stopped, was_stopped) = tokio::sync::oneshot::channel();
    let serving = axum::serve(listener, router(Arc::clone(&service), token)).with_graceful_shutdown(async move {
        stop.await;
        let _ = stopped.send(());
    });
    let too_long = async {
        if was_stopped.await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = serving.into_future() => served.map_err(|error| ServeError::Serve(error.to_string()))?,
        () = too_long => tracing::warn!("calls were still under way after {} s; they are cut off", GRACE.as_secs()),
    }
    service.rest(GRACE).await;
    Ok(service.flush().await?)
}
