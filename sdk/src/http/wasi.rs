//! The transport in the sandbox: `wasi:http`.

use std::time::Duration;

use super::{Failure, Incoming, Outgoing, Phase};

use self::bindings::wasi::http::outgoing_handler;
use self::bindings::wasi::http::types::{
    ErrorCode, Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest, RequestOptions,
    Scheme, http_error_code,
};
use self::bindings::wasi::io::streams::StreamError;

#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic
)]
#[allow(clippy::unwrap_used, clippy::expect_used, reason = "generated")]
mod bindings {
    // The interfaces are whole: the standard library and the C library of the target describe them,
    // too, and the linker joins all of them.
    wit_bindgen::generate!({
        path: ["../wit/deps/io.wit", "../wit/deps/clocks.wit", "../wit/deps/http.wit"],
        inline: "
            package memhost:outgoing@0.1.0;
            world client {
                import wasi:io/poll@0.2.0;
                import wasi:io/streams@0.2.0;
                import wasi:http/types@0.2.0;
                import wasi:http/outgoing-handler@0.2.0;
            }
        ",
        world: "memhost:outgoing/client",
        generate_all,
    });
}

/// The most bytes of one write of a body.
const CHUNK: usize = 4_096;

pub(super) fn wait(pause: Duration) {
    std::thread::sleep(pause);
}

pub(super) fn send(request: &Outgoing<'_>) -> Result<Incoming, Failure> {
    let options = RequestOptions::new();
    let timeout = Some(u64::try_from(request.timeout.as_nanos()).unwrap_or(u64::MAX));
    // A host without one of them has its own.
    let _ = options.set_connect_timeout(timeout);
    let _ = options.set_first_byte_timeout(timeout);
    let _ = options.set_between_bytes_timeout(timeout);
    let outgoing = prepare(request)?;
    let body = outgoing.body().map_err(|()| unfit("body"))?;
    let answer = outgoing_handler::handle(outgoing, Some(options)).map_err(failed)?;
    write(body, request.body)?;
    answer.subscribe().block();
    let broken = || Failure::MaybeSent(Phase::Response, "the host has no answer to it".to_owned());
    let response = answer.get().ok_or_else(broken)?.map_err(|()| broken())?.map_err(failed)?;
    read(&response)
}

fn prepare(request: &Outgoing<'_>) -> Result<OutgoingRequest, Failure> {
    let headers: Vec<_> = request
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
        .collect();
    let outgoing = OutgoingRequest::new(Fields::from_list(&headers).map_err(|_| unfit("header"))?);
    let method = match request.method {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        other => Method::Other(other.to_owned()),
    };
    let scheme = if request.is_https { Scheme::Https } else { Scheme::Http };
    outgoing.set_method(&method).map_err(|()| unfit("method"))?;
    outgoing.set_scheme(Some(&scheme)).map_err(|()| unfit("scheme"))?;
    outgoing.set_authority(Some(request.authority)).map_err(|()| unfit("host"))?;
    outgoing.set_path_with_query(Some(request.path_and_query)).map_err(|()| unfit("path"))?;
    Ok(outgoing)
}

fn unfit(what: &str) -> Failure {
    Failure::Denied(format!("its {what} cannot be sent"))
}

/// The host sends a request when its body is whole: before that the server has seen nothing.
fn write(body: OutgoingBody, bytes: &[u8]) -> Result<(), Failure> {
    let unsent = |_| Failure::NotSent("the host did not take the body".to_owned());
    let stream = body.write().map_err(|()| unfit("body"))?;
    for chunk in bytes.chunks(CHUNK) {
        stream.blocking_write_and_flush(chunk).map_err(unsent)?;
    }
    drop(stream);
    OutgoingBody::finish(body, None).map_err(failed)
}

fn read(response: &IncomingResponse) -> Result<Incoming, Failure> {
    let entries = response.headers().entries();
    let headers = entries
        .into_iter()
        .map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned()))
        .collect();
    let broken =
        |()| Failure::MaybeSent(Phase::Body, "its answer has no body that can be read".to_owned());
    let body = response.consume().map_err(broken)?;
    let stream = body.stream().map_err(broken)?;
    let mut all = Vec::new();
    loop {
        match stream.blocking_read(64 << 10) {
            Ok(part) => all.extend(part),
            Err(StreamError::Closed) => return Ok((response.status(), headers, all)),
            Err(StreamError::LastOperationFailed(error)) => {
                let limit = |code| match failed(code) {
                    limit @ Failure::Limit(_) => limit,
                    other => {
                        Failure::MaybeSent(Phase::Body, format!("its answer broke: {other:?}"))
                    }
                };
                let unknown = || Failure::MaybeSent(Phase::Body, "its answer broke".to_owned());
                return Err(http_error_code(&error).map_or_else(unknown, limit));
            }
        }
    }
}

/// How far the request came, by the host's error code.
#[allow(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn failed(code: ErrorCode) -> Failure {
    let reason = match &code {
        ErrorCode::InternalError(Some(message)) => message.clone(),
        // The host tells a guest nothing of the network behind it.
        ErrorCode::DestinationIpProhibited => {
            "its address is private, and the grant allows public \
            ones only; `memhost binding grant NAME --http ORIGIN --private-range CIDR` allows it"
                .to_owned()
        }
        ErrorCode::HttpRequestDenied => "its address is not granted, or this host is quiet; \
            `memhost binding grant NAME` shows what is granted"
            .to_owned(),
        other => format!("{other:?}"),
    };
    match code {
        ErrorCode::HttpRequestDenied
        | ErrorCode::HttpRequestMethodInvalid
        | ErrorCode::HttpRequestUriInvalid
        | ErrorCode::HttpRequestHeaderSize(_)
        | ErrorCode::DestinationIpProhibited => Failure::Denied(reason),
        ErrorCode::DnsTimeout
        | ErrorCode::DnsError(_)
        | ErrorCode::DestinationNotFound
        | ErrorCode::DestinationUnavailable
        | ErrorCode::DestinationIpUnroutable
        | ErrorCode::ConnectionRefused
        | ErrorCode::ConnectionTimeout
        | ErrorCode::TlsProtocolError
        | ErrorCode::TlsCertificateError
        | ErrorCode::TlsAlertReceived(_) => Failure::NotSent(reason),
        ErrorCode::ConnectionReadTimeout | ErrorCode::HttpResponseIncomplete => {
            Failure::MaybeSent(Phase::Body, reason)
        }
        // The host's limits and its secrets come as a message. Nothing was sent where a secret is
        // at fault.
        ErrorCode::InternalError(Some(message)) if message.starts_with("the limit ") => {
            Failure::Limit(message)
        }
        ErrorCode::InternalError(Some(message)) => Failure::Denied(message),
        _ => Failure::MaybeSent(Phase::Response, reason),
    }
}
