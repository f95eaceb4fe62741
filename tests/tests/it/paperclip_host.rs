//! A host that another program starts: bound to its standard input, with a token of its own and an
//! address that it is told.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use memhost_server::Method;
use memhost_tests::{TestHost, cache_dir};
use serde_json::Value;

use super::support::Api;

const TOKEN: &str = "a-fresh-token-of-this-start";
const PAGE: &str = "http://127.0.0.1:3197";

/// A host as a worker starts it.
struct Started {
    process: Child,
    input: Option<ChildStdin>,
    ready: Value,
    /// What came on standard output after the first line.
    rest: std::thread::JoinHandle<String>,
}

/// A host that belongs to who starts it.
fn serve(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memhost-cli"));
    command
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--exit-with-stdin",
            "--token-from-stdin",
            "--data-dir",
        ])
        .arg(data)
        .env("MEMHOST_CACHE_DIR", cache_dir())
        .env_remove("MEMHOST_OPERATOR_TOKEN")
        .stdin(Stdio::piped());
    command
}

impl Started {
    fn begin(data: &Path, more: &[&str]) -> Self {
        let mut process = serve(data)
            .args(["--control-listen", "127.0.0.1:0", "--print-address", "json"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = process.stdin.take().unwrap();
        writeln!(input, "{TOKEN}").unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let ready =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("the first line is {line:?}"));
        let rest = std::thread::spawn(move || std::io::read_to_string(output).unwrap());
        Self { process, input: Some(input), ready, rest }
    }

    fn call(&self, plane: &str, path: &str, token: &str) -> (u16, String, String) {
        let config = ureq::Agent::config_builder().http_status_as_error(false);
        let agent: ureq::Agent =
            config.timeout_global(Some(Duration::from_secs(30))).build().into();
        let request = agent.get(format!("{}{path}", self.ready[plane].as_str().unwrap()));
        let mut answer = request.header("authorization", format!("Bearer {token}")).call().unwrap();
        let policy = answer.headers().get("content-security-policy");
        let policy = policy.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        (answer.status().as_u16(), policy, answer.body_mut().read_to_string().unwrap())
    }

    /// Closes the input, and answers how the process ended and what else it printed.
    fn close(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let until = Instant::now() + Duration::from_secs(20);
        let ended = loop {
            match self.process.try_wait().unwrap() {
                Some(ended) => break ended,
                None if Instant::now() > until => {
                    self.process.kill().unwrap();
                    panic!("the host did not end when its input was closed");
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        (ended.code(), self.rest.join().unwrap())
    }
}

#[test]
fn a_host_ends_with_its_input_and_says_where_it_listens() {
    let directory = tempfile::tempdir().unwrap();
    let host = Started::begin(directory.path(), &["--frame-ancestor", PAGE]);
    assert_eq!(host.ready["pid"], host.process.id());
    assert_ne!(host.ready["runtime"], host.ready["control"]);
    // The token of the input is the operator's, and nobody else's is.
    assert_eq!(host.call("control", "/control/v1/companies", TOKEN).0, 200);
    assert_eq!(host.call("control", "/control/v1/companies", "another-token-of-nobody").0, 401);
    // A page of this origin may show the explorer.
    let (status, policy, _) = host.call("control", "/sign-in", "");
    assert!(
        status == 200 && policy.ends_with(&format!("frame-ancestors {PAGE}")),
        "{status} {policy}"
    );
    // The store's id needs no token and survives a restart.
    let store = host.ready["storeId"].clone();
    for plane in ["runtime", "control"] {
        let (status, _, text) = host.call(plane, "/info", "");
        let info: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (status, &info["storeId"], &info["version"]),
            (200, &store, &host.ready["version"]),
            "{plane}"
        );
    }
    assert_eq!(host.close(), (Some(0), String::new()));

    let again = Started::begin(directory.path(), &[]);
    assert_eq!(again.ready["storeId"], store);
    let (_, policy, _) = again.call("control", "/sign-in", "");
    assert!(policy.ends_with("frame-ancestors 'none'"), "{policy}");
    assert_eq!(again.close(), (Some(0), String::new()));
    let other = tempfile::tempdir().unwrap();
    let other = Started::begin(other.path(), &[]);
    assert_ne!(other.ready["storeId"], store, "another data directory is another store");
    assert_eq!(other.close(), (Some(0), String::new()));
}

#[test]
fn an_input_that_is_closed_early_ends_the_host_too_and_one_without_a_token_refuses_it() {
    let directory = tempfile::tempdir().unwrap();
    let start = |input: &[u8]| {
        let mut host =
            serve(directory.path()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        host.stdin.take().unwrap().write_all(input).unwrap();
        let ended = host.wait_with_output().unwrap();
        (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
    };
    assert_eq!(
        start(format!("{TOKEN}\n").as_bytes()).0,
        Some(0),
        "the input was closed before the host listened"
    );
    for wrong in [
        &b""[..],
        b"no end of line",
        b"short\n",
        b"long-enough-but-\x07\n",
        b"long-enough-but-\xc3\xa9\n",
    ] {
        let (code, said) = start(wrong);
        assert!(code != Some(0) && said.contains("--token-from-stdin"), "{code:?} {said}");
        assert!(!said.contains("MEMHOST_OPERATOR_TOKEN"), "{said}");
    }
}

#[test]
fn a_host_that_is_told_nothing_ends_and_no_wildcard_frames_the_explorer() {
    let directory = tempfile::tempdir().unwrap();
    let mut host = Command::new(env!("CARGO_BIN_EXE_memhost-cli"))
        .args(["serve", "--listen", "127.0.0.1:0", "--token-from-stdin", "--data-dir"])
        .arg(directory.path())
        .env_remove("MEMHOST_OPERATOR_TOKEN")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It stays open.
    let input = host.stdin.take();
    let until = Instant::now() + Duration::from_secs(10);
    let ended = loop {
        match host.try_wait().unwrap() {
            Some(ended) => break ended.code(),
            None if Instant::now() > until => {
                host.kill().unwrap();
                panic!("the host waits for a token without an end");
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    drop(input);
    let said = std::io::read_to_string(host.stderr.take().unwrap()).unwrap();
    assert!(ended == Some(2) && said.contains("--token-from-stdin"), "{ended:?} {said}");
    let wildcard = Command::new(env!("CARGO_BIN_EXE_memhost-cli"))
        .args(["serve", "--frame-ancestor", "https://*.example.com", "--data-dir"])
        .arg(directory.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(wildcard.stderr).unwrap();
    assert!(
        wildcard.status.code() == Some(2) && said.contains("stands for many origins"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idempotency_key_holds_over_a_restart() {
    let mut host = TestHost::new(&[]).await.unwrap();
    let body = serde_json::json!({
        "scope": {"companyId": "acme"}, "records": [{"text": "once"}],
    });
    let write = async |host: &TestHost| {
        let path = "/runtime/v1/companies/acme/records";
        Api::new(host)
            .send(Method::Post, path, Some(body.to_string()), &[("idempotency-key", "k1")])
            .await
    };
    let first = write(&host).await;
    assert_eq!(first.status, 200, "{}", first.text);
    host.stop().await;
    host.start().await.unwrap();
    let second = write(&host).await;
    assert_eq!((second.status, &second.json), (200, &first.json));
    assert_eq!(second.headers["idempotency-replayed"], "true");
    assert_eq!(host.query("acme", "once").await.unwrap().len(), 1);
}
