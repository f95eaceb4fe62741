//! What stands in front of the routes of a host among several: a request goes to the host that
//! leads, and waits for one where none does.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::http::header::{
    CONNECTION, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Request, Response};
use axum::response::IntoResponse;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tower::ServiceExt as _;
use uuid::Uuid;

use super::cut::Cut;
use super::hop::{HOP, Hop, NOT_LEADING};
use super::peers::NotAnswered;
use super::shared::{Leads, Role, Shared};
use crate::routes::Surfaces;
use memhost_http::{Problem, ProblemCode, is_read, only_reads};

/// How long a request waits for a host that leads. Another host takes over within 5 seconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait for a host's answer once another host leads.
const LAST_WORD: Duration = Duration::from_millis(500);
/// The pause before a host that did not answer is asked again.
const AGAIN: Duration = Duration::from_millis(100);
/// How long `/readyz` may take.
const READY_WITHIN: Duration = Duration::from_secs(1);
/// The longest body that is kept for another try, in bytes.
const MOST_KEPT: u64 = 64 << 10;
/// What is said where the lease ended while the answer was made.
const LATE: &str = "the lease of this host ended before it answered; send the request again";
/// The header of a request that may be repeated, and is done once.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Headers that are about one connection.
static OF_ONE_CONNECTION: [HeaderName; 7] =
    [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// The routes of an address for clients.
pub(super) fn router(shared: &Arc<Shared>, surfaces: Surfaces) -> Router {
    let shared = Arc::clone(shared);
    Router::new().fallback(move |request: Request<Body>| async move {
        match request.uri().path() {
            "/healthz" => "ok\n".into_response(),
            // A balancer asks again by itself, and does not wait for long.
            "/readyz" => match timeout(READY_WITHIN, shared.answer(surfaces, request)).await {
                Ok(answer) => answer,
                Err(_) => Problem::unavailable("the host that leads is slow").into_response(),
            },
            _ => shared.answer(surfaces, request).await,
        }
    })
}

/// The routes of the address for other hosts.
pub(super) fn router_for_peers(shared: &Arc<Shared>) -> Router {
    let shared = Arc::clone(shared);
    Router::new().fallback(move |mut request: Request<Body>| async move {
        let Some(Hop { surfaces, is_for_us }) = shared.key.read(request.headers()) else {
            let detail = "this address is for the other hosts on the database of this one, which \
                          have its key; send the request to its address for clients";
            return Problem::new(ProblemCode::Forbidden, detail).into_response();
        };
        request.headers_mut().remove(&HOP);
        let role = Arc::clone(&*shared.role.borrow());
        match (&*role, shared.begin_for_host()) {
            (Role::Leads(leads), Some(_begun))
                if is_for_us && shared.membership.lease().leads(leads.token) =>
            {
                shared.serve(leads, surfaces, request).await
            }
            _ => {
                let mut answer = Problem::unavailable("this host does not lead").into_response();
                answer.headers_mut().insert(&NOT_LEADING, HeaderValue::from_static("1"));
                answer
            }
        }
    })
}

/// A request with what is kept of it for another try.
struct Kept {
    parts: Parts,
    body: Bytes,
    /// Whether the request may be done twice: it only reads, or has an idempotency key.
    is_repeatable: bool,
    _room: OwnedSemaphorePermit,
}

impl Kept {
    fn request(&self) -> Request<Body> {
        let mut request = Request::new(Body::from(self.body.clone()));
        *request.method_mut() = self.parts.method.clone();
        *request.uri_mut() = self.parts.uri.clone();
        *request.headers_mut() = self.parts.headers.clone();
        request
    }
}

/// What became of a request that was passed on.
enum Passed {
    Answered(Response<Body>),
    /// Nothing was done: it can be sent again, if it was kept.
    NotDone(Option<Box<Request<Body>>>),
    /// It may have been done.
    Lost,
    /// The client has not sent all of it.
    Unread(String),
}

impl Shared {
    async fn answer(&self, surfaces: Surfaces, mut request: Request<Body>) -> Response<Body> {
        // Only hosts send it, and to another address.
        request.headers_mut().remove(&HOP);
        request.extensions_mut().insert(memhost_integrations::READ_ROUTES);
        request.extensions_mut().insert(memhost_integrations::TOOLS);
        let until = Instant::now() + PATIENCE;
        let mut kept = None;
        let mut given = Some(request);
        loop {
            let Some(role) = self.somebody(until).await else { return self.nobody_answers() };
            let (host, name, url) = match &*role {
                Role::Leads(leads) => {
                    let again = || kept.as_ref().map(Kept::request);
                    let Some(request) = given.take().or_else(again) else {
                        return self.nobody_answers();
                    };
                    return self.serve(leads, surfaces, request).await;
                }
                Role::Follows { host, name, peer_url: Some(url) } => (*host, name, url),
                _ => return self.nobody_answers(),
            };
            let request = match given.take() {
                Some(first) if kept.is_none() => match self.keep(first).await {
                    Ok(Ok(short)) => kept.insert(short).request(),
                    Ok(Err(long)) => *long,
                    Err(problem) => return problem.into_response(),
                },
                Some(unsent) => unsent,
                None => match &kept {
                    Some(kept) => kept.request(),
                    // Nothing was done, and its body is gone.
                    None => return self.nobody_answers(),
                },
            };
            match self.pass_on(surfaces, (host, url), request).await {
                Passed::Answered(response) => return response,
                Passed::NotDone(unsent) => given = unsent.map(|request| *request),
                Passed::Lost if kept.as_ref().is_some_and(|kept| kept.is_repeatable) => {}
                Passed::Lost => return lost(name),
                Passed::Unread(why) => return unread(&why).into_response(),
            }
            if Instant::now() >= until {
                return self.nobody_answers();
            }
            sleep(AGAIN).await;
        }
    }

    /// The role of this host, once a request can go somewhere.
    async fn somebody(&self, until: Instant) -> Option<Arc<Role>> {
        let mut roles = self.role.subscribe();
        loop {
            let role = Arc::clone(&*roles.borrow_and_update());
            let is_ready = match &*role {
                Role::Leads(leads) => self.membership.lease().leads(leads.token),
                Role::Follows { .. } => true,
                Role::Waits => false,
            };
            if is_ready {
                return Some(role);
            }
            let next = async {
                tokio::select! {
                    _ = roles.changed() => {}
                    // The lease may be renewed without another role.
                    () = sleep(AGAIN) => {}
                }
            };
            timeout_at(until, next).await.ok()?;
        }
    }

    /// Answers as the host that leads, if it still does at the end.
    async fn serve(
        &self,
        leads: &Leads,
        surfaces: Surfaces,
        request: Request<Body>,
    ) -> Response<Body> {
        let mut role = self.role.subscribe();
        role.borrow_and_update();
        let is_repeatable = has_key(&request) || only_reads(&request);
        let answering = leads.router(surfaces).oneshot(request);
        let response = answering.await.unwrap_or_else(|never| match never {});
        let term = (Arc::clone(self.membership.lease()), leads.token);
        if !term.0.leads(term.1) {
            // Another host may have written since.
            return match is_repeatable {
                true => Problem::unavailable(LATE).into_response(),
                false => unknown("the lease of this host ended before it answered"),
            };
        }
        response.map(|body| Cut::body(body, role, Some(term)))
    }

    async fn pass_on(
        &self,
        surfaces: Surfaces,
        (host, url): (Uuid, &str),
        mut request: Request<Body>,
    ) -> Passed {
        without_those_of_a_connection(request.headers_mut());
        if let Some(hop) = self.key.header(surfaces, host) {
            request.headers_mut().insert(&HOP, hop);
        }
        let mut role = self.role.subscribe();
        role.borrow_and_update();
        let mut sending = pin!(self.peers.send(url, request));
        let sent = tokio::select! {
            sent = sending.as_mut() => Ok(sent),
            // Another host leads by now. A process that runs there says so at once, and whoever
            // has ended or is paused says nothing.
            _ = role.changed() => timeout(LAST_WORD, sending.as_mut()).await,
        };
        let Ok(sent) = sent else { return Passed::Lost };
        match sent {
            Ok(response) if response.headers().contains_key(&NOT_LEADING) => Passed::NotDone(None),
            Ok(response) => {
                let mut response = response.map(Body::new);
                without_those_of_a_connection(response.headers_mut());
                Passed::Answered(response.map(|body| Cut::body(body, role, None)))
            }
            Err(NotAnswered::NotSent(mut unsent, why)) => {
                tracing::debug!(why, url, "a request could not be passed on");
                // This host may lead by now, and headers of this name mean something to it.
                unsent.headers_mut().remove(&HOP);
                Passed::NotDone(Some(unsent))
            }
            Err(NotAnswered::Unread(why)) => Passed::Unread(why),
            Err(NotAnswered::Lost(why)) => {
                tracing::warn!(why, url, "a request that was passed on has no answer");
                Passed::Lost
            }
        }
    }

    /// Keeps a request for another try, unless its body is long, its length is not known, or very
    /// many are kept.
    async fn keep(
        &self,
        request: Request<Body>,
    ) -> Result<Result<Kept, Box<Request<Body>>>, Problem> {
        let bytes = request.body().size_hint().upper().filter(|bytes| *bytes <= MOST_KEPT);
        let Some(bytes) = bytes else { return Ok(Err(Box::new(request))) };
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.kept).try_acquire_many_owned(kib) else {
            return Ok(Err(Box::new(request)));
        };
        let is_safe = request.method().is_safe() || has_key(&request);
        let (parts, body) = request.into_parts();
        let most = usize::try_from(MOST_KEPT).unwrap_or(usize::MAX);
        let body = to_bytes(body, most).await.map_err(|error| unread(&error.to_string()))?;
        let is_repeatable = is_safe || is_read(&parts, &body);
        Ok(Ok(Kept { parts, body, is_repeatable, _room: room }))
    }

    /// Why nobody has answered.
    fn nobody_answers(&self) -> Response<Body> {
        let role = Arc::clone(&*self.role.borrow());
        let detail = match &*role {
            _ if !self.membership.lease().is_held() => {
                "this host does not reach its database; send the request again".to_owned()
            }
            Role::Follows { name, peer_url: Some(url), .. } => format!(
                "the host {name}, which leads, is not reached at {url}; send the request again, \
                 and check the network between the hosts if that does not help"
            ),
            _ => "no host leads at the moment; send the request again".to_owned(),
        };
        Problem::unavailable(detail).into_response()
    }
}

fn unread(why: &str) -> Problem {
    let detail = format!("the body could not be read: {why}; send it again");
    Problem::new(ProblemCode::UnreadableBody, detail)
}

fn without_those_of_a_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_ONE_CONNECTION) {
        headers.remove(name);
    }
    headers.remove("keep-alive");
}

fn has_key(request: &Request<Body>) -> bool {
    request.headers().contains_key(IDEMPOTENCY_KEY)
}

fn lost(name: &str) -> Response<Body> {
    unknown(&format!("the host {name} has ended before it answered"))
}

/// The answer to a write that may have been done.
fn unknown(what: &str) -> Response<Body> {
    let detail = format!(
        "{what}; whether the request was done is not known: look, and repeat it if it was not; a \
         request with the header `idempotency-key` is never done twice"
    );
    Problem::new(ProblemCode::Host, detail).into_response()
}
