//! A server in memory for the HTTP of a native test, one for each thread.
//!
//! ```
//! use memhost_sdk::http::Client;
//! use memhost_sdk::testing::http::{Answer, sent, serve};
//!
//! serve(|asked| Ok(Answer::json(200, serde_json::json!({"path": asked.path}))));
//! Client::new("https://api.example.com/v1")?.delete("/notes/7").send()?;
//! assert_eq!((sent()[0].method, sent()[0].path.as_str()), ("DELETE", "/v1/notes/7"));
//! # Ok::<(), memhost_sdk::types::Error>(())
//! ```

use std::cell::RefCell;
use std::time::Duration;

use serde_json::Value;

use crate::http::{Failure, Incoming, Outgoing};

type Server = Box<dyn FnMut(&Sent) -> Result<Answer, Failure>>;

#[derive(Default)]
struct State {
    server: Option<Server>,
    sent: Vec<Sent>,
    waited: Vec<Duration>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::new(State::default());
}

/// A request as the server gets it; a secret is still its placeholder.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// Such as `POST`.
    pub method: &'static str,
    /// Scheme, host and port.
    pub origin: String,
    /// The path, as it was encoded.
    pub path: String,
    /// The part after the question mark; empty without one.
    pub query: String,
    /// Its headers, in the order of the client.
    pub headers: Vec<(String, String)>,
    /// Its body; `null` without one.
    pub body: Value,
    /// How long the client waits for the answer.
    pub timeout: Duration,
}

impl Sent {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// An answer of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Such as 200.
    pub status: u16,
    /// Such as `retry-after`.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// An answer in JSON.
    #[allow(clippy::needless_pass_by_value, reason = "so that a test can write json!({}) in place")]
    pub fn json(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body: body.to_string().into_bytes() }
    }
}

/// From now on this answers the requests of this thread. It must not send requests itself.
pub fn serve(server: impl FnMut(&Sent) -> Result<Answer, Failure> + 'static) {
    STATE.with_borrow_mut(|state| {
        *state = State { server: Some(Box::new(server)), ..State::default() }
    });
}

/// The requests since [`serve`], in order.
pub fn sent() -> Vec<Sent> {
    STATE.with_borrow(|state| state.sent.clone())
}

/// How long the client waited between tries since [`serve`]. A test does not really wait.
pub fn waited() -> Vec<Duration> {
    STATE.with_borrow(|state| state.waited.clone())
}

pub(crate) fn wait(pause: Duration) {
    STATE.with_borrow_mut(|state| state.waited.push(pause));
}

pub(crate) fn send(request: &Outgoing<'_>) -> Result<Incoming, Failure> {
    let (path, query) =
        request.path_and_query.split_once('?').unwrap_or((request.path_and_query, ""));
    let scheme = if request.is_https { "https" } else { "http" };
    let sent = Sent {
        method: request.method,
        origin: format!("{scheme}://{}", request.authority),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: request.headers.to_vec(),
        body: serde_json::from_slice(request.body).unwrap_or_default(),
        timeout: request.timeout,
    };
    STATE.with_borrow_mut(|state| {
        state.sent.push(sent.clone());
        let none = || {
            Failure::NotSent(
                "this test has no server; `testing::http::serve` gives it one".to_owned(),
            )
        };
        let answer = state.server.as_mut().ok_or_else(none)?(&sent)?;
        Ok((answer.status, answer.headers, answer.body))
    })
}
