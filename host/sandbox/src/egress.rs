//! Outgoing HTTP. A request goes out only to an origin that the operator granted and to an address
//! that was checked. The response comes back whole and scrubbed. The host puts secrets in on the
//! way out: the guest knows only their names.

mod address;
mod blocking;
mod client;
mod connection_pool;
mod error;
mod escape;
mod guest;

mod load;
mod rewrite;
mod scrub;
mod secret;
mod tally;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use ipnet::IpNet;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Semaphore;
use wasmtime_wasi_http::{RequestOptions, WasiBody};

use self::blocking::{Place, SLOW_BODY, SLOW_SECRETS, on_blocking_thread};
pub(super) use self::client::Client;
use self::client::{Connection, RequestFailed};
use self::connection_pool::ConnectionPool;
pub(super) use self::error::EgressError;
pub(super) use self::guest::GuestHttp;
use self::load::Load;
use self::rewrite::{Outgoing, read_response, rewrite};
pub use self::secret::{Secret, SecretError, Secrets};
use self::tally::Minute;
pub(super) use self::tally::Tally;
use super::stats::Counters;
use memhost_ports::{Clock as _, SystemClock};
use memhost_types::{BindingLimits, HttpGrant, HttpTarget, NOT_GRANTED, Origin, SecretUse};

/// The longest time for making a connection, even where the guest asks for more.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A secret, and where it may go.
#[derive(Debug, Clone)]
pub struct GrantedSecret {
    /// Its name and value.
    pub secret: Secret,
    /// Where it may be sent.
    pub origins: Vec<Origin>,
    /// Where in a request it may be.
    pub used_as: SecretUse,
}

/// The network that the requests of all bindings use.
pub(super) struct Network {
    client: Client,
    is_quiet: bool,
    pub(super) counters: Counters,
    /// For the connections that are kept open.
    places: Arc<Semaphore>,
}

impl Network {
    pub(super) fn new(client: Client, is_quiet: bool) -> Self {
        Self {
            client,
            is_quiet,
            counters: Counters::default(),
            places: Arc::new(Semaphore::new(connection_pool::MOST_OF_ALL)),
        }
    }
}

/// The outgoing requests that one binding's provider may send. Shared by its instances.
pub struct Egress {
    grants: Vec<HttpGrant>,
    limits: BindingLimits,
    secrets: RwLock<Arc<Granted>>,
    minute: Mutex<Minute>,
    connections: Arc<Semaphore>,
    pool: ConnectionPool,
    network: Arc<Network>,
}

/// Where a request is counted.
struct Counted {
    origin: String,
    has_left: bool,
}

#[derive(Default)]
struct Granted {
    /// The origins of each secret, in their order.
    origins: Vec<Vec<Origin>>,
    all: Secrets,
}

impl Granted {
    fn for_target(&self, target: &HttpTarget) -> Secrets {
        self.all.only(|number| {
            self.origins
                .get(number)
                .is_some_and(|origins| origins.iter().any(|origin| origin.allows(target)))
        })
    }
}

impl Egress {
    /// The grants, without secrets yet.
    pub(super) fn new(
        network: Arc<Network>,
        grants: Vec<HttpGrant>,
        limits: &BindingLimits,
    ) -> Self {
        Self {
            grants,
            limits: *limits,
            secrets: RwLock::default(),
            minute: Mutex::new(Minute::new(Instant::now())),
            connections: Arc::new(Semaphore::new(limits.outgoing_connections as usize)),
            pool: ConnectionPool::new(
                Arc::clone(&network.places),
                limits.outgoing_connections as usize,
            ),
            network,
        }
    }

    /// Gives the secrets that requests from now on may have, in the place of those before.
    ///
    /// # Errors
    /// Where two of them have the same name, or they are too long together.
    pub async fn set_secrets(&self, each: Vec<GrantedSecret>) -> Result<(), SecretError> {
        let length = each.iter().map(|granted| granted.secret.len()).sum();
        let granted = on_blocking_thread(length, SLOW_SECRETS, None, move || {
            let origins = each.iter().map(|granted| granted.origins.clone()).collect();
            let all = Secrets::new(
                each.into_iter().map(|granted| (granted.secret, granted.used_as)).collect(),
            )?;
            Ok::<_, SecretError>(Granted { origins, all })
        });
        *self.secrets.write() = Arc::new(granted.await?);
        // A server may know a connection by the key that came over it.
        self.pool.close();
        Ok(())
    }

    /// Requests of the last minute, about.
    pub fn requests_of_minute(&self) -> u32 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let used = self.minute.lock().used(Instant::now()).ceil() as u32;
        used
    }

    /// Requests that run now.
    pub fn in_flight(&self) -> u32 {
        let free = u32::try_from(self.connections.available_permits()).unwrap_or(u32::MAX);
        self.limits.outgoing_connections.saturating_sub(free)
    }

    async fn send(
        &self,
        load: &Load,
        parts: http::request::Parts,
        body: &mut WasiBody,
        options: RequestOptions,
    ) -> Result<http::Response<WasiBody>, EgressError> {
        let mut place = Counted { origin: NOT_GRANTED.to_owned(), has_left: false };
        let sent = self.send_counted(load, parts, body, options, &mut place).await;
        if sent.is_err() && !place.has_left {
            load.tally().by_origin().lock().refused(&place.origin);
        }
        sent
    }

    async fn send_counted(
        &self,
        load: &Load,
        parts: http::request::Parts,
        body: &mut WasiBody,
        options: RequestOptions,
        counted: &mut Counted,
    ) -> Result<http::Response<WasiBody>, EgressError> {
        let authority =
            parts.uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let target = HttpTarget::parse(parts.uri.scheme_str(), authority)?;
        let grant = self.grant(&target, &parts.method)?;
        // Bounded, as the operator's grants are: a wildcard may stand for any number of names.
        counted.origin = grant.origin.to_string();
        if self.network.is_quiet {
            return Err(EgressError::Quiet);
        }
        self.count(load.tally())?;
        let permit = Arc::clone(&self.connections).try_acquire_owned().map_err(|_| {
            EgressError::limit("outgoingConnections", self.limits.outgoing_connections.into())
        })?;
        let place = Place::new(permit, load);
        let call = Duration::from_millis(self.limits.call_timeout_ms);
        let clamped =
            |asked: Option<Duration>, most: Duration| asked.map_or(most, |asked| asked.min(most));
        let between = clamped(options.between_bytes_timeout, call);
        let sending = load.holding();
        let body = client::collect(body, between, |bytes| {
            load.tally().take_sent(bytes, self.limits.outgoing_bytes)?;
            load.hold(&sending, bytes)
        });
        let body = body.await?;
        let sent = body.len() as u64;
        let granted = Arc::clone(&self.secrets.read());
        let (secrets, outgoing) =
            (granted.for_target(&target), Outgoing { target: target.clone(), parts, body });
        let length = outgoing.length() as u64;
        // Where secrets are put in, it is there twice for a moment.
        load.hold(&sending, length)?;
        load.check()?;
        let request = on_blocking_thread(outgoing.length(), SLOW_BODY, Some(&place), move || {
            // The server compares a signature's time with its own clock.
            rewrite(outgoing, &secrets, SystemClock.now())
        })
        .await?;
        let (connect, answer) = (
            clamped(options.connect_timeout, CONNECT_TIMEOUT),
            clamped(options.first_byte_timeout, call),
        );
        counted.has_left = true;
        load.tally().by_origin().lock().sent(&counted.origin, false, length);
        let (connection, response) =
            self.exchange(&target, &grant.private_ranges, request, connect, answer).await?;
        drop(sending);
        let (head, body) = response.into_parts();
        let receiving = load.holding();
        let body = client::collect(body, between, |bytes| {
            load.tally().take_received(bytes, self.limits.incoming_bytes)?;
            load.hold(&receiving, bytes)
        });
        let body = body.await?;
        {
            // Held, so that what closes the connections after a change of the secrets finds this
            // one.
            let now = self.secrets.read();
            if Arc::ptr_eq(&granted, &now) {
                self.pool.put(target, grant.private_ranges.clone(), connection);
            }
        }
        self.network.counters.request(sent, body.len() as u64);
        load.tally().by_origin().lock().answered(&counted.origin, false, body.len() as u64);
        // Masking secrets writes it a second time, and so it is with what is unpacked.
        load.hold(&receiving, body.len() as u64)?;
        load.check()?;
        // The call's limits go on: a call that has ended does not wait for this.
        let (load, most) = (load.clone(), self.limits.incoming_bytes);
        let length = match rewrite::is_packed(&head.headers) {
            true => SLOW_BODY,
            false => body.len() + head.headers.values().map(http::HeaderValue::len).sum::<usize>(),
        };
        let response = on_blocking_thread(length, SLOW_BODY, Some(&place), move || {
            read_response(&head, body, &granted.all, |bytes| {
                load.tally().take_received(bytes, most)?;
                load.hold(&receiving, bytes.saturating_mul(2))
            })
        })
        .await?;
        Ok(response
            .map(|body: Bytes| Full::new(body).map_err(|never| match never {}).boxed_unsync()))
    }

    /// Sends a request over a connection that was kept open, or over a new one. It is sent twice
    /// only where the server has not got it, or where it only reads (RFC 9110, 9.2.2).
    async fn exchange(
        &self,
        target: &HttpTarget,
        ranges: &[IpNet],
        request: http::Request<Full<Bytes>>,
        connect: Duration,
        answer: Duration,
    ) -> Result<(Connection, http::Response<Incoming>), EgressError> {
        let mut request = request;
        // One that is sent again counts once: the server has answered nothing.
        if let Some(mut connection) = self.pool.take(target, ranges).await {
            let again = request.method().is_safe().then(|| request.clone());
            match connection.send(request, answer).await {
                Ok(response) => return Ok((connection, response)),
                Err(RequestFailed { error: error @ EgressError::Exchange(_), unsent }) => {
                    request = unsent.or(again).ok_or(error)?;
                }
                Err(RequestFailed { error, .. }) => return Err(error),
            }
        }
        let mut connection = self.network.client.connect(target, ranges, connect).await?;
        let response =
            connection.send(request, answer).await.map_err(|unanswered| unanswered.error)?;
        Ok((connection, response))
    }

    fn grant(&self, target: &HttpTarget, method: &http::Method) -> Result<&HttpGrant, EgressError> {
        // They ask a server to repeat what it got, or to let anything through.
        let is_harmful = matches!(method.as_str(), "CONNECT" | "TRACE");
        let is_granted = |methods: &[String]| {
            methods.is_empty() || methods.iter().any(|known| known == method.as_str())
        };
        let mut of_origin =
            self.grants.iter().filter(|grant| grant.origin.allows(target)).peekable();
        if of_origin.peek().is_none() {
            return Err(EgressError::NotGranted { target: target.to_string() });
        }
        of_origin.find(|grant| !is_harmful && is_granted(&grant.methods)).ok_or_else(|| {
            EgressError::Method {
                target: target.to_string(),
                method: method.as_str().chars().take(40).collect(),
            }
        })
    }

    fn count(&self, tally: &Tally) -> Result<(), EgressError> {
        tally.take_request(self.limits.outgoing_requests)?;
        let most = self.limits.outgoing_requests_per_minute;
        match self.minute.lock().take(Instant::now(), most) {
            true => Ok(()),
            false => Err(EgressError::limit("outgoingRequestsPerMinute", most.into())),
        }
    }
}
