//! The host that a command talks to: over HTTP, or opened by this process. Both go through the same
//! routes.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use ureq::unversioned::resolver::DefaultResolver;

use super::answer::Answer;
use super::args::HostArgs;
use super::config::HostConfig;
use super::connection::Connection;
use super::texts::printable;
use super::user_files::check_data;
use super::{CliError, Result};
use memhost_agent_hooks::UnixConnector;
use memhost_core::{Service, ServiceOptions};
use memhost_http::{Problem, ProblemCode};
use memhost_server::{InProcess, Method, Request};

/// The longest answer that is read, in bytes.
const MAX_ANSWER: u64 = 256 << 20;
/// How long a command waits for a host that is starting, and the pause before it asks again.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(200);

/// A host.
pub(super) enum Backend {
    /// A running host.
    Http(Arc<Remote>),
    /// A host that this process opened.
    Direct(Box<InProcess>),
}

impl Backend {
    /// The host that the arguments name.
    pub(super) async fn open(args: &HostArgs, connection: &Connection) -> Result<Self> {
        let Some(data_dir) = &args.data_dir else {
            let mut config = ureq::Agent::config_builder().http_status_as_error(false);
            if let Some(ca) = &connection.ca {
                let trusted = memhost_agent_hooks::trusting(ca);
                config = config.tls_config(trusted.map_err(|why| CliError::input("--ca", why))?);
            }
            let agent = config.build().into();
            return Ok(Self::Http(Arc::new(Remote { connection: connection.clone(), agent })));
        };
        check_data("--data-dir", data_dir)?;
        let mut options =
            HostConfig::read("--host-config", args.host_config.as_deref())?.options(data_dir)?;
        refuse_database("--data-dir", &options.service)?;
        options.service.plugins_dir = args.plugins_dir.clone().or(options.service.plugins_dir);
        let service = Service::open(options.service).await.map_err(CliError::host)?;
        Ok(Self::Direct(Box::new(InProcess::with(service, &options.server))))
    }

    /// A host that is open in this process.
    pub(super) fn of(service: Arc<Service>) -> Self {
        Self::Direct(Box::new(InProcess::new(service)))
    }

    pub(super) async fn get<T>(&self, path: &str) -> Result<Answer<T>> {
        self.call(Method::Get, path, None).await
    }

    pub(super) async fn post<T>(&self, path: &str, body: &impl Serialize) -> Result<Answer<T>> {
        self.call(Method::Post, path, Some(written(body)?)).await
    }

    pub(super) async fn put<T>(&self, path: &str, body: &impl Serialize) -> Result<Answer<T>> {
        self.call(Method::Put, path, Some(written(body)?)).await
    }

    pub(super) async fn patch<T>(&self, path: &str, body: &impl Serialize) -> Result<Answer<T>> {
        self.call(Method::Patch, path, Some(written(body)?)).await
    }

    /// Sends a DELETE request. With a revision it fails if the revision changed.
    pub(super) async fn delete<T>(&self, path: &str, revision: Option<u64>) -> Result<Answer<T>> {
        let revision = revision.map(|revision| ("if-match", format!("\"{revision}\"")));
        let (path, headers) = (path.to_owned(), revision.into_iter().collect());
        let request = Request { method: Method::Delete, path, body: None, headers };
        json(&self.bytes(request).await?)
    }

    /// A response that is not JSON.
    pub(super) async fn download(&self, path: &str) -> Result<Vec<u8>> {
        self.bytes(Request { path: path.to_owned(), ..Request::default() }).await
    }

    /// A request body that is not JSON.
    pub(super) async fn upload<T>(&self, path: &str, body: String) -> Result<Answer<T>> {
        self.call(Method::Post, path, Some(body)).await
    }

    /// A stream of server-sent events after the event of this id. Blocks until the next event.
    pub(super) fn stream(
        &self,
        path: &str,
        last_id: Option<&str>,
    ) -> Result<impl std::io::Read + use<>> {
        let Self::Http(remote) = self else {
            let message = "has no stream: nothing happens in it while no host runs; name a running \
                           host with --url";
            return Err(CliError::input("--data-dir", message));
        };
        let last_id =
            last_id.filter(|id| !id.is_empty()).map(|id| ("last-event-id", id.to_owned()));
        let headers =
            [("accept", "text/event-stream".to_owned())].into_iter().chain(last_id).collect();
        let request = Request { path: path.to_owned(), headers, ..Request::default() };
        let mut response = remote.send(&request)?;
        let status = response.status().as_u16();
        if !(200..300).contains(&status) {
            let body = response
                .body_mut()
                .read_to_vec()
                .map_err(|error| remote.unreachable(path, &error))?;
            return Err(self.problem(status, &body));
        }
        Ok(response.into_body().into_reader())
    }

    /// Sends a request and returns the status and body, also of a problem.
    pub(super) async fn exchange(&self, mut request: Request) -> Result<(u16, Vec<u8>)> {
        match self {
            Self::Direct(host) => {
                request.headers.push(("host", "localhost".to_owned()));
                Ok(host.call(request).await)
            }
            Self::Http(remote) => {
                let remote = Arc::clone(remote);
                let exchanged =
                    tokio::task::spawn_blocking(move || remote.exchange(&request)).await;
                exchanged.map_err(CliError::runtime)?
            }
        }
    }

    async fn call<T>(&self, method: Method, path: &str, body: Option<String>) -> Result<Answer<T>> {
        let request = Request { method, path: path.to_owned(), body, headers: Vec::new() };
        json(&self.bytes(request).await?)
    }

    async fn bytes(&self, request: Request) -> Result<Vec<u8>> {
        match self.exchange(request).await? {
            (200..300, body) => Ok(body),
            (status, body) => Err(self.problem(status, &body)),
        }
    }

    /// The host's problem; without a token, how to set one.
    fn problem(&self, status: u16, body: &[u8]) -> CliError {
        match self {
            Self::Http(remote) if status == 401 && remote.connection.token.is_none() => {
                let url = &remote.connection.url;
                let detail = format!(
                    "{url} requires a token; set --token or MEMHOST_TOKEN, or save it with \
                     `memhost context create NAME --url {url} --token -`; `memhost serve` says \
                     at its first start what the token is or which file has it, `memhost serve \
                     --new-token` replaces it"
                );
                CliError::Problem { status, detail, operation: None, code: None }
            }
            _ => CliError::problem(status, body),
        }
    }
}

/// Refuses to open a host whose memory is in a database: one that runs has it.
pub(super) fn refuse_database(argument: &str, options: &ServiceOptions) -> Result<()> {
    match options.database {
        None => Ok(()),
        Some(_) => Err(CliError::input(
            argument,
            "has no memory: the configuration names a database; name a running host with --url",
        )),
    }
}

/// A host at an address.
pub(super) struct Remote {
    connection: Connection,
    agent: ureq::Agent,
}

impl Remote {
    /// The address of the plane that a path belongs to.
    fn url(&self, path: &str) -> &str {
        if path.starts_with("/control/") {
            &self.connection.control_url
        } else {
            &self.connection.url
        }
    }

    fn unreachable(&self, path: &str, error: &ureq::Error) -> CliError {
        CliError::Unreachable { url: self.url(path).to_owned(), message: error.to_string() }
    }

    /// Sends a request, again while the host is starting. Blocks until the head of the response has
    /// arrived.
    fn send(&self, request: &Request) -> Result<ureq::http::Response<ureq::Body>> {
        let (began, mut is_told) = (Instant::now(), false);
        loop {
            let response = self.send_once(request)?;
            if response.status() != ureq::http::StatusCode::SERVICE_UNAVAILABLE {
                return Ok(response);
            }
            let (head, mut body) = response.into_parts();
            let body =
                body.read_to_vec().map_err(|error| self.unreachable(&request.path, &error))?;
            let problem = serde_json::from_slice::<Problem>(&body).ok();
            let starting = problem.filter(|problem| problem.code() == ProblemCode::Starting);
            let waits = starting.filter(|_| began.elapsed() < STARTS_WITHIN);
            let Some(problem) = waits else {
                let body = ureq::Body::builder().data(body);
                return Ok(ureq::http::Response::from_parts(head, body));
            };
            if !is_told {
                is_told = true;
                let (said, _) =
                    problem.detail().rsplit_once("; ").unwrap_or((problem.detail(), ""));
                let (said, seconds) = (printable(said), STARTS_WITHIN.as_secs());
                writeln!(std::io::stderr(), "{said}; waiting up to {seconds} s")?;
            }
            std::thread::sleep(AGAIN);
        }
    }

    fn send_once(&self, request: &Request) -> Result<ureq::http::Response<ureq::Body>> {
        let url = self.url(&request.path);
        let (base, agent) = match url.strip_prefix("unix:") {
            // A local socket needs no proxy.
            Some(socket) => {
                let config =
                    ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build();
                let connector = UnixConnector::new(socket.into());
                (
                    "http://localhost",
                    ureq::Agent::with_parts(config, connector, DefaultResolver::default()),
                )
            }
            None => (url, self.agent.clone()),
        };
        let method = match request.method {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        };
        let mut call =
            ureq::http::Request::builder().method(method).uri(format!("{base}{}", request.path));
        if let Some(token) = &self.connection.token {
            call = call.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in &request.headers {
            call = call.header(*name, value);
        }
        let sent = match request.body.as_deref() {
            Some(body) => call
                .header("content-type", "application/json")
                .body(body)
                .map(|call| agent.run(call)),
            None => call.body(()).map(|call| agent.run(call)),
        };
        sent.map_err(ureq::Error::from)
            .flatten()
            .map_err(|error| self.unreachable(&request.path, &error))
    }

    fn exchange(&self, request: &Request) -> Result<(u16, Vec<u8>)> {
        let mut response = self.send(request)?;
        let body = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        // The host is there: it answered, and ended the answer early.
        let cut = |error: ureq::Error| {
            let url = self.url(&request.path);
            CliError::Host(format!(
                "the host at {url} has cut its answer off: {error}; its log says why"
            ))
        };
        Ok((response.status().as_u16(), body.map_err(cut)?))
    }
}

fn written(body: &impl Serialize) -> Result<String> {
    serde_json::to_string(body).map_err(CliError::host)
}

/// The JSON of an answer; null for an empty one.
fn json<T>(body: &[u8]) -> Result<Answer<T>> {
    if body.is_empty() {
        return Ok(Answer::new(Value::Null));
    }
    serde_json::from_slice(body)
        .map(Answer::new)
        .map_err(|error| CliError::Host(format!("the host's answer is not JSON: {error}")))
}
