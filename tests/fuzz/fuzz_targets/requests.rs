//! Requests to all routes, MCP among them: the first line is method and path, the rest the body.
//! Whatever it is, the host answers, and never with a fault of its own.

#![no_main]

use std::cell::RefCell;
use std::time::Duration;

use libfuzzer_sys::{Corpus, fuzz_target};
use memhost_server::{InProcess, Method, Request};
use memhost_tests::TestHost;
use memhost_types::BindingLimits;
use tokio::runtime::Runtime;

/// A host has seen enough after so many requests: what they left behind makes it slow.
const REQUESTS: u32 = 5_000;

struct Fuzzed {
    runtime: Runtime,
    host: TestHost,
    routes: InProcess,
    left: u32,
}

async fn new_host() -> TestHost {
    let host = TestHost::new(&["extracts"]).await.unwrap();
    host.bind("acme", "extracts", BindingLimits::default()).await.unwrap();
    host.write("acme", "a fact").await.unwrap();
    host
}

impl Fuzzed {
    fn new() -> Self {
        let runtime = Runtime::new().unwrap();
        let host = runtime.block_on(new_host());
        let routes = host.in_process();
        Self { runtime, host, routes, left: REQUESTS }
    }
}

thread_local! {
    static FUZZED: RefCell<Fuzzed> = RefCell::new(Fuzzed::new());
}

fn read(bytes: &[u8]) -> Option<Request> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once('\n').unwrap_or((text, ""));
    let (method, path) = head.split_once(' ')?;
    let method = match method {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        _ => return None,
    };
    let headers = vec![
        ("accept", "application/json, text/event-stream".to_owned()),
        ("memhost-company-id", "acme".to_owned()),
    ];
    Some(Request { method, path: path.to_owned(), body: Some(body.to_owned()), headers })
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Some(request) = read(bytes) else { return Corpus::Reject };
    FUZZED.with_borrow_mut(|fuzzed| {
        if fuzzed.left == 0 {
            fuzzed.host = fuzzed.runtime.block_on(new_host());
            (fuzzed.routes, fuzzed.left) = (fuzzed.host.in_process(), REQUESTS);
        }
        fuzzed.left -= 1;
        let what = format!("{:?} {}", request.method, request.path);
        // Streams of events have no end.
        let may_go_on = request.method == Method::Get;
        let patience = Duration::from_secs(if may_go_on { 1 } else { 60 });
        let answer = fuzzed.runtime.block_on(async {
            tokio::time::timeout(patience, fuzzed.routes.respond(request)).await
        });
        match answer {
            Ok(answer) => {
                let (status, body) =
                    (answer.status().as_u16(), String::from_utf8_lossy(answer.body()));
                assert!(status != 500, "{what}: {status} {body}");
                if what.contains("erase") && status < 300 {
                    // The company does not come back.
                    fuzzed.left = 0;
                }
            }
            Err(_) => assert!(may_go_on, "{what}: no answer"),
        }
        Corpus::Keep
    })
});
