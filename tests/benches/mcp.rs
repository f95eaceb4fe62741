//! What MCP costs on top of the HTTP call that it makes: at `/mcp`, and through the program on
//! standard input and output.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

// The program's allocator comes with it.
use memhost_cli as _;

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use memhost_core::Audit;
use memhost_server::{AdminToken, router};
use memhost_tests::measure::{Timings, ratio, show, table};
use memhost_tests::{TestHost, figures};
use memhost_types::BindingLimits;

const TOKEN: &str = "a-token-of-sixteen-characters-or-more";
const COUNT: usize = 3_000;
const QUERY: &str = r#"{"scope":{"companyId":"acme"},"query":"hello"}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":{"query":"hello"}}}"#;

fn listen(router: Router) -> SocketAddr {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || runtime.block_on(async { axum::serve(listener, router).await }));
    address
}

/// One after the other, after a tenth as many that are not counted.
fn time(mut call: impl FnMut()) -> Timings {
    let mut all = Vec::with_capacity(COUNT);
    for n in 0..COUNT + COUNT / 10 {
        let started = Instant::now();
        call();
        if n >= COUNT / 10 {
            all.push(started.elapsed());
        }
    }
    Timings::new(all)
}

fn over_http(address: SocketAddr, path: &str, body: &'static str) -> Timings {
    let agent = ureq::Agent::new_with_defaults();
    let url = format!("http://{address}{path}");
    time(|| {
        let request = agent.post(&url).header("authorization", format!("Bearer {TOKEN}"));
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("memhost-company-id", "acme");
        let mut response = request.header("content-type", "application/json").send(body).unwrap();
        let answer = response.body_mut().read_to_vec().unwrap();
        assert!(answer.windows(8).any(|bytes| bytes == b"\"score\":"));
    })
}

fn over_stdio(address: SocketAddr) -> Timings {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memhost-cli"));
    command
        .args(["mcp", "--company", "acme", "--url", &format!("http://{address}")])
        .env("MEMHOST_TOKEN", TOKEN);
    let mut bridge = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = bridge.stdin.take().unwrap();
    let mut output = BufReader::new(bridge.stdout.take().unwrap());
    let call = format!("{CALL}\n");
    let timings = time(|| {
        input.write_all(call.as_bytes()).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(line.contains("\"score\":"), "{line}");
    });
    drop(input);
    bridge.wait().unwrap();
    timings
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let host = runtime.block_on(async {
        let host =
            TestHost::with(&["echo"], |options| options.audit = Audit::Relaxed).await.unwrap();
        host.bind("acme", "echo", BindingLimits::default()).await.unwrap();
        host
    });
    let address = listen(router(
        Arc::clone(host.service()),
        AdminToken::known(TOKEN).unwrap(),
        &memhost_server::ServerOptions::default(),
    ));
    let mut rounds: Vec<[Timings; 3]> = (0..5)
        .map(|_| {
            let plain = over_http(address, "/runtime/v1/companies/acme/query", QUERY);
            [plain, over_http(address, "/mcp", CALL), over_stdio(address)]
        })
        .collect();
    rounds.sort_by_key(|[plain, _, stdio]| stdio.p50().saturating_sub(plain.p50()));
    let [plain, mcp, stdio] = &rounds[2];
    figures::cost("MCP search over the HTTP call", mcp.p50(), plain.p50());
    figures::cost("`memhost mcp` over the HTTP call", stdio.p50(), plain.p50());
    let row = |name: &str, timings: &Timings| {
        let beyond = |of: fn(&Timings) -> Duration| show(of(timings).saturating_sub(of(plain)));
        vec![
            name.to_owned(),
            show(timings.p50()),
            show(timings.p99()),
            ratio(timings.p50(), plain.p50()),
            beyond(Timings::p50),
            beyond(Timings::p99),
        ]
    };
    table(
        "A warm search by MCP, one caller on loopback, audit relaxed",
        &["what", "p50", "p99", "over the HTTP call", "beyond it (p50)", "beyond it (p99)"],
        &[
            row("query over HTTP (floor)", plain),
            row("memory_search at /mcp", mcp),
            row("memory_search over `memhost mcp`", stdio),
        ],
    );
    let beyond = stdio.p50().saturating_sub(plain.p50());
    assert!(
        beyond <= Duration::from_millis(2),
        "a search over stdio costs {} beyond the HTTP call",
        show(beyond)
    );
}
