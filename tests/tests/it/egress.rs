//! Outgoing requests: a real server, and guests that try what they may not do.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use memhost_core::{CreateBinding, SetSecret};
use memhost_tests::{TestHost, caller, parse, stamped};
use memhost_types::{BindingLimits, Grants, HttpGrant, VersionChoice};
use serde_json::{Value, json};

const SECRET: &str = "s3cr3t/value-of-the-test";

/// A request that the server received.
pub(super) struct Got {
    pub(super) head: String,
    pub(super) body: String,
}

/// A server that answers each request with its content, and sends it to the receiver. `/slow` is
/// never answered, and the answer to `/big` is large.
fn server() -> (u16, Receiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, got) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let told = told.clone();
            std::thread::spawn(move || drop(answer(stream, |got| drop(told.send(got)))));
        }
    });
    (port, got)
}

fn answer(mut stream: impl Read + Write, tell: impl FnOnce(Got)) -> std::io::Result<()> {
    let mut reader = BufReader::new(&mut stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some(given) = line.to_lowercase().strip_prefix("content-length:") {
            length = given.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let echo = head
        .lines()
        .find(|line| line.to_lowercase().starts_with("authorization"))
        .unwrap_or_default()
        .to_owned();
    let said = format!("{head}\n{body}");
    tell(Got { head, body });
    if path.starts_with("/slow") {
        // Reads nothing until the host closes the connection.
        return std::io::copy(&mut reader, &mut std::io::sink()).map(drop);
    }
    let said = match path.as_str() {
        "/big" => "x".repeat(3 << 20),
        "/almost" => "a".repeat(1_000_000),
        _ => said,
    };
    let (status, more) = match path.as_str() {
        "/redirect" => ("302 Found", "location: http://169.254.169.254/latest/\r\n"),
        "/zipped" => ("200 OK", "content-encoding: br\r\n"),
        "/zipped-below" => {
            ("200 OK", "content-encoding: identity\r\ncontent-encoding: identity, gzip\r\n")
        }
        _ => ("200 OK", ""),
    };
    let echo = echo.replace("authorization", "x-echo");
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{more}{echo}\r\n", said.len())?;
    if !echo.is_empty() {
        write!(stream, "\r\n")?;
    }
    stream.write_all(said.as_bytes())?;
    stream.flush()
}

pub(super) struct Setup {
    pub(super) host: TestHost,
    pub(super) port: u16,
    pub(super) got: Receiver<Got>,
}

impl Setup {
    /// A provider that asks for the server and the secret `KEY`, and is granted `methods` there and
    /// the secret.
    pub(super) async fn new(methods: &[&str], ranges: &[&str], limits: BindingLimits) -> Self {
        let (port, got) = server();
        Self { got, ..Self::at(port, methods, ranges, limits).await }
    }

    /// The same in front of another server.
    pub(super) async fn at(
        port: u16,
        methods: &[&str],
        ranges: &[&str],
        limits: BindingLimits,
    ) -> Self {
        let origin = format!("http://localhost:{port}");
        let host = TestHost::new(&[]).await.unwrap();
        let build =
            stamped(json!({"key": "sends", "version": "1.0.0", "origin": origin, "secret": "KEY"}))
                .unwrap();
        std::fs::write(host.directory().join("plugins/sends.wasm"), build).unwrap();
        host.service().control().scan_plugins().await;
        let grant = HttpGrant {
            origin: origin.parse().unwrap(),
            methods: methods.iter().map(|method| (*method).to_owned()).collect(),
            private_ranges: ranges.iter().map(|range| range.parse().unwrap()).collect(),
        };
        let grants =
            Grants { http: vec![grant], secrets: vec!["KEY".to_owned()], ..Grants::default() };
        let setup = Self { host, port, got: channel().1 };
        setup.bind("acme", Some(grants), limits).await;
        setup
    }

    async fn bind(&self, company: &str, grants: Option<Grants>, limits: BindingLimits) {
        let request = CreateBinding {
            policy: memhost_types::BindingPolicy::default(),
            key: parse("default"),
            provider_key: parse("sends"),
            version: VersionChoice::default(),
            config: Default::default(),
            grants,
            limits,
            default: true,
        };
        self.host
            .service()
            .control()
            .create_binding(&caller(), &parse(company), request)
            .await
            .unwrap();
    }

    async fn set_secret(&self, origin: &str, used_as: &str) {
        self.set_value(origin, used_as, SECRET).await;
    }

    pub(super) async fn set_value(&self, origin: &str, used_as: &str, value: &str) {
        let (origins, used_as) = (vec![origin.parse().unwrap()], used_as.parse().unwrap());
        let request = SetSecret { value: value.to_owned(), origins, used_as };
        self.host
            .service()
            .control()
            .set_secret(&caller(), &parse("acme"), "KEY", request)
            .await
            .unwrap();
    }

    pub(super) async fn send(&self, company: &str, change: Value) -> String {
        let mut request = json!({
            "method": "GET", "scheme": "http", "path": "/",
            "authority": format!("localhost:{}", self.port),
        });
        for (name, value) in change.as_object().unwrap() {
            request[name] = value.clone();
        }
        match self.host.query(company, &request.to_string()).await {
            Ok(answer) => answer[0].text.clone(),
            Err(error) => format!("failed: {error}"),
        }
    }

    /// The log of the last operation.
    async fn log(&self, company: &str) -> String {
        let log = &self.host.operations(company).await.unwrap()[0].log;
        log.iter().map(|line| line.text.clone()).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn requests(&self) -> usize {
        std::thread::sleep(Duration::from_millis(50));
        self.got.try_iter().count()
    }
}

pub(super) const LOOPBACK: &[&str] = &["127.0.0.0/8", "::1/128"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_goes_only_where_it_was_granted() {
    let setup = Setup::new(&["GET"], LOOPBACK, BindingLimits::default()).await;
    let answer = setup.send("acme", json!({"path": "/a?b=c"})).await;
    assert!(answer.starts_with("200\n") && answer.contains("GET /a?b=c HTTP/1.1"), "{answer}");
    assert_eq!(setup.requests(), 1);
    setup.bind("nothing", Some(Grants::default()), BindingLimits::default()).await;
    let port = setup.port;
    for (company, change, why) in [
        ("nothing", json!({}), "not granted"),
        ("acme", json!({"method": "POST"}), "POST is not granted"),
        ("acme", json!({"method": "TRACE"}), "TRACE is not granted"),
        ("acme", json!({"method": "CONNECT"}), "CONNECT is not granted"),
        ("acme", json!({"scheme": "https"}), "not granted"),
        ("acme", json!({"authority": "localhost:1"}), "not granted"),
        ("acme", json!({"authority": format!("127.0.0.1:{port}")}), "not granted"),
        ("acme", json!({"authority": format!("localhost.evil.example:{port}")}), "not granted"),
        ("acme", json!({"authority": format!("[::ffff:127.0.0.1]:{port}")}), "not granted"),
        ("acme", json!({"authority": "169.254.169.254"}), "not granted"),
    ] {
        let answer = setup.send(company, change.clone()).await;
        assert!(answer.starts_with("refused"), "{change}: {answer}");
        assert!(setup.log(company).await.contains(why), "{change}: {}", setup.log(company).await);
    }
    let answer = setup.send("acme", json!({"authority": format!("user@localhost:{port}")})).await;
    assert!(answer.starts_with("refused"), "{answer}");
    assert_eq!(setup.requests(), 0, "nothing of that reached the server");
    // Another spelling of the same name is allowed, and sent in the granted spelling.
    let answer = setup.send("acme", json!({"authority": format!("LOCALHOST.:{port}")})).await;
    assert!(answer.contains(&format!("host: localhost:{port}")), "{answer}");
    // A redirect is passed to the guest and not followed.
    let answer = setup.send("acme", json!({"path": "/redirect"})).await;
    assert!(answer.starts_with("302\n") && answer.contains("169.254.169.254"), "{answer}");
}

/// The guest learns why from the answer, also where the host has answered before the body is
/// written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_body_of_a_request_that_is_refused_can_be_written() {
    let setup = Setup::new(&["GET"], LOOPBACK, BindingLimits::default()).await;
    setup.bind("nothing", Some(Grants::default()), BindingLimits::default()).await;
    let late = json!({"method": "POST", "body": "x".repeat(10_000), "late": 100});
    for company in ["nothing", "acme"] {
        let answer = setup.send(company, late.clone()).await;
        assert!(answer.contains("HttpRequest"), "{company}: {answer}");
    }
    assert_eq!(setup.requests(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_not_public_needs_a_grant_of_its_own() {
    let setup = Setup::new(&[], &["10.0.0.0/8"], BindingLimits::default()).await;
    let answer = setup.send("acme", json!({})).await;
    assert!(answer.contains("DestinationIpProhibited"), "{answer}");
    assert!(!answer.contains("127.0.0.1"), "the guest learns nothing of the network: {answer}");
    assert!(
        setup.log("acme").await.contains("loopback")
            && setup.log("acme").await.contains("127.0.0.1/32"),
        "{}",
        setup.log("acme").await
    );
    assert_eq!(setup.requests(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_reaches_only_its_server() {
    let setup = Setup::new(&[], LOOPBACK, BindingLimits::default()).await;
    let origin = format!("http://localhost:{}", setup.port);
    let headers = json!({"authorization": "Bearer {{secret:KEY}}"});
    let answer = setup.send("acme", json!({"headers": headers})).await;
    assert!(answer.contains("refused") && answer.contains("KEY"), "it is not set yet: {answer}");
    let view =
        setup.host.service().control().binding(&parse("acme"), &parse("default")).await.unwrap();
    assert!(
        view.warnings.iter().any(|warning| warning.contains("memhost secret create KEY")),
        "{:?}",
        view.warnings
    );
    assert_eq!(setup.requests(), 0);
    // A secret that is set while the binding serves is used at once.
    const BEARER: &str = "header:authorization:Bearer";
    setup.set_secret(&origin, BEARER).await;
    let body = r#"{"key":"{{secret:KEY}}","note":"{{secret:KEY}}"}"#;
    let in_header = json!({"method": "POST", "headers": headers, "body": body});
    let in_query = json!({"method": "POST", "path": "/?k={{secret:KEY}}", "body": body});
    let answer = setup.send("acme", in_header.clone()).await;
    let got = setup.got.recv_timeout(Duration::from_secs(5)).unwrap();
    assert!(got.head.contains(&format!("authorization: Bearer {SECRET}")), "{}", got.head);
    assert_eq!(got.body, body, "a secret is put into bodies only where the operator said so");
    assert!(
        answer.contains("x-echo: Bearer [secret KEY]") && answer.contains("Bearer [secret KEY]\r"),
        "{answer}"
    );
    // Another user of the same server could read it elsewhere.
    for elsewhere in [&in_query, &json!({"headers": {"x-note": "{{secret:KEY}}"}})] {
        let answer = setup.send("acme", elsewhere.clone()).await;
        assert!(
            answer.starts_with("refused") && answer.contains("memhost secret update KEY --as"),
            "{answer}"
        );
    }
    assert_eq!(setup.requests(), 0);
    setup.set_secret(&origin, "query:k").await;
    let answer = setup.send("acme", in_query).await;
    let got = setup.got.recv_timeout(Duration::from_secs(5)).unwrap();
    assert!(got.head.contains("/?k=s3cr3t%2Fvalue-of-the-test"), "{}", got.head);
    assert!(answer.contains("k=[secret KEY]"), "{answer}");
    assert!(setup.send("acme", in_header).await.starts_with("refused"));
    setup.set_secret(&origin, "body:/key").await;
    setup.send("acme", json!({"method": "POST", "body": body})).await;
    let got = setup.got.recv_timeout(Duration::from_secs(5)).unwrap();
    assert_eq!(got.body, format!(r#"{{"key":"{SECRET}","note":"{{{{secret:KEY}}}}"}}"#));
    for path in ["/zipped", "/zipped-below"] {
        let answer = setup.send("acme", json!({"path": path})).await;
        assert!(
            answer.contains("refused"),
            "the compressed answer could contain a secret: {answer}"
        );
    }
    // The secret is not inserted for another server.
    setup.set_secret("https://api.example.com", BEARER).await;
    let answer = setup.send("acme", json!({"headers": headers})).await;
    assert!(answer.contains("refused"), "{answer}");
    // It is in no answer, and not on the disk.
    let service = setup.host.service();
    let operations = serde_json::to_string(&setup.host.operations("acme").await.unwrap()).unwrap();
    let activity =
        serde_json::to_string(&service.control().activity(&parse("acme"), None).await.unwrap())
            .unwrap();
    let secrets =
        serde_json::to_string(&service.control().secrets(&parse("acme")).await.unwrap()).unwrap();
    for (what, text) in [("operations", operations), ("activity", activity), ("secrets", secrets)] {
        assert!(!text.contains("s3cr3t"), "{what}: {text}");
    }
    service.control().flush().await.unwrap();
    let mut looked_at = 0;
    let mut directories = vec![setup.host.data_dir().to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => directories.push(entry.path()),
                false => {
                    let bytes = std::fs::read(entry.path()).unwrap();
                    assert!(
                        !bytes.windows(6).any(|window| window == b"s3cr3t"),
                        "{}",
                        entry.path().display()
                    );
                    looked_at += 1;
                }
            }
        }
    }
    assert!(looked_at > 3);
    service.control().remove_secret(&caller(), &parse("acme"), "KEY").await.unwrap();
    assert!(
        service
            .control()
            .remove_secret(&caller(), &parse("acme"), "KEY")
            .await
            .unwrap_err()
            .to_string()
            .contains("KEY")
    );
}

/// Comparing each place of the answers with the whole secret would take thirty billion steps. On a
/// thread of the executor this build refuses even one: `expect_off_executor` panics there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_almost_fits_everywhere_holds_nothing_up() {
    let limits = BindingLimits { incoming_bytes: 8 << 20, ..BindingLimits::default() };
    let setup = Setup::new(&[], LOOPBACK, limits).await;
    let value = format!("{}b", "a".repeat(8_191));
    setup
        .set_value(&format!("http://localhost:{}", setup.port), "header:authorization", &value)
        .await;
    let answer = setup.send("acme", json!({"path": "/almost", "times": 4})).await;
    assert!(answer.starts_with("200\n"), "{}", &answer[..answer.len().min(200)]);
    assert_eq!(setup.requests(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_key_is_reported_and_not_replaced() {
    let mut setup = Setup::new(&[], LOOPBACK, BindingLimits::default()).await;
    setup.set_secret("https://api.example.com", "header:authorization").await;
    setup.host.stop().await;
    let key = setup.host.data_dir().join("vault.key");
    std::fs::remove_file(&key).unwrap();
    let error = setup.host.start().await.unwrap_err().to_string();
    assert!(error.contains("vault.key") && error.contains("restore"), "{error}");
    assert!(!key.exists());
    // With another key the host serves, and reports which secrets are lost.
    std::fs::write(&key, "ab".repeat(32)).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    setup.host.start().await.unwrap();
    let view =
        setup.host.service().control().binding(&parse("acme"), &parse("default")).await.unwrap();
    assert!(view.warnings.iter().any(|warning| warning.contains("KEY")), "{:?}", view.warnings);
    let answer = setup.send("acme", json!({"headers": {"authorization": "{{secret:KEY}}"}})).await;
    assert!(answer.contains("refused"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_limit_on_requests_is_enforced_and_named() {
    let limits = BindingLimits {
        outgoing_requests: 3,
        outgoing_bytes: 10_000,
        incoming_bytes: 1 << 20,
        outgoing_requests_per_minute: 12,
        ..BindingLimits::default()
    };
    let setup = Setup::new(&[], LOOPBACK, limits).await;
    let answer = setup.send("acme", json!({"times": 4})).await;
    assert!(answer.contains("outgoingRequests") && answer.contains('3'), "{answer}");
    assert_eq!(setup.requests(), 3);
    let answer = setup.send("acme", json!({"method": "POST", "body": "x".repeat(10_001)})).await;
    assert!(answer.contains("outgoingBytes"), "{answer}");
    assert!(setup.log("acme").await.contains("outgoingBytes"), "{}", setup.log("acme").await);
    let answer = setup.send("acme", json!({"path": "/big"})).await;
    assert!(answer.contains("incomingBytes"), "{answer}");
    // A request that the guest abandons ends with its call.
    let answer = setup.send("acme", json!({"path": "/slow?forgotten", "forgets": true})).await;
    assert_eq!(answer, "forgotten");
    let mut last = String::new();
    for _ in 0..5 {
        last = setup.send("acme", json!({"times": 3})).await;
    }
    assert!(last.contains("outgoingRequestsPerMinute"), "{last}");
    let usage = setup.host.usage("acme", "default").await.unwrap();
    assert!((12..=13).contains(&usage.outgoing_requests_per_minute), "{usage:?}");
    assert_eq!(usage.outgoing_connections, 0);
}

/// The guest would wait for an hour. Its call ends at the limit of the binding.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_that_never_comes_ends_at_the_time_limit() {
    let limits = BindingLimits { call_timeout_ms: 200, ..BindingLimits::default() };
    let setup = Setup::new(&[], LOOPBACK, limits).await;
    let answer =
        tokio::time::timeout(Duration::from_secs(20), setup.send("acme", json!({"path": "/slow"})))
            .await;
    let answer = answer.expect("the call did not end at its limit");
    assert!(answer.contains("callTimeoutMs") || answer.contains("Timeout"), "{answer}");
    assert_eq!(setup.host.usage("acme", "default").await.unwrap().outgoing_connections, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_checked_against_known_authorities() {
    let directory = tempfile::tempdir().unwrap();
    let roots = directory.path().join("roots.pem");
    let config = super::kept_connections::certified(&roots);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let tls: rustls::StreamOwned<_, TcpStream> =
                rustls::StreamOwned::new(connection, stream);
            std::thread::spawn(move || drop(answer(tls, |_| ())));
        }
    });
    let origin = format!("https://localhost:{port}");
    let mut answers = BTreeMap::new();
    for (name, more) in [("with", Some(roots.clone())), ("without", None)] {
        let host =
            TestHost::with(&[], |options| options.sandbox.outgoing_roots = more).await.unwrap();
        let build = stamped(json!({"key": "sends", "version": "1.0.0", "origin": origin})).unwrap();
        std::fs::write(host.directory().join("plugins/sends.wasm"), build).unwrap();
        host.service().control().scan_plugins().await;
        let private_ranges = LOOPBACK.iter().map(|range| range.parse().unwrap()).collect();
        let grant =
            HttpGrant { origin: origin.parse().unwrap(), methods: Vec::new(), private_ranges };
        let setup = Setup { host, port, got: channel().1 };
        let grants = Grants { http: vec![grant], ..Grants::default() };
        setup.bind("acme", Some(grants), BindingLimits::default()).await;
        answers.insert(name, setup.send("acme", json!({"scheme": "https", "path": "/safe"})).await);
    }
    assert!(
        answers["with"].starts_with("200\n") && answers["with"].contains("GET /safe"),
        "{answers:?}"
    );
    assert!(
        answers["without"].contains("Tls"),
        "a server with an unknown certificate: {answers:?}"
    );
}
