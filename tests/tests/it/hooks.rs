//! Hooks: durable, delivered once, retried, dead letters, replay; and recall, which never delays a
//! run.

use std::time::Duration;

use memhost_server::Method;
use serde_json::{Value, json};

use super::support::{Api, bind, extracting};

pub(super) const HOOKS: &str = "/runtime/v1/companies/acme/hooks";
pub(super) const DELIVERIES: &str = "/control/v1/companies/acme/deliveries";

pub(super) fn event(id: &str, text: &str) -> Value {
    json!({
        "hookKind": "post_run_capture",
        "hookId": id,
        "triggeredAt": "2026-11-20T10:00:00Z",
        "heartbeatRunId": "r1",
        "scope": {"companyId": "acme", "runId": "r1"},
        "source": {"kind": "run", "companyId": "acme", "runId": "r1"},
        "payload": {"text": text, "object": {"status": "finished"}},
        "waitMs": 10_000,
    })
}

/// The highest count and the sum of what the guest counts under a prefix.
async fn counted(api: &Api, prefix: &str) -> String {
    let text = api.query("acme", &format!("count {prefix}")).await;
    text[0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_deliveries_at_once_are_one_capture() {
    let (_host, api) = extracting().await;
    let api = std::sync::Arc::new(api);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let api = std::sync::Arc::clone(&api);
        tasks.spawn(async move { api.post(HOOKS, &event("run-1", "a fact")).await.fine() });
    }
    let answers: Vec<Value> = tasks.join_all().await;
    let first = &answers[0]["deliveries"][0];
    assert_eq!(
        (&first["status"], first["attempts"].as_u64()),
        (&json!("delivered"), Some(1)),
        "{first}"
    );
    assert!(answers.iter().all(|answer| answer["deliveries"] == answers[0]["deliveries"]));
    assert_eq!(answers.iter().filter(|answer| answer["isDuplicate"] == false).count(), 1);
    assert_eq!(counted(&api, "calls/").await, "1 1");
    // Days later it is still the same delivery.
    let again = api.post(HOOKS, &event("run-1", "another text")).await.fine();
    assert_eq!(again["deliveries"], answers[0]["deliveries"]);
    let operations =
        api.get("/control/v1/companies/acme/operations?hookKind=post_run_capture").await;
    assert_eq!(operations["items"].as_array().unwrap().len(), 1);
    assert_eq!(operations["items"][0]["hook"]["hookId"], "run-1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_delivery_is_retried_as_the_same_capture() {
    let (_host, api) = extracting().await;
    let answer = api.post(HOOKS, &event("flaky", "flaky 3")).await.fine();
    let delivery = &answer["deliveries"][0];
    assert_eq!(
        (&delivery["status"], delivery["attempts"].as_u64()),
        (&json!("delivered"), Some(4)),
        "{delivery}"
    );
    // The provider got the same id four times, and counts tries by it.
    assert_eq!(counted(&api, "tries/").await, "4 4");
    assert_ne!(delivery["operationId"], delivery["lastOperationId"]);
    assert!(delivery.get("payload").is_none(), "the provider has it");
    let failed = api.get("/control/v1/companies/acme/operations?kind=capture&outcome=failed").await;
    assert_eq!(failed["items"].as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_is_kept_and_can_be_replayed() {
    let (_host, api) = extracting().await;
    let answer = api.post(HOOKS, &event("dead", "flaky 7")).await.fine();
    let delivery = &answer["deliveries"][0];
    assert_eq!(
        (&delivery["status"], delivery["attempts"].as_u64()),
        (&json!("dead"), Some(5)),
        "{delivery}"
    );
    assert_eq!(delivery["error"]["code"], "unavailable");
    let dead = api.get(&format!("{DELIVERIES}?status=dead&hookKind=post_run_capture")).await;
    assert_eq!(dead["items"].as_array().unwrap().len(), 1);
    let path = format!("{DELIVERIES}/{}", delivery["id"].as_str().unwrap());
    api.post(&format!("{path}/replay"), &json!({})).await.fine();
    let done = api.until(&path, |delivery| delivery["status"] == "delivered").await;
    assert_eq!(done["records"].as_array().unwrap().len(), 1);
    assert_eq!(
        api.post(&format!("{path}/replay"), &json!({})).await.problem(),
        (409, "delivery_status")
    );
    // A delivery that can never succeed becomes a dead letter at once.
    let mut missing = event("wrong", "x");
    missing["payload"] = json!({"metadata": {}});
    assert_eq!(api.post(HOOKS, &missing).await.status, 400);
    let activity = api.get("/control/v1/companies/acme/activity").await;
    assert_eq!(activity["items"][0]["action"], "delivery_replayed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_delivered_to_subscribed_bindings() {
    let (_host, api) = extracting().await;
    let policy = json!({"hooks": [
        {"kind": "post_run_capture", "when": "always"},
        {"kind": "deployment_finished", "when": "always"},
    ]});
    bind(&api, "acme", "archive", &policy).await;
    let target = json!({"bindingKey": "extracts"});
    api.put("/control/v1/companies/acme/targets", &target).await.fine();
    let keys = |answer: &Value| -> Vec<String> {
        let all = answer["deliveries"].as_array().unwrap().iter();
        all.map(|delivery| delivery["bindingKey"].as_str().unwrap().to_owned()).collect()
    };
    // The binding that the scope resolves to comes first.
    assert_eq!(keys(&api.post(HOOKS, &event("both", "x")).await.fine()), ["extracts", "archive"]);
    // An unknown kind is delivered if a binding names it.
    let mut other = event("other", "x");
    other["hookKind"] = json!("deployment_finished");
    assert_eq!(keys(&api.post(HOOKS, &other).await.fine()), ["archive"]);
    let mut comment = event("comment", "x");
    comment["hookKind"] = json!("issue_comment_capture");
    assert_eq!(keys(&api.post(HOOKS, &comment).await.fine()), [""; 0], "nobody subscribes");
    comment["hookId"] = json!("comment 2");
    comment["bindingKey"] = json!("extracts");
    assert_eq!(
        keys(&api.post(HOOKS, &comment).await.fine()),
        ["extracts"],
        "a named binding takes every kind"
    );
    comment["bindingKey"] = json!("nobody");
    assert_eq!(api.post(HOOKS, &comment).await.problem(), (404, "no_binding"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_accepted_event_survives_a_restart() {
    let (mut host, api) = extracting().await;
    let mut later = event("later", "a fact");
    later["waitMs"] = json!(0);
    // No binding answers at present.
    let binding = "/control/v1/companies/acme/bindings/extracts";
    api.patch(binding, &json!({"enabled": false})).await.fine();
    later["bindingKey"] = json!("extracts");
    let answer = api.send(Method::Post, HOOKS, Some(later.to_string()), &[]).await;
    assert_eq!(
        (answer.status, &answer.json["deliveries"][0]["status"]),
        (202, &json!("pending")),
        "{}",
        answer.text
    );
    let path = format!("{DELIVERIES}/{}", answer.json["deliveries"][0]["id"].as_str().unwrap());
    drop(api);
    tokio::time::sleep(Duration::from_millis(50)).await;
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    api.patch(binding, &json!({"enabled": true})).await.fine();
    // Waiting for a disabled binding is not a failed attempt.
    let delivery = api.until(&path, |delivery| delivery["status"] == "delivered").await;
    assert_eq!(delivery["attempts"], 1);
    assert_eq!(counted(&api, "calls/").await, "1 1");
}

pub(super) fn hydrate(id: &str, query: &str, more: &Value) -> Value {
    let mut event = json!({
        "hookKind": "pre_run_hydrate",
        "hookId": id,
        "triggeredAt": "2026-11-20T10:00:00Z",
        "scope": {"companyId": "acme", "runId": "r2"},
        "query": query,
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recall_fits_its_budget_and_never_stops_a_run() {
    let (_host, api) = extracting().await;
    for n in 0..40 {
        api.capture(
            "acme",
            &format!("fact {n}: the gate of house {n} is painted green every spring"),
        )
        .await
        .fine();
    }
    let more = json!({"topK": 40, "tokenBudget": 120, "deadlineMs": 30_000});
    let answer = api.post(HOOKS, &hydrate("h1", "gate", &more)).await.fine();
    let context = &answer["context"];
    let tokens = context["tokens"].as_u64().unwrap();
    assert!((60..=120).contains(&tokens), "{context}");
    let lines =
        context["text"].as_str().unwrap().lines().filter(|line| line.starts_with("- ")).count();
    assert_eq!(Some(lines as u64), context["included"].as_u64());
    assert_eq!(context["included"].as_u64().unwrap() + context["omitted"].as_u64().unwrap(), 40);
    // The delivery keeps which records were found, and not what they say.
    let kept = api.get(DELIVERIES).await["items"].to_string();
    assert!(kept.contains("\"recordCount\":40") && !kept.contains("painted green"), "{kept}");
    // An event that is delivered again is asked again: what was found before may be forgotten by
    // now.
    let again = api.post(HOOKS, &hydrate("h1", "gate", &more)).await.fine();
    assert_eq!((&again["context"], &again["isDuplicate"]), (context, &json!(true)));
    assert_eq!(again["deliveries"][0]["attempts"], 2);
    // If recall is late or fails, the block is empty and has the reason, with status 200.
    let slow =
        api.post(HOOKS, &hydrate("h2", "await release", &json!({"deadlineMs": 100}))).await.fine();
    let reason = slow["context"]["degraded"][0].as_str().unwrap();
    assert!(slow["context"]["text"] == "" && reason.contains("longer than the 100 ms"), "{slow}");
    api.capture("acme", "release").await.fine();
    api.patch("/control/v1/companies/acme/bindings/extracts", &json!({"enabled": false}))
        .await
        .fine();
    let none =
        api.post(HOOKS, &hydrate("h3", "gate", &json!({"bindingKey": "extracts"}))).await.fine();
    assert!(none["context"]["degraded"][0].as_str().unwrap().contains("disabled"), "{none}");
    // Each leaves one operation. The slow one continues, and is recorded with its usage.
    let operations = "/control/v1/companies/acme/operations?hookKind=pre_run_hydrate";
    api.until(operations, |page| page["items"].as_array().unwrap().len() == 4).await;
    for (wrong, field) in [
        (json!({"tokenBudget": 0}), "tokenBudget"),
        (json!({"deadlineMs": 60_000}), "deadlineMs"),
        (json!({"query": null}), "query"),
        (json!({"hookId": "a/b"}), "hookId"),
    ] {
        let answer = api.post(HOOKS, &hydrate("h4", "gate", &wrong)).await;
        assert_eq!((answer.status, &answer.json["field"]), (400, &json!(field)), "{}", answer.text);
    }
}

/// An event belongs to its agent: another agent with the same hook id does not get its recall and
/// does not replace it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_id_of_one_agent_has_no_effect_for_another() {
    let (_host, api) = extracting().await;
    let agents = [api.agent("ada").await, api.agent("bob").await];
    api.capture("acme", "the gate is green").await.fine();
    let recalled = agents[0]
        .post(HOOKS, &hydrate("same", "gate", &json!({"deadlineMs": 30_000})))
        .await
        .fine();
    assert!(recalled["context"]["text"].as_str().unwrap().contains("gate"));
    let other = agents[1]
        .post(HOOKS, &hydrate("same", "nothing of that kind", &json!({"deadlineMs": 30_000})))
        .await
        .fine();
    assert_eq!((&other["isDuplicate"], &other["context"]["text"]), (&json!(false), &json!("")));
    // Events of several kinds with one run's id are separate events.
    let captured = agents[0].post(HOOKS, &event("same", "a fact")).await.fine();
    assert_eq!(captured["isDuplicate"], false);
}

/// A raised budget makes waiting deliveries due, but not those that were delivered meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raising_a_budget_delivers_waiting_captures_once() {
    let (_host, api) = extracting().await;
    bind(&api, "acme", "patient", &json!({"onBudget": "queue"})).await;
    let budget = "/control/v1/companies/acme/budgets/day";
    api.put(budget, &json!({"limitCents": 1})).await.fine();
    api.capture("acme", "metered 1").await.fine();
    for n in 0..30 {
        api.capture("acme", &format!("kept {n}")).await.fine();
    }
    for cents in 2..8 {
        api.put(budget, &json!({"limitCents": cents})).await.fine();
    }
    api.until(&format!("{DELIVERIES}?status=pending"), |page| {
        page["items"].as_array().unwrap().is_empty()
    })
    .await;
    assert_eq!(counted(&api, "calls/").await, "1 30");
}

/// What a provider finds may be more than the host keeps of one binding for recall: the first 4 MiB
/// of text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recall_keeps_so_much_text_of_a_binding_and_says_what_it_leaves_out() {
    let (_host, api) = extracting().await;
    let text = "memory is a list of words ".repeat(38_000);
    for number in 0..6 {
        api.capture("acme", &format!("{number} {text}")).await.fine();
    }
    let recalled = async |top_k: u32| {
        let more = json!({"topK": top_k, "deadlineMs": 30_000});
        let context = api.post(HOOKS, &hydrate(&format!("h{top_k}"), "words", &more)).await.fine()
            ["context"]
            .clone();
        let kept = context["included"].as_u64().unwrap() + context["omitted"].as_u64().unwrap();
        (kept, context["degraded"].clone())
    };
    assert_eq!(recalled(4).await, (4, Value::Null));
    let (kept, degraded) = recalled(6).await;
    assert_eq!(kept, 4, "of six records of almost 1 MiB each: {degraded}");
    assert!(degraded[0].as_str().unwrap().contains("2 of 6 records left out"), "{degraded}");
}

/// A run that has ended asks for nothing more, and its delivery ends all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recall_whose_caller_has_gone_ends() {
    let (_host, api) = extracting().await;
    let asking = api.with_same();
    let hook = hydrate("gone", "await release", &json!({"deadlineMs": 300}));
    let asking = tokio::spawn(async move { asking.post(HOOKS, &hook).await });
    let deliveries = "/control/v1/companies/acme/deliveries?hookId=gone";
    let status = |page: &Value| page["items"][0]["status"].clone();
    api.until(deliveries, |page| status(page) == "pending").await;
    asking.abort();
    api.until(deliveries, |page| status(page) == "degraded").await;
}
