//! Connections to other hosts, and requests on them.

use std::collections::HashMap;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// How long another host may give no sign of life, and when it is asked for one.
const SILENT_FOR: Duration = Duration::from_secs(5);
const ASKED_AFTER: Duration = Duration::from_secs(2);
/// Connections to one host that are kept for the next request.
const MOST_KEPT: usize = 256;

/// Connections to other hosts, which wait for a request, by the hosts' URLs.
#[derive(Default)]
pub(super) struct Peers(Mutex<HashMap<String, Vec<SendRequest<Body>>>>);

/// Why a request has no answer.
pub(super) enum NotAnswered {
    /// It was not sent: here it is.
    NotSent(Box<Request<Body>>, String),
    /// It may have been done.
    Lost(String),
    /// Its own body ended early.
    Unread(String),
}

impl Peers {
    /// Sends a request to a host, `http://ADDRESS:PORT`.
    pub(super) async fn send(
        &self,
        peer_url: &str,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, NotAnswered> {
        loop {
            let (mut sender, is_new) = match self.kept(peer_url) {
                Some(kept) => (kept, false),
                None => match connect(peer_url).await {
                    Ok(made) => (made, true),
                    Err(why) => return Err(NotAnswered::NotSent(Box::new(request), why)),
                },
            };
            match sender.try_send_request(request).await {
                Ok(response) => {
                    self.keep(peer_url, sender);
                    return Ok(response);
                }
                Err(mut error) => match error.take_message() {
                    // The other host had closed a connection that waited.
                    Some(unsent) if !is_new => request = unsent,
                    Some(unsent) => {
                        let why = error.error().to_string();
                        return Err(NotAnswered::NotSent(Box::new(unsent), why));
                    }
                    None if error.error().is_user() => {
                        return Err(NotAnswered::Unread(error.error().to_string()));
                    }
                    None => return Err(NotAnswered::Lost(error.error().to_string())),
                },
            }
        }
    }

    fn kept(&self, peer_url: &str) -> Option<SendRequest<Body>> {
        let mut kept = self.0.lock();
        let senders = kept.get_mut(peer_url)?;
        senders.retain(|sender| !sender.is_closed());
        // One whose answer is still being read is not ready.
        let place = senders.iter().rposition(SendRequest::is_ready)?;
        Some(senders.swap_remove(place))
    }

    fn keep(&self, peer_url: &str, sender: SendRequest<Body>) {
        let mut kept = self.0.lock();
        let known = kept.len();
        let senders = kept.entry(peer_url.to_owned()).or_default();
        if senders.len() < MOST_KEPT {
            senders.push(sender);
        }
        if kept.len() > known {
            // Hosts that are gone have closed their connections.
            kept.retain(|_, senders| senders.iter().any(|sender| !sender.is_closed()));
        }
    }
}

/// Lets the connection break where the other end gives no sign of life: the network in between may
/// be cut.
fn give_up(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, ASKED_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, ASKED_AFTER)?;
    let silent_for = SILENT_FOR.as_millis().try_into().unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, silent_for)
}

async fn connect(peer_url: &str) -> Result<SendRequest<Body>, String> {
    let uri: Uri = peer_url.parse().map_err(|error| format!("{peer_url}: {error}"))?;
    let address = uri.authority().map(ToString::to_string).unwrap_or_default();
    let connecting = async {
        let stream = TcpStream::connect(&address).await.map_err(|error| error.to_string())?;
        // Requests are small, and somebody waits for each.
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        give_up(&stream).map_err(|error| error.to_string())?;
        handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())
    };
    let made = timeout(CONNECT_WITHIN, connecting).await;
    let late = |_| format!("no connection within {} s", CONNECT_WITHIN.as_secs());
    let (sender, connection) = made.map_err(late).flatten()?;
    tokio::spawn(async move {
        // Whoever has sent a request on it is told.
        let _ = connection.await;
    });
    Ok(sender)
}
