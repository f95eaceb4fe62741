//! A host to talk to: over HTTP, or opened here. Both go through the same routes.

mod socket;

use std::sync::Arc;

use serde_json::Value;

use self::socket::SocketConnector;
use super::CliError;
use super::args::HostArgs;
use super::config::HostConfig;
use super::context::Target;
use memhost_core::Service;
use memhost_server::{InProcess, Method, Request};

/// A host.
pub(super) enum Backend {
    /// A running host.
    Http { url: String, control_url: String, token: Option<String>, agent: ureq::Agent },
    /// A host that this process opened.
    Direct(Box<InProcess>),
}

impl Backend {
    /// The host that the arguments name.
    pub(super) async fn open(args: &HostArgs) -> Result<Self, CliError> {
        let Some(data_dir) = &args.data_dir else {
            let config = ureq::Agent::config_builder().http_status_as_error(false).build();
            let Target { url, control_url, token, .. } = Target::of(args)?;
            return Ok(Self::Http { url, control_url, token, agent: config.into() });
        };
        let mut options = HostConfig::read("--host-config", args.host_config.as_deref())?.options(data_dir)?;
        options.service.plugins_dir = args.plugins_dir.clone().or(options.service.plugins_dir);
        let service = Service::open(options.service).await.map_err(CliError::host)?;
        Ok(Self::Direct(Box::new(InProcess::with(service, &options.server))))
    }

    /// A host that is open in this process.
    pub(super) fn of(service: Arc<Service>) -> Self {
        Self::Direct(Box::new(InProcess::new(service)))
    }

    /// Sends a GET request.
    pub(super) async fn get(&self, path: &str) -> Result<Value, CliError> {
        self.call(Request { method: Method::Get, path: path.to_owned(), body: None, headers: Vec::new() }).await
    }

    /// Sends a POST request.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, CliError> {
        self.call(Request {
            method: Method::Post,
            path: path.to_owned(),
            body: Some(body.to_string()),
            headers: Vec::new(),
        })
        .await
    }

    /// Sends a PUT request.
    pub(super) async fn put(&self, path: &str, body: &Value) -> Result<Value, CliError> {
        self.call(Request {
            method: Method::Put,
            path: path.to_owned(),
            body: Some(body.to_string()),
            headers: Vec::new(),
        })
        .await
    }

    /// Sends a PATCH request.
    pub(super) async fn patch(&self, path: &str, body: &Value) -> Result<Value, CliError> {
        self.call(Request {
            method: Method::Patch,
            path: path.to_owned(),
            body: Some(body.to_string()),
            headers: Vec::new(),
        })
        .await
    }

    /// Sends a DELETE request.
    pub(super) async fn delete(&self, path: &str) -> Result<Value, CliError> {
        self.call(Request { method: Method::Delete, path: path.to_owned(), body: None, headers: Vec::new() }).await
    }

    /// Sends a DELETE request that fails if the revision changed.
    pub(super) async fn delete_if(&self, path: &str, tag: &str) -> Result<Value, CliError> {
        let headers = vec![("if-match", tag.to_owned())];
        self.call(Request { method: Method::Delete, path: path.to_owned(), body: None, headers }).await
    }

    /// A stream of server-sent events after the event of this id. Blocks until the next event.
    pub(super) fn stream(&self, path: &str, last_id: Option<&str>) -> Result<impl std::io::Read + use<>, CliError> {
        let Self::Http { control_url: url, token, agent, .. } = self else {
            let message =
                "nothing happens in a data directory while no host runs on it; leave it out, and name the host";
            return Err(CliError::input("--data-dir", message));
        };
        let (base, agent) = reach(agent, url);
        let mut call = agent.get(format!("{base}{path}")).header("accept", "text/event-stream");
        if let Some(token) = token {
            call = call.header("authorization", format!("Bearer {token}"));
        }
        if let Some(id) = last_id.filter(|id| !id.is_empty()) {
            call = call.header("last-event-id", id);
        }
        let unreachable = |error: ureq::Error| CliError::Unreachable { url: url.clone(), message: error.to_string() };
        let mut response = call.call().map_err(unreachable)?;
        let status = response.status().as_u16();
        if !(200..300).contains(&status) {
            let body = response.body_mut().read_to_vec().map_err(unreachable)?;
            return Err(self.problem(status, &body));
        }
        Ok(response.into_body().into_reader())
    }

    /// A response that is not JSON.
    pub(super) async fn download(&self, path: &str) -> Result<Vec<u8>, CliError> {
        self.bytes(Request { method: Method::Get, path: path.to_owned(), body: None, headers: Vec::new() }).await
    }

    /// A request body that is not JSON.
    pub(super) async fn upload(&self, path: &str, body: String) -> Result<Value, CliError> {
        self.call(Request { method: Method::Post, path: path.to_owned(), body: Some(body), headers: Vec::new() }).await
    }

    /// Sends a request and returns the status and body, also of a problem.
    pub(super) async fn exchange(&self, mut request: Request) -> Result<(u16, Vec<u8>), CliError> {
        match self {
            Self::Direct(host) => {
                request.headers.push(("host", "localhost".to_owned()));
                Ok(host.call(request).await)
            }
            Self::Http { url, control_url, token, agent } => {
                let url = if request.path.starts_with("/control/") { control_url } else { url };
                let (url, token, agent) = (url.clone(), token.clone(), agent.clone());
                let sent = tokio::task::spawn_blocking(move || send(&agent, &url, token.as_deref(), &request)).await;
                sent.map_err(CliError::runtime)?
            }
        }
    }

    async fn call(&self, request: Request) -> Result<Value, CliError> {
        let body = self.bytes(request).await?;
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body).map_err(|error| CliError::Host(format!("the host's answer is not JSON: {error}")))
    }

    /// The host's problem; without a token, how to set one.
    fn problem(&self, status: u16, body: &[u8]) -> CliError {
        match self {
            Self::Http { url, token: None, .. } if status == 401 => {
                let detail = format!(
                    "{url} requires a token; set --token or MEMHOST_TOKEN, or save it with `memhost context create \
                     NAME --url {url} --token -`; `memhost serve` prints the token at its first start, `memhost serve \
                     --new-token` replaces it"
                );
                CliError::Problem { status, detail, operation: None }
            }
            _ => CliError::problem(status, body),
        }
    }

    async fn bytes(&self, request: Request) -> Result<Vec<u8>, CliError> {
        let (status, body) = self.exchange(request).await?;
        if !(200..300).contains(&status) {
            return Err(self.problem(status, &body));
        }
        Ok(body)
    }
}

/// The base URL of requests, and the agent that sends them.
fn reach(agent: &ureq::Agent, url: &str) -> (String, ureq::Agent) {
    let Some(path) = url.strip_prefix("unix:") else { return (url.to_owned(), agent.clone()) };
    let resolver = ureq::unversioned::resolver::DefaultResolver::default();
    // A local socket needs no proxy.
    let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build();
    let agent = ureq::Agent::with_parts(config, SocketConnector(path.into()), resolver);
    ("http://localhost".to_owned(), agent)
}

fn send(agent: &ureq::Agent, url: &str, token: Option<&str>, request: &Request) -> Result<(u16, Vec<u8>), CliError> {
    let unreachable = |error: ureq::Error| CliError::Unreachable { url: url.to_owned(), message: error.to_string() };
    let (base, agent) = reach(agent, url);
    let address = format!("{base}{}", request.path);
    let bearer = token.map(|token| format!("Bearer {token}"));
    let body = request.body.as_deref().unwrap_or_default();
    let answered = match request.method {
        Method::Get | Method::Delete => {
            let mut call = match request.method {
                Method::Delete => agent.delete(&address),
                _ => agent.get(&address),
            };
            if let Some(bearer) = &bearer {
                call = call.header("authorization", bearer);
            }
            for (name, value) in &request.headers {
                call = call.header(*name, value);
            }
            call.call()
        }
        Method::Post | Method::Put | Method::Patch => {
            let call = match request.method {
                Method::Put => agent.put(&address),
                Method::Patch => agent.patch(&address),
                _ => agent.post(&address),
            };
            let mut call = call.header("content-type", "application/json");
            if let Some(bearer) = &bearer {
                call = call.header("authorization", bearer);
            }
            for (name, value) in &request.headers {
                call = call.header(*name, value);
            }
            call.send(body)
        }
    };
    let mut response = answered.map_err(unreachable)?;
    let body = response.body_mut().with_config().limit(256 << 20).read_to_vec().map_err(unreachable)?;
    Ok((response.status().as_u16(), body))
}
