//! Provenance is stamped, not claimed: what the host knows by itself it sets, and for the rest it
//! says who asserted it.

use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::{Api, bind_provider};

const CAPTURE: &str = "/runtime/v1/companies/acme/capture";
const HOOKS: &str = "/runtime/v1/companies/acme/hooks";
const OPERATIONS: &str = "/control/v1/companies/acme/operations?limit=1&kind=";

#[allow(clippy::needless_pass_by_value, reason = "the callers make the values here")]
fn capture(source: Value, hook: Value) -> Value {
    let mut body =
        json!({"scope": {"companyId": "acme"}, "payload": {"text": "The board approved it."}});
    body["source"] = json!({"kind": "issue_comment", "companyId": "acme"});
    body["source"].as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    body["hook"] =
        json!({"hookKind": "manual_capture", "hookId": "h", "triggeredAt": "2026-11-20T00:00:00Z"});
    body["hook"].as_object_mut().unwrap().extend(hook.as_object().unwrap().clone());
    body
}

#[allow(clippy::needless_pass_by_value, reason = "the callers make the values here")]
fn event(id: &str, kind: &str, more: Value) -> Value {
    let mut body = json!({
        "hookKind": kind, "hookId": id, "triggeredAt": "2026-11-20T00:00:00Z",
        "scope": {"companyId": "acme"},
        "waitMs": 10_000,
    });
    match kind {
        "pre_run_hydrate" => body["query"] = json!("board"),
        _ => {
            body["source"] = json!({"kind": "run", "companyId": "acme"});
            body["payload"] = json!({"text": format!("what happened in {id}")});
        }
    }
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn token(api: &Api, body: Value) -> Api {
    let made = api.post("/control/v1/companies/acme/tokens", &body).await.fine();
    api.with(made["value"].as_str().unwrap())
}

/// The last one of a kind: a capture may leave a job that ends later.
async fn last(api: &Api, kind: &str) -> Value {
    api.get(&format!("{OPERATIONS}{kind}")).await["items"][0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_the_actor_and_its_claims_are_marked() {
    for provider in ["local-markdown", "cross-agent", "facts", "taxonomy"] {
        let mut host = TestHost::new(&["cross-agent", "facts", "taxonomy"]).await.unwrap();
        let operator = Api::new(&host);
        if provider != "local-markdown" {
            bind_provider(&operator, "acme", provider).await;
        }
        let ada = token(&operator, json!({"name": "ada", "role": "agent", "agentId": "ada"})).await;
        let of_run = json!({"name": "ada r1", "role": "agent", "agentId": "ada", "runId": "r1"});
        let of_run = token(&operator, of_run).await;
        // Another's action, another's run and another's word are refused, with the field.
        for (api, source, hook, field) in [
            (&ada, json!({}), json!({"actorAgentId": "bob"}), "hook.actorAgentId"),
            (&of_run, json!({}), json!({"heartbeatRunId": "hb-999"}), "hook.heartbeatRunId"),
            (&of_run, json!({"runId": "r2"}), json!({}), "source.runId"),
            (&ada, json!({"assertedBy": "operator"}), json!({}), "source.assertedBy"),
            (&ada, json!({}), json!({"assertedBy": "operator"}), "hook.assertedBy"),
        ] {
            let answer = api.post(CAPTURE, &capture(source, hook)).await;
            assert_eq!(
                (answer.problem(), &answer.json["field"]),
                ((403, "forbidden"), &json!(field)),
                "{}",
                answer.text
            );
        }
        let answer =
            ada.post(HOOKS, &event("e", "post_run_capture", json!({"actorAgentId": "bob"}))).await;
        assert_eq!(
            (answer.status, &answer.json["field"]),
            (403, &json!("actorAgentId")),
            "{}",
            answer.text
        );
        let answer = of_run
            .post(HOOKS, &event("e", "post_run_capture", json!({"heartbeatRunId": "r2"})))
            .await;
        assert_eq!(
            (answer.status, &answer.json["field"]),
            (403, &json!("heartbeatRunId")),
            "{}",
            answer.text
        );
        // What is left out is filled in. What only the caller knows is kept with its name.
        let claims = capture(
            json!({"commentId": "c9", "runId": "hb-999"}),
            json!({"heartbeatRunId": "hb-999"}),
        );
        // Whatever the provider makes of it, the record of the operation says who said what.
        assert_ne!(ada.post(CAPTURE, &claims).await.status, 403, "{provider}");
        let operation = last(&operator, "capture").await;
        assert_eq!(operation["hook"]["actorAgentId"], "ada");
        assert_eq!(
            operation["hook"]["assertedBy"], "agent:ada",
            "a run that the token does not fix"
        );
        assert_eq!(operation["source"]["assertedBy"], "agent:ada");
        assert_ne!(
            of_run.post(CAPTURE, &capture(json!({"kind": "run"}), json!({}))).await.status,
            403
        );
        let operation = last(&operator, "capture").await;
        assert_eq!(
            (&operation["source"]["runId"], &operation["hook"]["heartbeatRunId"]),
            (&json!("r1"), &json!("r1"))
        );
        assert_eq!(
            (operation["source"].get("assertedBy"), operation["hook"].get("assertedBy")),
            (None, None)
        );
        // Through a hook, it is the sender who asserts, and not the host that delivers.
        let sent = event("e1", "post_run_capture", json!({"heartbeatRunId": "hb-7"}));
        let answer = ada.post(HOOKS, &sent).await.fine();
        let hook = &answer["deliveries"][0]["hook"];
        assert_eq!(
            (&hook["actorAgentId"], &hook["assertedBy"]),
            (&json!("ada"), &json!("agent:ada")),
            "{provider}"
        );
        // It is stored so.
        drop((ada, of_run, operator));
        host.stop().await;
        host.start().await.unwrap();
        let operator = Api::new(&host);
        let found =
            operator.get("/control/v1/companies/acme/operations?hookKind=post_run_capture").await;
        assert_eq!(found["items"][0]["hook"]["assertedBy"], "agent:ada", "{provider}: {found}");
        // A person's claim has the person's name.
        operator
            .post(CAPTURE, &capture(json!({"commentId": "c1"}), json!({"actorAgentId": "bob"})))
            .await;
        let operation = last(&operator, "capture").await;
        assert_eq!(
            (&operation["source"]["assertedBy"], &operation["hook"]["assertedBy"]),
            (&json!("operator"), &json!("operator"))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_an_agent_writes_name_its_run_only() {
    let host = TestHost::new(&[]).await.unwrap();
    let operator = Api::new(&host);
    let of_run = json!({"name": "ada r1", "role": "agent", "agentId": "ada", "runId": "r1"});
    let of_run = token(&operator, of_run).await;
    let path = "/runtime/v1/companies/acme/records";
    let body = |source: Value| {
        json!({
            "scope": {"companyId": "acme"}, "source": source, "records": [{"text": "t"}],
        })
    };
    let foreign =
        of_run.post(path, &body(json!({"kind": "run", "companyId": "acme", "runId": "r2"}))).await;
    assert_eq!(
        (foreign.status, &foreign.json["field"]),
        (403, &json!("source.runId")),
        "{}",
        foreign.text
    );
    let claim = json!({
        "kind": "issue_document", "companyId": "acme", "documentKey": "plan", "runId": "r1",
    });
    of_run.post(path, &body(claim)).await.fine();
    let operation = last(&operator, "record_upsert").await;
    assert_eq!(operation["source"]["assertedBy"], "agent:ada");
    let visitor = super::ui_pages::operator(&operator).await;
    let page =
        visitor.page(&format!("/c/acme/operations/{}", operation["id"].as_str().unwrap())).await;
    assert!(page.contains("Source asserted by") && page.contains("agent:ada"), "{page}");
}

/// Recall is the run's own: another run of the same agent learns nothing of it by the event's id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_does_not_read_what_became_of_another_runs_event() {
    let host = TestHost::new(&[]).await.unwrap();
    let operator = Api::new(&host);
    operator.capture("acme", "The board approved the budget.").await.fine();
    let run = |run: &str| json!({"name": run, "role": "agent", "agentId": "ada", "runId": run});
    let (first, second) = (token(&operator, run("r1")).await, token(&operator, run("r2")).await);
    for kind in ["pre_run_hydrate", "post_run_capture"] {
        first.post(HOOKS, &event("start", kind, json!({}))).await.fine();
        let again = first.post(HOOKS, &event("start", kind, json!({}))).await.fine();
        assert_eq!(again["isDuplicate"], true, "{again}");
        let other = second.post(HOOKS, &event("start", kind, json!({}))).await;
        assert_eq!(
            (other.problem(), &other.json["field"]),
            ((403, "forbidden"), &json!("hookId")),
            "{}",
            other.text
        );
        assert!(
            !other.text.contains("board") && !other.text.contains("deliveries"),
            "{}",
            other.text
        );
    }
}

/// What is refused leaves nothing, not even at a binding that has not had the event yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_of_another_run_is_refused_before_anything_is_accepted() {
    const DELIVERIES: &str = "/control/v1/companies/acme/deliveries";
    let host = TestHost::new(&[]).await.unwrap();
    let operator = Api::new(&host);
    bind_provider(&operator, "acme", "local-markdown").await;
    let run = |run: &str| json!({"name": run, "role": "agent", "agentId": "ada", "runId": run});
    let (first, second) = (token(&operator, run("r1")).await, token(&operator, run("r2")).await);
    let sent = event("end", "post_run_capture", json!({}));
    first.post(HOOKS, &sent).await.fine();
    let policy = json!({"hooks": [{"kind": "post_run_capture", "when": "always"}]});
    let archive = json!({"key": "archive", "providerKey": "local-markdown", "policy": policy});
    operator.post("/control/v1/companies/acme/bindings", &archive).await.fine();
    let refused = second.post(HOOKS, &sent).await;
    assert_eq!(
        (refused.problem(), &refused.json["field"]),
        ((403, "forbidden"), &json!("hookId")),
        "{}",
        refused.text
    );
    let kept = operator.get(DELIVERIES).await;
    assert_eq!(kept["items"].as_array().unwrap().len(), 1, "{kept}");
    // The event's own run is told of both.
    let both = first.post(HOOKS, &sent).await.fine();
    assert_eq!(
        (both["deliveries"].as_array().unwrap().len(), &both["isDuplicate"]),
        (2, &json!(false)),
        "{both}"
    );
}
