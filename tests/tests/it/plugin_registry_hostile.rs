//! A registry that lies, sends without end, or sends its users elsewhere: nothing is taken, and no
//! password or token goes where it does not belong.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Response, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use memhost_tests::stamped;
use memhost_types::Digest;
use serde_json::{Value, json};

use crate::cli::{Done, Terminal};
use crate::plugin_registry::{files, trusting};
use crate::plugins::Publisher;

/// What a registry was asked: the path, and the header `authorization`.
type Asked = Arc<Mutex<Vec<(String, Option<String>)>>>;
type Answer = Box<dyn Fn(&str, &HeaderMap) -> Response<Body> + Send + Sync>;

/// A registry whose answers a test writes.
struct Fake {
    port: u16,
    asked: Asked,
    answer: Arc<Mutex<Answer>>,
}

impl Fake {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Asked::default();
        let answer: Arc<Mutex<Answer>> = Arc::new(Mutex::new(Box::new(|_, _| none())));
        let (log, answers) = (Arc::clone(&asked), Arc::clone(&answer));
        let handler = move |request: Request| {
            let path = request.uri().to_string();
            let authorization = request.headers().get("authorization");
            let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
            log.lock().unwrap().push((path.clone(), authorization));
            let answer = answers.lock().unwrap()(&path, request.headers());
            async move { answer }
        };
        let router = axum::Router::new().fallback(handler);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, asked, answer }
    }

    fn answers(&self, answer: impl Fn(&str, &HeaderMap) -> Response<Body> + Send + Sync + 'static) {
        self.asked.lock().unwrap().clear();
        *self.answer.lock().unwrap() = Box::new(answer);
    }

    /// The headers with which paths that begin like this were asked.
    fn shown(&self, path: &str) -> Vec<Option<String>> {
        let asked = self.asked.lock().unwrap();
        asked
            .iter()
            .filter(|(asked, _)| asked.starts_with(path))
            .map(|(_, of)| of.clone())
            .collect()
    }

    async fn pull(&self, terminal: &Terminal) -> Done {
        let line = format!("plugin pull oci://127.0.0.1:{}/stamped:1.0.0 --yes", self.port);
        terminal.run(&line).await
    }
}

fn none() -> Response<Body> {
    status(StatusCode::NOT_FOUND, "")
}

fn status(status: StatusCode, body: impl Into<Body>) -> Response<Body> {
    Response::builder().status(status).body(body.into()).unwrap()
}

fn ok(body: impl Into<Body>) -> Response<Body> {
    status(StatusCode::OK, body)
}

fn to(place: &str) -> Response<Body> {
    let answer = Response::builder().status(StatusCode::TEMPORARY_REDIRECT);
    answer.header("location", place).body(Body::empty()).unwrap()
}

fn asks_for(challenge: &str) -> Response<Body> {
    let answer = Response::builder().status(StatusCode::UNAUTHORIZED);
    answer.header("www-authenticate", challenge).body(Body::empty()).unwrap()
}

fn has(headers: &HeaderMap, header: &str) -> bool {
    headers.get("authorization").is_some_and(|value| value.to_str().unwrap() == header)
}

/// A component with its manifest and its signature, by path.
#[derive(Clone)]
struct Content {
    component: Vec<u8>,
    manifest: Value,
    /// The manifest of the signature, and the signature.
    signed: (String, String),
}

impl Content {
    fn new(publisher: &Publisher) -> Self {
        let component = stamped(json!({ "key": "stamped", "version": "1.0.0" })).unwrap();
        let signature = publisher.sign(&component, "stamped");
        let manifest = of("application/wasm", &component);
        let signed = of("application/vnd.memhost.minisign.v1", signature.as_bytes());
        Self { component, manifest, signed: (signed.to_string(), signature) }
    }

    fn at(&self, path: &str) -> Response<Body> {
        let digest = |bytes: &[u8]| Digest::of(bytes).to_string();
        match path.rsplit('/').next().unwrap() {
            "1.0.0" => ok(self.manifest.to_string()),
            tag if tag.ends_with(".minisig") => ok(self.signed.0.clone()),
            blob if blob == digest(&self.component) => ok(self.component.clone()),
            blob if blob == digest(self.signed.1.as_bytes()) => ok(self.signed.1.clone()),
            _ => none(),
        }
    }
}

/// A manifest with one layer.
fn of(kind: &str, bytes: &[u8]) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.wasm.config.v0+json",
            "digest": Digest::of(b"{}"), "size": 2,
        },
        "layers": [{ "mediaType": kind, "digest": Digest::of(bytes), "size": bytes.len() }],
    })
}

/// Writes the file of `docker login` with the user `ada` for a host.
fn log_in(terminal: &Terminal, host: &str) -> String {
    let auth = BASE64.encode("ada:secret");
    let config = json!({ "auths": { host: { "auth": auth } } });
    let directory = terminal.home.path().join(".docker");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("config.json"), config.to_string()).unwrap();
    format!("Basic {auth}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_taken_from_a_registry_that_lies() {
    let (publisher, fake) = (Publisher::new(1), Fake::start().await);
    let terminal = trusting(&publisher, false).await;
    let content = Content::new(&publisher);
    let with = |change: &dyn Fn(&mut Content)| {
        let mut changed = content.clone();
        change(&mut changed);
        move |path: &str, _: &HeaderMap| changed.at(path)
    };
    let component = Digest::of(&content.component);
    let failing: Vec<(&str, Answer)> = vec![
        ("larger than 4194304 bytes", {
            Box::new(|path, _| match path.ends_with("/1.0.0") {
                true => ok(vec![b' '; (4 << 20) + 1]),
                false => none(),
            })
        }),
        ("larger than 67108864 bytes", {
            Box::new(with(&|content| content.manifest["layers"][0]["size"] = json!(65 << 20)))
        }),
        // More than the manifest says.
        ("larger than", {
            Box::new(with(&|content| {
                let size = content.component.len() - 1;
                content.manifest["layers"][0]["size"] = json!(size);
            }))
        }),
        ("was changed on the way", {
            let (right, size) = (with(&|_| {}), content.component.len());
            Box::new(move |path, headers| match path.ends_with(&component.to_string()) {
                true => ok(vec![0; size]),
                false => right(path, headers),
            })
        }),
        ("does not have one layer", {
            Box::new(with(&|content| {
                let layer = content.manifest["layers"][0].clone();
                content.manifest["layers"].as_array_mut().unwrap().push(layer);
            }))
        }),
        ("of the type `application/vnd.oci.image.index.v1+json`", {
            Box::new(with(&|content| {
                let index = "application/vnd.oci.image.index.v1+json";
                content.manifest["mediaType"] = json!(index);
            }))
        }),
        ("is sent on for ever", Box::new(|path, _| to(path))),
        ("not where", Box::new(|_, _| to("elsewhere"))),
        ("out of order", Box::new(|_, _| status(StatusCode::BAD_GATEWAY, "out of\n\norder"))),
        ("cannot be read", Box::new(|_, _| ok("{"))),
    ];
    for (said, answer) in failing {
        fake.answers(answer);
        let done = fake.pull(&terminal).await;
        assert_ne!(done.code, 0, "{said}: {done:?}");
        assert!(done.err.contains(said), "{said}: {done:?}");
        assert_eq!(files(&terminal), [""; 0], "{said}");
    }
    // A digest that is asked for is that of what comes.
    fake.answers({
        let content = content.clone();
        move |path, _| content.at(if path.contains("manifests/sha256:") { "/1.0.0" } else { path })
    });
    let other = Digest::of(b"another");
    let line = format!("plugin pull oci://127.0.0.1:{}/stamped@{other} --yes", fake.port);
    let done = terminal.run(&line).await;
    assert!(done.code == 1 && done.err.contains("was changed on the way"), "{done:?}");
    assert_eq!(files(&terminal), [""; 0]);
    // And the one that does not lie is taken.
    fake.answers(move |path, _| content.at(path));
    assert_eq!(fake.pull(&terminal).await.code, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_takes_no_password_and_no_token_along() {
    let publisher = Publisher::new(1);
    let (fake, elsewhere) = (Fake::start().await, Fake::start().await);
    let terminal = trusting(&publisher, false).await;
    let content = Content::new(&publisher);
    let host = format!("127.0.0.1:{}", fake.port);
    let basic = log_in(&terminal, &host);
    let place = format!("http://127.0.0.1:{}", elsewhere.port);
    elsewhere.answers({
        let content = content.clone();
        move |path, _| content.at(path)
    });
    fake.answers({
        let basic = basic.clone();
        move |path, headers| match (has(headers, &basic), path.contains("/blobs/")) {
            (false, _) => asks_for("Basic realm=\"test\""),
            (true, true) => to(&format!("{place}{path}")),
            (true, false) => content.at(path),
        }
    });
    let done = fake.pull(&terminal).await;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(fake.shown("/v2/stamped/manifests/1.0.0").contains(&Some(basic)));
    let shown = elsewhere.shown("/");
    assert!(!shown.is_empty() && shown.iter().all(Option::is_none), "{shown:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_goes_to_no_realm_of_another_host() {
    let publisher = Publisher::new(1);
    let (fake, realm) = (Fake::start().await, Fake::start().await);
    let terminal = trusting(&publisher, false).await;
    let content = Content::new(&publisher);
    let host = format!("127.0.0.1:{}", fake.port);
    let basic = log_in(&terminal, &host);
    let with_token = |content: Content, realm: String| {
        move |path: &str, headers: &HeaderMap| match has(headers, "Bearer the-token") {
            true => content.at(path),
            false => asks_for(&format!("Bearer realm=\"{realm}\",service=\"test\"")),
        }
    };
    let token = json!({ "token": "the-token" }).to_string();

    // Another name is another host.
    fake.answers(with_token(content.clone(), format!("http://localhost:{}/token", realm.port)));
    realm.answers(|_, _| status(StatusCode::UNAUTHORIZED, ""));
    let done = fake.pull(&terminal).await;
    assert_eq!(done.code, 4, "{done:?}");
    let advice = format!("docker login localhost:{}", realm.port);
    assert!(done.err.contains(&advice), "{done:?}");
    assert_eq!(realm.shown("/token"), [None]);
    assert_eq!(files(&terminal), [""; 0]);

    // It may give tokens to everybody; the token is for the registry.
    let answer = token.clone();
    realm.answers(move |_, _| ok(answer.clone()));
    let done = fake.pull(&terminal).await;
    assert_eq!(done.code, 0, "{done:?}");
    let scope = "/token?service=test&scope=repository%3Astamped%3Apull";
    assert_eq!(realm.shown("/"), [None], "{:?}", realm.asked.lock().unwrap());
    assert_eq!(realm.asked.lock().unwrap()[0].0, scope);

    // The same host gets the password.
    for file in files(&terminal) {
        std::fs::remove_file(terminal.host.directory().join("plugins").join(file)).unwrap();
    }
    fake.answers(with_token(content.clone(), format!("http://127.0.0.1:{}/token", realm.port)));
    realm.answers(move |_, _| ok(token.clone()));
    assert_eq!(fake.pull(&terminal).await.code, 0);
    assert_eq!(realm.shown("/token"), [Some(basic)]);

    // A token without end.
    realm.answers(|_, _| ok(vec![b' '; 1 << 20]));
    let done = fake.pull(&terminal).await;
    assert!(done.code == 1 && done.err.contains("larger than 65536 bytes"), "{done:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_machine_is_asked_with_tls_only() {
    let terminal = Terminal::open(&[]).await;
    let done = terminal.run("plugin pull oci://registry.invalid/stamped:1.0.0 --yes").await;
    assert_eq!(done.code, 5, "{done:?}");
    assert!(done.err.contains("https://registry.invalid/v2/stamped"), "{done:?}");
    let plain = "plugin pull oci://registry.invalid/stamped:1.0.0 --yes --allow-plain-http";
    let done = terminal.run(plain).await;
    assert!(done.err.contains("http://registry.invalid/v2/stamped"), "{done:?}");
    let done = terminal.run("plugin pull registry.invalid/stamped --yes").await;
    assert_eq!((done.code, done.err.contains("oci://HOST/NAME:TAG")), (2, true), "{done:?}");
}
