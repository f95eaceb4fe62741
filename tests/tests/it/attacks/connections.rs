//! Connections that stay, requests that are not quite HTTP, and odd headers.

use std::io::Write;
use std::sync::PoisonError;

use super::Attack;
use super::bodies::survived;
use super::harness::Host;

pub(super) const ATTACKS: &[Attack] = &[
    Attack { name: "half-sent requests", threads: 4, rounds: 40, run: half_open },
    Attack { name: "bodies that do not come", threads: 4, rounds: 20, run: half_body },
    Attack { name: "streams that stay", threads: 2, rounds: 32, run: streams },
    Attack { name: "odd requests", threads: 2, rounds: 30, run: odd_requests },
    Attack { name: "odd headers", threads: 2, rounds: 22, run: odd_headers },
];

/// Connections that are held at a time, in the whole form.
const MOST: usize = 1_100;

/// Keeps a connection open. A host that closes it, or accepts no more, is right.
fn hold(host: &Host, bytes: &[u8]) -> Result<(), String> {
    if host.held.lock().unwrap_or_else(PoisonError::into_inner).len() >= MOST {
        std::thread::sleep(std::time::Duration::from_millis(5));
        return Ok(());
    }
    let Ok(mut stream) = host.connect() else { return Ok(()) };
    if stream.write_all(bytes).is_ok() {
        host.held.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }
    Ok(())
}

fn half_open(host: &Host, round: u64) -> Result<(), String> {
    let begun = ["", "P", "GET /healthz HTTP/1.1\r\n", "GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: "];
    hold(host, begun[usize::try_from(round % 4).unwrap_or(0)].as_bytes())
}

fn half_body(host: &Host, _: u64) -> Result<(), String> {
    let head = format!(
        "POST /runtime/v1/companies/evil/query HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 8000000\r\n\r\n{{\"a\":\"",
        host.agent
    );
    hold(host, head.as_bytes())
}

fn streams(host: &Host, _: u64) -> Result<(), String> {
    let head = "GET /control/v1/companies/evil/stream HTTP/1.1\r\nhost: x\r\n\
                authorization: Bearer mh_operator_of_the_attacked_host\r\n\r\n";
    hold(host, head.as_bytes())
}

/// Whatever the host answers, it must not be what was asked for in the hidden second request.
fn odd_requests(host: &Host, round: u64) -> Result<(), String> {
    let token = &host.agent;
    let body = r#"{"scope":{"companyId":"evil"},"query":"x"}"#;
    let post = "POST /runtime/v1/companies/evil/query HTTP/1.1\r\nhost: x\r\ncontent-type: \
                application/json\r\n";
    let hidden = "GET /control/v1/companies/neighbour/operations HTTP/1.1\r\nhost: x\r\n\r\n";
    let requests = [
        format!("{post}authorization: Bearer {token}\r\ncontent-length: -1\r\n\r\n{body}"),
        format!(
            "{post}authorization: Bearer {token}\r\ncontent-length: 5\r\ncontent-length: \
             50\r\n\r\n{body}"
        ),
        format!(
            "{post}authorization: Bearer {token}\r\ncontent-length: 4\r\ntransfer-encoding: \
             chunked\r\n\r\n0\r\n\r\n{hidden}"
        ),
        format!(
            "{post}authorization: Bearer {token}\r\ntransfer-encoding: \
             chunked\r\n\r\nffffffffffffffff1\r\n"
        ),
        format!(
            "{post}authorization: Bearer {token}\r\ntransfer-encoding: gzip, \
             chunked\r\n\r\n0\r\n\r\n"
        ),
        "GET /healthz HTTP/9.9\r\n\r\n".to_owned(),
        "GET http://169.254.169.254/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nhost: x\r\nhost: y\r\nconnection: close\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\0\0\0\0\0\r\n\r\n".to_owned(),
        format!("GET /{} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "a".repeat(300_000)),
        format!(
            "{} /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
            "A".repeat(100_000)
        ),
        "CONNECT 10.0.0.1:80 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(),
        "TRACE /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nhost: x\r\nx: a\r\n b\r\nconnection: close\r\n\r\n".to_owned(),
    ];
    let number = usize::try_from(round).unwrap_or(0) % requests.len();
    // Nothing more comes from here: the host must not wait for it longer than for any other caller.
    let mut stream = host.connect()?;
    let _ = stream.write_all(requests[number].as_bytes());
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
    let answer = String::from_utf8_lossy(&answer);
    match answer.contains("a fact of neighbour") || answer.contains("HTTP/1.1 500") {
        true => Err(format!("request {number} is answered {answer}")),
        false => Ok(()),
    }
}

fn odd_headers(host: &Host, round: u64) -> Result<(), String> {
    let long = "x".repeat(60_000);
    let many: Vec<(String, String)> = (0..90).map(|n| (format!("x-{n}"), "1".to_owned())).collect();
    let many: Vec<(&str, &str)> =
        many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let json = ("content-type", "application/json");
    let headers: [&[(&str, &str)]; 11] = [
        &[json, ("authorization", "Bearer mh_operator_of_the_attacked_host")],
        &[json, ("x-long", &long)],
        &[json, ("idempotency-key", &long)],
        &[json, ("content-type", "text/html")],
        &[("content-type", "application/json; charset=utf-7")],
        &[json, ("accept", &long)],
        &[json, ("origin", "https://attacker.example")],
        &[json, ("x-forwarded-for", "127.0.0.1"), ("x-forwarded-host", "attacker.example")],
        &[json, ("if-match", "\"\u{1f600}\"")],
        &[
            json,
            ("traceparent", "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-ff"),
            ("tracestate", &long),
        ],
        &many,
    ];
    let chosen = headers[usize::try_from(round).unwrap_or(0) % headers.len()];
    let body = r#"{"scope":{"companyId":"neighbour"},"query":"fact"}"#;
    let path = "/runtime/v1/companies/neighbour/query";
    // The first authorization is the agent's, which may not ask for the neighbour.
    match host.send("POST", path, &host.agent, chosen, body.as_bytes())? {
        (_, text) if text.contains("a fact of neighbour") => {
            Err(format!("{chosen:?} reaches the neighbour"))
        }
        answer => survived(&format!("{chosen:.40?}"), Ok(answer)).or_else(|error| {
            match error.contains(": 0 ") {
                // Closing the connection is an answer, too.
                true => Ok(()),
                false => Err(error),
            }
        }),
    }
}
