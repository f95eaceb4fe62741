//! A client of `/mcp` over real HTTP that sends exactly what a test gives it.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use memhost_core::Service;
use memhost_server::{AdminToken, router};
use memhost_tests::TestHost;
use memhost_types::Operation;
use serde_json::{Value, json};

use crate::support::Api;

pub(crate) const OPERATOR: &str = "the-operators-own-token";
pub(crate) const ACCEPT: &str = "application/json, text/event-stream";

/// A host that listens.
pub(crate) async fn listening(service: &Arc<Service>) -> SocketAddr {
    listening_until(service).await.0
}

/// The same, for a test that stops the host: after the task has been ended.
pub(crate) async fn listening_until(
    service: &Arc<Service>,
) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (address, listening_on(service, listener))
}

/// A host at a listener.
pub(crate) fn listening_on(
    service: &Arc<Service>,
    listener: tokio::net::TcpListener,
) -> tokio::task::JoinHandle<()> {
    let router = router(
        Arc::clone(service),
        AdminToken::known(OPERATOR).unwrap(),
        &memhost_server::ServerOptions::default(),
    );
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap_or(()) })
}

/// A token's value.
pub(crate) async fn token(host: &TestHost, company: &str, body: Value) -> String {
    let path = format!("/control/v1/companies/{company}/tokens");
    Api::new(host).post(&path, &body).await.fine()["value"].as_str().unwrap().to_owned()
}

/// A client as a configuration makes it: an address, a token and headers.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) json: Value,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: &str) -> Self {
        let headers = [("authorization", format!("Bearer {token}")), ("accept", ACCEPT.to_owned())];
        Self { address, headers: headers.into() }
    }

    pub(crate) fn with(&self, name: &'static str, value: &str) -> Self {
        let mut headers: Vec<_> =
            self.headers.iter().filter(|(known, _)| *known != name).cloned().collect();
        headers.push((name, value.to_owned()));
        Self { headers, ..self.clone() }
    }

    pub(crate) async fn send(&self, method: &'static str, body: String) -> Answer {
        self.send_to("/mcp", method, body).await
    }

    pub(crate) async fn send_to(
        &self,
        path: &'static str,
        method: &'static str,
        body: String,
    ) -> Answer {
        let client = self.clone();
        tokio::task::spawn_blocking(move || {
            let config = ureq::Agent::config_builder().http_status_as_error(false).build();
            let agent = ureq::Agent::from(config);
            let mut tries = 0;
            let mut response = loop {
                let mut request = http::Request::builder()
                    .method(method)
                    .uri(format!("http://{}{path}", client.address));
                request = request.header("content-type", "application/json");
                for (name, value) in &client.headers {
                    request = request.header(*name, value);
                }
                match agent.run(request.body(body.clone()).unwrap()) {
                    Ok(response) => break response,
                    // A body that is too large is refused before it was read, and this client does
                    // not read an answer that comes while it writes.
                    Err(ureq::Error::Io(error))
                        if matches!(
                            error.kind(),
                            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                        ) && tries < 20 =>
                    {
                        tries += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            };
            let text = response.body_mut().read_to_string().unwrap();
            let json = serde_json::from_str(&text).unwrap_or(Value::String(text));
            Answer { status: response.status().as_u16(), headers: response.headers().clone(), json }
        })
        .await
        .unwrap()
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.send("POST", body.to_string()).await;
        assert_eq!(answer.status, 200, "{method}: {}", answer.json);
        answer.json
    }

    pub(crate) async fn tools(&self) -> Vec<String> {
        let listed = self.ask("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert!(answer["error"].is_null(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// The data of a call that succeeds.
    pub(crate) async fn does(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// The text of a call that is refused.
    pub(crate) async fn is_refused(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

pub(crate) async fn host(guests: &[&str]) -> (TestHost, SocketAddr) {
    let host = TestHost::new(guests).await.unwrap();
    let address = listening(host.service()).await;
    (host, address)
}

pub(crate) async fn agent(host: &TestHost, address: SocketAddr) -> Client {
    let token =
        token(host, "acme", json!({"name": "ada", "role": "agent", "agentId": "ada"})).await;
    Client::new(address, &token).with("user-agent", "claude-code/2.1")
}

pub(crate) async fn last(host: &TestHost, company: &str) -> Operation {
    host.operations(company).await.unwrap().remove(0)
}
