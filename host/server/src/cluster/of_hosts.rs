//! Questions about all hosts: health checks and events are those of every host, and the metrics are
//! those of the host that is asked.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_LENGTH};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use axum::response::IntoResponse;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use uuid::Uuid;

use super::pass::Passed;
use super::shared::{Role, Shared};
use crate::routes::Surfaces;
use memhost_core::Group;
use memhost_http::Problem;

const METRICS: &str = "/metrics";
const DOCTOR: &str = "/control/v1/doctor";
const STREAM: &str = "/control/v1/stream";
/// The paths that this is about.
pub(super) const OF_HOSTS: [&str; 3] = [METRICS, DOCTOR, STREAM];

/// How long another host may take for its checks.
const CHECKED_WITHIN: Duration = Duration::from_secs(30);
/// The longest answer of a host's checks, in bytes.
const MOST_CHECKS: usize = 4 << 20;
/// How long events wait until it is known who serves what, and how often that is looked at.
const SOON: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(100);
/// How often to look whether another host serves something.
const LOOK: Duration = Duration::from_millis(500);
/// Checks that say how many of something a host has.
const COUNTED: [&str; 2] = ["companies", "bindings"];
/// Events that wait for their reader.
const WAITING: usize = 64;

/// Another host that serves something.
struct Other {
    host: Uuid,
    /// A group that it serves.
    group: Group,
    name: String,
    url: String,
}

impl Shared {
    /// Answers such a question.
    pub(super) async fn of_hosts(
        self: &Arc<Self>,
        surfaces: Surfaces,
        mut request: Request<Body>,
    ) -> Response<Body> {
        // A company's token gets its refusal at its home.
        let group = match self.whose.group(request.uri(), request.headers()).await {
            Ok(Group::HOST) => self.own_group().unwrap_or(Group::HOST),
            Ok(of_company) => return self.answer(surfaces, of_company, request).await,
            Err(error) => return Problem::from(error).into_response(),
        };
        let path = request.uri().path().to_owned();
        if path == METRICS && self.own_group().is_none() && !self.membership.is_alone() {
            // Those of another host would be counted twice.
            let detail = "this host serves no company at the moment, so it has no figures; ask the \
                          other hosts, which `memhost cluster list` shows";
            return Problem::unavailable(detail).into_response();
        }
        let asked = Asked::of(&request);
        if path != METRICS {
            *request.headers_mut() = asked.headers.clone();
        }
        let own = self.answer(surfaces, group, request).await;
        if path == METRICS || !own.status().is_success() || self.own_group().is_none() {
            return own;
        }
        if path == STREAM {
            self.known(SOON).await;
        }
        let others = self.others();
        match path.as_str() {
            DOCTOR if others.is_empty() => own,
            DOCTOR => self.checks(surfaces, own, others, asked).await,
            _ if self.membership.is_alone() => own,
            _ => self.events(surfaces, own, others, asked).await,
        }
    }

    /// A group that this host serves; that of the host's own rows first.
    fn own_group(&self) -> Option<Group> {
        self.served().first().map(|serving| serving.term.group)
    }

    /// Waits for a moment until it is known who serves each group.
    async fn known(&self, within: Duration) {
        let is_unknown = |role: &watch::Sender<Arc<Role>>| matches!(**role.borrow(), Role::Waits);
        let until = Instant::now() + within;
        while self.roles.iter().any(is_unknown) && Instant::now() < until {
            sleep(AGAIN).await;
        }
    }

    /// The other hosts that serve something.
    fn others(&self) -> Vec<Other> {
        let mut all = HashMap::new();
        for (group, role) in Group::all().zip(&self.roles) {
            if let Role::Follows { host, name, peer_url: Some(url) } = &**role.borrow() {
                all.entry(*host).or_insert_with(|| {
                    let (name, url) = (name.clone(), url.clone());
                    Other { host: *host, group, name, url }
                });
            }
        }
        let mut all: Vec<Other> = all.into_values().collect();
        all.sort_by(|one, other| (&one.name, &one.url).cmp(&(&other.name, &other.url)));
        all
    }

    async fn ask(
        &self,
        surfaces: Surfaces,
        other: &Other,
        request: Request<Body>,
    ) -> Option<Response<Body>> {
        let host = (other.host, other.url.as_str());
        match self.pass_on(surfaces, other.group, host, request).await {
            Passed::Answered(response) if response.status().is_success() => Some(response),
            _ => None,
        }
    }

    /// The checks of all hosts. Those of others name the host, unless they say the same.
    async fn checks(
        &self,
        surfaces: Surfaces,
        own: Response<Body>,
        others: Vec<Other>,
        asked: Asked,
    ) -> Response<Body> {
        let (mut parts, body) = own.into_parts();
        let Some(mut all) = checks(body).await else {
            return Problem::unavailable("the checks could not be read; ask again").into_response();
        };
        for other in others {
            let asking = async {
                checks(self.ask(surfaces, &other, asked.request()).await?.into_body()).await
            };
            let found = timeout(CHECKED_WITHIN, asking).await.ok().flatten();
            let found = found.unwrap_or_else(|| {
                vec![json!({
                    "name": "host",
                    "health": "error",
                    "found": "its checks got no answer",
                    "advice": "look at its log, and ask again",
                })]
            });
            for mut check in found {
                let is_same = |known: &Value| {
                    ["name", "health", "found"].iter().all(|at| known.get(at) == check.get(at))
                };
                let name = check.get("name").and_then(Value::as_str).unwrap_or_default();
                if !COUNTED.contains(&name) && all.iter().any(is_same) {
                    continue;
                }
                if let Some(name) = check.get("name").and_then(Value::as_str) {
                    let at = other.url.trim_start_matches("http://");
                    check["name"] = format!("{name} ({} at {at})", other.name).into();
                }
                all.push(check);
            }
        }
        parts.headers.remove(CONTENT_LENGTH);
        Response::from_parts(parts, Body::from(json!({ "items": all }).to_string()))
    }

    /// The events of all hosts, until one of them ends or another one serves something.
    async fn events(
        self: &Arc<Self>,
        surfaces: Surfaces,
        own: Response<Body>,
        others: Vec<Other>,
        asked: Asked,
    ) -> Response<Body> {
        let (send, events) = mpsc::channel(WAITING);
        let mut reading = JoinSet::new();
        let (parts, body) = own.into_parts();
        reading.spawn(read_events(body, send.clone()));
        let mut hosts = BTreeSet::new();
        for other in others {
            if let Some(response) = self.ask(surfaces, &other, asked.request()).await {
                hosts.insert(other.host);
                reading.spawn(read_events(response.into_body(), send.clone()));
            }
        }
        // Whoever reads comes back where events would be missing.
        let shared = Arc::clone(self);
        reading.spawn(async move {
            loop {
                sleep(LOOK).await;
                if shared.others().iter().any(|other| !hosts.contains(&other.host)) {
                    break;
                }
            }
            let _ = send.send(None).await;
        });
        let events = ReceiverStream::new(events).map_while(move |event: Option<Bytes>| {
            // They are read as long as somebody reads this.
            let _reading = &reading;
            event.map(Ok::<_, Infallible>)
        });
        Response::from_parts(parts, Body::from_stream(events))
    }
}

/// A question that is asked again. It has no body.
struct Asked {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl Asked {
    fn of(request: &Request<Body>) -> Self {
        let mut headers = request.headers().clone();
        // What is read here must not be compressed, and a place in one host's events says nothing
        // to another one.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.remove("last-event-id");
        Self { method: request.method().clone(), uri: request.uri().clone(), headers }
    }

    fn request(&self) -> Request<Body> {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

async fn checks(body: Body) -> Option<Vec<Value>> {
    let bytes = to_bytes(body, MOST_CHECKS).await.ok()?;
    let mut value: Value = serde_json::from_slice(&bytes).ok()?;
    match value.get_mut("items")?.take() {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

/// Sends whole events on, without their ids: another host would not know them. `None` at the end.
async fn read_events(mut body: Body, send: mpsc::Sender<Option<Bytes>>) {
    let mut waiting = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        waiting.extend_from_slice(&data);
        while let Some(end) = waiting.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = waiting.drain(..end + 2).collect();
            let lines = event.split_inclusive(|byte| *byte == b'\n');
            let lines: Vec<&[u8]> = lines.filter(|line| !line.starts_with(b"id:")).collect();
            if send.send(Some(lines.concat().into())).await.is_err() {
                return;
            }
        }
    }
    let _ = send.send(None).await;
}
