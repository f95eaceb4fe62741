//! The explorer and the clients of a host that stands behind a proxy.

use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::json;

use super::cli::run;
use super::kept_connections::{certified, converse};
use super::support::Api;
use super::ui_pages::{csrf, encode, set_cookie};

/// nginx with nothing but `proxy_pass` asks for the host by its own address, so that the browser's
/// `Origin` names another one than `Host`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_signs_in_behind_a_proxy_that_replaces_the_host() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let made = json!({"name": "op", "role": "operator"});
    let made = api.post("/control/v1/tokens", &made).await.fine();
    let token = made["value"].as_str().unwrap();
    let anybody = api.with("nobody's");
    let page = anybody.send(Method::Get, "/sign-in", None, &[]).await;
    let tie = set_cookie(&page, "memhost_sign_in");
    let sign_in = async |headers: &[(&'static str, &str)]| {
        let body = encode(&[("csrf", &csrf(&page.text)), ("token", token)]);
        let own = [("cookie", tie.as_str()), ("host", "127.0.0.1:7600")];
        let headers = [&own[..], headers].concat();
        anybody.send(Method::Post, "/sign-in", Some(body), &headers).await
    };
    // Over TLS the browser says itself that the form is of the same site.
    let outside = ("origin", "https://memory.example");
    let answer = sign_in(&[outside, ("sec-fetch-site", "same-origin")]).await;
    assert_eq!(answer.status, 303, "{}", answer.text);
    let cookies = answer.headers.get_all("set-cookie").iter();
    let mut cookies = cookies.map(|cookie| cookie.to_str().unwrap());
    let session = cookies.find(|cookie| cookie.starts_with("memhost_session=")).unwrap();
    assert!(session.contains("Secure"), "{session}");
    // Without TLS it does not: the answer names the header that is missing.
    let outside = ("origin", "http://memory.example");
    let answer = sign_in(&[outside]).await;
    assert_eq!(answer.status, 403);
    for said in ["memory.example", "127.0.0.1:7600", "X-Forwarded-Host", "proxy_set_header"] {
        assert!(answer.text.contains(said), "{said} in {}", answer.text);
    }
    assert_eq!(sign_in(&[outside, ("x-forwarded-host", "memory.example")]).await.status, 303);
    // Another site is another site.
    let evil = ("origin", "https://evil.example");
    assert_eq!(sign_in(&[evil, ("sec-fetch-site", "cross-site")]).await.status, 403);
    assert_eq!(sign_in(&[evil, ("x-forwarded-host", "memory.example")]).await.status, 403);
}

/// A proxy with TLS whose certificate is written to `roots`. Answers its address, and keeps the
/// first lines of the requests.
fn proxy(roots: &Path) -> (String, Arc<Mutex<Vec<String>>>) {
    let (config, listener) = (certified(roots), TcpListener::bind("127.0.0.1:0").unwrap());
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let (tls, kept) = (rustls::StreamOwned::new(connection, stream), Arc::clone(&kept));
            std::thread::spawn(move || {
                converse(tls, |head, _| {
                    kept.lock().unwrap().push(head.lines().next().unwrap().to_owned());
                    Some(json!({"items": ["acme"]}).to_string())
                })
            });
        }
    });
    (url, seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_and_hooks_trust_the_certificate_authority_that_they_are_given() {
    let home = tempfile::tempdir().unwrap();
    let roots = home.path().join("roots.pem");
    let (url, seen) = proxy(&roots);
    let roots = roots.to_str().unwrap();
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let list = |more: &str| words(&format!("company list --url {url} --token t{more}"));
    let done = run(home.path(), &[], &list(""), "").await;
    assert_eq!(done.code, 5, "no well-known authority has signed it: {}", done.err);
    let done = run(home.path(), &[], &list(&format!(" --ca {roots}")), "").await;
    assert!(done.code == 0 && done.out.contains("acme"), "{}", done.err);
    let done = run(home.path(), &[("MEMHOST_CA", roots)], &list(""), "").await;
    assert_eq!(done.code, 0, "{}", done.err);
    std::fs::write(home.path().join("none.pem"), "nothing").unwrap();
    for wrong in ["none.pem", "missing.pem"] {
        let done = run(home.path(), &[], &list(&format!(" --ca {wrong}")), "").await;
        assert!(done.code == 2 && done.err.contains(wrong), "{wrong}: {}", done.err);
        let create = words(&format!("context create x --url {url} --ca {wrong}"));
        let done = run(home.path(), &[], &create, "").await;
        assert!(done.code == 2 && done.err.contains(wrong), "{wrong}: {}", done.err);
    }
    let create = words(&format!("context create proxied --url {url} --token t --ca roots.pem"));
    let done = run(home.path(), &[], &create, "").await;
    assert_eq!(done.code, 0, "{}", done.err);
    let done = run(home.path(), &[], &words("company list"), "").await;
    assert_eq!(done.code, 0, "{}", done.err);

    let mcp = words(&format!("mcp --url {url} --token t --company acme --ca {roots}"));
    let hook = words(&format!("agent-hooks claude --url {url} --company acme"));
    let event = json!({
        "session_id": "s", "hook_event_name": "SessionStart", "source": "startup",
        "cwd": home.path(), "transcript_path": home.path().join("t.jsonl"),
    });
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    let came = |path: &str| seen.lock().unwrap().iter().any(|line| line.contains(path));
    run(home.path(), &[], &mcp, &format!("{initialize}\n")).await;
    assert!(came("POST /mcp"), "{seen:?}");
    let elsewhere = tempfile::tempdir().unwrap();
    let token = ("MEMHOST_TOKEN", "t");
    run(elsewhere.path(), &[token], &hook, &event.to_string()).await;
    assert!(!came("/hooks"), "{seen:?}");
    run(elsewhere.path(), &[token, ("MEMHOST_CA", roots)], &hook, &event.to_string()).await;
    assert!(came("/hooks"), "{seen:?}");
}
