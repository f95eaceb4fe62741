//! Personal data in a request is the same finding whichever way the request comes in and wherever
//! in it the data stands; what was said never hands a credential to every agent.

use memhost_tests::{TestHost, eventually};
use serde_json::{Value, json};

use super::mcp_http;
use super::support::{Api, bind, extracting};

const RUNTIME: &str = "/runtime/v1/companies/acme";
const MAIL: &str = "jerry@mit.edu";

fn source(external: &str) -> Value {
    json!({"kind": "external_document", "companyId": "acme", "externalRef": external})
}

fn scope() -> Value {
    json!({"companyId": "acme"})
}

/// A capture of this payload from this source.
fn capture(payload: &Value, external: &str) -> Value {
    json!({"scope": scope(), "source": source(external), "payload": payload})
}

fn hook(id: &str, payload: &Value, external: &str) -> Value {
    let mut event = capture(payload, external);
    event["hookKind"] = json!("manual_capture");
    event["hookId"] = json!(id);
    event["triggeredAt"] = json!("2026-11-20T10:00:00Z");
    event
}

async fn pending(api: &Api) -> usize {
    let path = "/control/v1/companies/acme/reviews?status=pending";
    api.get(path).await["items"].as_array().unwrap().len()
}

/// Places in a payload that are not rewritten.
fn names() -> [Value; 4] {
    [
        json!({"text": "x", "metadata": {MAIL: 1}}),
        json!({"text": "x", "metadata": {"card": 4_111_111_111_111_111_u64}}),
        json!({"text": "x", "object": {"deep": [{"phone": 6_172_531_000_u64}]}}),
        json!({"turns": [{"role": MAIL, "text": "x"}]}),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn captures_wait_whichever_way_they_come_and_wherever_the_data_is() {
    for policy in ["hold", "redact"] {
        let (_host, api) = extracting().await;
        bind(&api, "acme", policy, &json!({"pii": policy})).await;
        let path = format!("{RUNTIME}/capture");
        let mut waiting = 0;
        let others = names().map(|payload| (payload, "https://example.com/1".to_owned()));
        let of_source = (json!({"text": "x"}), format!("mailto:{MAIL}"));
        for (number, (payload, external)) in others.into_iter().chain([of_source]).enumerate() {
            let held = api.post(&path, &capture(&payload, &external)).await.fine();
            assert!(held["held"].is_object(), "{policy} {payload} {external}: {held}");
            let one = hook(&format!("one-{number}"), &payload, &external);
            api.post(&format!("{RUNTIME}/hooks"), &one).await.fine();
            let batch = json!({"events": [
                hook(&format!("first-{number}"), &payload, &external),
                hook(&format!("second-{number}"), &payload, &external),
            ]});
            api.post(&format!("{RUNTIME}/hooks/batch"), &batch).await.fine();
            waiting += 4;
            eventually("all wait", async || pending(&api).await == waiting).await;
        }
        // Nothing personal.
        let id = "6f1c2c5e-4111-4111-8111-111111111111";
        let plain = json!({"text": "x", "metadata": {"runId": id, "at": 1_732_780_800_000_u64}});
        let fine = api.post(&path, &capture(&plain, id)).await.fine();
        assert!(fine.get("held").is_none_or(Value::is_null), "{fine}");
        assert_eq!(pending(&api).await, waiting);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_wait_is_redacted_in_texts_and_refused_by_its_field() {
    let (host, api) = extracting().await;
    let address = mcp_http::listening(host.service()).await;
    let agent = mcp_http::agent(&host, address).await;
    for policy in ["hold", "redact"] {
        bind(&api, "acme", policy, &json!({"pii": policy})).await;
        for (record, field) in [
            (json!({"text": "x", "metadata": {MAIL: 1}}), "records.0.metadata"),
            (json!({"text": "x", "id": MAIL}), "records.0.id"),
            (
                json!({"text": "x", "source": source(&format!("mailto:{MAIL}"))}),
                "records.0.source.externalRef",
            ),
        ] {
            let body = json!({"scope": scope(), "records": [record]});
            let answer = api.post(&format!("{RUNTIME}/records"), &body).await;
            match policy {
                "hold" => assert_eq!(answer.problem(), (409, "review_required"), "{body}"),
                _ => {
                    assert_eq!(
                        (answer.status, &answer.json["field"]),
                        (400, &json!(field)),
                        "{}",
                        answer.text
                    );
                    assert!(
                        !answer.text.contains(MAIL) || field.contains("metadata"),
                        "{}",
                        answer.text
                    );
                }
            }
        }
        let note = json!({"text": "x", "metadata": {"card": 4_111_111_111_111_111_u64}});
        let refused = agent.is_refused("memory_note", note).await;
        assert!(refused.contains("personal data"), "{policy}: {refused}");
    }
    // The data is taken out of texts, also where only its name says what it is.
    let note = json!({"text": format!("ask {MAIL}"), "metadata": {"password": "hunter2x9"}});
    agent.does("memory_note", note).await;
    let listed = api.post(&format!("{RUNTIME}/list"), &json!({"scope": scope()})).await.fine();
    let record = &listed["items"][0];
    assert_eq!(
        (&record["text"], &record["metadata"]["password"]),
        (&json!("ask [EMAIL]"), &json!("[SECRET]"))
    );
}

/// With the providers that ship, whatever the policy is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_in_a_prompt_reaches_no_other_agent() {
    let host = TestHost::new(&["cross-agent", "facts", "taxonomy"]).await.unwrap();
    let api = Api::new(&host);
    let said = "Remember: the deploy key is sk-proj-4fG7hJ2kL9mN3pQ5rS8tU1vW6xY0zA2bC4dE and my \
                password is hunter2x9";
    for provider in ["local-markdown", "facts", "cross-agent", "taxonomy"] {
        super::whose::bind(&api, "acme", provider, provider, &json!({})).await;
        let turns = json!({"turns": [
            {"role": "user", "text": said}, {"role": "assistant", "text": "Noted."},
        ]});
        for (number, payload) in [json!({"text": said}), turns].iter().enumerate() {
            let mut event = hook(&format!("{provider}-{number}"), payload, "https://example.com/1");
            event["bindingKey"] = json!(provider);
            event["waitMs"] = json!(10_000);
            api.post(&format!("{RUNTIME}/hooks"), &event).await.fine();
        }
        let body = json!({"scope": scope(), "bindingKey": provider, "limit": 100});
        let listed = api.post(&format!("{RUNTIME}/list"), &body).await.fine();
        let query =
            json!({"scope": scope(), "bindingKey": provider, "query": "deploy key password"});
        let found = api.post(&format!("{RUNTIME}/query"), &query).await.fine();
        for shown in [listed.to_string(), found.to_string()] {
            assert!(
                !shown.contains("4fG7hJ2kL9") && !shown.contains("hunter2"),
                "{provider}: {shown}"
            );
        }
        if provider == "local-markdown" {
            assert!(listed.to_string().contains("[SECRET]"), "{listed}");
        }
    }
    // What an agent keeps for itself stays as it is.
    let mut own = capture(&json!({"text": said}), "https://example.com/2");
    own["bindingKey"] = json!("local-markdown");
    own["visibility"] = json!("agent");
    let ada = api.agent("ada").await;
    let kept = ada.post(&format!("{RUNTIME}/capture"), &own).await.fine();
    let get =
        json!({"scope": scope(), "bindingKey": "local-markdown", "handle": kept["records"][0]});
    let record = ada.post(&format!("{RUNTIME}/get"), &get).await.fine()["record"].clone();
    assert_eq!(record["text"], said);
}

/// Events of tools are for everybody who reads the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_keep_no_credentials() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let event = json!({
        "type": "tool_call.failed", "projectId": "p", "sessionId": "s", "agentKind": "codex",
        "toolId": "bash", "status": "1", "durationMs": 7,
        "error": format!("push with {secret} was refused"),
        "details": {"command": ["git", "push", format!("https://x:{secret}@github.com/a/b")],
            "env": {"password": "hunter2!"}, "count": 7},
    });
    let path = "/runtime/v1/companies/acme/events";
    let stored = api.post(path, &json!({"events": [event]})).await.fine();
    let listed = api.get("/control/v1/companies/acme/events").await;
    for (place, said) in [("answer", &stored["items"][0]), ("list", &listed["items"][0])] {
        let text = said.to_string();
        assert!(!text.contains(secret) && !text.contains("hunter2"), "{place}: {text}");
        assert_eq!(said["details"]["count"], 7, "{place}");
        assert!(said["error"].as_str().unwrap().starts_with("push with ["), "{place}: {text}");
    }
}

/// An id that was rewritten would be another one, so a credential in it is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_where_nothing_is_rewritten_is_refused() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let body = || {
        json!({"scope": {"companyId": "acme"}, "payload": {"text": "x"},
            "source": {"kind": "external_document", "companyId": "acme", "externalRef": "a"}})
    };
    api.post("/runtime/v1/companies/acme/capture", &body()).await.fine();
    for (pointer, value, field) in [
        ("/source/externalRef", json!(format!("https://x:{secret}@h/")), "source.externalRef"),
        ("/scope/projectId", json!(secret), "scope.projectId"),
        ("/metadata", json!({secret: 1}), "metadata"),
        ("/payload/metadata", json!({"password": 9_876_543_210_u64}), "payload.metadata.password"),
    ] {
        let mut body = body();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[name] = value;
        let answer = api.post("/runtime/v1/companies/acme/capture", &body).await;
        assert_eq!((answer.status, &answer.json["field"]), (400, &json!(field)), "{}", answer.text);
    }
    let event = json!({"type": "session.started", "projectId": secret, "sessionId": "s",
        "agentKind": "codex"});
    let answer = api.post("/runtime/v1/companies/acme/events", &json!({"events": [event]})).await;
    assert_eq!((answer.status, &answer.json["field"]), (400, &json!("events.0.projectId")));
}
