//! Records by their source, at every binding: forgetting them, listing them, and replacing what
//! came before.

use memhost_server::Method;
use memhost_tests::eventually;
use serde_json::{Value, json};

use super::hooks::{DELIVERIES, HOOKS};
use super::support::{Api, bind, extracting};

pub(super) const FORGET: &str = "/runtime/v1/companies/acme/sources/forget";
const LIST: &str = "/runtime/v1/companies/acme/sources/list";
pub(super) const CAPTURE: &str = "/runtime/v1/companies/acme/capture";

pub(super) fn comment(id: &str) -> Value {
    json!({"kind": "issue_comment", "companyId": "acme", "issueId": "i1", "commentId": id})
}

pub(super) fn document(issue: &str) -> Value {
    json!({"kind": "issue_document", "companyId": "acme", "issueId": issue, "documentKey": "plan"})
}

pub(super) fn material(source: &Value, text: &str) -> Value {
    json!({"scope": {"companyId": "acme"}, "source": source, "payload": {"text": text}})
}

pub(super) fn of(sources: &Value) -> Value {
    json!({"scope": {"companyId": "acme"}, "sources": sources})
}

pub(super) fn revision(id: &str, source: &Value, text: &str) -> Value {
    json!({
        "hookKind": "post_run_capture", "hookId": id,
        "triggeredAt": jiff::Timestamp::now().to_string(),
        "scope": {"companyId": "acme"}, "source": source, "payload": {"text": text},
        "replacesSource": true,
    })
}

async fn capture_at(api: &Api, binding: &str, source: &Value, text: &str) -> Value {
    let mut body = material(source, text);
    body["bindingKey"] = json!(binding);
    api.post(CAPTURE, &body).await.fine()
}

/// The texts of all records at a binding.
pub(super) async fn texts(api: &Api, binding: &str) -> Vec<String> {
    let body = json!({"scope": {"companyId": "acme"}, "bindingKey": binding, "limit": 1000});
    let page = api.post("/runtime/v1/companies/acme/list", &body).await.fine();
    let mut all: Vec<String> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["text"].as_str().unwrap().to_owned())
        .collect();
    all.sort();
    all
}

pub(super) async fn settled(api: &Api) {
    eventually("no delivery is pending", async || {
        api.get(&format!("{DELIVERIES}?status=pending&limit=1")).await["items"]
            .as_array()
            .unwrap()
            .is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_from_a_source_is_forgotten_at_every_binding_and_the_rest_stays() {
    let (_host, api) = extracting().await;
    bind(&api, "acme", "second", &json!({"retention": {"snapshots": "full"}})).await;
    for binding in ["extracts", "second"] {
        capture_at(&api, binding, &comment("c1"), "said in the first").await;
        capture_at(&api, binding, &comment("c2"), "said in the second").await;
        capture_at(&api, binding, &document("i1"), "a plan").await;
        capture_at(&api, binding, &document("i2"), "another plan").await;
    }
    // A job that leaves no record keeps its text in the log only.
    capture_at(&api, "second", &comment("c1"), "metered 1").await;
    let found = api.post(LIST, &of(&json!([{"commentId": "c1"}, {"issueId": "i2"}]))).await.fine();
    let keys: Vec<(&str, &str)> = found["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| {
            (record["bindingKey"].as_str().unwrap(), record["source"]["kind"].as_str().unwrap())
        })
        .collect();
    assert_eq!(keys.len(), 4, "{found}");
    assert!(
        keys.contains(&("second", "issue_comment"))
            && keys.contains(&("extracts", "issue_document")),
        "{keys:?}"
    );

    let gone =
        api.post(FORGET, &of(&json!([{"kind": "issue_comment", "commentId": "c1"}]))).await.fine();
    assert_eq!(gone["isComplete"], true, "{gone}");
    for at in gone["bindings"].as_array().unwrap() {
        assert_eq!(
            (&at["forgotten"], at["operationIds"].as_array().unwrap().len()),
            (&json!(1), 1),
            "{gone}"
        );
    }
    for binding in ["extracts", "second"] {
        assert_eq!(texts(&api, binding).await, ["a plan", "another plan", "said in the second"]);
    }
    let log = api.get("/control/v1/companies/acme/operations?bindingKey=second&kind=capture").await;
    assert!(!log.to_string().contains("metered 1"), "the log keeps the text: {log}");
    // A document is its issue's; an issue is all that came from it.
    api.post(FORGET, &of(&json!([{"documentKey": "plan", "issueId": "i2"}]))).await.fine();
    assert_eq!(texts(&api, "second").await, ["a plan", "said in the second"]);
    api.post(FORGET, &of(&json!([{"issueId": "i1"}]))).await.fine();
    assert_eq!((texts(&api, "second").await.len(), texts(&api, "extracts").await.len()), (0, 0));
    // What is said after that is kept.
    capture_at(&api, "second", &comment("c1"), "said again").await;
    assert_eq!(texts(&api, "second").await, ["said again"]);
    assert_eq!(
        api.post(LIST, &of(&json!([{"issueId": "i1"}]))).await.fine()["records"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_job_makes_of_a_forgotten_source_is_forgotten_when_it_arrives() {
    let (_host, api) = extracting().await;
    for id in ["c1", "c2"] {
        api.post(CAPTURE, &material(&comment(id), "job await go")).await.fine();
    }
    let gone = api.post(FORGET, &of(&json!([{"commentId": "c1"}]))).await.fine();
    assert_eq!(gone["bindings"][0]["forgotten"], 0, "nothing was there yet: {gone}");
    api.post(CAPTURE, &material(&comment("c3"), "go")).await.fine();
    eventually("both jobs end", async || {
        let jobs = api.get("/control/v1/companies/acme/jobs?status=succeeded").await;
        jobs["items"].as_array().unwrap().len() == 2
    })
    .await;
    // That of the other comment stays.
    assert_eq!(texts(&api, "extracts").await, ["go", "job await go"]);
    let left = api.post(LIST, &of(&json!([{"issueId": "i1"}]))).await.fine();
    let ids: Vec<&str> = left["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["source"]["commentId"].as_str().unwrap())
        .collect();
    assert!(ids.contains(&"c2") && !ids.contains(&"c1"), "{left}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_to_be_captured_is_given_up() {
    let (_host, api) = extracting().await;
    let binding = "/control/v1/companies/acme/bindings/extracts";
    let enable =
        async |enabled: bool| drop(api.patch(binding, &json!({"enabled": enabled})).await.fine());
    enable(false).await;
    for id in ["c1", "c2"] {
        let mut event = revision(id, &comment(id), &format!("said in {id}"));
        event["bindingKey"] = json!("extracts");
        let receipt = api.post(HOOKS, &event).await.fine();
        assert_eq!(receipt["deliveries"][0]["status"], "pending", "{receipt}");
    }
    let gone = api.post(FORGET, &of(&json!([{"commentId": "c1"}]))).await.fine();
    assert_eq!(
        (gone["discarded"].as_array().unwrap().len(), &gone["isComplete"]),
        (1, &json!(false)),
        "{gone}"
    );
    assert!(gone["bindings"][0]["error"].as_str().unwrap().contains("disabled"), "{gone}");
    assert!(!api.get(DELIVERIES).await.to_string().contains("said in c1"), "its material stays");
    enable(true).await;
    settled(&api).await;
    assert_eq!(texts(&api, "extracts").await, ["said in c2"]);
    assert_eq!(
        api.post(FORGET, &of(&json!([{"commentId": "c1"}]))).await.fine()["isComplete"],
        true
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_person_goes_with_its_source() {
    let (_host, api) = extracting().await;
    let binding = "/control/v1/companies/acme/bindings/extracts";
    api.patch(binding, &json!({"policy": {"pii": "hold"}})).await.fine();
    let reviews = "/control/v1/companies/acme/reviews";
    let waiting = async || {
        api.get(&format!("{reviews}?status=pending")).await["items"].as_array().unwrap().clone()
    };
    let decide = async |item: &Value, what: &str| {
        let path = format!("{reviews}/{}/decision", item["id"].as_str().unwrap());
        api.post(&path, &json!({"decision": what})).await
    };
    // One is approved, one waits, and one is of another source.
    for id in ["c1", "c2", "c3"] {
        api.post(CAPTURE, &material(&comment(id), &format!("write to {id}@mail.example")))
            .await
            .fine();
    }
    let of_comment = |items: &[Value], id: &str| {
        items
            .iter()
            .find(|item| item["text"].as_str().unwrap().contains(id))
            .expect("it waits")
            .clone()
    };
    let before = waiting().await;
    assert_eq!(before.len(), 3, "{before:?}");
    decide(&of_comment(&before, "c1"), "approve").await.fine();
    settled(&api).await;
    assert_eq!(texts(&api, "extracts").await, ["write to c1@mail.example"]);

    let gone =
        api.post(FORGET, &of(&json!([{"commentId": "c1"}, {"commentId": "c2"}]))).await.fine();
    assert_eq!(
        (gone["discarded"].as_array().unwrap().len(), &gone["isComplete"]),
        (1, &json!(true)),
        "{gone}"
    );
    assert_eq!(waiting().await.len(), 1);
    for path in ["deliveries", "reviews", "operations", "activity"] {
        let left = api.get(&format!("/control/v1/companies/acme/{path}")).await.to_string();
        assert!(!left.contains("c1@mail") && !left.contains("c2@mail"), "{path}: {left}");
    }
    assert_eq!(
        decide(&of_comment(&before, "c2"), "approve").await.problem(),
        (409, "already_decided")
    );
    decide(&of_comment(&before, "c3"), "approve").await.fine();
    settled(&api).await;
    assert_eq!(texts(&api, "extracts").await, ["write to c3@mail.example"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revision_takes_the_place_of_those_before_in_whatever_order_they_are_captured() {
    let (_host, api) = extracting().await;
    let mut first = revision("r1", &document("i1"), "revision 1");
    first["waitMs"] = json!(10_000);
    api.post(HOOKS, &first).await.fine();
    api.post(HOOKS, &{
        let mut other = revision("o1", &document("i2"), "of another issue");
        other["waitMs"] = json!(10_000);
        other
    })
    .await
    .fine();
    let batch: Vec<Value> = (2..40)
        .map(|n| revision(&format!("r{n}"), &document("i1"), &format!("revision {n}")))
        .collect();
    let answer =
        api.post("/runtime/v1/companies/acme/hooks/batch", &json!({"events": batch})).await.fine();
    assert_eq!(answer["accepted"], 38, "{answer}");
    settled(&api).await;
    assert_eq!(texts(&api, "extracts").await, ["of another issue", "revision 39"]);
    // An old one that is sent again changes nothing.
    assert_eq!(api.post(HOOKS, &first).await.fine()["isDuplicate"], true);
    let mut body = material(&document("i1"), "captured directly");
    body["replacesSource"] = json!(true);
    api.post(CAPTURE, &body).await.fine();
    assert_eq!(texts(&api, "extracts").await, ["captured directly", "of another issue"]);
    // What is no replacement is beside it.
    api.post(CAPTURE, &material(&document("i1"), "beside it")).await.fine();
    assert_eq!(
        texts(&api, "extracts").await,
        ["beside it", "captured directly", "of another issue"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_is_named_exactly_and_forgotten_for_the_whole_company_only() {
    let (_host, api) = extracting().await;
    api.post(CAPTURE, &material(&comment("c1"), "stays")).await.fine();
    let mut nothing = material(&json!({"kind": "manual_note", "companyId": "acme"}), "t");
    nothing["replacesSource"] = json!(true);
    let refused = api.post(CAPTURE, &nothing).await;
    assert_eq!(
        (refused.status, &refused.json["field"]),
        (400, &json!("replacesSource")),
        "{}",
        refused.text
    );
    for (sources, field) in [
        (json!([]), "sources"),
        (json!([{"kind": "run"}]), "sources.0"),
        (json!([{"commentId": "c1"}, {"commentId": "c1", "runId": "r"}]), "sources.1"),
        (json!(vec![json!({"runId": "r"}); 101]), "sources"),
    ] {
        let refused = api.post(FORGET, &of(&sources)).await;
        assert_eq!(
            (refused.status, refused.json["field"].as_str()),
            (400, Some(field)),
            "{}",
            refused.text
        );
    }
    let sources = json!([{"commentId": "c1"}]);
    let agent = api.agent("ada").await;
    for (caller, scope, status) in [
        (&agent, json!({"companyId": "acme"}), 403),
        (&api, json!({"companyId": "acme", "agentId": "ada"}), 400),
        (&api, json!({"companyId": "acme", "subjectId": "u"}), 400),
    ] {
        let refused = caller.post(FORGET, &json!({"scope": scope, "sources": sources})).await;
        assert_eq!(refused.status, status, "{}", refused.text);
    }
    assert_eq!(
        agent.post(LIST, &of(&sources)).await.fine()["records"].as_array().unwrap().len(),
        1
    );
    let body = json!({"name": "a", "role": "auditor"});
    let token = api.post("/control/v1/companies/acme/tokens", &body).await.fine()["value"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(api.with(&token).post(FORGET, &of(&sources)).await.status, 403);
    assert_eq!(texts(&api, "extracts").await, ["stays"]);
    // A gateway forgets what is private, too: a comment that was deleted is deleted for everybody.
    let body = json!({"name": "gateway", "role": "integration"});
    let token = api.post("/control/v1/companies/acme/tokens", &body).await.fine()["value"]
        .as_str()
        .unwrap()
        .to_owned();
    let gateway = api.with(&token);
    for header in ["x-memhost-act-as-agent", "x-memhost-act-as-person"] {
        let refused = gateway
            .send(Method::Post, FORGET, Some(of(&sources).to_string()), &[(header, "ada")])
            .await;
        assert_eq!(refused.problem(), (403, "forbidden"), "{header}");
    }
    let mut private = material(&comment("c1"), "for ada only");
    private["scope"]["agentId"] = json!("ada");
    private["visibility"] = json!("agent");
    gateway.send(Method::Post, CAPTURE, Some(private.to_string()), &[]).await.fine();
    assert_eq!(
        gateway.post(LIST, &of(&sources)).await.fine()["records"].as_array().unwrap().len(),
        1
    );
    assert_eq!(gateway.post(FORGET, &of(&sources)).await.fine()["bindings"][0]["forgotten"], 2);
    assert_eq!(texts(&api, "extracts").await, Vec::<String>::new());
}
