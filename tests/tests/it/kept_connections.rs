//! Connections to a service that stay open between requests: how many there are, and what becomes
//! of a request that meets one which the service closes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use memhost_tests::TestHost;
use memhost_types::BindingLimits;
use serde_json::json;

use super::egress::{LOOPBACK, Setup};
use super::mem0::State;
use super::support::Api;

const CONTROL: &str = "/control/v1/companies/acme";

/// Answers the requests of a connection, one after the other, until the answer is none.
pub(super) fn converse(
    stream: impl Read + Write,
    mut answer: impl FnMut(&str, &[u8]) -> Option<String>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length, mut line) = (String::new(), 0, String::new());
        while reader.read_line(&mut line)? > 2 {
            if let Some(given) = line.to_lowercase().strip_prefix("content-length:") {
                length = given.trim().parse().unwrap();
            }
            head.push_str(&line);
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        if head.is_empty() {
            return Ok(());
        }
        let Some(answer) = answer(&head, &body) else { return Ok(()) };
        let stream = reader.get_mut();
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}", answer.len())?;
        stream.flush()?;
    }
}

/// How a server of `localhost` speaks TLS whose certificate is written to `roots`.
pub(super) fn certified(roots: &Path) -> Arc<rustls::ServerConfig> {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(roots, key.cert.pem()).unwrap();
    let private = rustls::pki_types::PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(vec![key.cert.der().clone()], private.into());
    Arc::new(config.unwrap())
}

/// A server with TLS. Answers its port and counts its connections.
fn serve_with_tls(roots: &Path, state: Arc<Mutex<State>>) -> (u16, Arc<AtomicUsize>) {
    let (config, listener) = (certified(roots), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = listener.local_addr().unwrap().port();
    let handshakes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&handshakes);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            counted.fetch_add(1, Ordering::Relaxed);
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let tls = rustls::StreamOwned::<_, TcpStream>::new(connection, stream);
            let state = Arc::clone(&state);
            std::thread::spawn(move || {
                converse(tls, |head, body| {
                    let mut words = head.split(' ');
                    let (method, path) = (words.next().unwrap(), words.next().unwrap());
                    let body = serde_json::from_slice(body).unwrap_or_default();
                    state
                        .lock()
                        .unwrap()
                        .answer(method, path, &body)
                        .map(|answer| answer.to_string())
                })
            });
        }
    });
    (port, handshakes)
}

/// A hosted service costs a handshake, not one a record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_records_need_at_most_two_handshakes() {
    let directory = tempfile::tempdir().unwrap();
    let roots = directory.path().join("roots.pem");
    let state = Arc::new(Mutex::new(State::default()));
    let (port, handshakes) = serve_with_tls(&roots, Arc::clone(&state));
    let host = TestHost::with(&["mem0"], |options| options.sandbox.outgoing_roots = Some(roots))
        .await
        .unwrap();
    let (api, origin) = (Api::new(&host), format!("https://localhost:{port}"));
    let body = json!({"key": "mem0", "providerKey": "mem0", "default": true,
        "config": {"url": origin, "api": "self-hosted", "withoutKey": true}});
    api.post(&format!("{CONTROL}/bindings"), &body).await.fine();
    let grants = json!({
        "storageBytes": 64 << 20, "http": [{"origin": origin, "privateRanges": ["127.0.0.0/8"]}],
    });
    api.put(&format!("{CONTROL}/bindings/mem0/grants"), &grants).await.fine();
    let records: Vec<_> = (0..30).map(|n| json!({"text": format!("gate {n} is green")})).collect();
    let body = json!({"scope": {"companyId": "acme"}, "records": records});
    let written = api.post("/runtime/v1/companies/acme/records", &body).await.fine();
    assert_eq!(written["records"].as_array().map(Vec::len), Some(30), "{written}");
    assert_eq!(state.lock().unwrap().memories.len(), 30);
    let handshakes = handshakes.load(Ordering::Relaxed);
    assert!(handshakes <= 2, "{handshakes} handshakes for 30 records");
    // The operation says what was sent.
    let operations = api.get(&format!("{CONTROL}/operations?kind=record_upsert")).await;
    let id = operations["items"][0]["id"].as_str().unwrap();
    let log = api.get(&format!("{CONTROL}/operations/{id}")).await["log"].to_string();
    assert!(
        log.contains("outgoing request: POST https://") && log.contains("/memories: 200 with "),
        "{log}"
    );
}

/// A server that answers the first request of each connection, reads every later one and closes
/// without an answer. Counts the requests and the connections.
fn closes_after_the_first() -> (u16, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (requests, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = (Arc::clone(&requests), Arc::clone(&connections));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            counted.1.fetch_add(1, Ordering::Relaxed);
            let (requests, mut is_first) = (Arc::clone(&counted.0), true);
            std::thread::spawn(move || {
                converse(stream, |_, _| {
                    requests.fetch_add(1, Ordering::Relaxed);
                    std::mem::take(&mut is_first).then(|| "fine".to_owned())
                })
            });
        }
    });
    (port, requests, connections)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_over_a_closing_connection_is_sent_again_only_if_it_reads() {
    for (method, is_answered, requests_wanted) in [("GET", true, 3), ("POST", false, 2)] {
        let (port, requests, connections) = closes_after_the_first();
        let setup = Setup::at(port, &[], LOOPBACK, BindingLimits::default()).await;
        let answer = setup.send("acme", json!({"method": method, "times": 2})).await;
        assert_eq!(answer.starts_with("200\n"), is_answered, "{method}: {answer}");
        // Two that the first connection got, and one over a second connection.
        assert_eq!(requests.load(Ordering::Relaxed), requests_wanted, "{method}");
        assert_eq!(connections.load(Ordering::Relaxed), requests_wanted - 1, "{method}");
    }
}

/// A server may know a connection by the key that came over it: a changed secret needs a new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_secret_closes_the_connections() {
    let (port, _, connections) = closes_after_the_first();
    let setup = Setup::at(port, &[], LOOPBACK, BindingLimits::default()).await;
    let origin = format!("http://localhost:{port}");
    setup.set_value(&origin, "query:k", "a value of eight").await;
    assert!(setup.send("acme", json!({"method": "POST"})).await.starts_with("200\n"));
    setup.set_value(&origin, "query:k", "another value").await;
    // Over the connection of before it would have no answer.
    assert!(setup.send("acme", json!({"method": "POST"})).await.starts_with("200\n"));
    assert_eq!(connections.load(Ordering::Relaxed), 2);
}
