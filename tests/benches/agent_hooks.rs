//! The time of a hook, from the start of the program to its end: with a host, without one, and
//! beside `memhost --version`.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use memhost_server::{AdminToken, router};
use memhost_tests::measure::{Timings, ratio, show, table};
use memhost_tests::{TestHost, caller, upsert};

const TOKEN: &str = "a-token-of-sixteen-characters-or-more";
const COUNT: usize = 200;

/// Serves on two separate threads.
fn listen(host: &TestHost) -> SocketAddr {
    let router = router(
        Arc::clone(host.service()),
        AdminToken::known(TOKEN).unwrap(),
        &memhost_server::ServerOptions::default(),
    );
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || runtime.block_on(async { axum::serve(listener, router).await }));
    address
}

fn run(home: &Path, url: &str, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_memhost-cli"))
        .args(arguments)
        .env_clear()
        .env("HOME", home)
        .env("MEMHOST_URL", url)
        .env("MEMHOST_TOKEN", TOKEN)
        .env("MEMHOST_COMPANY", "acme")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn measure(mut call: impl FnMut(usize)) -> Timings {
    let mut all = Vec::with_capacity(COUNT);
    for n in 0..COUNT + COUNT / 10 {
        let started = Instant::now();
        call(n);
        if n >= COUNT / 10 {
            all.push(started.elapsed());
        }
    }
    Timings::new(all)
}

fn payload(event: &str, home: &Path, n: usize) -> String {
    let fields = match event {
        "SessionStart" => r#""source":"startup""#.to_owned(),
        _ => format!(
            r#""tool_name":"Bash","tool_use_id":"toolu_{n}","tool_input":{{"command":"ls"}}"#
        ),
    };
    let home = home.display();
    format!(
        r#"{{"session_id":"s{n}","transcript_path":"{home}/t.jsonl","cwd":"{home}","hook_event_name":"{event}",{fields}}}"#
    )
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (host, home) = runtime.block_on(async {
        let host = TestHost::new(&[]).await.unwrap();
        for n in 0..1_000 {
            let text = format!("decision {n}: deploys of part {n} are open on day {}", n % 7);
            host.service().operations().upsert(&caller(), upsert("acme", &[&text])).await.unwrap();
        }
        (host, tempfile::tempdir().unwrap())
    });
    let up = format!("http://{}", listen(&host));
    let down =
        format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let home = home.path();
    let version = measure(|_| drop(run(home, &up, &["--version"], "")));
    let hook = |url: &str, event: &str| {
        measure(|n| {
            let printed = run(home, url, &["agent-hooks", "claude"], &payload(event, home, n));
            assert_eq!(printed.contains("additionalContext"), event == "SessionStart" && url == up);
        })
    };
    let rows = [
        ("`memhost --version` (floor)", version.clone()),
        ("host up: a tool is about to run", hook(&up, "PreToolUse")),
        ("host up: a session starts, memory is recalled", hook(&up, "SessionStart")),
        ("host down: a tool is about to run", hook(&down, "PreToolUse")),
        ("host down: a session starts", hook(&down, "SessionStart")),
    ];
    let rows = rows.map(|(name, timings)| {
        vec![
            name.to_owned(),
            show(timings.p50()),
            show(timings.p99()),
            ratio(timings.p50(), version.p50()),
        ]
    });
    table(
        "A hook, from the start of the program to its end",
        &["what", "p50", "p99", "over the floor"],
        &rows,
    );
}
