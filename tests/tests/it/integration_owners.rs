//! Whose the records of PageSpace's and Apropos' routes are: roles of persons, and what tools and
//! programs wrote.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::integrations::token;
use super::support::{Answer, Api};

/// What a gateway sends for a person, with the role that the person has in the drive.
async fn as_person(
    api: &Api,
    method: Method,
    path: &str,
    who: (&str, &str),
    body: Option<Value>,
) -> Answer {
    let headers = [("x-memhost-act-as-person", who.0), ("x-memhost-act-as-role", who.1)];
    api.send(method, path, body.map(|body| body.to_string()), &headers).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_persons_role_decides_what_the_person_may_do_in_a_drive() {
    let integrations = serde_json::from_value(json!({"pagespace": {"company": "acme"}})).unwrap();
    let host = TestHost::new(&["facts"])
        .await
        .unwrap()
        .surfaces(|surfaces| surfaces.integrations = integrations);
    let api = Api::new(&host);
    let binding = json!({"key": "facts", "providerKey": "facts", "default": true,
        "grants": {"storageBytes": 1 << 20, "clock": true}});
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    let gateway = token(&api, "acme", "integration", None).await;
    let (member, admin) = (("u1", "agent"), ("u2", "company_administrator"));
    let drive = "/api/memory/drive/d1";
    let fact = |text: &str, source: &str| Some(json!({"fact": text, "source": source}));
    // A user's facts are the user's, whatever role another one has.
    let own =
        as_person(&gateway, Method::Post, "/api/memory/user", member, fact("Likes tea", "user"))
            .await;
    assert_eq!((own.status, &own.json["userId"]), (201, &json!("u1")), "{}", own.text);
    let of_admin = as_person(&gateway, Method::Get, "/api/memory/user", admin, None).await.fine();
    assert_eq!(of_admin, json!([]));
    let headers = [
        ("x-memhost-act-as-person", "u2"),
        ("x-memhost-act-as-role", "company_administrator"),
        ("x-user-id", "u1"),
    ];
    let other = gateway.send(Method::Get, "/api/memory/user", None, &headers).await;
    assert_eq!(
        other.problem(),
        (403, "forbidden"),
        "an administrator of a drive owns nobody's facts"
    );
    // A model saves in every member's chat; by hand only an administrator adds.
    let learned = as_person(&gateway, Method::Post, drive, member, fact("Builds on Mondays", "ai"))
        .await
        .fine();
    assert_eq!((&learned["createdBy"], &learned["source"]), (&json!("u1"), &json!("ai")));
    let refused = as_person(&gateway, Method::Post, drive, member, fact("x", "user")).await;
    assert_eq!(refused.problem(), (403, "forbidden"));
    let added =
        as_person(&gateway, Method::Post, drive, admin, fact("Chose Zustand", "user")).await.fine();
    assert_eq!(added["createdBy"], "u2");
    // A header carries ASCII only: the person is the same one, however the header is written.
    let encoded =
        [("x-memhost-act-as-person", "%75%32"), ("x-memhost-act-as-role", "company_administrator")];
    let mine = gateway.send(Method::Get, "/api/memory/user", None, &encoded).await.fine();
    assert_eq!(mine, json!([]));
    let own = gateway
        .send(Method::Post, "/api/memory/user", Some(json!({"fact": "x"}).to_string()), &encoded)
        .await;
    assert_eq!((own.status, &own.json["userId"]), (201, &json!("u2")), "{}", own.text);
    // Nobody becomes another person by what would be trimmed.
    for almost in ["u2%20", "%C2%A0u2", "u2%0A", "u2%E2%80%83", "%C2%85u2"] {
        let header = [("x-memhost-act-as-person", almost)];
        let refused = gateway.send(Method::Get, "/api/memory/user", None, &header).await;
        assert_eq!(refused.status, 400, "{almost}: {}", refused.text);
    }
    for who in [member, admin, ("u3", "agent")] {
        let seen = as_person(&gateway, Method::Get, drive, who, None).await.fine();
        assert_eq!(seen.as_array().unwrap().len(), 2, "members share them: {seen}");
    }
    let one = format!("/api/memory/drive/{}", learned["id"].as_str().unwrap());
    let all = format!("{drive}/all");
    for path in [&one, &all] {
        assert_eq!(
            as_person(&gateway, Method::Delete, path, member, None).await.problem(),
            (403, "forbidden"),
            "{path}"
        );
        let ada = token(&api, "acme", "agent", Some("ada")).await;
        assert_eq!(
            ada.send(Method::Delete, path, None, &[]).await.problem(),
            (403, "forbidden"),
            "{path}"
        );
    }
    assert_eq!(as_person(&gateway, Method::Delete, &one, admin, None).await.status, 204);
    assert_eq!(
        as_person(&gateway, Method::Delete, &all, admin, None).await.fine(),
        json!({"removed": 1})
    );
    assert_eq!(
        as_person(&gateway, Method::Get, "/api/memory/user", member, None).await.fine()[0]["fact"],
        "Likes tea"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fact_of_a_drive_is_in_its_list_whatever_project_its_writer_names() {
    let integrations =
        serde_json::from_value(json!({"pagespace": {"company": "acme", "binding": "facts"}}))
            .unwrap();
    let host = TestHost::new(&["facts"])
        .await
        .unwrap()
        .surfaces(|surfaces| surfaces.integrations = integrations);
    let api = Api::new(&host);
    let binding = json!({"key": "facts", "providerKey": "facts", "default": true,
        "grants": {"storageBytes": 1 << 20, "clock": true}});
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    let scope = json!({"companyId": "acme", "namespace": "d1", "projectId": "p9"});
    let records = json!({"scope": scope, "records": [{"text": "Chose Zustand"}]});
    api.post("/runtime/v1/companies/acme/records", &records).await.fine();
    let listed = api.get("/api/memory/drive/d1").await;
    assert_eq!(listed[0]["fact"], "Chose Zustand", "{listed}");
    let found = api.post("/runtime/v1/companies/acme/list", &json!({"scope": scope})).await.fine();
    assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
    let removed = api.send(Method::Delete, "/api/memory/drive/d1/all", None, &[]).await.fine();
    assert_eq!(removed, json!({"removed": 1}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_programs_and_tools_wrote_in_a_project_is_an_item_of_it() {
    let integrations = serde_json::from_value(json!({"apropos": {"company": "acme"}})).unwrap();
    let mut host = TestHost::new(&["cross-agent"])
        .await
        .unwrap()
        .surfaces(|surfaces| surfaces.integrations = integrations);
    let api = Api::new(&host);
    let binding = json!({
        "key": "shared", "providerKey": "cross-agent", "default": true,
        "grants": {"storageBytes": 1 << 24},
    });
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    // As `memory.note` and `memhost note` write: a record in the scope of the project, with no
    // member of Apropos.
    let write = |project: &str, text: &str, metadata: Value| {
        json!({
            "scope": {"companyId": "acme", "projectId": project},
            "records": [{"text": text, "metadata": metadata}],
        })
    };
    let upsert = "/runtime/v1/companies/acme/records";
    let noted = api
        .post(
            upsert,
            &write("p1", "Deployments are frozen on Fridays", json!({"type": "decision"})),
        )
        .await
        .fine();
    api.post(upsert, &write("p2", "The office is in Bonn", json!({"visibility": "global"})))
        .await
        .fine();
    api.post(upsert, &write("p2", "Secret of the other project", json!({}))).await.fine();
    let id = noted["records"][0]["providerRecordId"].as_str().unwrap().to_owned();
    let path = "/api/projects/p1/memory";
    let contents = |page: &Value| {
        let items = page["items"].as_array().unwrap().iter();
        let mut all: Vec<String> =
            items.map(|item| item["content"].as_str().unwrap().to_owned()).collect();
        all.sort();
        all
    };
    let both = ["Deployments are frozen on Fridays", "The office is in Bonn"];
    assert_eq!(contents(&api.get(path).await), both, "and what is global");
    let found = api
        .post(&format!("{path}/search"), &json!({"query": "deployments office secret"}))
        .await
        .fine();
    assert_eq!(contents(&found), both);
    let recalled = api
        .post(&format!("{path}/recall"), &json!({"query": "deployments", "sessionId": "s1"}))
        .await
        .fine();
    assert_eq!(contents(&recalled), [both[0]]);
    let nothing =
        api.post(&format!("{path}/recall"), &json!({"query": "xyzzy plugh"})).await.fine();
    assert_eq!((&nothing["items"], &nothing["context"]), (&json!([]), &json!("")));
    // One item: read, changed, and still there after a restart.
    let one = format!("{path}/{id}");
    assert_eq!(api.get(&one).await["type"], "decision");
    let changed = api
        .patch(&one, &json!({"content": "Deployments are frozen on Mondays", "tags": ["ops"]}))
        .await
        .fine();
    assert_eq!(
        (&changed["id"], &changed["tags"], &changed["type"]),
        (&json!(id), &json!(["ops"]), &json!("decision"))
    );
    let exported = api.post(&format!("{path}/export"), &json!({})).await.fine();
    assert_eq!(
        contents(&exported),
        ["Deployments are frozen on Mondays"],
        "the global item is the other project's"
    );
    let again = api.post(&format!("{path}/import"), &exported).await.fine();
    assert_eq!(
        (&again["imported"], &again["unchanged"]),
        (&json!(0), &json!(1)),
        "its own export changes nothing"
    );
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(api.get(&one).await["content"], "Deployments are frozen on Mondays");
    assert_eq!(
        api.send(Method::Get, &format!("/api/projects/p3/memory/{id}"), None, &[]).await.status,
        404
    );
    assert_eq!(
        api.send(Method::Delete, &format!("/api/projects/p3/memory/{id}"), None, &[]).await.status,
        404
    );
    assert_eq!(api.send(Method::Delete, &one, None, &[]).await.status, 204);
    assert_eq!(api.send(Method::Get, &one, None, &[]).await.status, 404);
    // A vector is kept, not dropped; one that is too long is refused.
    let item =
        json!({"content": "with a vector", "embedding": [0.5, -1.0], "embeddingModel": "mini"});
    let made = api.post(path, &item).await.fine();
    let read = api.get(&format!("{path}/{}", made["id"].as_str().unwrap())).await;
    assert_eq!(
        (&read["embedding"], &read["embeddingModel"]),
        (&item["embedding"], &item["embeddingModel"])
    );
    let long = json!({"content": "x", "embedding": vec![0.5; 8_193]});
    assert_eq!(api.post(path, &long).await.json["field"], "embedding");
    // What was saved and recalled left events, for whom the request named. The question that found
    // nothing left none.
    let events = api.get("/control/v1/companies/acme/events?projectId=p1&limit=100").await;
    let of = |kind: &str| {
        events["items"].as_array().unwrap().iter().filter(|event| event["type"] == kind).count()
    };
    assert_eq!((of("memory.saved"), of("memory.recalled")), (3, 1), "{events}");
    let of_session = api.get("/control/v1/companies/acme/events?sessionId=s1").await;
    assert_eq!(of_session["items"][0]["type"], "memory.recalled");
}

/// Section 6.5 on every way in: a user's facts are that user's, also where an agent's scope names
/// another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_token_reaches_no_other_users_facts_on_any_way() {
    let integrations =
        serde_json::from_value(json!({"pagespace": {"company": "acme", "binding": "facts"}}))
            .unwrap();
    let host = TestHost::new(&["facts"])
        .await
        .unwrap()
        .surfaces(|surfaces| surfaces.integrations = integrations);
    let api = Api::new(&host);
    for (company, key, default) in
        [("acme", "facts", true), ("acme", "other", false), ("zeta", "facts", true)]
    {
        let binding = json!({"key": key, "providerKey": "facts", "default": default,
            "grants": {"storageBytes": 1 << 20, "clock": true}});
        api.post(&format!("/control/v1/companies/{company}/bindings"), &binding).await.fine();
    }
    let gateway = token(&api, "acme", "integration", None).await;
    let secret = Some(json!({"fact": "Allergic to nuts"}));
    let made =
        as_person(&gateway, Method::Post, "/api/memory/user", ("u1", "agent"), secret).await.fine();
    let ada = token(&api, "acme", "agent", Some("ada")).await;
    let scope = json!({"companyId": "acme", "subjectId": "u1"});
    let handle = json!({"providerKey": "facts", "providerRecordId": made["id"]});
    let (path, hook) = ("/runtime/v1/companies/acme", "2026-11-23T12:00:00Z");
    for (route, body) in [
        ("query", json!({"scope": scope, "query": "nuts", "intent": "agent_preamble"})),
        ("list", json!({"scope": scope})),
        ("get", json!({"scope": scope, "handle": handle})),
        ("records", json!({"scope": scope, "records": [{"text": "Likes to be lied to"}]})),
        ("forget", json!({"scope": scope, "handles": [handle]})),
    ] {
        let refused = ada.post(&format!("{path}/{route}"), &body).await;
        assert_eq!(
            (refused.problem(), &refused.json["field"]),
            ((403, "forbidden"), &json!("scope.subjectId")),
            "{route}"
        );
        assert!(!refused.text.contains("Allergic"), "{route}");
    }
    let hydrate = json!({
        "hookKind": "pre_run_hydrate", "hookId": "h1", "triggeredAt": hook, "scope": scope,
        "query": "",
    });
    let hydrated = ada.post(&format!("{path}/hooks"), &hydrate).await;
    assert!(!hydrated.text.contains("Allergic"), "{}", hydrated.text);
    // Without a subject, or as itself, it has its own facts and not the user's.
    for scope in [json!({"companyId": "acme"}), json!({"companyId": "acme", "subjectId": "ada"})] {
        let mine = json!({"scope": scope, "records": [{"text": "Ada knows Rust"}]});
        ada.post(&format!("{path}/records"), &mine).await.fine();
        let listed =
            ada.post(&format!("{path}/list"), &json!({"scope": scope})).await.fine().to_string();
        assert!(listed.contains("Rust") && !listed.contains("Allergic"), "{listed}");
        let get = json!({"scope": scope, "handle": handle});
        assert!(ada.post(&format!("{path}/get"), &get).await.fine()["record"].is_null());
    }
    // The system in front acts for the user, and the AI has the user's facts.
    let ask = json!({"scope": {"companyId": "acme"}, "query": "", "intent": "agent_preamble"});
    let query = format!("{path}/query");
    let told = as_person(&gateway, Method::Post, &query, ("u1", "agent"), Some(ask)).await.fine();
    assert!(told["profileSummary"].as_str().unwrap().contains("Allergic"), "{told}");
    // An integration that acts for an agent is that agent.
    let as_agent = [("x-memhost-act-as-agent", "ada")];
    let body = json!({"scope": scope}).to_string();
    let refused = gateway.send(Method::Post, &format!("{path}/list"), Some(body), &as_agent).await;
    assert_eq!(refused.problem(), (403, "forbidden"));
    // Another binding, and another company, keep the plan's scoping: an agent serves users.
    let elsewhere =
        json!({"bindingKey": "other", "scope": scope, "records": [{"text": "of u1, by ada"}]});
    ada.post(&format!("{path}/records"), &elsewhere).await.fine();
    let bob = token(&api, "zeta", "agent", Some("bob")).await;
    let theirs =
        json!({"scope": {"companyId": "zeta", "subjectId": "u1"}, "records": [{"text": "of u1"}]});
    bob.post("/runtime/v1/companies/zeta/records", &theirs).await.fine();
}

/// With the contract's partitions a scope without a user sees the records of all: an agent's token
/// has no such scope.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_names_no_user_has_no_users_facts_with_any_provider() {
    let integrations =
        serde_json::from_value(json!({"pagespace": {"company": "acme", "binding": "notes"}}))
            .unwrap();
    let host =
        TestHost::new(&[]).await.unwrap().surfaces(|surfaces| surfaces.integrations = integrations);
    let api = Api::new(&host);
    let binding = json!({"key": "notes", "providerKey": "local-markdown", "default": true});
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    let gateway = token(&api, "acme", "integration", None).await;
    let secret = Some(json!({"fact": "Allergic to nuts"}));
    let made =
        as_person(&gateway, Method::Post, "/api/memory/user", ("u1", "agent"), secret).await.fine();
    let handle = json!({"providerKey": "local-markdown", "providerRecordId": made["id"]});
    let source = json!({"scope": {"companyId": "acme", "subjectId": "u1"},
        "source": {"kind": "issue", "companyId": "acme", "issueId": "I-1"},
        "records": [{"text": "Of u1's issue"}]});
    api.post("/runtime/v1/companies/acme/records", &source).await.fine();
    let ada = token(&api, "acme", "agent", Some("ada")).await;
    let (path, scope) = ("/runtime/v1/companies/acme", json!({"companyId": "acme"}));
    for (route, body) in [
        ("query", json!({"scope": scope, "query": "allergic to nuts"})),
        ("list", json!({"scope": scope})),
        ("get", json!({"scope": scope, "handle": handle})),
        ("sources/list", json!({"scope": scope, "sources": [{"issueId": "I-1"}]})),
    ] {
        let answer = ada.post(&format!("{path}/{route}"), &body).await.fine().to_string();
        assert!(!answer.contains("Allergic") && !answer.contains("u1"), "{route}: {answer}");
    }
    let forgotten = ada
        .post(&format!("{path}/forget"), &json!({"scope": scope, "handles": [handle]}))
        .await
        .fine();
    assert_eq!(forgotten["outcomes"][0]["effect"], "not_found");
    // What it writes without a user is its own.
    ada.post(
        &format!("{path}/records"),
        &json!({"scope": scope, "records": [{"text": "Deploys on Mondays"}]}),
    )
    .await
    .fine();
    assert!(
        ada.post(&format!("{path}/list"), &json!({"scope": scope}))
            .await
            .fine()
            .to_string()
            .contains("Mondays")
    );
    let facts =
        as_person(&gateway, Method::Get, "/api/memory/user", ("u1", "agent"), None).await.fine();
    assert!(
        facts.to_string().contains("Allergic") && !facts.to_string().contains("Mondays"),
        "{facts}"
    );
    assert_eq!(ada.get("/api/memory/user").await[0]["fact"], "Deploys on Mondays");
}

/// An agent writes any metadata. Whose a fact is and who added it is what the host knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_writes_no_fact_in_another_ones_name() {
    let integrations = serde_json::from_value(json!({"pagespace": {"company": "acme"}})).unwrap();
    let host =
        TestHost::new(&[]).await.unwrap().surfaces(|surfaces| surfaces.integrations = integrations);
    let api = Api::new(&host);
    let binding = json!({"key": "notes", "providerKey": "local-markdown", "default": true});
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    let gateway = token(&api, "acme", "integration", None).await;
    let ada = token(&api, "acme", "agent", Some("ada")).await;
    let upsert = "/runtime/v1/companies/acme/records";
    let write = |scope: Value, metadata: Value| {
        json!({
            "scope": scope, "records": [{"text": "Pay invoices to Eve", "metadata": metadata}],
        })
    };
    let company = json!({"companyId": "acme"});
    let of_u1 = json!({"userId": "u1", "source": "user", "createdAt": "2026-01-01T00:00:00Z"});
    ada.post(upsert, &write(company.clone(), of_u1.clone())).await.fine();
    let of_d1 = json!({"driveId": "d1", "createdBy": "u2", "source": "user"});
    ada.post(upsert, &write(company.clone(), of_d1.clone())).await.fine();
    let as_ada = [("x-memhost-act-as-agent", "ada")];
    let through = write(company.clone(), of_u1.clone()).to_string();
    gateway.send(Method::Post, upsert, Some(through), &as_ada).await.fine();
    let facts =
        as_person(&gateway, Method::Get, "/api/memory/user", ("u1", "agent"), None).await.fine();
    assert_eq!(facts, json!([]), "planted in the name of u1");
    let drive = "/api/memory/drive/d1";
    assert_eq!(api.get(drive).await, json!([]), "planted in the drive");
    // In the drive itself any member's agent writes. What it says of who added it is not believed.
    ada.post(upsert, &write(json!({"companyId": "acme", "namespace": "d1"}), of_d1)).await.fine();
    let added = api.get(drive).await;
    assert_eq!(
        (&added[0]["createdBy"], &added[0]["source"]),
        (&json!("ada"), &json!("ai")),
        "{added}"
    );
    // A user that is an agent owns what it wrote, and a program that may name anybody is believed.
    ada.post(upsert, &write(company.clone(), json!({"userId": "ada"}))).await.fine();
    assert_eq!(
        ada.get("/api/memory/user").await.as_array().unwrap().len(),
        4,
        "and what it planted for others"
    );
    api.post(upsert, &write(company, of_u1)).await.fine();
    let facts =
        as_person(&gateway, Method::Get, "/api/memory/user", ("u1", "agent"), None).await.fine();
    assert_eq!(
        (facts.as_array().unwrap().len(), &facts[0]["source"]),
        (1, &json!("user")),
        "{facts}"
    );
}
