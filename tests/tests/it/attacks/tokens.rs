//! Tokens that are none: those of other systems, those that are nearly right, and those in a wrong
//! place.

use super::Attack;
use super::harness::{Host, OPERATOR};

pub(super) const ATTACKS: &[Attack] =
    &[Attack { name: "tokens that are none", threads: 2, rounds: 40, run: tokens }];

/// JSON Web Tokens: without a signature, with one of `secret`, of a key in a file, over, not yet
/// begun. The host knows none of them.
const FOREIGN: [&str; 5] = [
    "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJyb2xlIjoib3BlcmF0b3IifQ.",
    "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoib3BlcmF0b3IifQ.NuWJd-A3SLZDXz_QW9MN-nxJWS45Ksa3ktg1srWoJXQ",
    "eyJhbGciOiJIUzI1NiIsImtpZCI6Ii4uLy4uL2Rldi9udWxsIn0.eyJyb2xlIjoib3BlcmF0b3IifQ.AAAA",
    "eyJhbGciOiJSUzI1NiJ9.eyJyb2xlIjoib3BlcmF0b3IiLCJleHAiOjF9.AAAA",
    "eyJhbGciOiJSUzI1NiJ9.eyJyb2xlIjoib3BlcmF0b3IiLCJuYmYiOjk5OTk5OTk5OTk5fQ.AAAA",
];

fn tokens(host: &Host, round: u64) -> Result<(), String> {
    let near = [
        String::new(),
        OPERATOR.to_uppercase(),
        OPERATOR[..OPERATOR.len() - 1].to_owned(),
        format!("{OPERATOR}x"),
        format!("{OPERATOR}%00"),
        format!("{OPERATOR},{}", host.agent),
        OPERATOR.replace("mh_", "%6dh_"),
        format!("{}\u{e9}", &OPERATOR[..20]),
        "*".to_owned(),
        "A".repeat(60_000),
        "A".repeat(4 << 20),
    ];
    let operator = format!("Bearer {OPERATOR}");
    let basic = format!("Basic {OPERATOR}");
    let cookie = format!("memhost={OPERATOR}; memhost_session={OPERATOR}; token={OPERATOR}");
    let elsewhere: [&[(&str, &str)]; 5] = [
        // The first authorization is the one that counts, or none is.
        &[("authorization", &operator)],
        &[("authorization", &basic)],
        &[("cookie", &cookie)],
        &[
            ("proxy-authorization", &operator),
            ("x-authorization", &operator),
            ("x-api-key", OPERATOR),
        ],
        &[
            ("x-forwarded-user", "operator"),
            ("x-remote-user", "operator"),
            ("x-original-url", "/healthz"),
        ],
    ];
    let path = "/control/v1/companies/neighbour/operations";
    let number =
        usize::try_from(round).unwrap_or(0) % (FOREIGN.len() + near.len() + elsewhere.len() + 1);
    let (shown, answer) = match number.checked_sub(FOREIGN.len()) {
        None => (FOREIGN[number], host.send("GET", path, FOREIGN[number], &[], b"")?),
        Some(number) if number < near.len() => {
            (near[number].as_str(), host.send("GET", path, &near[number], &[], b"")?)
        }
        Some(number) if number < near.len() + elsewhere.len() => {
            let headers = elsewhere[number - near.len()];
            (headers[0].0, host.send("GET", path, "none", headers, b"")?)
        }
        Some(_) => {
            let path = format!(
                "{path}?token={OPERATOR}&access_token={OPERATOR}&authorization=Bearer%20{OPERATOR}"
            );
            ("the address", host.send("GET", &path, "none", &[], b"")?)
        }
    };
    match answer {
        (0 | 400 | 401 | 413 | 431, text) if !text.contains("\"items\"") => Ok(()),
        (status, text) => Err(format!("{shown:.80}: {status} {text:.200}")),
    }
}
