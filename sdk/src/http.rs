//! HTTP for a provider whose records are at a service: JSON in and out, over `wasi:http` in the
//! sandbox and over [`testing::http`](crate::testing::http) in a native test.
//!
//! A request goes out only where an operator granted its origin. A secret is written by its name,
//! and the host puts the value in. What reads is tried again, and what writes never is:
//! [`Error::may_have_acted`] says whether the server may have done it, and
//! [`remote::Writes`](crate::remote::Writes) finds out. Every [`Error`] becomes the contract's by
//! `?`.
//!
//! ```
//! use memhost_sdk::{
//!     http::Client,
//!     testing::http::{Answer, serve},
//! };
//! use serde_json::{Value, json};
//!
//! let client =
//!     Client::new("https://api.example.com")?.secret("authorization", "Bearer", "example-key");
//! serve(|sent| {
//!     assert_eq!(sent.header("authorization"), Some("Bearer {{secret:example-key}}"));
//!     Ok(Answer::json(200, json!({"found": [sent.body["query"]]})))
//! });
//! let found: Value = client.post("/search").json(&json!({"query": "gate"})).reads().answer()?;
//! assert_eq!(found["found"][0], "gate");
//! # Ok::<(), memhost_sdk::types::Error>(())
//! ```

mod base;
mod error;
#[cfg(target_family = "wasm")]
mod wasi;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use self::base::Base;
pub use self::base::{BadUrl, segment};
pub use self::error::{Error, Failure, Phase};
#[cfg(target_family = "wasm")]
use self::wasi as transport;
use crate::call;
#[cfg(not(target_family = "wasm"))]
use crate::testing::http as transport;

/// The share of what is left of the call that one request may take, in percent.
const SHARE: u32 = 80;
/// How often a request that reads is tried.
const TRIES: u32 = 3;
/// The longest wait between two tries. Where a server asks for a longer one, the caller gets the
/// error with it.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A service at one base address, with the headers of every request.
#[derive(Debug, Clone)]
pub struct Client {
    base: Base,
    headers: Vec<(String, String)>,
    share: u32,
    tries: u32,
}

impl Client {
    /// A service at an address such as `https://api.example.com` or `http://127.0.0.1:8000/v1`,
    /// mostly from the binding's configuration.
    ///
    /// # Errors
    /// If it is no such address: something else than a scheme, a host, a port and a path.
    pub fn new(base: &str) -> Result<Self, BadUrl> {
        let headers = vec![("accept".to_owned(), "application/json".to_owned())];
        Ok(Self { base: base.parse()?, headers, share: SHARE, tries: TRIES })
    }

    /// A header of every request.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A header whose value is a secret, after a word such as `Bearer` or, with an empty one,
    /// alone. After `Basic` the host encodes it, if the operator set it as `basic`. The provider's
    /// description asks for [`Permission::Secret`](crate::types::Permission), and the operator sets
    /// it for this header.
    #[must_use]
    pub fn secret(self, name: &str, prefix: &str, secret: &str) -> Self {
        let space = if prefix.is_empty() { "" } else { " " };
        self.header(name, &format!("{prefix}{space}{{{{secret:{secret}}}}}"))
    }

    /// Every request is signed by the host as AWS Signature Version 4 has it, with a secret that
    /// the operator set as `sigv4:SERVICE:REGION`. The host sets the time and the session token,
    /// too.
    #[must_use]
    pub fn signed(self, secret: &str) -> Self {
        self.header("authorization", &format!("{{{{sigv4:{secret}}}}}"))
    }

    /// The percentage of what is left of the call that one request may take; 80 without this call,
    /// so that there is time to look whether a write that broke was done. The binding's limits hold
    /// beside it.
    #[must_use]
    pub fn share(self, percent: u32) -> Self {
        Self { share: percent.clamp(1, 100), ..self }
    }

    /// How often a request that reads is tried in all; 3 times without this call.
    #[must_use]
    pub fn tries(self, tries: u32) -> Self {
        Self { tries, ..self }
    }

    /// A request that reads. The path begins with a slash; parts of it that are not fixed go
    /// through [`segment`].
    pub fn get(&self, path: &str) -> Request<'_> {
        self.request("GET", path).reads()
    }

    /// A request that writes, or with [`Request::reads`] one that only looks.
    pub fn post(&self, path: &str) -> Request<'_> {
        self.request("POST", path)
    }

    /// A request that replaces.
    pub fn put(&self, path: &str) -> Request<'_> {
        self.request("PUT", path)
    }

    /// A request that changes a part.
    pub fn patch(&self, path: &str) -> Request<'_> {
        self.request("PATCH", path)
    }

    /// A request that deletes.
    pub fn delete(&self, path: &str) -> Request<'_> {
        self.request("DELETE", path)
    }

    fn request(&self, method: &'static str, path: &str) -> Request<'_> {
        let headers = self.headers.clone();
        let path = format!("{}{path}", self.base.path);
        Request {
            client: self,
            method,
            path,
            query: String::new(),
            headers,
            body: None,
            reads: false,
            at: "",
        }
    }
}

/// A request that has not been sent.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    client: &'a Client,
    method: &'static str,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    reads: bool,
    at: &'static str,
}

impl Request<'_> {
    /// A parameter of the query.
    #[must_use]
    pub fn query(mut self, name: &str, value: &(impl ToString + ?Sized)) -> Self {
        let sign = if self.query.is_empty() { '?' } else { '&' };
        self.query.push_str(&format!("{sign}{}={}", segment(name), segment(&value.to_string())));
        self
    }

    /// A header of this request.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A body in JSON.
    #[must_use]
    pub fn json(mut self, body: &Value) -> Self {
        self.body = Some(body.to_string().into_bytes());
        self.header("content-type", "application/json")
    }

    /// It changes nothing at the server, so it can be tried again.
    #[must_use]
    pub fn reads(self) -> Self {
        Self { reads: true, ..self }
    }

    /// Reads only the part of the answer's JSON at this JSON Pointer, such as `/results`. An answer
    /// without it is [`Error::Answer`].
    #[must_use]
    pub fn at(self, pointer: &'static str) -> Self {
        Self { at: pointer, ..self }
    }

    /// Sends it and reads the answer's JSON. An empty answer is `null`.
    ///
    /// # Errors
    /// As [`Request::send`], and [`Error::Answer`] if the answer is something else.
    pub fn answer<T: DeserializeOwned>(self) -> Result<T, Error> {
        let at = self.at;
        self.send()?.json_at(at)
    }

    /// As [`Request::answer`], where the status 404 and the answer `null` mean that there is no
    /// such thing.
    ///
    /// # Errors
    /// As [`Request::answer`].
    pub fn answer_if_found<T: DeserializeOwned>(self) -> Result<Option<T>, Error> {
        match self.answer() {
            Err(Error::Status { status: 404, .. }) => Ok(None),
            found => found,
        }
    }

    /// As [`Request::answer_if_found`], for one thing that was asked for: `is_it` says whether the
    /// answer is about it, mostly by its id.
    ///
    /// # Errors
    /// As [`Request::answer`], and [`Error::Answer`] if it is about another thing.
    pub fn answer_about<T: DeserializeOwned>(
        self,
        is_it: impl FnOnce(&T) -> bool,
    ) -> Result<Option<T>, Error> {
        let name = self.name();
        match self.answer_if_found()? {
            Some(other) if !is_it(&other) => {
                Err(Error::unexpected(&name, "it is about another thing"))
            }
            found => Ok(found),
        }
    }

    /// Sends it. A request that reads is tried again after what may pass, as long after it as the
    /// server asks.
    ///
    /// # Errors
    /// If there is no answer, or one with a status of 300 or more. The host does not follow
    /// redirects.
    pub fn send(self) -> Result<Response, Error> {
        let mut tried = 1;
        loop {
            let failed = match self.send_once() {
                Ok(response) if response.status < 300 => return Ok(response),
                Ok(response) => Error::status(&response),
                Err(failure) => Error::failed(self.name(), failure),
            };
            let pause = self.reads.then(|| failed.pause(tried)).flatten();
            let can_wait =
                |pause: &Duration| *pause <= LONGEST_PAUSE && *pause < call::remaining() / 2;
            match pause.filter(|pause| tried < self.client.tries && can_wait(pause)) {
                None => return Err(failed),
                Some(pause) => {
                    log::warn!("{failed}; it is sent again after {} ms", pause.as_millis());
                    transport::wait(pause);
                }
            }
            tried += 1;
        }
    }

    fn send_once(&self) -> Result<Response, Failure> {
        let Base { scheme_is_https, authority, .. } = &self.client.base;
        let (status, headers, body) = transport::send(&Outgoing {
            method: self.method,
            is_https: *scheme_is_https,
            authority,
            path_and_query: &format!("{}{}", self.path, self.query),
            headers: &self.headers,
            body: self.body.as_deref().unwrap_or_default(),
            timeout: call::remaining() * self.client.share / 100,
        })?;
        Ok(Response { request: self.name(), status, headers, body })
    }

    /// What messages call it. Without the query, which may hold what a record says.
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// A request for the transport.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) method: &'static str,
    pub(crate) is_https: bool,
    pub(crate) authority: &'a str,
    pub(crate) path_and_query: &'a str,
    pub(crate) headers: &'a [(String, String)],
    pub(crate) body: &'a [u8],
    pub(crate) timeout: Duration,
}

/// The answer of a transport: status, headers and body.
pub(crate) type Incoming = (u16, Vec<(String, String)>, Vec<u8>);

/// An answer with a status below 300.
#[derive(Debug, Clone)]
pub struct Response {
    request: String,
    /// Its status.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// Its body, whole.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this name, in any case of its letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Its body as JSON; an empty one is `null`.
    ///
    /// # Errors
    /// [`Error::Answer`] if it is not JSON of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let body = if self.body.is_empty() { b"null" } else { self.body.as_slice() };
        serde_json::from_slice(body)
            .map_err(|error| Error::unexpected(&self.request, &error.to_string()))
    }

    fn json_at<T: DeserializeOwned>(&self, pointer: &str) -> Result<T, Error> {
        let mut whole: Value = match pointer {
            "" => return self.json(),
            _ => self.json()?,
        };
        let part = if whole.is_null() { Some(&mut whole) } else { whole.pointer_mut(pointer) };
        let part =
            part.ok_or_else(|| Error::unexpected(&self.request, &format!("it has no {pointer}")))?;
        serde_json::from_value(part.take())
            .map_err(|error| Error::unexpected(&self.request, &error.to_string()))
    }
}

/// A body without its members that are null, for a service that takes a member left out for its own
/// choice.
pub fn filled(mut body: Value) -> Value {
    if let Value::Object(members) = &mut body {
        members.retain(|_, member| !member.is_null());
    }
    body
}

#[cfg(test)]
mod tests;
