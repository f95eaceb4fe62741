//! Passing a request on to the home of the company that it is about.

use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    CONNECTION, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{HeaderMap, Request, Response};
use tokio::time::timeout;
use uuid::Uuid;

use super::cut::Cut;
use super::hop::{HOP, NOT_HOME};
use super::peers::NotAnswered;
use super::shared::Shared;
use crate::routes::Surfaces;
use memhost_core::Group;

/// How long to wait for a host's answer once another host is the home.
const LAST_WORD: Duration = Duration::from_millis(500);
/// Headers that are about one connection.
static OF_ONE_CONNECTION: [HeaderName; 7] =
    [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// What became of a request that was passed on.
pub(super) enum Passed {
    Answered(Response<Body>),
    /// Nothing was done: it can be sent again, if it was kept.
    NotDone(Option<Box<Request<Body>>>),
    /// It may have been done.
    Lost,
    /// The client has not sent all of it.
    Unread(String),
}

impl Shared {
    /// Sends a request about a group to its home.
    pub(super) async fn pass_on(
        &self,
        surfaces: Surfaces,
        group: Group,
        (host, url): (Uuid, &str),
        mut request: Request<Body>,
    ) -> Passed {
        without_those_of_a_connection(request.headers_mut());
        if let Some(hop) = self.key.header(surfaces, group, host) {
            request.headers_mut().insert(&HOP, hop);
        }
        let mut role = self.role(group).subscribe();
        role.borrow_and_update();
        let mut sending = pin!(self.peers.send(url, request));
        let sent = tokio::select! {
            sent = sending.as_mut() => Ok(sent),
            // Another host is the home by now. A process that runs there says so at once, and
            // whoever has ended or is paused says nothing.
            _ = role.changed() => timeout(LAST_WORD, sending.as_mut()).await,
        };
        let Ok(sent) = sent else { return Passed::Lost };
        match sent {
            Ok(response) if response.headers().contains_key(&NOT_HOME) => Passed::NotDone(None),
            Ok(response) => {
                let mut response = response.map(Body::new);
                without_those_of_a_connection(response.headers_mut());
                Passed::Answered(response.map(|body| Cut::body(body, role, None, None)))
            }
            Err(NotAnswered::NotSent(mut unsent, why)) => {
                tracing::debug!(why, url, "a request could not be passed on");
                // This host may be the home by now, and headers of this name mean something to it.
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
