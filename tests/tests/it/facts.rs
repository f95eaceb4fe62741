//! The provider `facts` through the host: its preamble, the separation of owners, and the routes
//! and tools of PageSpace.

use std::sync::Arc;

use memhost_core::ServiceError;
use memhost_integrations::IntegrationOptions;
use memhost_server::Method;
use memhost_tests::{TestHost, caller, list, query, scope, upsert};
use memhost_types::{Intent, OperationErrorCode, QueryRequest, Scope};
use serde_json::{Value, json};

use super::mcp_http::{Client, listening, token};
use super::support::Api;

/// A host with the provider as the default of two companies, PageSpace's routes, and `save_memory`.
async fn host(config: Value) -> (TestHost, Api) {
    let integrations: IntegrationOptions = serde_json::from_value(
        json!({"pagespace": {"company": "acme", "agents_name_users": true}}),
    )
    .unwrap();
    let host = TestHost::new(&["facts"])
        .await
        .unwrap()
        .surfaces(|surfaces| surfaces.integrations = integrations);
    let api = Api::new(&host);
    for company in ["acme", "zeta"] {
        let body = json!({"key": "facts", "providerKey": "facts", "default": true, "config": config,
            "grants": {"storageBytes": 64 << 20, "clock": true},
            "policy": {"mcp": {"aliases": true}}});
        api.post(&format!("/control/v1/companies/{company}/bindings"), &body).await.fine();
    }
    (host, api)
}

fn of(subject: &str, project: &str) -> Scope {
    let named = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
    Scope { subject_id: named(subject), project_id: named(project), ..scope("acme") }
}

async fn write(host: &TestHost, scope: &Scope, text: &str) -> Result<(), ServiceError> {
    let request = memhost_types::UpsertRequest { scope: scope.clone(), ..upsert("acme", &[text]) };
    host.service().operations().upsert(&caller(), request).await.map(drop)
}

async fn preamble(host: &TestHost, scope: Scope) -> Option<String> {
    let request = QueryRequest { scope, intent: Intent::AgentPreamble, ..query("acme", "") };
    host.service().operations().query(&caller(), request).await.unwrap().profile_summary
}

async fn count(host: &TestHost, scope: Scope) -> usize {
    let request = memhost_types::ListRequest { scope, ..list("acme", 1_000, None) };
    host.service().operations().list(&caller(), request).await.unwrap().items.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preamble_has_all_facts_of_its_user_and_its_drive() {
    let (host, _) = host(json!({})).await;
    for (scope, text) in [
        (of("u", ""), "Senior software engineer"),
        (of("u", ""), "Prefers concise responses"),
        (of("", "d1"), "Chose Zustand over Redux"),
        (of("", "d2"), "Chose Redux"),
    ] {
        write(&host, &scope, text).await.unwrap();
    }
    let user = "## About This User\n\n- Senior software engineer\n- Prefers concise responses\n\n";
    let drive = "## About This Workspace\n\n- Chose Zustand over Redux\n\n";
    assert_eq!(preamble(&host, of("u", "d1")).await.unwrap(), format!("{user}{drive}"));
    assert_eq!(preamble(&host, of("u", "")).await.unwrap(), user);
    assert_eq!(
        preamble(&host, of("other", "d1")).await.unwrap(),
        drive,
        "a drive's members share it"
    );
    assert_eq!(preamble(&host, of("other", "d3")).await, None);
    assert_eq!(count(&host, of("", "d2")).await, 1, "drives are kept apart");
    // Another company has other users of the same name.
    let theirs = Scope { company_id: "zeta".parse().unwrap(), ..of("u", "d1") };
    assert_eq!(preamble(&host, theirs).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_over_a_limit_or_without_an_owner_are_refused() {
    let (host, _) = host(json!({"maxFacts": 2})).await;
    let refusal = |scope: Scope, text: String| {
        let host = &host;
        async move {
            let ServiceError::Operation { error, .. } =
                write(host, &scope, &text).await.unwrap_err()
            else {
                panic!()
            };
            (error.code, error.field.unwrap_or_default(), error.message)
        }
    };
    let (code, field, message) = refusal(of("u", ""), "ä".repeat(201)).await;
    assert_eq!(
        (code, field.as_str()),
        (OperationErrorCode::InvalidRequest, "records.0.text"),
        "{message}"
    );
    assert!(message.contains("200"), "{message}");
    // A fact whose metadata say whose kind it is needs the one; without that it is the company's.
    for (kind, missing) in [("user", "scope.subjectId"), ("drive", "scope.projectId")] {
        let mut request = upsert("acme", &["of nobody"]);
        request.records[0].metadata = json!({"scope": kind}).as_object().cloned();
        let refused = host.service().operations().upsert(&caller(), request).await.unwrap_err();
        let ServiceError::Operation { error, .. } = refused else { panic!() };
        assert_eq!(error.field.as_deref(), Some(missing), "{}", error.message);
    }
    write(&host, &scope("acme"), "of the company").await.unwrap();
    assert_eq!(count(&host, of("", "d9")).await, 1, "everybody reads what is the company's");
    for text in ["one", "two"] {
        write(&host, &of("u", ""), text).await.unwrap();
    }
    let (code, _, message) = refusal(of("u", ""), "three".to_owned()).await;
    assert_eq!(code, OperationErrorCode::QuotaExceeded, "{message}");
    assert!(message.contains("maxFacts"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_limit_of_facts_holds_for_concurrent_writers() {
    let (host, _) = host(json!({})).await;
    let host = Arc::new(host);
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..80 {
        let host = Arc::clone(&host);
        writers.spawn(async move { write(&host, &of("u", ""), &format!("fact number {n}")).await });
    }
    let written = writers.join_all().await;
    let (fine, refused): (Vec<_>, Vec<_>) = written.into_iter().partition(Result::is_ok);
    assert_eq!((fine.len(), refused.len()), (50, 30));
    for refusal in refused {
        let ServiceError::Operation { error, .. } = refusal.unwrap_err() else { panic!() };
        assert_eq!(error.code, OperationErrorCode::QuotaExceeded, "{}", error.message);
    }
    assert_eq!(count(&host, of("u", "")).await, 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pagespace_routes_work_with_facts() {
    let (host, api) = host(json!({})).await;
    let send = |method: Method, path: &str, body: Option<Value>| {
        let path = path.to_owned();
        let api = &api;
        async move {
            api.send(method, &path, body.map(|body| body.to_string()), &[("x-user-id", "u1")]).await
        }
    };
    let add =
        |path: &'static str, text: &str| send(Method::Post, path, Some(json!({"fact": text})));
    let likes = add("/api/memory/user", "Likes tea").await.fine();
    add("/api/memory/user", "Knows Rust").await.fine();
    let chose = add("/api/memory/drive/d1", "Chose Zustand over Redux").await.fine();
    add("/api/memory/drive/d2", "Chose Redux").await.fine();
    assert_eq!((&chose["createdBy"], &chose["source"]), (&json!("u1"), &json!("user")));
    let listed = send(Method::Get, "/api/memory/user", None).await.fine();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]), (2, &likes));
    assert_eq!(api.get("/api/memory/drive/d1").await, json!([chose]));
    // The recall of a run of this user in this drive.
    let scope = Scope { namespace: Some("d1".to_owned()), ..of("u1", "") };
    let text = preamble(&host, scope).await.unwrap();
    let wanted = "## About This User\n\n- Likes tea\n- Knows Rust\n\n\
                  ## About This Workspace\n\n- Chose Zustand over Redux\n\n";
    assert_eq!(text, wanted);
    let one = format!("/api/memory/user/{}", likes["id"].as_str().unwrap());
    assert_eq!(send(Method::Delete, &one, None).await.status, 204);
    assert_eq!(
        send(Method::Delete, "/api/memory/user/all", None).await.fine(),
        json!({"removed": 1})
    );
    assert_eq!(
        send(Method::Delete, "/api/memory/drive/d1/all", None).await.fine(),
        json!({"removed": 1})
    );
    assert_eq!(api.get("/api/memory/drive/d1").await, json!([]));
    assert_eq!(api.get("/api/memory/drive/d2").await.as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn facts_that_a_model_saves_appear_in_pagespace() {
    let (host, api) = host(json!({})).await;
    let address = listening(host.service()).await;
    let of_agent = |agent: &'static str| {
        let host = &host;
        async move {
            let token =
                token(host, "acme", json!({"name": agent, "role": "agent", "agentId": agent}))
                    .await;
            Client::new(address, &token)
                .with("memhost-subject-id", "u1")
                .with("memhost-namespace", "d1")
        }
    };
    let (ada, bob) = (of_agent("ada").await, of_agent("bob").await);
    let saved = ada.does("save_memory", json!({"scope": "user", "fact": "Likes tea"})).await;
    ada.does("save_memory", json!({"scope": "drive", "fact": "Builds on Mondays"})).await;
    let user = api.send(Method::Get, "/api/memory/user", None, &[("x-user-id", "u1")]).await.fine();
    assert_eq!((&user[0]["fact"], &user[0]["source"]), (&json!("Likes tea"), &json!("ai")));
    assert_eq!(api.get("/api/memory/drive/d1").await[0]["fact"], "Builds on Mondays");
    // Another agent that serves the same user there, and one that does not.
    let removal = json!({"scope": "user", "factId": saved["factId"]});
    let elsewhere = bob.with("memhost-subject-id", "u2").with("memhost-namespace", "d2");
    assert_eq!(elsewhere.does("remove_memory", removal.clone()).await["isRemoved"], false);
    assert_eq!(bob.does("remove_memory", removal).await["isRemoved"], true);
    let scope = Scope { namespace: Some("d1".to_owned()), ..of("u1", "") };
    assert_eq!(
        preamble(&host, scope).await.unwrap(),
        "## About This Workspace\n\n- Builds on Mondays\n\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_user_sees_is_what_the_ai_gets() {
    let (host, api) = host(json!({})).await;
    let address = listening(host.service()).await;
    let token =
        token(&host, "acme", json!({"name": "ada", "role": "agent", "agentId": "ada"})).await;
    let ada = Client::new(address, &token)
        .with("memhost-subject-id", "u1")
        .with("memhost-namespace", "d1");
    // By a tool that knows nothing of PageSpace, as a record, by PageSpace's tool and by its route.
    ada.does("memory.note", json!({"text": "Is allergic to nuts"})).await;
    write(&host, &of("u1", ""), "Speaks Welsh").await.unwrap();
    let saved = ada.does("save_memory", json!({"scope": "user", "fact": "Likes tea"})).await;
    let of_drive =
        ada.does("save_memory", json!({"scope": "drive", "fact": "Builds on Mondays"})).await;
    let user = [("x-user-id", "u1")];
    let listed = api.send(Method::Get, "/api/memory/user", None, &user).await.fine();
    let mut facts: Vec<&str> =
        listed.as_array().unwrap().iter().map(|fact| fact["fact"].as_str().unwrap()).collect();
    facts.sort_unstable();
    assert_eq!(facts, ["Is allergic to nuts", "Likes tea", "Speaks Welsh"]);
    // One identity: the tool's id is the route's, and the scope of a removal counts.
    assert!(
        listed.as_array().unwrap().iter().any(|fact| fact["id"] == saved["factId"]),
        "{listed}"
    );
    let drive = api.get("/api/memory/drive/d1").await;
    assert_eq!((&drive[0]["id"], &drive[0]["createdBy"]), (&of_drive["factId"], &json!("ada")));
    let wrong = ada
        .is_refused("remove_memory", json!({"scope": "user", "factId": of_drive["factId"]}))
        .await;
    assert!(wrong.contains("not a fact of the scope `user`"), "{wrong}");
    assert_eq!(api.get("/api/memory/drive/d1").await.as_array().unwrap().len(), 1);
    let removed =
        ada.does("remove_memory", json!({"scope": "drive", "factId": of_drive["factId"]})).await;
    assert_eq!(removed["isRemoved"], true);
    let scope = Scope { namespace: Some("d1".to_owned()), ..of("u1", "") };
    assert!(preamble(&host, scope.clone()).await.unwrap().contains("allergic"));
    let cleared = api.send(Method::Delete, "/api/memory/user/all", None, &user).await.fine();
    assert_eq!(cleared, json!({"removed": 3}));
    assert_eq!(preamble(&host, scope).await, None, "the AI knows nothing any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_loses_nothing() {
    let (mut host, api) = host(json!({})).await;
    // Written by a program: it is in the user's list and in the preamble, before a restart and
    // after it.
    write(&host, &of("u", ""), "Likes tea").await.unwrap();
    let id = api.send(Method::Get, "/api/memory/user", None, &[("x-user-id", "u")]).await.fine()[0]
        ["id"]
        .clone();
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    assert_eq!(
        preamble(&host, of("u", "")).await.unwrap(),
        "## About This User\n\n- Likes tea\n\n"
    );
    let path = format!("/api/memory/user/{}", id.as_str().unwrap());
    let api = Api::new(&host);
    assert_eq!(api.send(Method::Delete, &path, None, &[("x-user-id", "other")]).await.status, 404);
    assert_eq!(api.send(Method::Delete, &path, None, &[("x-user-id", "u")]).await.status, 204);
    assert_eq!(preamble(&host, of("u", "")).await, None);
}
