//! What a real server answered, for a native test that has no such server: a file of JSON Lines,
//! first a head with `of` (what was recorded, with its version) and `recorded` (the date), then one
//! exchange a line.
//!
//! ```no_run
//! use memhost_sdk::testing::recorded::Recording;
//!
//! let recording = Recording::serve(
//!     "tests/recorded/server.jsonl",
//!     "acme 1.2",
//!     "MEMHOST_RECORD_ACME",
//!     &[("x-api-key", "KEY")],
//!     &[],
//! );
//! // … what the provider does and what must come out …
//! recording.end();
//! ```

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::rc::Rc;

use serde_json::{Value, json};

use super::http::{Answer, Sent, serve};
use crate::http::Failure;

/// A recording that answers the requests of this thread, or one that is being made.
#[derive(Debug)]
pub struct Recording {
    file: String,
    of: String,
    lines: Rc<RefCell<VecDeque<Value>>>,
    is_made: bool,
}

impl Recording {
    /// From now on the recording in `file` answers the requests of this thread, in its order. A
    /// request that is not the next one of the recording panics. With an address such as
    /// `127.0.0.1:8000` in the environment `variable`, the server there answers, gets `headers` in
    /// place of the provider's, and its answers are kept. Members of a body whose name is one of
    /// `times` differ from run to run, and are not compared.
    ///
    /// # Panics
    /// If there is no such file, or if it is of something else than `of`.
    pub fn serve(
        file: &str,
        of: &str,
        variable: &str,
        headers: &[(&str, &str)],
        times: &'static [&'static str],
    ) -> Self {
        let made = std::env::var(variable).ok();
        let (is_made, lines) = (made.is_some(), Rc::new(RefCell::new(VecDeque::new())));
        let shared = Rc::clone(&lines);
        match made {
            Some(address) => {
                let headers: String =
                    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                serve(move |sent| {
                    let (status, body) = ask(&address, &headers, sent).map_err(unasked)?;
                    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
                    let line =
                        json!({"request": request(sent), "status": status, "answer": answer});
                    shared.borrow_mut().push_back(line);
                    Ok(Answer { status, headers: Vec::new(), body })
                });
            }
            None => {
                let text =
                    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
                let read = |line: &str| {
                    serde_json::from_str(line).unwrap_or_else(|error| panic!("{file}: {error}"))
                };
                shared.borrow_mut().extend(text.lines().map(read));
                let head: Value = shared.borrow_mut().pop_front().unwrap_or_default();
                assert_eq!(head["of"], of, "{file} is of something else; record it again");
                serve(move |sent| {
                    let next = shared.borrow_mut().pop_front();
                    let line = next.unwrap_or_else(|| panic!("nothing is recorded for {sent:?}"));
                    let timeless = |request: Value| without(times, request);
                    let recorded = timeless(line["request"].clone());
                    assert_eq!(
                        timeless(request(sent)),
                        recorded,
                        "something else is sent than was recorded"
                    );
                    let status =
                        line["status"].as_u64().and_then(|status| u16::try_from(status).ok());
                    Ok(Answer::json(status.unwrap_or_default(), line["answer"].clone()))
                });
            }
        }
        Self { file: file.to_owned(), of: of.to_owned(), lines, is_made }
    }

    /// Ends it: a recording that is being made is written, with the date of `MEMHOST_RECORD_DATE`.
    ///
    /// # Panics
    /// If a part of the recording was not asked for, or if the file cannot be written.
    pub fn end(self) {
        let lines = self.lines.borrow();
        if !self.is_made {
            assert!(lines.is_empty(), "{} requests of the recording were not sent", lines.len());
            return;
        }
        let date = std::env::var("MEMHOST_RECORD_DATE").unwrap_or_default();
        let head = json!({"of": self.of, "recorded": date, "by": "just vendors-record"});
        let text: String =
            std::iter::once(&head).chain(lines.iter()).map(|line| format!("{line}\n")).collect();
        std::fs::write(&self.file, text).unwrap_or_else(|error| panic!("{}: {error}", self.file));
    }
}

fn without(names: &[&str], mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            members.retain(|name, _| !names.contains(&name.as_str()));
            members.values_mut().for_each(|member| *member = without(names, member.take()));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| *item = without(names, item.take()));
        }
        _ => {}
    }
    value
}

fn request(sent: &Sent) -> Value {
    json!({"method": sent.method, "path": sent.path, "query": sent.query, "body": sent.body})
}

#[allow(clippy::needless_pass_by_value, reason = "the shape of map_err")]
fn unasked(error: Error) -> Failure {
    Failure::NotSent(error.to_string())
}

/// The status and body that a server answers. It must send bodies whole.
fn ask(address: &str, headers: &str, sent: &Sent) -> Result<(u16, Vec<u8>), Error> {
    let mut stream = TcpStream::connect(address)?;
    let body = if sent.body.is_null() { String::new() } else { sent.body.to_string() };
    let query = if sent.query.is_empty() { String::new() } else { format!("?{}", sent.query) };
    let head = format!(
        "{} {}{query} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}",
        sent.method, sent.path
    );
    write!(
        stream,
        "{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let odd =
        || Error::new(ErrorKind::InvalidData, "the answer is not one of HTTP/1.1 with its length");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(odd)?;
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(odd)?;
    if head.contains("transfer-encoding") {
        Err(odd())
    } else {
        Ok((status, answer[end + 4..].to_vec()))
    }
}
