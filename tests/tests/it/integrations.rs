//! The memory routes of PageSpace and Apropos: their JSON, their owners and their rights.

use memhost_integrations::IntegrationOptions;
use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::{Answer, Api};

fn options() -> IntegrationOptions {
    serde_json::from_value(json!({
        "pagespace": {"company": "acme"},
        "apropos": {"company": "acme"},
    }))
    .unwrap()
}

async fn host() -> (TestHost, Api) {
    let host =
        TestHost::new(&[]).await.unwrap().surfaces(|surfaces| surfaces.integrations = options());
    let api = Api::new(&host);
    (host, api)
}

pub(crate) async fn token(api: &Api, company: &str, role: &str, agent: Option<&str>) -> Api {
    let body = json!({"name": format!("{role}-{company}"), "role": role, "agentId": agent});
    let made = api.post(&format!("/control/v1/companies/{company}/tokens"), &body).await.fine();
    api.with(made["value"].as_str().unwrap())
}

/// A call for one of PageSpace's users.
async fn as_user(api: &Api, method: Method, path: &str, user: &str, body: Option<Value>) -> Answer {
    api.send(method, path, body.map(|body| body.to_string()), &[("x-user-id", user)]).await
}

async fn facts(api: &Api, user: &str) -> Vec<String> {
    let all = as_user(api, Method::Get, "/api/memory/user", user, None).await.fine();
    all.as_array().unwrap().iter().map(|fact| fact["fact"].as_str().unwrap().to_owned()).collect()
}

async fn operations(api: &Api) -> usize {
    api.get("/control/v1/companies/acme/operations?limit=1000").await["items"]
        .as_array()
        .unwrap()
        .len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routes_of_integrations_need_configuration() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    for path in ["/api/memory/user", "/api/memory/drive/d", "/api/projects/p/memory"] {
        let answer = as_user(&api, Method::Get, path, "u", None).await;
        assert_eq!(answer.problem(), (404, "no_route"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_users_facts_are_visible_to_that_user_only() {
    let (_host, api) = host().await;
    let add = |user: &'static str, body: Value| {
        as_user(&api, Method::Post, "/api/memory/user", user, Some(body))
    };
    let added = add("u1", json!({"fact": "  Prefers concise answers ", "source": "ai"})).await;
    assert_eq!(added.status, 201, "{}", added.text);
    let fact = added.json;
    let fields: Vec<&String> = fact.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["createdAt", "fact", "id", "source", "userId"]);
    assert_eq!((&fact["fact"], &fact["source"]), (&json!("Prefers concise answers"), &json!("ai")));
    assert_eq!(fact["userId"], "u1");
    add("u1", json!({"fact": "Knows TypeScript"})).await.fine();
    add("u2", json!({"fact": "Writes Chinese"})).await.fine();
    let all = as_user(&api, Method::Get, "/api/memory/user", "u1", None).await.fine();
    assert_eq!(all[0], fact, "as it was answered, oldest first");
    assert_eq!((all.as_array().unwrap().len(), &all[1]["source"]), (2, &json!("user")));
    // Another user's fact is not found, even by its id.
    let path = format!("/api/memory/user/{}", fact["id"].as_str().unwrap());
    assert_eq!(
        as_user(&api, Method::Delete, &path, "u2", None).await.problem(),
        (404, "not_found")
    );
    assert_eq!(
        as_user(&api, Method::Delete, "/api/memory/user/forged", "u1", None).await.status,
        404
    );
    let path_as_drive = path.replace("/user/", "/drive/");
    assert_eq!(
        as_user(&api, Method::Delete, &path_as_drive, "u1", None).await.status,
        404,
        "it is of no drive"
    );
    assert_eq!(facts(&api, "u1").await.len(), 2);
    assert_eq!(as_user(&api, Method::Delete, &path, "u1", None).await.status, 204);
    assert_eq!(facts(&api, "u1").await, ["Knows TypeScript"]);
    assert_eq!(facts(&api, "u2").await, ["Writes Chinese"]);
    assert_eq!(as_user(&api, Method::Delete, &path, "u1", None).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drives_facts_are_visible_in_that_drive_only() {
    let (_host, api) = host().await;
    let path = "/api/memory/drive/d1";
    let added =
        as_user(&api, Method::Post, path, "u1", Some(json!({"fact": "Zustand instead of Redux"})))
            .await;
    assert_eq!(added.status, 201, "{}", added.text);
    let fields: Vec<&String> = added.json.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["createdAt", "createdBy", "driveId", "fact", "id", "source"]);
    assert_eq!((&added.json["driveId"], &added.json["createdBy"]), (&json!("d1"), &json!("u1")));
    // Reading a drive needs no user. Another drive's facts are not shown.
    let all = api.get(path).await;
    assert_eq!(all, json!([added.json]));
    assert_eq!(api.get("/api/memory/drive/d2").await, json!([]));
    assert_eq!(facts(&api, "u1").await, [""; 0], "what a user says of a drive is not the user's");
    as_user(&api, Method::Post, "/api/memory/user", "u1", Some(json!({"fact": "Likes tea"})))
        .await
        .fine();
    assert_eq!(api.get(path).await.as_array().unwrap().len(), 1, "nor the other way round");
    let one = format!("/api/memory/drive/{}", added.json["id"].as_str().unwrap());
    assert_eq!(api.send(Method::Delete, &one, None, &[]).await.status, 204);
    assert_eq!(api.get(path).await, json!([]));
    let operation = &api.get("/control/v1/companies/acme/operations?kind=forget").await["items"][0];
    assert_eq!(
        (&operation["outcome"], &operation["scope"]["namespace"]),
        (&json!("succeeded"), &json!("d1"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_facts_of_one_owner_can_be_removed() {
    let (_host, api) = host().await;
    for (path, user) in
        [("user", "u1"), ("user", "u1"), ("user", "u2"), ("drive/d1", "u1"), ("drive/d2", "u1")]
    {
        let body = json!({"fact": format!("of {path} by {user}")});
        as_user(&api, Method::Post, &format!("/api/memory/{path}"), user, Some(body)).await.fine();
    }
    let clear = |path: &'static str| as_user(&api, Method::Delete, path, "u1", None);
    assert_eq!(clear("/api/memory/user/all").await.fine(), json!({"removed": 2}));
    assert_eq!(clear("/api/memory/user/all").await.fine(), json!({"removed": 0}));
    assert_eq!((facts(&api, "u1").await.len(), facts(&api, "u2").await.len()), (0, 1));
    assert_eq!(clear("/api/memory/drive/d1/all").await.fine(), json!({"removed": 1}));
    assert_eq!(api.get("/api/memory/drive/d1").await, json!([]));
    assert_eq!(api.get("/api/memory/drive/d2").await.as_array().unwrap().len(), 1);
    assert_eq!(clear("/api/memory/user").await.status, 405, "an empty id removes nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_facts_are_refused_with_the_field() {
    let (_host, api) = host().await;
    let before = operations(&api).await;
    let long = "ä".repeat(201);
    for (body, field) in [
        (json!({"fact": long}), "fact"),
        (json!({"fact": " "}), "fact"),
        (json!({"fact": "x", "source": "robot"}), "source"),
        (json!({"fact": "x", "driveId": "d"}), "driveId"),
    ] {
        let answer = as_user(&api, Method::Post, "/api/memory/user", "u1", Some(body)).await;
        assert_eq!((answer.status, &answer.json["field"]), (400, &json!(field)), "{}", answer.text);
    }
    let nobody = api.send(Method::Get, "/api/memory/user", None, &[]).await;
    assert_eq!(
        (nobody.status, &nobody.json["field"]),
        (400, &json!("x-user-id")),
        "{}",
        nobody.text
    );
    let odd = as_user(&api, Method::Get, "/api/memory/user", "../u", None).await;
    assert_eq!(odd.status, 400);
    assert_eq!(operations(&api).await, before, "nothing was done");
    let fits = as_user(
        &api,
        Method::Post,
        "/api/memory/user",
        "u1",
        Some(json!({"fact": "ä".repeat(200)})),
    )
    .await;
    assert_eq!(fits.status, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_have_the_json_of_apropos() {
    let (_host, api) = host().await;
    let path = "/api/projects/p1/memory";
    let item = json!({
        "sessionId": "s1", "agentKind": "codex", "type": "decision",
        "content": "SQLite instead of Postgres", "tags": ["storage"], "visibility": "project",
        "confidence": 0.75, "source": "inferred",
    });
    let added = api.post(path, &item).await;
    assert_eq!(added.status, 201, "{}", added.text);
    let fields: Vec<&String> = added.json.as_object().unwrap().keys().collect();
    let wanted = [
        "agentKind",
        "confidence",
        "content",
        "createdAt",
        "id",
        "projectId",
        "sessionId",
        "source",
        "tags",
        "type",
        "updatedAt",
        "visibility",
    ];
    assert_eq!(fields, wanted);
    for (field, value) in item.as_object().unwrap() {
        assert_eq!(added.json[field], *value, "{field}");
    }
    // An item of one framework is visible to another in the same project, and not in other
    // projects.
    let least = api.post(path, &json!({"content": "The owner prefers tea"})).await.fine();
    assert_eq!(
        (&least["type"], &least["confidence"], &least["agentKind"]),
        (&json!("fact"), &json!(1.0), &json!(null))
    );
    api.post("/api/projects/p2/memory", &json!({"content": "Postgres instead of SQLite"}))
        .await
        .fine();
    let all = api.get(path).await;
    assert_eq!(all["items"].as_array().unwrap().len(), 2, "{all}");
    assert!(all["items"].as_array().unwrap().contains(&added.json), "{all}");
    let decisions = api.get(&format!("{path}?type=decision&agentKind=codex&sessionId=s1")).await;
    assert_eq!(decisions["items"], json!([added.json]));
    let first = api.get(&format!("{path}?limit=1")).await;
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = api.get(&format!("{path}?limit=1&cursor={cursor}")).await;
    assert_ne!(first["items"][0]["id"], second["items"][0]["id"]);

    let found = api
        .post(&format!("{path}/search"), &json!({"query": "which database, SQLite?"}))
        .await
        .fine();
    assert_eq!(found["items"][0]["id"], added.json["id"], "{found}");
    assert!(found["items"][0]["score"].is_number());
    assert!(!found.to_string().contains("p2"));
    let recalled =
        api.post(&format!("{path}/recall"), &json!({"query": "SQLite", "limit": 3})).await.fine();
    assert!(
        recalled["context"].as_str().unwrap().contains("- SQLite instead of Postgres\n"),
        "{recalled}"
    );
    assert_eq!(recalled["items"][0]["content"], "SQLite instead of Postgres");
    let short = api
        .post(&format!("{path}/recall"), &json!({"query": "SQLite", "maxChars": 5}))
        .await
        .fine();
    assert_eq!(short["context"], "");
    // Recall is recorded as what it is.
    let kinds = api.get("/control/v1/companies/acme/operations?kind=query").await;
    assert_eq!(kinds["items"].as_array().unwrap().len(), 3);
    assert_eq!(kinds["items"][0]["scope"]["projectId"], "p1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_can_be_imported_into_the_same_and_another_project() {
    let (_host, api) = host().await;
    let path = "/api/projects/p1/memory";
    for number in 0..5 {
        let item =
            json!({"content": format!("fact {number}"), "type": "preference", "confidence": 0.9});
        api.post(path, &item).await.fine();
    }
    let exported = api.send(Method::Post, &format!("{path}/export"), None, &[]).await.fine();
    assert_eq!(
        (&exported["projectId"], exported["items"].as_array().unwrap().len()),
        (&json!("p1"), 5)
    );
    assert!(exported["exportedAt"].is_string());
    // Into the same project: the items exist already.
    let again = api.post(&format!("{path}/import"), &exported).await.fine();
    assert_eq!((&again["imported"], &again["unchanged"]), (&json!(0), &json!(5)));
    let now = api.post(&format!("{path}/export"), &json!({})).await.fine();
    assert_eq!(now["items"], exported["items"]);
    // Into another project: new items, once, and the originals stay.
    let moved = json!({"items": exported["items"]}).to_string().replace("\"p1\"", "\"p3\"");
    let moved: Value = serde_json::from_str(&moved).unwrap();
    for _ in 0..2 {
        let ids = api.post("/api/projects/p3/memory/import", &moved).await.fine()["ids"].clone();
        assert_eq!(ids.as_array().unwrap().len(), 5);
    }
    assert_eq!(api.get("/api/projects/p3/memory").await["items"].as_array().unwrap().len(), 5);
    assert_eq!(api.get(path).await["items"].as_array().unwrap().len(), 5);
    let foreign = json!({
        "items": [{
            "id": "mem_42", "content": "from elsewhere", "createdAt": "2025-01-02T03:04:05Z",
        }],
    });
    let first = api.post("/api/projects/p4/memory/import", &foreign).await.fine();
    assert_eq!((&first["imported"], &first["unchanged"]), (&json!(1), &json!(0)), "{first}");
    // It has another id here, and is there all the same.
    let writes = async || {
        let all =
            api.get("/control/v1/companies/acme/operations?kind=record_upsert&limit=1000").await;
        all["items"].as_array().unwrap().len()
    };
    let before = writes().await;
    let again = api.post("/api/projects/p4/memory/import", &foreign).await.fine();
    assert_eq!((&again["imported"], &again["unchanged"]), (&json!(0), &json!(1)), "{again}");
    assert_eq!((&again["ids"], writes().await), (&first["ids"], before), "nothing was written");
    let newer = json!({
        "items": [{"id": "mem_42", "content": "from there", "createdAt": "2025-01-02T03:04:05Z"}],
    });
    let changed = api.post("/api/projects/p4/memory/import", &newer).await.fine();
    assert_eq!(
        (&changed["imported"], &changed["ids"]),
        (&json!(1), &first["ids"]),
        "what differs is written"
    );
    let there = api.get("/api/projects/p4/memory").await;
    assert_eq!(there["items"].as_array().unwrap().len(), 1, "{there}");
    assert_eq!(there["items"][0]["createdAt"], "2025-01-02T03:04:05Z");
    assert_eq!(there["items"][0]["source"], "imported");
}

/// What an agent noted is changed by whoever may, and stays what the agent noted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_keeps_where_an_item_comes_from() {
    let (_host, api) = host().await;
    let ada = token(&api, "acme", "agent", Some("ada")).await;
    let scope = json!({"companyId": "acme", "projectId": "p1", "sessionKey": "s1"});
    let source = json!({"kind": "manual_note", "companyId": "acme", "externalRef": "mcp:codex"});
    let noted =
        json!({"scope": scope, "source": source, "records": [{"text": "Releases are on Mondays"}]});
    let noted = ada.post("/runtime/v1/companies/acme/records", &noted).await.fine();
    let handle = &noted["records"][0];
    let path = format!("/api/projects/p1/memory/{}", handle["providerRecordId"].as_str().unwrap());
    let facts =
        |item: &Value| ["type", "content", "sessionId", "agentKind"].map(|name| item[name].clone());
    let is = |item: &Value, wanted: Value| assert_eq!(json!(facts(item)), wanted, "{item}");
    is(&api.get(&path).await, json!(["fact", "Releases are on Mondays", "s1", "codex"]));
    let changed = api.patch(&path, &json!({"type": "decision"})).await.fine();
    for item in [changed, api.get(&path).await] {
        is(&item, json!(["decision", "Releases are on Mondays", "s1", "codex"]));
    }
    let get = json!({"scope": {"companyId": "acme", "projectId": "p1"}, "handle": handle});
    let record = api.post("/runtime/v1/companies/acme/get", &get).await.fine()["record"].clone();
    let said = (&record["source"]["externalRef"], &record["source"]["assertedBy"]);
    assert_eq!(said, (&json!("mcp:codex"), &json!("agent:ada")), "{record}");
    // A field that an item may lack is cleared; then the item is of the client that noted it.
    // Others are refused.
    api.patch(&path, &json!({"agentKind": "claude"})).await.fine();
    let cleared = api.patch(&path, &json!({"sessionId": null, "agentKind": null})).await.fine();
    for item in [cleared, api.get(&path).await] {
        is(&item, json!(["decision", "Releases are on Mondays", null, "codex"]));
    }
    for field in ["type", "content", "tags", "visibility", "confidence"] {
        let refused = api.patch(&path, &json!({field: null})).await;
        assert_eq!(
            (refused.status, &refused.json["field"]),
            (400, &json!(field)),
            "{}",
            refused.text
        );
    }
    // A refusal says what to do next.
    let nothing = api.patch("/api/projects/p1/memory/nothing", &json!({"type": "decision"})).await;
    assert!(
        nothing.status == 404 && nothing.text.contains("GET /api/projects/p1/memory"),
        "{}",
        nothing.text
    );
    let elsewhere =
        api.post("/api/projects/p1/memory", &json!({"content": "x", "projectId": "p2"})).await;
    assert!(elsewhere.text.contains("leave it out, or send `p1`"), "{}", elsewhere.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_items_are_refused_with_the_field() {
    let (_host, api) = host().await;
    let path = "/api/projects/p1/memory";
    for (route, body, field) in [
        ("", json!({"content": ""}), "content"),
        ("", json!({"content": "x", "type": "rumour"}), "type"),
        ("", json!({"content": "x", "confidence": 1.5}), "confidence"),
        ("", json!({"content": "x", "projectId": "p2"}), "projectId"),
        ("", json!({"content": "x", "id": "mine"}), "id"),
        ("", json!({"content": "x", "sessionId": "a/b"}), "sessionId"),
        ("", json!({"content": "x", "tags": vec!["t"; 33]}), "tags"),
        (
            "/import",
            json!({"items": [{"content": "x"}, {"content": "y", "confidence": -1}]}),
            "items.1.confidence",
        ),
        ("/import", json!({"projectId": "p2", "items": [{"content": "x"}]}), "projectId"),
        ("/recall", json!({"query": "x", "maxChars": 0}), "maxChars"),
        ("/search", json!({"query": "x", "limit": 0}), "topK"),
    ] {
        let answer = api.post(&format!("{path}{route}"), &body).await;
        assert_eq!(
            (answer.status, &answer.json["field"]),
            (400, &json!(field)),
            "{route}: {}",
            answer.text
        );
    }
    assert_eq!(api.get(path).await["items"], json!([]));
}

/// `+` allowed, `-` refused: company administrator, agent, auditor.
const RULES: &[(Method, &str, Option<&str>, &str)] = &[
    (Method::Get, "/api/memory/user", None, "+++"),
    (Method::Post, "/api/memory/user", Some(r#"{"fact": "x"}"#), "++-"),
    (Method::Get, "/api/memory/drive/d", None, "+++"),
    (Method::Post, "/api/memory/drive/d", Some(r#"{"fact": "x"}"#), "++-"),
    (Method::Get, "/api/projects/p/memory", None, "+++"),
    (Method::Post, "/api/projects/p/memory", Some(r#"{"content": "x"}"#), "++-"),
    (Method::Post, "/api/projects/p/memory/search", Some(r#"{"query": "x"}"#), "+++"),
    (Method::Post, "/api/projects/p/memory/recall", Some(r#"{"query": "x"}"#), "+++"),
    (
        Method::Post,
        "/api/projects/p/memory/import",
        Some(r#"{"items": [{"content": "x"}]}"#),
        "++-",
    ),
    (Method::Post, "/api/projects/p/memory/export", Some("{}"), "+++"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routes_of_integrations_follow_the_roles() {
    let (_host, api) = host().await;
    let fact = as_user(&api, Method::Post, "/api/memory/user", "ada", Some(json!({"fact": "x"})))
        .await
        .fine();
    let of_drive = api.post("/api/memory/drive/d", &json!({"fact": "x"})).await.fine();
    let roles = ["company_administrator", "agent", "auditor"];
    for (index, role) in roles.into_iter().enumerate() {
        let agent = (role == "agent").then_some("ada");
        let (own, other) =
            (token(&api, "acme", role, agent).await, token(&api, "other", role, agent).await);
        for (method, path, body, rule) in RULES {
            let body = body.map(|body| serde_json::from_str(body).unwrap());
            let may = rule.as_bytes()[index] == b'+';
            let answer = as_user(&own, *method, path, "ada", body.clone()).await;
            let wanted = if may { 200..300 } else { 403..404 };
            assert!(
                wanted.contains(&answer.status),
                "{role} {path}: {} {}",
                answer.status,
                answer.text
            );
            let answer = as_user(&other, *method, path, "ada", body).await;
            assert_eq!(answer.problem(), (403, "forbidden"), "{role} of another company: {path}");
        }
        for (place, fact) in [("user", &fact), ("drive", &of_drive)] {
            let path = format!("/api/memory/{place}/{}", fact["id"].as_str().unwrap());
            let answer = as_user(&other, Method::Delete, &path, "ada", None).await;
            assert_eq!(answer.problem(), (403, "forbidden"), "{role} of another company: {path}");
            if role == "auditor" {
                let answer = as_user(&own, Method::Delete, &path, "ada", None).await;
                assert_eq!(answer.problem(), (403, "forbidden"), "{path}");
            }
        }
    }
    let nobody = api.with("mh_nobody");
    assert_eq!(as_user(&nobody, Method::Get, "/api/memory/user", "ada", None).await.status, 401);
    // An agent's token is for its agent, whatever the header says, and needs no header.
    let ada = token(&api, "acme", "agent", Some("ada")).await;
    assert_eq!(
        as_user(&ada, Method::Get, "/api/memory/user", "bob", None).await.problem(),
        (403, "forbidden")
    );
    assert!(!ada.get("/api/memory/user").await.as_array().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_configuration_maps_ids_to_scope_fields() {
    let configured = json!({
        "pagespace": {
            "company": "acme", "binding": "notes", "user": "namespace", "drive": "project_id",
            "user_header": "x-page-user",
        },
        "apropos": {"company": "acme", "binding": "notes", "project": "subject_id"},
    });
    let routes = serde_json::from_value(configured).unwrap();
    let host =
        TestHost::new(&[]).await.unwrap().surfaces(|surfaces| surfaces.integrations = routes);
    let api = Api::new(&host);
    let headers = [("x-page-user", "u1")];
    let add = |path: &'static str| {
        api.send(Method::Post, path, Some(json!({"fact": "x"}).to_string()), &headers)
    };
    assert_eq!(add("/api/memory/user").await.problem(), (404, "no_binding"));
    let binding = json!({"key": "notes", "providerKey": "local-markdown"});
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    add("/api/memory/user").await.fine();
    add("/api/memory/drive/d1").await.fine();
    api.post("/api/projects/p1/memory", &json!({"content": "x"})).await.fine();
    let operations =
        api.get("/control/v1/companies/acme/operations?kind=record_upsert&outcome=succeeded").await;
    let scopes: Vec<&Value> =
        operations["items"].as_array().unwrap().iter().map(|one| &one["scope"]).collect();
    let wanted = [("subjectId", "p1"), ("projectId", "d1"), ("namespace", "u1")];
    for (scope, (field, id)) in scopes.iter().zip(wanted) {
        assert_eq!(**scope, json!({"companyId": "acme", field: id}));
    }
    assert_eq!(operations["items"][0]["bindingKey"], "notes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routes_that_only_read_are_not_answered_from_a_key() {
    let (_host, api) = host().await;
    api.make("acme").await;
    let admin = token(&api, "acme", "company_administrator", None).await;
    let send = async |route: &str, body: &str| {
        let path = format!("/api/projects/p/memory/{route}");
        let key = format!("key-{route}");
        let headers = [("idempotency-key", key.as_str())];
        let answer = admin.send(Method::Post, &path, Some(body.to_owned()), &headers).await;
        assert!(answer.status < 300, "{route}: {}", answer.text);
        answer.headers.contains_key("idempotency-replayed")
    };
    for (route, body) in [("search", r#"{"query": "tea"}"#), ("recall", "{}"), ("export", "{}")] {
        assert!(!send(route, body).await && !send(route, body).await, "{route}");
    }
    let import = r#"{"items": [{"content": "Tea"}]}"#;
    assert!(!send("import", import).await && send("import", import).await, "a write is replayed");
}
