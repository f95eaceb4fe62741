//! The routes as callers see them: statuses, problem details and tokens.

use std::sync::Arc;

use memhost_server::{Endpoint, InProcess, Method, Request, Surfaces};
use memhost_tests::{Serving, TestHost};
use serde_json::{Value, json};

async fn host() -> (TestHost, InProcess) {
    let host = TestHost::new(&["traps"]).await.unwrap();
    let http = InProcess::new(Arc::clone(host.service()));
    (host, http)
}

async fn call(http: &InProcess, method: Method, path: &str, body: &str) -> (u16, Value) {
    let body = (method != Method::Get).then(|| body.to_owned());
    let (status, body) =
        http.call(Request { method, path: path.to_owned(), body, headers: Vec::new() }).await;
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

async fn post(http: &InProcess, path: &str, body: &Value) -> (u16, Value) {
    call(http, Method::Post, path, &body.to_string()).await
}

const QUERY: &str = "/runtime/v1/companies/acme/query";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_and_answers_have_the_plans_json() {
    let (_host, http) = host().await;
    let write = json!({
        "scope": {"companyId": "acme", "agentId": "ada"},
        "source": {"kind": "issue_comment", "companyId": "acme", "issueId": "i", "commentId": "c"},
        "records": [{"text": "the gate code changes monthly", "metadata": {"n": 1.5}}],
    });
    let (status, written) = post(&http, "/runtime/v1/companies/acme/records", &write).await;
    assert_eq!(status, 200, "{written}");
    let scope = json!({"companyId": "acme", "agentId": "ada"});
    let (status, found) = post(&http, QUERY, &json!({"scope": scope, "query": "gate code"})).await;
    assert_eq!(status, 200);
    let snippet = &found["snippets"][0];
    assert_eq!(snippet["handle"], written["records"][0]);
    assert_eq!(snippet["source"]["commentId"], "c");
    assert_eq!(snippet["metadata"], json!({"n": 1.5}));
    assert_eq!(snippet["scoreKind"], "rank");
    let path =
        format!("/control/v1/companies/acme/operations/{}", found["operationId"].as_str().unwrap());
    let (status, operation) = call(&http, Method::Get, &path, "").await;
    assert_eq!(
        (status, &operation["kind"], &operation["outcome"]),
        (200, &json!("query"), &json!("succeeded"))
    );
    let (status, page) = call(
        &http,
        Method::Get,
        "/control/v1/companies/acme/operations?kind=query&agentId=ada",
        "",
    )
    .await;
    assert_eq!((status, page["items"].as_array().unwrap().len()), (200, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_names_the_field_and_changes_nothing() {
    let (host, http) = host().await;
    let large = format!(r#"{{"scope":{{"companyId":"acme"}},"query":"{}"}}"#, "x".repeat(9 << 20));
    for (body, status, field) in [
        ("{", 400, Value::Null),
        (r#"{"scope":{"companyId":"acme"},"query":"q"} x"#, 400, Value::Null),
        (r#"{"scope":{"companyId":"acme","team":"x"},"query":"q"}"#, 400, json!("scope.team")),
        (r#"{"scope":{"companyId":"acme"},"query":"q","topK":-1}"#, 400, json!("topK")),
        (r#"{"scope":{"companyId":"acme"},"query":7}"#, 400, json!("query")),
        (r#"{"scope":{"companyId":"other"},"query":"q"}"#, 400, json!("scope.companyId")),
        (r#"{"scope":{"companyId":"a/b"},"query":"q"}"#, 400, json!("scope.companyId")),
        (
            r#"{"scope":{"companyId":"acme","agentId":"a\u0007"},"query":"q"}"#,
            400,
            json!("scope.agentId"),
        ),
        (&large, 413, Value::Null),
    ] {
        let (found, problem) = call(&http, Method::Post, QUERY, body).await;
        assert_eq!((found, &problem["field"]), (status, &field), "{body:.80}: {problem}");
        assert!(
            problem["type"].as_str().unwrap().starts_with("https://memhost.dev/problems/"),
            "{problem}"
        );
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
    }
    assert!(host.operations("acme").await.unwrap().is_empty());
    let get = |path: &'static str| call(&http, Method::Get, path, "");
    let (status, problem) = get("/control/v1/companies/acme/operations?color=red").await;
    assert_eq!(status, 400);
    assert!(problem["detail"].as_str().unwrap().contains("color"), "{problem}");
    assert_eq!(get("/control/v1/companies/acme/operations?limit=0").await.1["field"], "limit");
    assert_eq!(
        get("/control/v1/companies/acme/operations?cursor=forged").await.1["field"],
        "cursor"
    );
    assert_eq!(get("/control/v1/companies/acme/operations/no-id").await.0, 400);
    assert_eq!(get("/control/v1/companies/acme/bindings/none").await.1["code"], "no_binding");
    assert_eq!(get("/nothing").await.1["code"], "no_route");
    assert_eq!(get(QUERY).await.0, 405);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_needs_a_free_key_and_a_valid_configuration() {
    let (_host, http) = host().await;
    let path = "/control/v1/companies/acme/bindings";
    let bad = json!({"key": "m", "providerKey": "local-markdown", "config": {"ranking": {"b": 7}}});
    let (status, problem) = post(&http, path, &bad).await;
    assert_eq!(
        (status, &problem["errors"][0]["pointer"]),
        (422, &json!("/ranking/b")),
        "{problem}"
    );
    let good = json!({"key": "m", "providerKey": "local-markdown", "default": true});
    assert_eq!(post(&http, path, &good).await.0, 201);
    assert_eq!(post(&http, path, &good).await.1["code"], "binding_exists");
    let unknown = json!({"key": "n", "providerKey": "mem0"});
    assert_eq!(post(&http, path, &unknown).await.1["code"], "no_provider");
    let limits = json!({"key": "n", "providerKey": "traps", "limits": {"memoryBytes": 1}});
    assert_eq!(post(&http, path, &limits).await.1["field"], "limits.memoryBytes");
    let override_for_ada = json!({"key": "t", "providerKey": "traps"});
    assert_eq!(post(&http, path, &override_for_ada).await.0, 201);
    let target = json!({"agentId": "ada", "bindingKey": "t"}).to_string();
    assert_eq!(
        call(&http, Method::Put, "/control/v1/companies/acme/targets", &target).await.0,
        204
    );
    let (_, resolved) =
        call(&http, Method::Get, "/control/v1/companies/acme/resolve?agentId=ada", "").await;
    assert_eq!(
        (&resolved["binding"]["key"], &resolved["why"]),
        (&json!("t"), &json!("agent_override"))
    );
    let (_, resolved) =
        call(&http, Method::Get, "/control/v1/companies/acme/resolve?agentId=bob", "").await;
    assert_eq!(
        (&resolved["binding"]["key"], &resolved["why"]),
        (&json!("m"), &json!("company_default"))
    );
    // A grant that is too large is refused with its field. An assignment is removed only by an
    // explicit null.
    for (grants, field) in [
        (
            json!({"http": [{"origin": "api.example.com", "methods": ["GET"]}]}),
            "grants.http.0.origin",
        ),
        (
            json!({"http": [{"origin": "https://a.example", "methods": ["get"]}]}),
            "grants.http.0.methods",
        ),
        (json!({"secrets": ["A", "A KEY"]}), "grants.secrets.1"),
        (
            json!({"secrets": (0..65).map(|n| format!("KEY{n}")).collect::<Vec<_>>()}),
            "grants.secrets",
        ),
    ] {
        let refused = json!({"key": "n", "providerKey": "traps", "grants": grants});
        let (status, problem) = post(&http, path, &refused).await;
        assert_eq!((status, &problem["field"]), (400, &json!(field)), "{problem}");
    }
    let targets = "/control/v1/companies/acme/targets";
    for forgotten in ["{}", r#"{"agentId":"ada"}"#] {
        assert_eq!(call(&http, Method::Put, targets, forgotten).await.0, 400, "{forgotten}");
    }
    // A crash of a provider is recorded as the provider's failure.
    let scope = json!({"companyId": "acme", "agentId": "ada"});
    let (status, problem) = post(&http, QUERY, &json!({"scope": scope, "query": "trap"})).await;
    assert_eq!((status, &problem["code"]), (502, &json!("trapped")));
    assert!(problem["operationId"].is_string());
    let none = r#"{"agentId":"ada","bindingKey":null}"#;
    assert_eq!(call(&http, Method::Put, targets, none).await.0, 204);
    let (_, resolved) =
        call(&http, Method::Get, "/control/v1/companies/acme/resolve?agentId=ada", "").await;
    assert_eq!(
        (&resolved["binding"]["key"], &resolved["why"]),
        (&json!("m"), &json!("company_default"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_need_the_token_and_stopping_lets_requests_end() {
    let (host, _) = host().await;
    let serving = Serving::start(&host, "a token of the test").await.unwrap();
    let address = serving.url().to_owned();
    let of = move |path: &'static str, token: Option<&'static str>| {
        let address = address.clone();
        tokio::task::spawn_blocking(move || {
            let agent: ureq::Agent =
                ureq::Agent::config_builder().http_status_as_error(false).build().into();
            let mut request = agent.get(format!("{address}{path}"));
            if let Some(token) = token {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            request.call().unwrap().status().as_u16()
        })
    };
    let status = |token| of("/control/v1/plugins", token);
    assert_eq!(of("/metrics", None).await.unwrap(), 401);
    assert_eq!(of("/metrics", Some("a token of the test")).await.unwrap(), 200);
    assert_eq!(
        (of("/healthz", None).await.unwrap(), of("/readyz", None).await.unwrap()),
        (200, 200)
    );
    assert_eq!(status(None).await.unwrap(), 401);
    assert_eq!(status(Some("another token")).await.unwrap(), 401);
    assert_eq!(status(Some("a token of the test")).await.unwrap(), 200);
    serving.stop().await.unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let error =
        Endpoint::bind(&taken.local_addr().unwrap().into(), Surfaces::All).await.err().unwrap();
    assert!(error.to_string().contains("--listen"), "{error}");
}

/// Ids, times and measurements differ between runs. Everything else is compared.
fn steady(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let varies = matches!(
                    name.as_str(),
                    "id" | "bindingId"
                        | "operationId"
                        | "providerRecordId"
                        | "createdAt"
                        | "updatedAt"
                        | "startedAt"
                        | "finishedAt"
                        | "at"
                        | "latencyUs"
                        | "providerUs"
                        | "digest"
                        | "score"
                        | "bytes"
                        | "path"
                        | "directory"
                        | "usage"
                        | "description"
                        | "exports"
                        | "imports"
                        | "reviewed"
                        | "nextCursor"
                );
                match varies {
                    true => *field = Value::from(format!("[{name}]")),
                    false => steady(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(steady),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_have_the_shapes_that_they_had() {
    let (_host, http) = host().await;
    let scope = json!({"companyId": "acme", "agentId": "ada"});
    let write = json!({"scope": scope, "records": [{"text": "the gate code changes monthly"}]});
    let (_, written) = post(&http, "/runtime/v1/companies/acme/records", &write).await;
    let handle = written["records"][0].clone();
    let control = "/control/v1/companies/acme";
    let mut shapes = serde_json::Map::new();
    let mut keep = |name: &str, (status, mut body): (u16, Value)| {
        steady(&mut body);
        shapes.insert(name.to_owned(), json!({"status": status, "body": body}));
    };
    keep("query", post(&http, QUERY, &json!({"scope": scope, "query": "gate"})).await);
    keep(
        "list",
        post(&http, "/runtime/v1/companies/acme/list", &json!({"scope": scope, "limit": 1})).await,
    );
    keep(
        "get",
        post(&http, "/runtime/v1/companies/acme/get", &json!({"scope": scope, "handle": handle}))
            .await,
    );
    keep(
        "forget",
        post(
            &http,
            "/runtime/v1/companies/acme/forget",
            &json!({"scope": scope, "handles": [handle]}),
        )
        .await,
    );
    keep("bindings", call(&http, Method::Get, &format!("{control}/bindings"), "").await);
    keep(
        "grants",
        call(&http, Method::Get, &format!("{control}/bindings/default/grants"), "").await,
    );
    keep("activity", call(&http, Method::Get, &format!("{control}/activity"), "").await);
    keep(
        "operations",
        call(&http, Method::Get, &format!("{control}/operations?limit=2"), "").await,
    );
    keep("plugins", call(&http, Method::Get, "/control/v1/plugins", "").await);
    keep("problem", call(&http, Method::Get, &format!("{control}/bindings/none"), "").await);
    insta::assert_json_snapshot!(shapes);
}

/// Addresses that are not UTF-8, that contain invalid ids, or that are very long get problem
/// details.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusable_addresses_are_answered_with_problem_details() {
    let (_host, http) = host().await;
    let id = "0199f0a0-0000-7000-8000-000000000000";
    for (path, status) in [
        ("companies/%ff/operations".to_owned(), 400),
        ("companies/acme/bindings/%ff".to_owned(), 400),
        ("companies/a%00b/operations".to_owned(), 400),
        ("companies/a%2Fb/operations".to_owned(), 400),
        (format!("companies/{}/operations", "a".repeat(60_000)), 400),
        ("companies/acme/operations?limit=99999999999999999999".to_owned(), 400),
        ("companies/acme/operations?limit=0".to_owned(), 400),
        ("companies/acme/operations?colour=red".to_owned(), 400),
        // An id has one spelling.
        (format!("companies/acme/jobs/{}", id.replace('-', "")), 400),
        (format!("companies/acme/jobs/%7B{id}%7D"), 400),
        (format!("companies/acme/jobs/urn:uuid:{id}"), 400),
        (format!("companies/acme/jobs/{id}"), 404),
    ] {
        let request = Request { path: format!("/control/v1/{path}"), ..Request::default() };
        let response = http.respond(request).await;
        assert_eq!(response.status(), status, "{path:.80}");
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{path:.80}");
    }
}
