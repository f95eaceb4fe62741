//! Sends the request in a query, through `wasi:http`.

use std::collections::BTreeMap;

use serde::Deserialize;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest, RequestOptions,
    Scheme,
};

#[derive(Deserialize)]
pub(crate) struct Send {
    method: String,
    scheme: String,
    authority: String,
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    /// How many times, one after the other. The last answer counts.
    #[serde(default)]
    times: u32,
    /// It writes the body so many times, and only once the answer is there.
    #[serde(default)]
    late: u32,
    /// It does not wait for the answer.
    #[serde(default)]
    forgets: bool,
    /// It does not read the body of the answer.
    #[serde(default)]
    skips: bool,
}

impl Send {
    /// Status, headers and body, or the host's error.
    pub(crate) fn run(&self) -> String {
        let mut last = String::new();
        for _ in 0..self.times.max(1) {
            last = self.once().unwrap_or_else(|error| format!("refused: {error:?}"));
        }
        last
    }

    fn once(&self) -> Result<String, ErrorCode> {
        let other = |what: &str| ErrorCode::InternalError(Some(format!("{what} will not do")));
        let headers = Fields::new();
        for (name, value) in &self.headers {
            headers.append(name, value.as_bytes()).map_err(|_| other("a header"))?;
        }
        let request = OutgoingRequest::new(headers);
        let method = match self.method.as_str() {
            "GET" => Method::Get,
            "POST" => Method::Post,
            method => Method::Other(method.to_owned()),
        };
        request.set_method(&method).map_err(|()| other("the method"))?;
        let scheme = if self.scheme == "http" { Scheme::Http } else { Scheme::Https };
        request.set_scheme(Some(&scheme)).map_err(|()| other("the scheme"))?;
        request.set_authority(Some(&self.authority)).map_err(|()| other("the authority"))?;
        request.set_path_with_query(Some(&self.path)).map_err(|()| other("the path"))?;
        let body = request.body().map_err(|()| other("the body"))?;
        let options = RequestOptions::new();
        // An hour: the host must not wait so long.
        let _ = options.set_first_byte_timeout(Some(3_600_000_000_000));
        let answer = outgoing_handler::handle(request, Some(options))?;
        if self.late > 0 {
            answer.subscribe().block();
        }
        let stream = body.write().map_err(|()| other("the body"))?;
        for _ in 0..self.late.max(1) {
            for chunk in self.body.as_bytes().chunks(4_096) {
                stream.blocking_write_and_flush(chunk).map_err(|_| other("the body's stream"))?;
            }
        }
        drop(stream);
        OutgoingBody::finish(body, None)?;
        if self.forgets {
            std::mem::forget(answer);
            return Ok("forgotten".to_owned());
        }
        answer.subscribe().block();
        let response =
            answer.get().ok_or_else(|| other("waiting"))?.map_err(|()| other("the answer"))??;
        if self.skips {
            return Ok(response.status().to_string());
        }
        read(&response).map_err(|()| other("reading"))
    }
}

fn read(response: &IncomingResponse) -> Result<String, ()> {
    let mut all = format!("{}\n", response.status());
    for (name, value) in response.headers().entries() {
        all.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(&value)));
    }
    all.push('\n');
    let body = response.consume()?;
    let stream = body.stream()?;
    while let Ok(part) = stream.blocking_read(64 << 10) {
        all.push_str(&String::from_utf8_lossy(&part));
    }
    Ok(all)
}
