//! What stands in front of the routes of a host among several: a request goes to the home of the
//! company that it is about, and waits for one where there is none.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Request, Response};
use axum::response::IntoResponse;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tower::ServiceExt as _;
use uuid::Uuid;

use super::cut::Cut;
use super::hop::{HOME, HOP, Hop, NOT_HOME};
use super::of_hosts::OF_HOSTS;
use super::pass::Passed;
use super::shared::{Answering, Role, Shared};
use crate::routes::Surfaces;
use memhost_core::Group;
use memhost_http::{HeldUntilDone, Problem, ProblemCode, is_read, only_reads};

/// How long a request waits for a home. Another host takes over within 5 seconds.
const PATIENCE: Duration = Duration::from_secs(10);
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

/// The routes of an address for clients.
pub(super) fn router(shared: &Arc<Shared>, surfaces: Surfaces) -> Router {
    let shared = Arc::clone(shared);
    Router::new().fallback(move |mut request: Request<Body>| async move {
        // Only hosts send it, and to another address.
        request.headers_mut().remove(&HOP);
        request.extensions_mut().insert(memhost_integrations::READ_ROUTES);
        request.extensions_mut().insert(memhost_integrations::TOOLS);
        match request.uri().path() {
            "/healthz" => "ok\n".into_response(),
            // A balancer asks again by itself, and does not wait for long.
            "/readyz" => {
                let answering = shared.answer(surfaces, Group::HOST, request);
                match timeout(READY_WITHIN, answering).await {
                    Ok(answer) => answer,
                    Err(_) => Problem::unavailable("the host that leads is slow").into_response(),
                }
            }
            path if OF_HOSTS.contains(&path) => shared.of_hosts(surfaces, request).await,
            _ => match shared.whose.group(request.uri(), request.headers()).await {
                Ok(group) => shared.answer(surfaces, group, request).await,
                Err(error) => Problem::from(error).into_response(),
            },
        }
    })
}

/// The routes of the address for other hosts.
pub(super) fn router_for_peers(shared: &Arc<Shared>) -> Router {
    let shared = Arc::clone(shared);
    Router::new().fallback(move |mut request: Request<Body>| async move {
        let Some(Hop { surfaces, group, is_for_us }) = shared.key.read(request.headers()) else {
            let detail = "this address is for the other hosts on the database of this one, which \
                          have its key; send the request to its address for clients";
            return Problem::new(ProblemCode::Forbidden, detail).into_response();
        };
        request.headers_mut().remove(&HOP);
        let role = Arc::clone(&*shared.role(group).borrow());
        if let Role::Serves(serving) = &*role
            && is_for_us
            && shared.membership.lease().holds(serving.term)
            && let Some(begun) = serving.begin()
        {
            match shared.serve(begun, surfaces, request).await {
                // Whoever has passed it on sends it again.
                Err(Late { is_repeatable: true }) => {}
                answered => return answered.unwrap_or_else(Late::into_response),
            }
        }
        let mut answer = Problem::unavailable("another host serves this").into_response();
        answer.headers_mut().insert(&NOT_HOME, HeaderValue::from_static("1"));
        answer
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

/// The lease of this host ended before it answered.
struct Late {
    /// Whether the request may be done twice.
    is_repeatable: bool,
}

impl Late {
    fn into_response(self) -> Response<Body> {
        match self.is_repeatable {
            true => Problem::unavailable(LATE).into_response(),
            false => unknown("the lease of this host ended before it answered"),
        }
    }
}

/// Who answers a request.
enum Somebody {
    We(Answering),
    Other { host: Uuid, name: String, url: String },
}

impl Shared {
    /// Answers a request about a group, or has it answered.
    pub(super) async fn answer(
        &self,
        surfaces: Surfaces,
        group: Group,
        request: Request<Body>,
    ) -> Response<Body> {
        let until = Instant::now() + PATIENCE;
        let mut kept = None;
        let mut given = Some(request);
        loop {
            let Some(somebody) = self.somebody(group, until).await else {
                return self.nobody_answers(group);
            };
            let again = || kept.as_ref().map(Kept::request);
            let (host, name, url) = match somebody {
                Somebody::We(begun) => {
                    let Some(request) = given.take().or_else(again) else {
                        return self.nobody_answers(group);
                    };
                    let answered = self.serve(begun, surfaces, request).await;
                    let answered = answered.unwrap_or_else(Late::into_response);
                    return with_home(answered, self.membership.peer_url());
                }
                Somebody::Other { host, name, url } => (host, name, url),
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
                    None => return self.nobody_answers(group),
                },
            };
            match self.pass_on(surfaces, group, (host, &url), request).await {
                Passed::Answered(response) => return with_home(response, Some(&url)),
                Passed::NotDone(unsent) => given = unsent.map(|request| *request),
                Passed::Lost if kept.as_ref().is_some_and(|kept| kept.is_repeatable) => {}
                Passed::Lost => return lost(&name),
                Passed::Unread(why) => return unread(&why).into_response(),
            }
            if Instant::now() >= until {
                return self.nobody_answers(group);
            }
            sleep(AGAIN).await;
        }
    }

    /// Who answers requests about a group, once somebody does.
    async fn somebody(&self, group: Group, until: Instant) -> Option<Somebody> {
        let mut roles = self.role(group).subscribe();
        loop {
            match &**roles.borrow_and_update() {
                Role::Serves(serving) if self.membership.lease().holds(serving.term) => {
                    if let Some(begun) = serving.begin() {
                        return Some(Somebody::We(begun));
                    }
                }
                Role::Follows { host, name, peer_url: Some(url) } => {
                    let (name, url) = (name.clone(), url.clone());
                    return Some(Somebody::Other { host: *host, name, url });
                }
                _ => {}
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

    /// Answers as the home of a group, if this host still is that at the end.
    async fn serve(
        &self,
        begun: Answering,
        surfaces: Surfaces,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, Late> {
        let serving = begun.serving();
        // Also what goes on when the client has gone.
        request.extensions_mut().insert(HeldUntilDone::new(begun.also()));
        let mut role = self.role(serving.term.group).subscribe();
        role.borrow_and_update();
        let is_repeatable = has_key(&request) || only_reads(&request);
        let answering = serving.router(surfaces).oneshot(request);
        let response = answering.await.unwrap_or_else(|never| match never {});
        let held = (Arc::clone(self.membership.lease()), serving.term);
        if !held.0.holds(held.1) {
            // Another host may have written since.
            return Err(Late { is_repeatable });
        }
        // A stream of events has no end that one could wait for.
        let kind = response.headers().get(CONTENT_TYPE);
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let begun = Some(begun).filter(|_| !is_stream);
        Ok(response.map(|body| Cut::body(body, role, Some(held), begun)))
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
    fn nobody_answers(&self, group: Group) -> Response<Body> {
        let role = Arc::clone(&*self.role(group).borrow());
        let detail = match &*role {
            _ if !self.membership.lease().is_held() => {
                "this host does not reach its database; send the request again".to_owned()
            }
            Role::Follows { name, peer_url: Some(url), .. } => format!(
                "the host {name}, which serves this, is not reached at {url}; send the request \
                 again, and check the network between the hosts if that does not help"
            ),
            _ => "no host serves this at the moment; send the request again".to_owned(),
        };
        Problem::unavailable(detail).into_response()
    }
}

fn unread(why: &str) -> Problem {
    let detail = format!("the body could not be read: {why}; send it again");
    Problem::new(ProblemCode::UnreadableBody, detail)
}

/// Adds to an answer which host has given it: the one that other hosts reach at this URL.
fn with_home(mut response: Response<Body>, url: Option<&str>) -> Response<Body> {
    let authority = url.and_then(|url| url.split_once("://")).map(|(_, authority)| authority);
    let home = authority.and_then(|home| HeaderValue::from_str(home.trim_end_matches('/')).ok());
    if let Some(home) = home {
        response.headers_mut().insert(&HOME, home);
    }
    response
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
