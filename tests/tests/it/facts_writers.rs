//! Whose a fact is that a tool, an agent or a program writes at PageSpace's binding, and who is
//! told to have made it.

use std::net::SocketAddr;

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::mcp_http::{Client, listening_until};
use super::support::{Answer, Api};
use super::ui_pages::in_company;

pub(super) const RECORDS: &str = "/runtime/v1/companies/acme/records";

/// A host with PageSpace's routes at the provider `facts`, the gateway in front, and where it
/// listens.
async fn host(config: Value) -> (TestHost, Api, Api, (SocketAddr, tokio::task::JoinHandle<()>)) {
    host_with(config, json!({"company": "acme", "binding": "facts"})).await
}

/// The same with these options of the routes.
pub(super) async fn host_with(
    config: Value,
    pagespace: Value,
) -> (TestHost, Api, Api, (SocketAddr, tokio::task::JoinHandle<()>)) {
    let integrations = serde_json::from_value(json!({"pagespace": pagespace})).unwrap();
    let host = TestHost::new(&["facts"])
        .await
        .unwrap()
        .surfaces(|surfaces| surfaces.integrations = integrations);
    let api = Api::new(&host);
    let binding = json!({"key": "facts", "providerKey": "facts", "default": true, "config": config,
        "grants": {"storageBytes": 64 << 20, "clock": true}, "policy": {"mcp": {"aliases": true}}});
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    let made = json!({"name": "gateway", "role": "integration"});
    let made = api.post("/control/v1/companies/acme/tokens", &made).await.fine();
    let gateway = api.with(made["value"].as_str().unwrap());
    let listening = listening_until(host.service()).await;
    (host, api, gateway, listening)
}

/// A call for a person, with the person's role in the drive.
pub(super) async fn as_person(
    gateway: &Api,
    method: Method,
    path: &str,
    who: (&str, &str),
    body: Option<Value>,
) -> Answer {
    let headers = [("x-memhost-act-as-person", who.0), ("x-memhost-act-as-role", who.1)];
    gateway.send(method, path, body.map(|body| body.to_string()), &headers).await
}

pub(super) async fn preamble(gateway: &Api, user: &str, drive: &str) -> String {
    let query = json!({
        "scope": {"companyId": "acme", "namespace": drive}, "query": "", "intent": "agent_preamble",
    });
    let path = "/runtime/v1/companies/acme/query";
    let answer = as_person(gateway, Method::Post, path, (user, "agent"), Some(query)).await.fine();
    answer["profileSummary"].as_str().unwrap_or_default().to_owned()
}

pub(super) async fn users(gateway: &Api, user: &str) -> Value {
    as_person(gateway, Method::Get, "/api/memory/user", (user, "agent"), None).await.fine()
}

pub(super) fn texts(facts: &Value) -> Vec<&str> {
    let mut all: Vec<&str> =
        facts.as_array().unwrap().iter().map(|fact| fact["fact"].as_str().unwrap()).collect();
    all.sort_unstable();
    all
}

/// A client of the gateway that acts for a member, in a drive.
pub(super) fn chat(address: SocketAddr, gateway: &Api, user: &str, drive: &str) -> Client {
    let client = Client::new(address, gateway.token()).with("x-memhost-act-as-person", user);
    client.with("memhost-namespace", drive)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_notes_for_nobody_is_its_own_fact() {
    let (mut host, api, gateway, (address, listener)) = host(json!({})).await;
    let ada = api.agent("ada").await;
    let client = Client::new(address, ada.token());
    client.does("memory.note", json!({"text": "Noted by ada"})).await;
    let body = json!({"scope": {"companyId": "acme"}, "records": [{"text": "Written by ada"}]});
    ada.post(RECORDS, &body).await.fine();
    // The tool for a user's facts, too: the agent counts as one.
    let saved = client.does("save_memory", json!({"scope": "user", "fact": "Saved by ada"})).await;
    assert_eq!(preamble(&gateway, "u1", "d1").await, "", "it is in no context but ada's");
    let own = ada.get("/api/memory/user").await;
    assert_eq!(texts(&own), ["Noted by ada", "Saved by ada", "Written by ada"]);
    assert!(
        own.as_array()
            .unwrap()
            .iter()
            .all(|fact| fact["userId"] == "ada" && fact["source"] == "ai"),
        "{own}"
    );
    let asked = json!({"scope": {"companyId": "acme"}, "query": "", "intent": "agent_preamble"});
    let query = "/runtime/v1/companies/acme/query";
    let told = ada.post(query, &asked).await.fine()["profileSummary"].as_str().unwrap().to_owned();
    assert!(told.starts_with("## About This User") && told.contains("Noted by ada"), "{told}");
    let (token, gate) = (ada.token().to_owned(), gateway.token().to_owned());
    drop((api, ada, gateway));
    listener.abort();
    host.stop().await;
    host.start().await.unwrap();
    let (ada, gateway) = (Api::new(&host).with(&token), Api::new(&host).with(&gate));
    let client = Client::new(listening_until(host.service()).await.0, &token);
    let removed =
        client.does("remove_memory", json!({"scope": "user", "factId": saved["factId"]})).await;
    assert_eq!(removed["isRemoved"], true);
    let one = format!("/api/memory/user/{}", own[0]["id"].as_str().unwrap());
    assert_eq!(ada.send(Method::Delete, &one, None, &[]).await.status, 204);
    assert_eq!(texts(&ada.get("/api/memory/user").await).len(), 1);
    // In a drive what it notes is the drive's, as before.
    client
        .with("memhost-namespace", "d1")
        .does("memory.note", json!({"text": "Builds on Mondays"}))
        .await;
    assert_eq!(
        preamble(&gateway, "u1", "d1").await,
        "## About This Workspace\n\n- Builds on Mondays\n\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_to_the_whole_company_is_seen_and_removed_in_the_explorer() {
    let (host, api, gateway, (address, _)) = host(json!({})).await;
    let body = json!({
        "scope": {"companyId": "acme"}, "records": [{"text": "The office is in <b>Bonn</b>"}],
    });
    api.post(RECORDS, &body).await.fine();
    let of_user = json!({
        "scope": {"companyId": "acme", "subjectId": "u1"}, "records": [{"text": "Likes tea"}],
    });
    api.post(RECORDS, &of_user).await.fine();
    assert!(preamble(&gateway, "u1", "d1").await.contains("Bonn"));
    let (admin, auditor) = (
        in_company(&api, "acme", "company_administrator").await,
        in_company(&api, "acme", "auditor").await,
    );
    let agent = in_company(&api, "acme", "agent").await;
    let page = admin.page("/c/acme/facts").await;
    assert!(
        page.contains("Of the company")
            && page.contains("&lt;b&gt;Bonn")
            && !page.contains("Likes tea"),
        "{page}"
    );
    let page = auditor.page("/c/acme/facts").await;
    assert!(page.contains("Bonn") && !page.contains(">Delete<"), "{page}");
    let page = agent.page("/c/acme/facts").await;
    assert!(
        page.contains("Bonn") && !page.contains(">Delete<"),
        "it is in its context; it manages none of it: {page}"
    );
    let listed = api.get("/api/memory/company").await;
    assert_eq!(texts(&listed), ["The office is in <b>Bonn</b>"]);
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    let fields = [("whose", "company"), ("id", id.as_str())];
    for other in [&auditor, &agent] {
        assert_eq!(other.post("/c/acme/facts/delete", &fields).await.status, 403);
    }
    let one = format!("/api/memory/company/{id}");
    // Whose context it is in may see it.
    for who in [("u1", "agent"), ("u1", "company_administrator")] {
        let found = as_person(&gateway, Method::Get, "/api/memory/company", who, None).await.fine();
        assert_eq!(texts(&found), ["The office is in <b>Bonn</b>"], "{who:?}");
    }
    assert_eq!(
        texts(&api.agent("ada").await.get("/api/memory/company").await),
        ["The office is in <b>Bonn</b>"]
    );
    let refused = as_person(&gateway, Method::Delete, &one, ("u1", "agent"), None).await;
    assert_eq!(refused.problem(), (403, "forbidden"));
    let client = chat(address, &gateway, "u1", "d1");
    for (tool, arguments) in [
        ("memory.forget", json!({"ids": [id]})),
        ("memory.correct", json!({"id": id, "text": "It is in Rome"})),
    ] {
        let refused = client.is_refused(tool, arguments).await;
        assert!(refused.contains("a shared fact that was added by hand"), "{tool}: {refused}");
    }
    for source in ["ai", "user"] {
        let fact = json!({"fact": "We are in Rome", "source": source});
        let refused =
            as_person(&gateway, Method::Post, "/api/memory/company", ("u1", "agent"), Some(fact))
                .await;
        assert_eq!(refused.problem(), (403, "forbidden"), "{source}");
    }
    admin.form("/c/acme/facts/delete", &fields).await;
    assert!(!admin.page("/c/acme/facts").await.contains("Bonn"));
    assert_eq!(preamble(&gateway, "u1", "d1").await, "## About This User\n\n- Likes tea\n\n");
    let added = api.post("/api/memory/company", &json!({"fact": "Speaks German"})).await.fine();
    assert!(preamble(&gateway, "u2", "d1").await.contains("Speaks German"));
    let one = format!("/api/memory/company/{}", added["id"].as_str().unwrap());
    assert_eq!(api.send(Method::Delete, &one, None, &[]).await.status, 204);
    let of_u1 = users(&gateway, "u1").await;
    let users = format!("/api/memory/company/{}", of_u1[0]["id"].as_str().unwrap());
    assert_eq!(
        api.send(Method::Delete, &users, None, &[]).await.status,
        404,
        "a user's fact is not the company's"
    );
    drop(host);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_members_words_are_no_administrators() {
    let (_host, _, gateway, (address, _)) = host(json!({})).await;
    let (member, admin) = (("u2", "agent"), ("u1", "company_administrator"));
    let drive = "/api/memory/drive/d9";
    let fact = |text: &str, source: &str| Some(json!({"fact": text, "source": source}));
    let list = async || as_person(&gateway, Method::Get, drive, admin, None).await.fine();
    let by = |fact: &Value| (fact["createdBy"].clone(), fact["source"].clone());
    let made =
        as_person(&gateway, Method::Post, drive, admin, fact("Chose Zustand", "user")).await.fine();
    assert_eq!(by(&list().await[0]), (json!("u1"), json!("user")));
    // A record of a member that says it was added by hand.
    let planted = json!({"scope": {"companyId": "acme", "namespace": "d9"}, "records": [
        {"text": "Planted", "metadata": {"scope": "drive", "driveId": "d9", "source": "user",
            "createdBy": "u1"}}]});
    as_person(&gateway, Method::Post, RECORDS, member, Some(planted)).await.fine();
    let listed = list().await;
    let planted = listed.as_array().unwrap().iter().find(|fact| fact["fact"] == "Planted").unwrap();
    assert_eq!(by(planted), (json!("u2"), json!("ai")), "{listed}");
    // The words of a corrected fact are the corrector's.
    let client = chat(address, &gateway, "u2", "d9");
    let id = planted["id"].clone();
    let fact_of = |listed: &Value| {
        listed.as_array().unwrap().iter().find(|fact| fact["id"] == id).cloned().unwrap()
    };
    client.does("memory.correct", json!({"id": id, "text": "Chose Redux"})).await;
    let corrected = fact_of(&list().await);
    assert_eq!(
        (&corrected["fact"], by(&corrected)),
        (&json!("Chose Redux"), (json!("u2"), json!("ai")))
    );
    // By a request that no tool made, of the administrator.
    let patch = json!({"scope": {"companyId": "acme", "namespace": "d9"}, "handle": handle(&id),
        "patch": {"record": {"text": "Chose Redux Toolkit"}}});
    as_person(&gateway, Method::Post, "/runtime/v1/companies/acme/correct", admin, Some(patch))
        .await
        .fine();
    assert_eq!(by(&fact_of(&list().await)), (json!("u1"), json!("user")));
    // Both are the administrator's now.
    for id in [&made["id"], &id] {
        changes_nothing(&client, &gateway, id).await;
    }
    assert_eq!(texts(&list().await), ["Chose Redux Toolkit", "Chose Zustand"]);
    client.does("save_memory", json!({"scope": "drive", "fact": "Builds on Mondays"})).await;
    let listed = list().await;
    let saved =
        listed.as_array().unwrap().iter().find(|fact| fact["fact"] == "Builds on Mondays").unwrap();
    let removed =
        client.does("remove_memory", json!({"scope": "drive", "factId": saved["id"]})).await;
    assert_eq!(removed["isRemoved"], true);
}

pub(super) fn handle(id: &Value) -> Value {
    json!({"providerKey": "facts", "providerRecordId": id})
}

/// On no way a member's chat corrects, replaces or removes this fact of the drive `d9`.
async fn changes_nothing(client: &Client, gateway: &Api, id: &Value) {
    for (tool, arguments) in [
        ("memory.correct", json!({"id": id, "text": "Changed"})),
        ("memory.forget", json!({"ids": [id]})),
        ("remove_memory", json!({"scope": "drive", "factId": id})),
    ] {
        let refused = client.is_refused(tool, arguments).await;
        assert!(refused.contains("agents_change_drive_facts"), "{tool}: {refused}");
    }
    let scope = json!({"companyId": "acme", "namespace": "d9"});
    for (path, body) in [
        ("forget", json!({"scope": scope, "handles": [handle(id)]})),
        (
            "correct",
            json!({"scope": scope, "handle": handle(id), "patch": {"record": {"text": "Changed"}}}),
        ),
        (
            "records",
            json!({
                "scope": scope,
                "records": [{"id": id, "text": "Changed", "metadata": {"scope": "drive"}}],
            }),
        ),
        ("scope/forget", json!({"scope": scope})),
    ] {
        let path = format!("/runtime/v1/companies/acme/{path}");
        let refused = as_person(gateway, Method::Post, &path, ("u2", "agent"), Some(body)).await;
        assert_eq!(refused.problem(), (403, "forbidden"), "{path}: {}", refused.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_says_which_facts_of_a_drive_a_chat_may_remove() {
    for (allowed, by_hand, by_model) in [("none", false, false), ("all", true, true)] {
        let pagespace =
            json!({"company": "acme", "binding": "facts", "agents_change_drive_facts": allowed});
        let (_host, _, gateway, (address, _)) = host_with(json!({}), pagespace).await;
        let client = chat(address, &gateway, "u2", "d9");
        client.does("save_memory", json!({"scope": "drive", "fact": "Builds on Mondays"})).await;
        let (drive, admin) = ("/api/memory/drive/d9", ("u1", "company_administrator"));
        as_person(&gateway, Method::Post, drive, admin, Some(json!({"fact": "Chose Zustand"})))
            .await
            .fine();
        let listed = as_person(&gateway, Method::Get, drive, admin, None).await.fine();
        for (text, may) in [("Chose Zustand", by_hand), ("Builds on Mondays", by_model)] {
            let fact = listed.as_array().unwrap().iter().find(|fact| fact["fact"] == text).unwrap();
            let ask = json!({"scope": "drive", "factId": fact["id"]});
            match may {
                true => assert_eq!(client.does("remove_memory", ask).await["isRemoved"], true),
                false => {
                    assert!(
                        client.is_refused("remove_memory", ask).await.contains("administrator")
                    );
                }
            }
        }
        // A user's own facts are the user's.
        client.does("save_memory", json!({"scope": "user", "fact": "Likes tea"})).await;
        let own = users(&gateway, "u2").await;
        let ask = json!({"scope": "user", "factId": own[0]["id"]});
        assert_eq!(client.does("remove_memory", ask).await["isRemoved"], true);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_model_writes_in_a_members_chat_is_the_models_and_names_the_member() {
    let (_host, api, gateway, (address, _)) = host(json!({})).await;
    let client = chat(address, &gateway, "u1", "d1");
    client.does("save_memory", json!({"scope": "drive", "fact": "Builds on Mondays"})).await;
    let drive = as_person(&gateway, Method::Get, "/api/memory/drive/d1", ("u1", "agent"), None)
        .await
        .fine();
    assert_eq!(
        (&drive[0]["createdBy"], &drive[0]["source"]),
        (&json!("u1"), &json!("ai")),
        "{drive}"
    );
    client.does("memory.note", json!({"text": "Allergic to nuts"})).await;
    let own = users(&gateway, "u1").await;
    assert_eq!((texts(&own), &own[0]["source"]), (vec!["Allergic to nuts"], &json!("ai")), "{own}");
    let admin = in_company(&api, "acme", "company_administrator").await;
    let page = admin.page("/c/acme/facts?user=u1").await;
    assert!(page.contains(">AI<") && !page.contains(">person<"), "{page}");
    // A user's fact follows the user everywhere, also one that was noted in a drive.
    for drive in ["d1", "d2"] {
        let text = preamble(&gateway, "u1", drive).await;
        assert!(text.starts_with("## About This User\n\n- Allergic to nuts\n"), "{drive}: {text}");
    }
    let program = json!({"scope": {"companyId": "acme", "subjectId": "u1", "namespace": "d1"},
        "records": [{"text": "Speaks Welsh"}]});
    api.post(RECORDS, &program).await.fine();
    assert!(preamble(&gateway, "u1", "d2").await.contains("Speaks Welsh"));
    let of_drive = json!({"scope": {"companyId": "acme", "subjectId": "u1", "namespace": "d1"},
        "records": [{"text": "Ships on Fridays", "metadata": {"scope": "drive"}}]});
    api.post(RECORDS, &of_drive).await.fine();
    assert!(
        preamble(&gateway, "u2", "d1").await.contains("Ships on Fridays"),
        "what says that it is the drive's is"
    );
    assert!(!preamble(&gateway, "u1", "d2").await.contains("Ships on Fridays"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_list_says_what_to_do() {
    let (_host, _, gateway, (address, _)) = host(json!({"maxFacts": 1})).await;
    let client = chat(address, &gateway, "u1", "d1");
    client.does("save_memory", json!({"scope": "user", "fact": "One"})).await;
    for (tool, arguments) in [
        ("save_memory", json!({"scope": "user", "fact": "Two"})),
        ("memory.note", json!({"text": "Two"})),
    ] {
        let refused = client.is_refused(tool, arguments).await;
        assert!(
            refused.starts_with("quota_exceeded") && refused.contains("remove_memory"),
            "{refused}"
        );
        assert!(!refused.contains("not to be had"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_names_a_section_whose_binding_is_not_there() {
    let check = async |api: &Api| {
        let all = api.get("/control/v1/doctor").await;
        let found = all["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|check| check["name"] == "integrations")
            .cloned();
        found.map(|check| (check["health"].clone(), check["found"].as_str().unwrap().to_owned()))
    };
    let none = TestHost::new(&[]).await.unwrap();
    assert_eq!(check(&Api::new(&none)).await, None);
    let integrations = json!({
        "pagespace": {"company": "acme", "binding": "facts"}, "apropos": {"company": "acme"},
    });
    let integrations = serde_json::from_value(integrations).unwrap();
    let host = TestHost::new(&["facts"])
        .await
        .unwrap()
        .surfaces(|surfaces| surfaces.integrations = integrations);
    let api = Api::new(&host);
    let (health, found) = check(&api).await.unwrap();
    assert_eq!(
        (health, found.as_str()),
        (json!("warning"), "`[integrations.pagespace]`: the company `acme` has no binding")
    );
    let make = async |key: &str, default: bool| {
        let binding = json!({"key": key, "providerKey": "facts", "default": default,
            "grants": {"storageBytes": 1 << 20, "clock": true}});
        api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    };
    make("other", false).await;
    assert!(check(&api).await.unwrap().1.contains("no binding `facts`"));
    make("facts", false).await;
    assert!(check(&api).await.unwrap().1.contains("`[integrations.apropos]`: it names no binding"));
    make("rest", true).await;
    assert_eq!(check(&api).await.unwrap().0, json!("ok"));
}
