//! The explorer's page of facts: the same facts as PageSpace's routes and tools have, under the
//! same permissions.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::{Answer, Api};
use super::ui_pages::{Visitor, in_company, operator};

const HOSTILE: &str = "<script>alert(1)</script>";

async fn keeping() -> (TestHost, Api) {
    let integrations = serde_json::from_value(json!({"pagespace": {"company": "acme"}})).unwrap();
    let host = TestHost::new(&["facts"])
        .await
        .unwrap()
        .surfaces(|surfaces| surfaces.integrations = integrations);
    let api = Api::new(&host);
    let binding = json!({"key": "facts", "providerKey": "facts", "default": true,
        "grants": {"storageBytes": 1 << 20, "clock": true}});
    for company in ["acme", "zeta"] {
        api.post(&format!("/control/v1/companies/{company}/bindings"), &binding).await.fine();
    }
    (host, api)
}

fn location(answer: &Answer) -> String {
    let location = answer.headers["location"].to_str().unwrap();
    location.split('#').next().unwrap().to_owned()
}

/// The facts of a user, as PageSpace's route answers them.
async fn of_user(api: &Api, user: &str) -> Vec<Value> {
    let answer =
        api.send(Method::Get, "/api/memory/user", None, &[("x-user-id", user)]).await.fine();
    answer.as_array().unwrap().clone()
}

async fn of_drive(api: &Api, drive: &str) -> Vec<Value> {
    api.get(&format!("/api/memory/drive/{drive}")).await.as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_page_adds_and_removes_is_what_routes_and_tools_have() {
    let (mut host, api) = keeping().await;
    let admin = in_company(&api, "acme", "company_administrator").await;
    assert!(admin.page("/c/acme").await.contains("href=\"/c/acme/facts\""));
    assert!(admin.page("/c/acme/facts").await.contains("No user or drive is named"));
    let both = "/c/acme/facts?user=u1&drive=d1";
    let owners = |whose: &'static str| [("user", "u1"), ("drive", "d1"), ("whose", whose)];
    let with = |whose: &'static str, rest: &[(&'static str, &'static str)]| {
        [&owners(whose), rest].concat()
    };
    // Added in the page: in the routes, and in what a recall of this user in this drive has.
    let added = admin.form("/c/acme/facts", &with("user", &[("fact", "Likes tea")])).await;
    let page = admin.page(&location(&added)).await;
    assert!(page.contains("Added. It is in every context") && page.contains("Likes tea"), "{page}");
    admin.form("/c/acme/facts", &with("drive", &[("fact", "Chose <b>Zustand</b>")])).await;
    let (user, drive) = (of_user(&api, "u1").await, of_drive(&api, "d1").await);
    assert_eq!(
        (user.len(), &user[0]["fact"], &user[0]["source"]),
        (1, &json!("Likes tea"), &json!("user"))
    );
    assert_eq!(
        (&drive[0]["fact"], &drive[0]["createdBy"]),
        (&json!("Chose <b>Zustand</b>"), &json!("company_administrator:company_administrator"))
    );
    // What a route, and what a tool wrote, is in the page, with who added it.
    let by = [("x-user-id", "u7")];
    let body = json!({"fact": HOSTILE, "source": "ai"}).to_string();
    api.send(Method::Post, "/api/memory/drive/d1", Some(body), &by).await.fine();
    let noted = json!({
        "scope": {"companyId": "acme", "subjectId": "u1"},
        "records": [{"text": "Allergic to nuts"}],
    });
    let noted = api.post("/runtime/v1/companies/acme/records", &noted).await.fine();
    let page = admin.page(both).await;
    for text in [
        "Allergic to nuts",
        "Likes tea",
        "Chose &lt;b&gt;Zustand&lt;/b&gt;",
        ">u7<",
        ">AI<",
        "Added by",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains(HOSTILE), "{page}");
    // A refused fact is shown again, with the reason.
    let long = "x".repeat(201);
    let fields = [("user", "u1"), ("whose", "user"), ("fact", long.as_str())];
    let refused = admin.post("/c/acme/facts", &fields).await;
    assert!(
        refused.status == 422 && refused.text.contains(&long) && refused.text.contains("201"),
        "{}",
        refused.text
    );
    // One is removed by its id, which is the record's.
    let id = noted["records"][0]["providerRecordId"].as_str().unwrap();
    assert!(page.contains(&format!("value=\"{id}\"")), "{page}");
    let fields = [("user", "u1"), ("drive", "d1"), ("whose", "user"), ("id", id)];
    let removed = admin.form("/c/acme/facts/delete", &fields).await;
    let page = admin.page(&location(&removed)).await;
    assert!(
        !page.contains("Allergic") && page.contains("Likes tea") && page.contains("Zustand"),
        "{page}"
    );
    // It is another user's for another user.
    let other = [("user", "u2"), ("whose", "user"), ("id", user[0]["id"].as_str().unwrap())];
    assert_eq!(admin.post("/c/acme/facts/delete", &other).await.status, 404);
    // All of them: asked first.
    let asked = admin.page("/c/acme/facts/clear?user=u1&drive=d1&whose=drive").await;
    assert!(
        asked.contains("This cannot be undone")
            && asked.contains("Zustand")
            && !asked.contains("tea"),
        "{asked}"
    );
    assert_eq!(of_drive(&api, "d1").await.len(), 2, "the question removes nothing");
    let cleared = admin.form("/c/acme/facts/clear", &owners("drive")).await;
    assert!(admin.page(&location(&cleared)).await.contains("Removed 2 facts."));
    assert_eq!((of_user(&api, "u1").await.len(), of_drive(&api, "d1").await.len()), (1, 0));
    let recall = json!({
        "scope": {"companyId": "acme", "subjectId": "u1", "namespace": "d1"}, "query": "",
        "intent": "agent_preamble",
    });
    let preamble = api.post("/runtime/v1/companies/acme/query", &recall).await.fine();
    assert_eq!(preamble["profileSummary"], "## About This User\n\n- Likes tea\n\n");
    // After a restart they are there, and the sessions have ended.
    drop((api, admin));
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert!(operator(&api).await.page(both).await.contains("Likes tea"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_role_does_with_facts_what_the_routes_allow() {
    let (_host, api) = keeping().await;
    let (admin, auditor) = (
        in_company(&api, "acme", "company_administrator").await,
        in_company(&api, "acme", "auditor").await,
    );
    let ada = in_company(&api, "acme", "agent").await;
    for (whose, fact) in [("user", "About u1"), ("drive", "Of d1")] {
        admin
            .form(
                "/c/acme/facts",
                &[("user", "u1"), ("drive", "d1"), ("whose", whose), ("fact", fact)],
            )
            .await;
    }
    let has = |page: &str| {
        (page.contains(">Add<"), page.contains(">Delete<"), page.contains(">Clear all<"))
    };
    let both = "/c/acme/facts?user=u1&drive=d1";
    assert_eq!(has(&admin.page(both).await), (true, true, true));
    let page = auditor.page(both).await;
    assert!(page.contains("About u1") && page.contains("Of d1"), "{page}");
    assert_eq!(has(&page), (false, false, false), "an auditor changes nothing");
    // An agent's token is for its own facts; it reads the drive's and manages none of them.
    assert_eq!(ada.get(both).await.status, 403);
    let own = ada.page("/c/acme/facts?drive=d1").await;
    assert!(
        own.contains("About the user ada") && own.contains("Of d1") && !own.contains("About u1"),
        "{own}"
    );
    let drive = own.rsplit("drive-facts").next().unwrap();
    assert_eq!(has(drive), (false, false, false), "{own}");
    ada.form("/c/acme/facts", &[("whose", "user"), ("fact", "Knows Rust")]).await;
    assert_eq!(of_user(&api, "ada").await[0]["fact"], "Knows Rust");
    let id = of_drive(&api, "d1").await[0]["id"].as_str().unwrap().to_owned();
    for (who, name) in [(&ada, "agent"), (&auditor, "auditor")] {
        let refused: [(&str, Vec<(&str, &str)>); 3] = [
            ("", vec![("drive", "d1"), ("whose", "drive"), ("fact", "x")]),
            ("/delete", vec![("drive", "d1"), ("whose", "drive"), ("id", &id)]),
            ("/clear", vec![("drive", "d1"), ("whose", "drive")]),
        ];
        for (path, fields) in refused {
            assert_eq!(
                who.post(&format!("/c/acme/facts{path}"), &fields).await.status,
                403,
                "{name} {path}"
            );
        }
        assert_eq!(who.get("/c/acme/facts/clear?drive=d1&whose=drive").await.status, 403, "{name}");
    }
    assert_eq!(
        ada.post("/c/acme/facts/clear", &[("user", "u1"), ("whose", "user")]).await.status,
        403
    );
    assert_eq!((of_user(&api, "u1").await.len(), of_drive(&api, "d1").await.len()), (1, 1));
    // The other company has no facts of PageSpace, and its administrator does not reach those of
    // this one.
    let outsider = in_company(&api, "zeta", "company_administrator").await;
    assert_eq!(outsider.get(both).await.status, 403);
    assert_eq!(outsider.get("/c/zeta/facts?user=u1").await.status, 404);
    assert!(!outsider.page("/c/zeta").await.contains("href=\"/c/zeta/facts\""));
    no_list_is_named(&admin).await;
}

async fn no_list_is_named(admin: &Visitor) {
    let fields = [("whose", "user"), ("fact", "of nobody")];
    let refused = admin.post("/c/acme/facts", &fields).await;
    assert!(refused.status == 400 && refused.text.contains("user"), "{}", refused.text);
}
