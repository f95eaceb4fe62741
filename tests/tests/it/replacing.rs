//! `replacesSource`: whose records a replacement takes, and when.

use memhost_server::Method;
use memhost_tests::eventually;
use serde_json::{Value, json};

use super::hooks::{DELIVERIES, HOOKS};
use super::support::{Answer, Api, bind, extracting};

const CAPTURE: &str = "/runtime/v1/companies/acme/capture";
const REVIEWS: &str = "/control/v1/companies/acme/reviews";
const TOKENS: &str = "/control/v1/companies/acme/tokens";

fn comment() -> Value {
    json!({"kind": "issue_comment", "companyId": "acme", "issueId": "i1", "commentId": "c1"})
}

fn material(text: &str, more: Value) -> Value {
    let mut body =
        json!({"scope": {"companyId": "acme"}, "source": comment(), "payload": {"text": text}});
    let Value::Object(more) = more else { unreachable!("{more}") };
    body.as_object_mut().unwrap().extend(more);
    body
}

fn replacing(text: &str) -> Value {
    material(text, json!({"replacesSource": true}))
}

fn hook(id: &str, mut body: Value) -> Value {
    let event = json!({
        "hookKind": "post_run_capture", "hookId": id,
        "triggeredAt": jiff::Timestamp::now().to_string(),
    });
    body.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
    body
}

/// The texts of all records of the default binding, whoever may read them.
async fn texts(api: &Api) -> Vec<String> {
    let page = api
        .post("/runtime/v1/companies/acme/list", &json!({"scope": {"companyId": "acme"}}))
        .await
        .fine();
    let mut all: Vec<String> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["text"].as_str().unwrap().to_owned())
        .collect();
    all.sort();
    all
}

async fn token(api: &Api, body: Value) -> Api {
    let made = api.post(TOKENS, &body).await.fine();
    api.with(made["value"].as_str().unwrap())
}

/// A gateway, and how it acts for the person `pat`.
async fn gateway(api: &Api) -> Api {
    token(api, json!({"name": "gateway", "role": "integration"})).await
}

async fn as_pat(gateway: &Api, path: &str, body: &Value) -> Answer {
    gateway
        .send(Method::Post, path, Some(body.to_string()), &[("x-memhost-act-as-person", "pat")])
        .await
}

async fn settled(api: &Api) {
    eventually("no delivery is pending", async || {
        api.get(&format!("{DELIVERIES}?status=pending&limit=1")).await["items"]
            .as_array()
            .unwrap()
            .is_empty()
    })
    .await;
}

async fn pending(api: &Api) -> Vec<Value> {
    api.get(&format!("{REVIEWS}?status=pending")).await["items"].as_array().unwrap().clone()
}

/// Decides about the only item that waits.
async fn decide(api: &Api, decision: Value) {
    let items = pending(api).await;
    assert_eq!(items.len(), 1, "{items:?}");
    api.post(&format!("{REVIEWS}/{}/decision", items[0]["id"].as_str().unwrap()), &decision)
        .await
        .fine();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replacement_takes_what_its_sender_could_forget_by_handle() {
    let (_host, api) = extracting().await;
    let (ada, bob, gateway) = (api.agent("ada").await, api.agent("bob").await, gateway(&api).await);
    let private = |text: &str, visibility: &str| material(text, json!({"visibility": visibility}));
    let prepare = async || {
        ada.post(CAPTURE, &private("ada's own", "agent")).await.fine();
        bob.post(CAPTURE, &private("bob's own", "agent")).await.fine();
        as_pat(&gateway, CAPTURE, &private("pat's own", "person")).await.fine();
        ada.post(CAPTURE, &material("shared", json!({}))).await.fine();
    };
    prepare().await;
    let done = bob.post(CAPTURE, &replacing("bob's new")).await.fine();
    assert_eq!(texts(&api).await, ["ada's own", "bob's new", "pat's own"], "{done}");
    // Who did it, and of which source, is in the log.
    let log =
        api.get("/control/v1/companies/acme/operations?kind=forget&sourceKind=issue_comment").await;
    let forgot = &log["items"][0];
    assert_eq!(
        (&forgot["principal"], &forgot["source"]["commentId"]),
        (&json!("agent:bob"), &json!("c1")),
        "{log}"
    );
    assert_eq!(forgot["recordCount"], 2, "{log}");
    // A hook is an agent's, too, when the host delivers it later.
    let mut event =
        hook("h1", material("by a hook", json!({"replacesSource": true, "visibility": "agent"})));
    event["waitMs"] = json!(10_000);
    bob.post(HOOKS, &event).await.fine();
    assert_eq!(texts(&api).await, ["ada's own", "by a hook", "pat's own"]);
    // A person takes their own.
    as_pat(&gateway, CAPTURE, &replacing("pat's new")).await.fine();
    assert_eq!(texts(&api).await, ["ada's own", "by a hook", "pat's new"]);
    // Whoever may forget a source takes everything of it.
    gateway.post(CAPTURE, &replacing("the comment")).await.fine();
    assert_eq!(texts(&api).await, ["the comment"]);
    prepare().await;
    api.post(CAPTURE, &replacing("the operator's")).await.fine();
    assert_eq!(texts(&api).await, ["the operator's"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replacement_needs_the_right_to_forget() {
    let (_host, api) = extracting().await;
    api.post(CAPTURE, &material("stays", json!({}))).await.fine();
    let limited = async |operations: Value| {
        let body =
            json!({"name": "eve", "role": "agent", "agentId": "eve", "operations": operations});
        token(&api, body).await
    };
    let capturing = limited(json!(["capture"])).await;
    let refused = capturing.post(CAPTURE, &replacing("eve's")).await;
    assert_eq!(
        (refused.problem(), &refused.json["field"]),
        ((403, "forbidden"), &json!("replacesSource"))
    );
    capturing.post(CAPTURE, &material("beside it", json!({}))).await.fine();
    let hooking = limited(json!(["hooks"])).await;
    let event = hook("h1", replacing("eve's"));
    let refused = hooking.post(HOOKS, &event).await;
    assert_eq!(
        (refused.problem(), &refused.json["field"]),
        ((403, "forbidden"), &json!("replacesSource"))
    );
    let batch = hooking
        .post("/runtime/v1/companies/acme/hooks/batch", &json!({"events": [event]}))
        .await
        .fine();
    assert_eq!(
        (&batch["refused"], &batch["results"][0]["problem"]["status"]),
        (&json!(1), &json!(403)),
        "{batch}"
    );
    assert_eq!(texts(&api).await, ["beside it", "stays"]);
    limited(json!(["capture", "forget"])).await.post(CAPTURE, &replacing("eve's")).await.fine();
    assert_eq!(texts(&api).await, ["eve's"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_sent_before_is_not_given_up_for_an_agents_replacement() {
    let (_host, api) = extracting().await;
    let (ada, bob, gateway) = (api.agent("ada").await, api.agent("bob").await, gateway(&api).await);
    let binding = "/control/v1/companies/acme/bindings/extracts";
    let enable =
        async |enabled: bool| drop(api.patch(binding, &json!({"enabled": enabled})).await.fine());
    let later = |id: &str, text: &str, more: Value| {
        let mut event = hook(id, material(text, more));
        event["bindingKey"] = json!("extracts");
        event
    };
    let wait_for_both = async |name: &str, replacement: &Api| {
        enable(false).await;
        let own =
            later(&format!("{name}-1"), &format!("ada's {name}"), json!({"visibility": "agent"}));
        ada.post(HOOKS, &own).await.fine();
        let new =
            later(&format!("{name}-2"), &format!("new {name}"), json!({"replacesSource": true}));
        replacement.post(HOOKS, &new).await.fine();
        enable(true).await;
        settled(&api).await;
    };
    wait_for_both("one", &bob).await;
    assert_eq!(texts(&api).await, ["ada's one", "new one"]);
    wait_for_both("two", &gateway).await;
    assert_eq!(texts(&api).await, ["new two"], "what came before is given up, or replaced");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_person_replaces_nothing_before_it_is_approved() {
    let (_host, api) = extracting().await;
    bind(&api, "acme", "careful", &json!({"review": {"all": true}})).await;
    let ada = api.agent("ada").await;
    ada.post(CAPTURE, &material("revision 1", json!({}))).await.fine();
    decide(&api, json!({"decision": "approve"})).await;
    for (decision, left) in [
        (json!({"decision": "reject"}), "revision 1"),
        (json!({"decision": "approve"}), "revision 2"),
        (json!({"decision": "edit", "text": "revision 3"}), "revision 3"),
    ] {
        let before = texts(&api).await;
        ada.post(CAPTURE, &replacing("revision 2")).await.fine();
        assert_eq!(texts(&api).await, before, "{decision}");
        decide(&api, decision.clone()).await;
        assert_eq!(texts(&api).await, [left], "{decision}");
    }
    // The same for what a job makes of it.
    ada.post(CAPTURE, &replacing("job revision 4")).await.fine();
    eventually("the job has made a record", async || pending(&api).await.len() == 1).await;
    assert_eq!(texts(&api).await, ["revision 3"]);
    decide(&api, json!({"decision": "approve"})).await;
    assert_eq!(texts(&api).await, ["job revision 4"]);
    // The later of two that wait wins, whichever is approved first.
    ada.post(CAPTURE, &replacing("revision 5")).await.fine();
    ada.post(CAPTURE, &replacing("revision 6")).await.fine();
    let items = pending(&api).await;
    let newest = items.iter().find(|item| item["text"] == "revision 6").unwrap();
    let path = format!("{REVIEWS}/{}/decision", newest["id"].as_str().unwrap());
    api.post(&path, &json!({"decision": "approve"})).await.fine();
    assert_eq!((texts(&api).await, pending(&api).await.len()), (vec!["revision 6".to_owned()], 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_records_replaces_nothing_and_a_job_does_when_it_has_succeeded() {
    let (_host, api) = extracting().await;
    api.post(CAPTURE, &material("revision 1", json!({}))).await.fine();
    let empty = api.post(CAPTURE, &replacing("included")).await.fine();
    assert_eq!((&empty["records"], texts(&api).await), (&json!([]), vec!["revision 1".to_owned()]));
    api.post(CAPTURE, &replacing("job await go")).await.fine();
    assert_eq!(texts(&api).await, ["revision 1"]);
    let elsewhere = json!({"scope": {"companyId": "acme"}, "payload": {"text": "go"},
        "source": {"kind": "manual_note", "companyId": "acme"}});
    api.post(CAPTURE, &elsewhere).await.fine();
    api.until("/control/v1/companies/acme/jobs", |jobs| jobs["items"][0]["status"] == "succeeded")
        .await;
    assert_eq!(texts(&api).await, ["go", "job await go"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_held_for_personal_data_replaces_when_it_is_released() {
    let (_host, api) = extracting().await;
    api.patch("/control/v1/companies/acme/bindings/extracts", &json!({"policy": {"pii": "hold"}}))
        .await
        .fine();
    let ada = api.agent("ada").await;
    ada.post(CAPTURE, &material("revision 1", json!({}))).await.fine();
    for (decision, left) in [("reject", "revision 1"), ("approve", "write to c@mail.example")] {
        ada.post(CAPTURE, &replacing("write to c@mail.example")).await.fine();
        assert_eq!(texts(&api).await, ["revision 1"]);
        decide(&api, json!({"decision": decision})).await;
        settled(&api).await;
        assert_eq!(texts(&api).await, [left]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sources_are_not_narrowed_and_what_waits_is_not_listed() {
    let (_host, api) = extracting().await;
    bind(&api, "acme", "careful", &json!({"review": {"all": true}})).await;
    let (ada, run) = (
        api.agent("ada").await,
        json!({"name": "r", "role": "agent", "agentId": "ada", "runId": "r1"}),
    );
    let of_run = token(&api, run).await;
    ada.post(CAPTURE, &material("waits", json!({}))).await.fine();
    let list = "/runtime/v1/companies/acme/sources/list";
    let of = |scope: Value| json!({"scope": scope, "sources": [{"commentId": "c1"}]});
    let listed = async |api: &Api| {
        api.post(list, &of(json!({"companyId": "acme"}))).await.fine()["records"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!((listed(&ada).await, listed(&api).await, listed(&of_run).await), (0, 0, 0));
    decide(&api, json!({"decision": "approve"})).await;
    assert_eq!((listed(&ada).await, listed(&api).await, listed(&of_run).await), (1, 1, 1));
    for field in ["projectId", "runId", "issueId", "namespace", "sessionKey"] {
        let mut scope = json!({"companyId": "acme"});
        scope[field] = json!("x1");
        for path in [list, "/runtime/v1/companies/acme/sources/forget"] {
            let refused = api.post(path, &of(scope.clone())).await;
            let named = refused.json["field"].as_str().map(str::to_owned);
            assert_eq!(
                (refused.status, named),
                (400, Some(format!("scope.{field}"))),
                "{path}: {}",
                refused.text
            );
        }
    }
    assert_eq!(listed(&api).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_private_captures_are_their_owners_and_a_retry_of_all_is_asked_for() {
    let (_host, api) = extracting().await;
    let (ada, bob, gateway) = (api.agent("ada").await, api.agent("bob").await, gateway(&api).await);
    ada.post(CAPTURE, &material("job of ada's", json!({"visibility": "agent"}))).await.fine();
    as_pat(&gateway, CAPTURE, &material("job of pat's", json!({"visibility": "person"})))
        .await
        .fine();
    api.post(CAPTURE, &material("job of the company's", json!({}))).await.fine();
    let jobs = "/runtime/v1/companies/acme/jobs";
    let count = |page: Value| page["items"].as_array().unwrap().len();
    let as_person =
        gateway.send(Method::Get, jobs, None, &[("x-memhost-act-as-person", "pat")]).await.fine();
    assert_eq!((count(gateway.get(jobs).await), count(as_person)), (1, 2));
    assert_eq!(
        (count(ada.get(jobs).await), count(bob.get(jobs).await), count(api.get(jobs).await)),
        (2, 1, 3)
    );
    let all = api.get("/control/v1/companies/acme/jobs").await;
    let private =
        all["items"].as_array().unwrap().iter().find(|job| job["visibility"] == "agent").unwrap();
    let one = format!("{jobs}/{}", private["id"].as_str().unwrap());
    assert_eq!(gateway.send(Method::Get, &one, None, &[]).await.status, 404);
    ada.get(&one).await;
    let retry = "/control/v1/companies/acme/jobs/retry";
    let refused = api.post(retry, &json!({})).await;
    assert_eq!(
        (refused.status, &refused.json["field"]),
        (400, &json!("every")),
        "{}",
        refused.text
    );
    for body in [json!({"every": true}), json!({"status": "failed"})] {
        assert_eq!(api.post(retry, &body).await.fine()["changed"], 0);
    }
}
