//! The connections of a host: how many there may be, in all and of one address, and how long each
//! may keep the host waiting. A host that is full closes those that it waits for, and answers
//! health checks on a few reserved ones.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, RETRY_AFTER};
use axum::http::{HeaderValue, Request, Response, StatusCode};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use tower::ServiceExt;

use self::body::{AnswerBody, RequestBody};
use self::stream::Watched;
use memhost_http::{Problem, ProblemCode};

mod body;
mod stream;
#[cfg(test)]
mod tests;

/// The longest head of a request, in bytes: its line with the address and the query, and its
/// headers.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Connections beyond the limit on which only health checks are answered.
const RESERVED: usize = 32;
/// How many bytes of a body must come in a second, on average, once the time for a body is over.
const LEAST_BYTES_PER_SECOND: u32 = 16 * 1024;

/// How many connections there may be, and how long the host waits for the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionOptions {
    /// Connections at a time, of all addresses that the host listens on: 16 to 1,000,000. The host
    /// uses less where the system lets it open fewer files.
    pub max: usize,
    /// Connections of one IP address, or of one IPv6 network of 64 bits, at a time, from 1. Sockets
    /// in the file system have none. Behind a proxy that is the proxy's address.
    pub max_per_address: usize,
    /// How long the head of a request may take from its first byte, and a new connection until its
    /// first request has come, in milliseconds.
    pub head_timeout_ms: u64,
    /// How long the host waits for the body of a request in all, in milliseconds. For each 16 KiB
    /// that came it waits a second more.
    pub body_timeout_ms: u64,
    /// How long a connection may be open between two requests, in milliseconds.
    pub idle_timeout_ms: u64,
    /// How long the other side may not read what the host writes, in milliseconds.
    pub write_timeout_ms: u64,
    /// What the bodies of all requests in progress may have together, and the answers that are
    /// being sent, in bytes, from 16 MiB. What would be more is refused. See `bodies`.
    pub max_bodies_bytes: usize,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            max: 4_096,
            max_per_address: 1_024,
            head_timeout_ms: 10_000,
            body_timeout_ms: 30_000,
            idle_timeout_ms: 75_000,
            write_timeout_ms: 30_000,
            max_bodies_bytes: 256 << 20,
        }
    }
}

/// What a connection does. Where two phases have equally many connections, a full host closes one
/// of the earlier phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// No request has come yet, or only a part of one.
    New,
    /// It had requests, and the next one has not come.
    Idle,
    /// The head of a request has come, and the host waits for its body.
    Body,
    /// The host works on a request or writes the answer. Such a connection is not closed to make
    /// room.
    Busy,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    since: Instant,
    /// The first byte of the next head.
    head_began: Option<Instant>,
    /// The other side does not read since then.
    unread_since: Option<Instant>,
}

/// One connection, as the host and its own task know it.
#[derive(Debug)]
struct Connection {
    /// Its network, with IPv6.
    address: Option<IpAddr>,
    is_reserved: bool,
    state: Mutex<State>,
    /// The state has changed so that another deadline counts.
    changed: Notify,
    /// Somebody needs its place.
    evicted: Notify,
}

impl Connection {
    fn enter(&self, phase: Phase) {
        let mut state = self.state.lock();
        (state.phase, state.since, state.head_began) = (phase, Instant::now(), None);
        drop(state);
        self.changed.notify_one();
    }

    /// When the host stops waiting; none where it does not wait.
    fn deadline(&self, options: &ConnectionOptions) -> Option<Instant> {
        let ms = Duration::from_millis;
        let state = self.state.lock();
        let waiting = match state.phase {
            // A new connection is there for a request: what it has not sent by then does not come.
            Phase::New => Some(state.since + ms(options.head_timeout_ms)),
            Phase::Idle => Some(match state.head_began {
                Some(began) => began + ms(options.head_timeout_ms),
                None => state.since + ms(options.idle_timeout_ms),
            }),
            // Bodies have a deadline of their own.
            Phase::Body | Phase::Busy => None,
        };
        let unread = state.unread_since.map(|since| since + ms(options.write_timeout_ms));
        [waiting, unread].into_iter().flatten().min()
    }
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    by_number: HashMap<u64, Arc<Connection>>,
    by_address: HashMap<IpAddr, usize>,
    reserved: usize,
}

impl Open {
    fn remove(&mut self, number: u64) -> Option<Arc<Connection>> {
        let connection = self.by_number.remove(&number)?;
        if connection.is_reserved {
            self.reserved -= 1;
        } else if let Some(address) = connection.address
            && let Some(count) = self.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        Some(connection)
    }

    /// Closes the oldest of the connections that the host waits for in the phase that has most of
    /// them, which is where an attacker's are: a new connection is not closed for those whose
    /// bodies do not come. Answers whether there was one.
    fn evict(&mut self, may: impl Fn(&Connection) -> bool) -> bool {
        let mut waiting: BTreeMap<Phase, (usize, Instant, u64)> = BTreeMap::new();
        for (number, connection) in self.by_number.iter().filter(|(_, connection)| may(connection))
        {
            let state = connection.state.lock();
            if state.phase != Phase::Busy {
                let (count, since, oldest) =
                    waiting.entry(state.phase).or_insert((0, state.since, *number));
                *count += 1;
                (*since, *oldest) = (*since, *oldest).min((state.since, *number));
            }
        }
        // Where two phases have equally many, the earlier one.
        let most = waiting.into_iter().max_by_key(|(phase, (count, ..))| (*count, Reverse(*phase)));
        let Some((_, (.., number))) = most else { return false };
        let Some(connection) = self.remove(number) else { return false };
        connection.evicted.notify_one();
        true
    }
}

/// What counts as one address: of IPv6 the network of 64 bits, of which one side has every address.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(one) => {
            let [a, b, c, d, ..] = one.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
    }
}

/// All connections of a host.
#[derive(Debug)]
pub(crate) struct Connections {
    options: ConnectionOptions,
    open: Mutex<Open>,
}

/// A connection's place. Dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct Place {
    all: Arc<Connections>,
    number: u64,
    connection: Arc<Connection>,
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.all.open.lock().remove(self.number));
    }
}

impl Connections {
    pub(crate) fn new(options: ConnectionOptions) -> Arc<Self> {
        Arc::new(Self { options, open: Mutex::default() })
    }

    /// A place for a new connection. None: there is none, and no connection that the host only
    /// waits for.
    pub(crate) fn admit(self: &Arc<Self>, address: Option<IpAddr>) -> Option<Place> {
        let address = address.map(network);
        let mut open = self.open.lock();
        let of_address =
            address.and_then(|address| open.by_address.get(&address)).copied().unwrap_or(0);
        let is_its_own =
            |connection: &Connection| !connection.is_reserved && connection.address == address;
        let address_has_room = of_address < self.options.max_per_address || open.evict(is_its_own);
        let has_room = || open.by_number.len() - open.reserved < self.options.max;
        let is_reserved =
            !(address_has_room && (has_room() || open.evict(|connection| !connection.is_reserved)));
        if is_reserved
            && open.reserved >= RESERVED
            && !open.evict(|connection| connection.is_reserved)
        {
            return None;
        }
        match address {
            _ if is_reserved => open.reserved += 1,
            Some(address) => *open.by_address.entry(address).or_default() += 1,
            None => {}
        }
        let state = State {
            phase: Phase::New,
            since: Instant::now(),
            head_began: None,
            unread_since: None,
        };
        let connection = Arc::new(Connection {
            address,
            is_reserved,
            state: Mutex::new(state),
            changed: Notify::new(),
            evicted: Notify::new(),
        });
        let number = open.next;
        open.next += 1;
        open.by_number.insert(number, Arc::clone(&connection));
        Some(Place { all: Arc::clone(self), number, connection })
    }

    /// Closes a connection that the host only waits for: the system has no file for another one.
    pub(crate) fn make_room(&self) {
        self.open.lock().evict(|_| true);
    }
}

impl Place {
    /// Serves the connection until it ends, waits for too long, or somebody needs its place. From
    /// `stop` on it ends after the request that it has.
    pub(crate) async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        router: Router,
        mut stop: watch::Receiver<bool>,
    ) {
        let connection = Arc::clone(&self.connection);
        let options = self.all.options;
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&connection)));
        let service = service_fn(|request| {
            answer(Arc::clone(&connection), &options, router.clone(), request)
        });
        let mut builder = http1::Builder::new();
        // The host has its own deadlines, which tell an idle connection from a slow head.
        builder.header_read_timeout(None).max_buf_size(MAX_HEAD_BYTES);
        let mut serving = pin!(builder.serve_connection(io, service));
        let mut is_stopping = false;
        loop {
            let deadline = connection.deadline(&options);
            let late = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = serving.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended early");
                    }
                    return;
                }
                () = connection.changed.notified() => {}
                () = late => return,
                () = connection.evicted.notified() => return,
                () = stopped(&mut stop), if !is_stopping => {
                    is_stopping = true;
                    serving.as_mut().graceful_shutdown();
                }
            }
        }
    }
}

/// Resolves when the host stops.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stopped| *stopped).await;
}

async fn answer(
    connection: Arc<Connection>,
    options: &ConnectionOptions,
    router: Router,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, std::convert::Infallible> {
    connection.enter(Phase::Busy);
    let is_for_health = matches!(request.uri().path(), "/healthz" | "/readyz");
    let mut response = if head_bytes(&request) > MAX_HEAD_BYTES {
        // The buffer of a connection may be larger than what is asked for, so that its size is no
        // limit.
        let mut too_large = Response::new(Body::empty());
        *too_large.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        too_large.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        too_large
    } else if connection.is_reserved && !is_for_health {
        let detail = "the host has as many connections as it may have; try again in a second";
        let mut full = Problem::new(ProblemCode::TooManyConnections, detail).into_response();
        full.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        full
    } else {
        let time = Duration::from_millis(options.body_timeout_ms);
        let request =
            request.map(|body| Body::new(RequestBody::new(body, Arc::clone(&connection), time)));
        router.oneshot(request).await.unwrap_or_else(|never| match never {})
    };
    if connection.is_reserved {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        tracing::error!("a route answers with another protocol, which the host does not speak");
    }
    Ok(response.map(|body| AnswerBody::new(body, connection)))
}

/// What the head of a request has, in bytes, as HTTP/1.1 writes it.
fn head_bytes<B>(request: &Request<B>) -> usize {
    // Spaces, the version and the ends of lines.
    let line = request.method().as_str().len() + request.uri().to_string().len() + 12;
    let fields =
        request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    line + fields.sum::<usize>()
}

/// Lets the process open as many files as the system allows, and answers how many those are.
pub fn raise_open_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let found = getrlimit(Resource::Nofile);
    // Without a hard limit: more than this is of no use to a host.
    let wanted = found.maximum.unwrap_or(1 << 20).min(1 << 20);
    if found.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit { current: Some(wanted), maximum: found.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files could not be raised");
        }
    }
    open_files()
}

/// How many files the process may open now.
pub(crate) fn open_files() -> u64 {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The options of a process that may open so many files: half of them stay for the store and the
/// providers.
pub(crate) fn within(options: ConnectionOptions, files: u64) -> ConnectionOptions {
    let most = usize::try_from(files / 2).unwrap_or(usize::MAX).max(16);
    if options.max > most {
        tracing::warn!(
            wanted = options.max,
            most,
            "fewer connections than configured: the system allows few open files"
        );
    }
    ConnectionOptions { max: options.max.min(most), ..options }
}
