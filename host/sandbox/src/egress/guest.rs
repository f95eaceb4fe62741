//! `wasi:http` of one instance: what the guest sends goes through its binding's [`Egress`], and the
//! call's log tells of it.

use std::sync::Arc;
use std::time::Instant;

use http_body_util::BodyExt;
use hyper::body::Body as _;
use wasmtime_wasi_http::{RequestOptions, WasiBody, WasiHttpHooks};

use super::load::Load;
use super::{Egress, EgressError, Tally};
use crate::computing::Computing;
use crate::limiter::{Memory, bytes_of_fields};
use crate::log::GuestLog;
use memhost_ports::OutgoingCounter;
use memhost_types::{BindingLimits, NOT_GRANTED, Outgoing};

/// The outgoing HTTP of one instance. `wasi:http` calls it.
pub(crate) struct GuestHttp {
    egress: Option<Arc<Egress>>,
    log: GuestLog,
    /// Where responses count until the guest has dropped them.
    memory: Memory,
    /// The computing of the present call.
    computing: Computing,
    tally: Arc<Tally>,
}

impl GuestHttp {
    pub(crate) fn new(
        egress: Option<Arc<Egress>>,
        log: GuestLog,
        memory: Memory,
        computing: Computing,
    ) -> Self {
        Self { egress, log, memory, computing, tally: Arc::default() }
    }

    /// A call of the binding begins: its requests and bytes are counted from 0.
    pub(crate) fn begin(&mut self) {
        if self.egress.is_some() {
            self.tally = Arc::default();
        }
    }

    /// The call is over: requests that it left behind are not sent. Answers what it has sent.
    pub(crate) fn end(&self) -> Outgoing {
        if self.egress.is_some() {
            self.tally.end();
        }
        self.tally.by_origin().take()
    }

    /// Where what is sent for the present call is counted.
    pub(crate) fn counter(&self) -> OutgoingCounter {
        self.tally.by_origin().clone()
    }
}

/// What the call's log says about a request. It leaves out the query of the address, which may
/// contain people's text.
struct Told {
    method: http::Method,
    /// Up to where the path begins.
    to: String,
    path: String,
    began: Instant,
}

impl Told {
    fn of(request: &http::Request<WasiBody>) -> Self {
        let (uri, path) = (request.uri(), request.uri().path());
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let to = format!("{}://{authority}", uri.scheme_str().unwrap_or("http"));
        Self {
            method: request.method().clone(),
            to: to.chars().take(280).collect(),
            path: path.chars().take(200).collect(),
            began: Instant::now(),
        }
    }

    fn answered(&self, response: &http::Response<WasiBody>) -> String {
        let (status, bytes) = (response.status().as_u16(), response.body().size_hint().lower());
        format!("{self}: {status} with {bytes} bytes after {} ms", self.began.elapsed().as_millis())
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "outgoing request: {:.20} {}{}", self.method.as_str(), self.to, self.path)
    }
}

/// A response that counts as the guest's memory, with its head.
fn held(
    response: http::Response<WasiBody>,
    memory: &Memory,
    limits: &BindingLimits,
) -> Result<http::Response<WasiBody>, EgressError> {
    let body = usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX);
    let bytes = body.saturating_add(bytes_of_fields(response.headers()));
    let held =
        memory.hold(bytes).ok_or_else(|| EgressError::limit("memoryBytes", limits.memory_bytes))?;
    // The closure lives as long as the body.
    let keep = move |error| {
        let _ = &held;
        error
    };
    Ok(response.map(|body| body.map_err(keep).boxed_unsync()))
}

/// Reads the rest of the body of a request that is not sent, until the call ends. The answer tells
/// the guest why. If writing the body failed as well, a runtime that takes this for its own fault
/// would end the call, depending on which comes first: that of JavaScript does.
async fn discard(mut body: WasiBody, tally: Arc<Tally>, computing: Computing) {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    tokio::select! {
        () = tally.ended() => {}
        () = computing.counted(rest) => {}
    }
}

type Sent = Result<
    (http::Response<WasiBody>, Box<dyn Future<Output = wasmtime_wasi_http::Result<()>> + Send>),
    wasmtime_wasi_http::Error,
>;

impl WasiHttpHooks for GuestHttp {
    /// A body that is not sent keeps two parts in the host's memory.
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        64 << 10
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _processed: Box<dyn Future<Output = wasmtime_wasi_http::Result<()>> + Send>,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        let (egress, log, tally) = (self.egress.clone(), self.log.clone(), Arc::clone(&self.tally));
        let (memory, computing) = (self.memory.clone(), self.computing.clone());
        Box::new(async move {
            let target = request.uri().authority().map(ToString::to_string).unwrap_or_default();
            let told = Told::of(&request);
            let (head, mut body) = request.into_parts();
            let sent = async {
                let Some(egress) = &egress else {
                    tally.by_origin().lock().refused(NOT_GRANTED);
                    return Err(EgressError::NotGranted { target });
                };
                let load = Load::new(
                    computing.clone(),
                    memory.clone(),
                    Arc::clone(&tally),
                    &egress.limits,
                );
                tokio::select! {
                    () = tally.ended() => Err(EgressError::Ended),
                    sent = egress.send(
                        &load, head, &mut body, options.unwrap_or_default(),
                    ) => held(sent?, &memory, &egress.limits),
                }
            };
            match computing.counted(sent).await {
                Ok(response) => {
                    log.host("debug", &told.answered(&response));
                    Ok((response, Box::new(async { Ok(()) }) as Box<dyn Future<Output = _> + Send>))
                }
                Err(error) => {
                    // The log has the reason for the operator. The guest gets the nearest error
                    // code of WASI.
                    let mut why = format!("{told}: {error}");
                    if let Some(egress) = &egress {
                        egress.network.counters.request_refused();
                        why = egress.secrets.read().all.scrub_text(&why).into_owned();
                    }
                    log.host("warn", &why);
                    memhost_executor::spawn(discard(body, tally, computing.clone()));
                    Err(error.for_guest())
                }
            }
        })
    }
}
