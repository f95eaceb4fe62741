//! A host that listens, for tests over a network.

use std::sync::Arc;

use anyhow::Result;
use memhost_server::{AdminToken, Endpoint, Surfaces};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::TestHost;

/// The routes of a host at addresses. Dropping it stops the server, but not the host.
pub struct Serving {
    url: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<()>>,
}

impl Serving {
    /// Serves all routes at a free port of this machine. `token` is the operator's.
    ///
    /// # Errors
    /// If no port is free or the token is too short.
    pub async fn start(host: &TestHost, token: &str) -> Result<Self> {
        Self::at(
            vec![
                Endpoint::bind(&"127.0.0.1:0".parse().map_err(anyhow::Error::msg)?, Surfaces::All)
                    .await?,
            ],
            host,
            token,
        )
    }

    /// Serves at these endpoints.
    ///
    /// # Errors
    /// If the token is too short.
    pub fn at(endpoints: Vec<Endpoint>, host: &TestHost, token: &str) -> Result<Self> {
        let url =
            endpoints.first().map(|endpoint| endpoint.address().to_string()).unwrap_or_default();
        let (service, token) = (Arc::clone(host.service()), AdminToken::known(token)?);
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async move {
            let _ = stopped.await;
        };
        let served = memhost_server::run(endpoints, service, token, host.surfaces.clone(), stopped);
        Ok(Self { url, stop, task: tokio::spawn(async move { Ok(served.await?) }) })
    }

    /// The URL of the first address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Stops the server and waits until it has ended.
    ///
    /// # Errors
    /// What the server answers.
    pub async fn stop(self) -> Result<()> {
        drop(self.stop);
        self.task.await?
    }
}
