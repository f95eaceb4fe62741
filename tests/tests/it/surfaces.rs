//! Addresses of the host, and which routes each one serves.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use memhost_server::{Address, Endpoint, Method, Surfaces};
use memhost_tests::{Serving, TestHost};
use memhost_types::BindingLimits;

use super::support::Api;

const TOKEN: &str = "a token of the test";

/// The status with which a socket answers.
fn ask(socket: &Path, path: &str) -> u16 {
    let mut stream = UnixStream::connect(socket).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\nconnection: \
         close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planes_have_their_own_addresses_and_stale_sockets_are_replaced() {
    let host = TestHost::new(&[]).await.unwrap();
    let [runtime, control] =
        ["runtime", "control"].map(|name| host.directory().join(format!("{name}.sock")));
    // A killed host leaves its socket.
    drop(std::os::unix::net::UnixListener::bind(&runtime).unwrap());
    let bind = |path: &Path, surfaces| {
        let address = Address::Unix(path.to_owned());
        async move { Endpoint::bind(&address, surfaces).await }
    };
    let endpoints = vec![
        bind(&runtime, Surfaces::Runtime).await.unwrap(),
        bind(&control, Surfaces::Control).await.unwrap(),
    ];
    assert_eq!(std::fs::metadata(&runtime).unwrap().permissions().mode() & 0o777, 0o600);
    let serving = Serving::at(endpoints, &host, TOKEN).unwrap();
    let statuses = {
        let (runtime, control) = (runtime.clone(), control.clone());
        tokio::task::spawn_blocking(move || {
            let paths = [
                "/healthz",
                "/runtime/v1/companies/acme/query",
                "/control/v1/plugins",
                "/metrics",
                "/mcp",
            ];
            paths.map(|path| (ask(&runtime, path), ask(&control, path)))
        })
    };
    assert_eq!(
        statuses.await.unwrap(),
        [(200, 200), (405, 404), (404, 200), (404, 200), (405, 404)]
    );
    let error = bind(&runtime, Surfaces::All).await.err().unwrap().to_string();
    assert!(error.contains("runtime.sock"), "a socket that is in use is not replaced: {error}");
    serving.stop().await.unwrap();
    assert!(!runtime.exists() && !control.exists());
}

/// A token is shown once: a host that cannot listen makes none.
#[test]
fn a_host_that_cannot_listen_makes_no_token() {
    let directory = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_memhost-cli"))
        .args(["serve", "--listen", &address, "--data-dir", "data"])
        .current_dir(directory.path())
        .env("HOME", directory.path())
        .env("MEMHOST_CACHE_DIR", memhost_tests::cache_dir())
        .env_remove("MEMHOST_OPERATOR_TOKEN")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        !done.status.success() && said.contains("cannot listen on") && done.stdout.is_empty(),
        "{done:?}"
    );
    assert!(!directory.path().join("data/admin-token").exists());
}

#[test]
fn a_wrong_address_is_refused_with_an_example() {
    assert_eq!("127.0.0.1:7600".parse::<Address>().unwrap().to_string(), "http://127.0.0.1:7600");
    assert_eq!("unix:/run/m.sock".parse::<Address>().unwrap().to_string(), "unix:/run/m.sock");
    for wrong in ["localhost", "unix:", "7600", "http://127.0.0.1:1"] {
        let error = wrong.parse::<Address>().unwrap_err();
        assert!(error.contains("unix:"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_says_how_many_calls_are_left() {
    let host = TestHost::new(&["echo"]).await.unwrap();
    let limits = BindingLimits { calls_per_second: 1, ..BindingLimits::default() };
    host.bind("acme", "echo", limits).await.unwrap();
    let body = r#"{"scope":{"companyId":"acme"},"query":"x"}"#.to_owned();
    let path = "/runtime/v1/companies/acme/query";
    let answer = Api::new(&host).send(Method::Post, path, Some(body), &[]).await;
    assert_eq!(answer.headers["ratelimit-policy"], "\"callsPerSecond\";q=1;w=1");
    assert_eq!(answer.headers["ratelimit"], "\"callsPerSecond\";r=0;t=1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_answers_are_compressed_if_the_client_accepts_it() {
    let host = TestHost::new(&["echo"]).await.unwrap();
    let api = Api::new(&host);
    let ask = |headers: &'static [(&'static str, &'static str)], path: &'static str| {
        let api = api.with_same();
        async move { api.send(Method::Get, path, None, headers).await.headers }
    };
    const PACKED: &[(&str, &str)] = &[("accept-encoding", "gzip")];
    assert_eq!(ask(PACKED, "/control/v1/plugins").await["content-encoding"], "gzip");
    let plain = ask(&[], "/control/v1/plugins").await;
    assert!(!plain.contains_key("content-encoding"));
    for nothing in ["identity;q=0", "*;q=0", "br, *;q=0", "gzip;q=0, identity;q=0"] {
        let headers: &[(&str, &str)] = &[("accept-encoding", nothing)];
        let answer = api.send(Method::Get, "/control/v1/plugins", None, headers).await;
        assert_eq!(answer.status, 200, "{nothing}: {}", answer.text);
    }
    // A cache must not give the one to a client that takes the other.
    assert_eq!(plain["vary"], "accept-encoding");
    assert!(
        !ask(PACKED, "/healthz").await.contains_key("content-encoding"),
        "short answers are not compressed"
    );
}
