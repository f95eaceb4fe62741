//! Candidates of the provider `taxonomy`, from outside: the scope that one names.

use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::Api;

const COMPANY: &str = "/runtime/v1/companies/acme";

fn scope(project: &str) -> Value {
    json!({"companyId": "acme", "projectId": project})
}

fn candidate(project: &str, scope_type: &str, scope_id: Option<&str>) -> Value {
    let metadata = json!({"kind": "preference", "confidence": 0.75, "scope_type": scope_type,
        "scope_id": scope_id, "evidence": "Please keep responses brief"});
    let record = json!({"text": "Prefers concise answers", "metadata": metadata});
    json!({"scope": scope(project), "records": [record]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_of_one_project_never_shows_in_another() {
    let host = TestHost::new(&["taxonomy"]).await.unwrap();
    let api = Api::new(&host);
    let binding = json!({"key": "kinds", "providerKey": "taxonomy", "default": true,
        "grants": {"storageBytes": 16 << 20}});
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    let records = format!("{COMPANY}/records");
    let bound = candidate("a", "project", Some("a"));
    let made = api.post(&records, &bound).await.fine()["records"][0].clone();
    // Everything that a project's run and its people get.
    let told = async |project: &str| {
        let mut said = String::new();
        for (path, body) in [
            ("query", json!({"scope": scope(project), "query": "concise answers"})),
            (
                "query",
                json!({
                    "scope": scope(project), "query": "", "intent": "agent_preamble",
                }),
            ),
            ("list", json!({"scope": scope(project)})),
            ("get", json!({"scope": scope(project), "handle": made})),
            (
                "hooks",
                json!({"hookKind": "pre_run_hydrate", "hookId": project, "query": "answers",
                "triggeredAt": "2026-11-20T10:00:00Z", "scope": scope(project)}),
            ),
        ] {
            said += &api.post(&format!("{COMPANY}/{path}"), &body).await.fine().to_string();
        }
        said.matches("concise answers\"").count()
    };
    assert!(told("a").await >= 4);
    assert_eq!(told("b").await, 0);
    // What the scope of the request does not name is refused, not left out.
    for (of_type, id, field) in [
        ("project", Some("b"), "scope_id"),
        ("track", Some("a"), "scope_type"),
        ("global", Some("a"), "scope_id"),
    ] {
        let refused = api.post(&records, &candidate("a", of_type, id)).await;
        assert_eq!(refused.problem().0, 400, "{}", refused.text);
        assert_eq!(refused.json["field"], format!("records.0.metadata.{field}"));
    }
    assert_eq!(told("b").await, 0);
    // With its project it is forgotten.
    let forget = json!({"scope": scope("a")});
    let done = api.post(&format!("{COMPANY}/scope/forget"), &forget).await.fine();
    assert_eq!(done["bindings"][0]["forgotten"], 1, "{done}");
    api.post(&records, &candidate("a", "global", None)).await.fine();
    assert!(told("b").await > 0, "a preference is of no project, unless it says so");
}
