//! Ways around: what a request takes with it, or takes over, at PageSpace's binding.

use memhost_server::Method;
use serde_json::{Value, json};

use super::facts_writers::{RECORDS, as_person, handle, host_with, texts};
use super::support::Api;

const ADMIN: (&str, &str) = ("boss", "company_administrator");
const MEMBER: (&str, &str) = ("u1", "agent");
const DRIVE: &str = "/api/memory/drive/d1";

fn runtime(path: &str) -> String {
    format!("/runtime/v1/companies/acme/{path}")
}

/// The facts of the drive and of the member.
async fn all(gateway: &Api) -> Vec<String> {
    let drive = as_person(gateway, Method::Get, DRIVE, ADMIN, None).await.fine();
    let user = as_person(gateway, Method::Get, "/api/memory/user", MEMBER, None).await.fine();
    texts(&drive).into_iter().chain(texts(&user)).map(str::to_owned).collect()
}

async fn post(gateway: &Api, who: (&str, &str), path: &str, body: Value) -> super::support::Answer {
    as_person(gateway, Method::Post, path, who, Some(body)).await
}

/// A workspace that the binding has no facts of is no reason to forget those of everybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgetting_another_workspace_forgets_no_fact() {
    for (drive, other) in [("namespace", "projectId"), ("project_id", "namespace")] {
        let pagespace = json!({"company": "acme", "binding": "facts", "drive": drive});
        let (_host, api, gateway, _) = host_with(json!({}), pagespace).await;
        post(&gateway, ADMIN, DRIVE, json!({"fact": "Chose Zustand"})).await.fine();
        post(&gateway, MEMBER, "/api/memory/user", json!({"fact": "Likes tea"})).await.fine();
        let before = all(&gateway).await;
        assert_eq!(before, ["Chose Zustand", "Likes tea"]);
        let mut scope = json!({"companyId": "acme"});
        scope[other] = "zz".into();
        let body = json!({"scope": scope});
        let forgotten = api.post(&runtime("scope/forget"), &body).await.fine();
        assert_eq!(forgotten["bindings"][0]["forgotten"], 0, "{drive}: {forgotten}");
        post(&gateway, MEMBER, &runtime("scope/forget"), body).await.fine();
        assert_eq!(all(&gateway).await, before, "{drive}");
        // Nor is a later fact taken for one of that workspace.
        post(&gateway, MEMBER, "/api/memory/user", json!({"fact": "Likes coffee"})).await.fine();
        assert_eq!(all(&gateway).await, ["Chose Zustand", "Likes coffee", "Likes tea"], "{drive}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fact_that_the_provider_takes_for_an_administrators_stays_the_administrators() {
    let pagespace = json!({"company": "acme", "binding": "facts"});
    let (_host, _, gateway, _) = host_with(json!({"detectDuplicates": true}), pagespace).await;
    let fact = post(&gateway, ADMIN, DRIVE, json!({"fact": "Builds run on Mondays."})).await.fine();
    let scope = json!({"companyId": "acme", "namespace": "d1"});
    let same = json!({
        "scope": scope,
        "records": [{"text": "builds run on mondays", "metadata": {"scope": "drive"}}],
    });
    let taken = post(&gateway, MEMBER, RECORDS, same).await.fine();
    assert_eq!(
        taken["records"][0]["providerRecordId"], fact["id"],
        "the provider found it: {taken}"
    );
    let listed = as_person(&gateway, Method::Get, DRIVE, ADMIN, None).await.fine();
    assert_eq!(
        (&listed[0]["createdBy"], &listed[0]["source"]),
        (&json!("boss"), &json!("user")),
        "{listed}"
    );
    let forget = json!({"scope": scope, "handles": [handle(&fact["id"])]});
    // Also for an integration that says a role and nobody's name.
    let as_agent = [("x-memhost-act-as-role", "agent")];
    let some =
        gateway.send(Method::Post, &runtime("forget"), Some(forget.to_string()), &as_agent).await;
    assert_eq!(some.problem(), (403, "forbidden"), "{}", some.text);
    assert_eq!(
        post(&gateway, MEMBER, &runtime("forget"), forget).await.problem(),
        (403, "forbidden")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_members_capture_replaces_no_fact_of_an_administrator() {
    let pagespace = json!({"company": "acme", "binding": "facts"});
    let (_host, _, gateway, _) = host_with(json!({}), pagespace).await;
    let scope = json!({"companyId": "acme", "namespace": "d1"});
    let source = json!({
        "kind": "issue_document", "companyId": "acme", "issueId": "i1", "documentKey": "plan",
    });
    let capture = |text: &str| {
        json!({"scope": scope, "source": source, "mode": "capture_record", "replacesSource": true,
            "payload": {"text": text, "metadata": {"scope": "drive"}}})
    };
    post(&gateway, ADMIN, &runtime("capture"), capture("Chose Zustand")).await.fine();
    post(&gateway, MEMBER, &runtime("capture"), capture("Chose Redux")).await.fine();
    assert_eq!(all(&gateway).await, ["Chose Redux", "Chose Zustand"]);
    post(&gateway, ADMIN, &runtime("capture"), capture("Chose Signals")).await.fine();
    assert_eq!(all(&gateway).await, ["Chose Signals"], "an administrator replaces both");
}

/// The provider leaves the oldest facts of models out of a preamble first. A member's words are no
/// hand's in a drive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_member_crowds_an_administrators_fact_out_of_the_preamble() {
    let pagespace = json!({"company": "acme", "binding": "facts"});
    let (_host, _, gateway, _) = host_with(json!({"tokenBudget": 100}), pagespace).await;
    post(&gateway, ADMIN, DRIVE, json!({"fact": "Chose Zustand"})).await.fine();
    let scope = json!({"companyId": "acme", "namespace": "d1"});
    for metadata in [json!({"scope": "drive", "source": "user"}), json!({"scope": "drive"})] {
        let records: Vec<Value> = (0..8)
            .map(|n| {
                json!({
                    "text": format!("{n} {}", "words of a member ".repeat(6)), "metadata": metadata,
                })
            })
            .collect();
        post(&gateway, MEMBER, RECORDS, json!({"scope": scope, "records": records})).await.fine();
    }
    let query = json!({"scope": scope, "query": "", "intent": "agent_preamble"});
    let told = post(&gateway, MEMBER, &runtime("query"), query).await.fine();
    let told = told["profileSummary"].as_str().unwrap();
    assert!(told.contains("Chose Zustand") && told.contains("Left out"), "{told}");
}
