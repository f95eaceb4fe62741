//! Helpers to call a host's routes.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::HttpBody as _;
use memhost_server::{InProcess, Method, Request, openapi};
use memhost_tests::TestHost;
use serde_json::{Value, json};

/// A documented route: its method, the parts of its path, and its statuses.
type DocumentedRoute = (String, Vec<String>, BTreeSet<u16>);

static STATUSES: LazyLock<Vec<DocumentedRoute>> = LazyLock::new(|| {
    let document = openapi();
    let paths = document["paths"].as_object().unwrap().iter();
    let routes = paths
        .flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |route| (path, route)));
    let routes = routes.map(|(path, (method, operation))| {
        let statuses = operation["responses"]
            .as_object()
            .unwrap()
            .keys()
            .filter_map(|status| status.parse().ok());
        (method.to_uppercase(), path.split('/').map(str::to_owned).collect(), statuses.collect())
    });
    routes.collect()
});

/// Fails if a documented route answers with a status that the document does not list. 405 is no
/// route's own.
fn check_status(method: Method, path: &str, status: u16) {
    let parts: Vec<&str> = path.split('?').next().unwrap().split('/').collect();
    let is_same = |known: &[String]| {
        let is_part = |(known, part): (&String, &&str)| {
            known == part || (known.starts_with('{') && !part.is_empty())
        };
        known.len() == parts.len() && known.iter().zip(&parts).all(is_part)
    };
    let method = format!("{method:?}").to_uppercase();
    let mut routes =
        STATUSES.iter().filter(|(known, path, _)| *known == method && is_same(path)).peekable();
    let is_listed =
        routes.peek().is_none() || routes.any(|(.., statuses)| statuses.contains(&status));
    assert!(
        is_listed || status == 405,
        "{method} {path} answers {status}, which the document does not list"
    );
}

/// The routes of a host, as one caller sees them.
pub(crate) struct Api {
    http: Arc<InProcess>,
    token: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) json: Value,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Api {
    /// As the operator.
    pub(crate) fn new(host: &TestHost) -> Self {
        Self { http: Arc::new(host.in_process()), token: None }
    }

    /// As the bearer of a token.
    pub(crate) fn with(&self, token: &str) -> Self {
        Self { http: Arc::clone(&self.http), token: Some(token.to_owned()) }
    }

    /// Makes a company.
    pub(crate) async fn make(&self, company: &str) {
        self.send(Method::Put, &format!("/control/v1/companies/{company}"), None, &[]).await.fine();
    }

    /// As an agent of the company `acme`, with a token of its own.
    pub(crate) async fn agent(&self, name: &str) -> Self {
        let body = json!({"name": name, "role": "agent", "agentId": name});
        let made = self.post("/control/v1/companies/acme/tokens", &body).await.fine();
        self.with(made["value"].as_str().unwrap())
    }

    /// The token of [`Self::with`]; empty for the operator.
    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }

    /// Another value for the same caller.
    pub(crate) fn with_same(&self) -> Self {
        Self { http: Arc::clone(&self.http), token: self.token.clone() }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        headers: &[(&'static str, &str)],
    ) -> Answer {
        let mut all: Vec<(&'static str, String)> =
            headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        if let Some(token) = &self.token {
            all.push(("authorization", format!("Bearer {token}")));
        }
        let request = Request { method, path: path.to_owned(), body, headers: all };
        let (parts, body) = self.http.respond(request).await.into_parts();
        check_status(method, path, parts.status.as_u16());
        let text = String::from_utf8_lossy(&body).into_owned();
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer { status: parts.status.as_u16(), json, headers: parts.headers, text }
    }

    /// The answer of a stream of events, whose body is read as it comes.
    pub(crate) async fn stream(&self, path: &str, headers: &[(&'static str, &str)]) -> EventStream {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let request = Request { method: Method::Get, path: path.to_owned(), body: None, headers };
        let (parts, body) = self.http.stream(request).await.into_parts();
        assert_eq!(parts.status, 200, "{path}");
        EventStream { headers: parts.headers, body, text: String::new() }
    }

    /// The status of an answer whose body may have no end.
    pub(crate) async fn open(&self, request: Request) -> u16 {
        self.http.stream(request).await.status().as_u16()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.send(Method::Get, path, None, &[]).await.fine()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::Post, path, Some(body.to_string()), &[]).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::Put, path, Some(body.to_string()), &[]).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::Patch, path, Some(body.to_string()), &[]).await
    }

    /// Captures a text through the default binding of a company, as residue.
    pub(crate) async fn capture(&self, company: &str, text: &str) -> Answer {
        let body = json!({
            "scope": {"companyId": company},
            "source": {"kind": "run", "companyId": company, "runId": "r1"},
            "payload": {"text": text},
        });
        self.post(&format!("/runtime/v1/companies/{company}/capture"), &body).await
    }

    /// The texts that a query finds.
    pub(crate) async fn query(&self, company: &str, text: &str) -> Vec<String> {
        self.query_for(json!({"companyId": company}), text).await
    }

    /// The texts that a query in a project finds.
    pub(crate) async fn query_in(&self, company: &str, project: &str, text: &str) -> Vec<String> {
        self.query_for(json!({"companyId": company, "projectId": project}), text).await
    }

    async fn query_for(&self, scope: Value, text: &str) -> Vec<String> {
        let path = format!("/runtime/v1/companies/{}/query", scope["companyId"].as_str().unwrap());
        let found = self.post(&path, &json!({"scope": scope, "query": text})).await.fine();
        let texts = found["snippets"].as_array().unwrap().iter();
        texts.map(|snippet| snippet["text"].as_str().unwrap().to_owned()).collect()
    }

    /// Repeats a GET until the condition holds, for at most two minutes.
    pub(crate) async fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..6_000 {
            let found = self.get(path).await;
            if is_so(&found) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the condition did not hold within two minutes: {}", self.get(path).await);
    }
}

/// A stream of events, and what it has sent so far.
pub(crate) struct EventStream {
    pub(crate) headers: http::HeaderMap,
    body: axum::body::Body,
    pub(crate) text: String,
}

impl EventStream {
    /// Reads until the text is there, for at most twenty seconds; without a text, until the stream
    /// ends.
    pub(crate) async fn read_until(&mut self, wanted: Option<&str>) {
        while wanted.is_none_or(|wanted| !self.text.contains(wanted)) {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let frame = tokio::time::timeout(Duration::from_secs(20), frame).await;
            match frame.unwrap_or_else(|_| panic!("{wanted:?} did not come: {}", self.text)) {
                Some(frame) => self
                    .text
                    .push_str(&String::from_utf8_lossy(&frame.unwrap().into_data().unwrap())),
                None if wanted.is_none() => return,
                None => panic!("the stream ended without {wanted:?}: {}", self.text),
            }
        }
    }
}

impl Answer {
    /// The body of an answer that must be a success.
    pub(crate) fn fine(self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text);
        self.json
    }

    /// The status and the code of a problem.
    pub(crate) fn problem(&self) -> (u16, &str) {
        (self.status, self.json["code"].as_str().unwrap_or_default())
    }
}

/// A host with the guest `extracts`, bound as the default of `acme`, that retries quickly.
pub(crate) async fn extracting() -> (TestHost, Api) {
    extracting_with(5).await
}

/// The same, with this many attempts.
pub(crate) async fn extracting_with(attempts: u32) -> (TestHost, Api) {
    let host = TestHost::with(&["extracts"], |options| {
        options.retry.first = Duration::from_millis(10);
        options.retry.longest = Duration::from_millis(40);
        options.retry.attempts = attempts;
    })
    .await
    .unwrap();
    let api = Api::new(&host);
    bind(&api, "acme", "extracts", &json!({})).await;
    (host, api)
}

/// A binding of this provider's key, with storage, as the company's default.
pub(crate) async fn bind_provider(api: &Api, company: &str, provider: &str) {
    let grants = json!({"storageBytes": 64 << 20, "directoryBytes": 64 << 20});
    let body = json!({"key": provider, "providerKey": provider, "grants": grants, "default": true});
    api.post(&format!("/control/v1/companies/{company}/bindings"), &body).await.fine();
}

/// A binding of the guest `extracts` under a key, the company's default.
pub(crate) async fn bind(api: &Api, company: &str, key: &str, policy: &Value) {
    let grants = json!({"storageBytes": 64 << 20, "http": [{"origin": "https://api.example.com"}]});
    let body = json!({
        "key": key, "providerKey": "extracts", "grants": grants, "policy": policy, "default": true,
    });
    api.post(&format!("/control/v1/companies/{company}/bindings"), &body).await.fine();
}
