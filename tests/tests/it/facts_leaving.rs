//! A user of PageSpace who is deleted: the drives keep their facts, and nobody is told who made
//! those that the user made.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::facts_writers::{RECORDS, as_person, chat, handle, host_with, preamble, texts, users};
use super::mcp_http::{Client, listening_until};
use super::support::Api;

const DRIVE: &str = "/api/memory/drive/d1";
/// Who is deleted. No other id has it as a part.
const GONE: &str = "ursula";

fn pagespace() -> Value {
    json!({"company": "acme", "binding": "facts"})
}

/// What everybody is told of the drive's facts: text, who made it, and how.
async fn told(api: &Api) -> Vec<(String, Value, String)> {
    let mut all: Vec<_> = api.get(DRIVE).await.as_array().unwrap().iter().map(told_of).collect();
    all.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    all
}

fn told_of(fact: &Value) -> (String, Value, String) {
    let text = |name: &str| fact[name].as_str().unwrap().to_owned();
    (text("fact"), fact["createdBy"].clone(), text("source"))
}

async fn forget(api: &Api, scope: Value) -> Value {
    let body = json!({"scope": scope});
    let done = api.post("/runtime/v1/companies/acme/scope/forget", &body).await.fine();
    assert_eq!(done["isComplete"], true, "{done}");
    done
}

/// Everything that the host says of the drive's records, with its rows and the provider's lines.
async fn all_said(api: &Api) -> String {
    let scope = json!({"companyId": "acme", "namespace": "d1"});
    let path = |what: &str| format!("/runtime/v1/companies/acme/{what}");
    let listed = api.post(&path("list"), &json!({"scope": scope})).await.fine();
    let mut said = listed.to_string();
    for item in listed["items"].as_array().unwrap() {
        let get = json!({"scope": scope, "handle": item["handle"]});
        let found = api.post(&path("get"), &get).await.fine();
        assert!(found["row"]["writtenBy"].is_string(), "{found}");
        said.push_str(&found.to_string());
    }
    said.push_str(&api.get(DRIVE).await.to_string());
    said
}

/// Facts of the drive d1 that `GONE` made on every way, and one of somebody else.
async fn made(api: &Api, gateway: &Api, client: &Client) {
    client.does("save_memory", json!({"scope": "drive", "fact": "a by a tool"})).await;
    let post = async |who: (&str, &str), text: &str, source: &str| {
        let fact = json!({"fact": text, "source": source});
        as_person(gateway, Method::Post, DRIVE, who, Some(fact)).await.fine()
    };
    let admin = (GONE, "company_administrator");
    post((GONE, "agent"), "b over the route", "ai").await;
    post(admin, "c by hand", "user").await;
    let named = json!({"fact": "d for the user"}).to_string();
    api.send(Method::Post, DRIVE, Some(named), &[("x-user-id", GONE)]).await.fine();
    let both = json!({"companyId": "acme", "subjectId": GONE, "namespace": "d1"});
    let program = json!({"scope": both, "records": [
        {"text": "e by a program", "metadata": {"scope": "drive", "createdBy": GONE}}]});
    api.post(RECORDS, &program).await.fine();
    let others = post(("bob", "agent"), "f", "ai").await;
    let correct = json!({"scope": {"companyId": "acme", "namespace": "d1"},
        "handle": handle(&others["id"]), "patch": {"record": {"text": "f as corrected"}}});
    let path = "/runtime/v1/companies/acme/correct";
    as_person(gateway, Method::Post, path, admin, Some(correct)).await.fine();
    post(("bob", "agent"), "g of somebody else", "ai").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drive_keeps_the_facts_of_a_user_who_is_deleted_without_the_name() {
    let (mut host, api, gateway, (address, listener)) = host_with(json!({}), pagespace()).await;
    let client = chat(address, &gateway, GONE, "d1");
    made(&api, &gateway, &client).await;
    // An agent counts as a user, too.
    let agent = api.agent(GONE).await;
    let own = Client::new(address, agent.token()).with("memhost-namespace", "d1");
    let own = own.with("user-agent", "claude-code/2.1");
    own.does("save_memory", json!({"scope": "drive", "fact": "h by an agent"})).await;
    client.does("save_memory", json!({"scope": "user", "fact": "Likes tea"})).await;
    let before = told(&api).await;
    let by = |told: &[(String, Value, String)], who: &Value| {
        told.iter().filter(|(_, by, _)| by == who).count()
    };
    assert_eq!((before.len(), by(&before, &json!(GONE))), (8, 7), "{before:?}");
    let lists = preamble(&gateway, "bob", "d1").await;
    assert_eq!(lists.matches("\n- ").count(), 8, "{lists}");

    let done = forget(&api, json!({"companyId": "acme", "subjectId": GONE})).await;
    assert_eq!(done["bindings"][0]["forgotten"], 1, "the user's own fact: {done}");
    let check = async |api: &Api, gateway: &Api| {
        assert_eq!(users(gateway, GONE).await, json!([]));
        let after = told(api).await;
        let expected: Vec<_> = before
            .iter()
            .map(|(text, by, source)| {
                let by = if *by == json!(GONE) { Value::Null } else { by.clone() };
                (text.clone(), by, source.clone())
            })
            .collect();
        assert_eq!(after, expected);
        let said = all_said(api).await;
        assert!(!said.contains(GONE), "{said}");
        assert_eq!(preamble(gateway, "bob", "d1").await, lists);
    };
    check(&api, &gateway).await;
    let gate = gateway.token().to_owned();
    drop((api, gateway, agent));
    listener.abort();
    host.stop().await;
    host.start().await.unwrap();
    let (api, gateway) = (Api::new(&host), Api::new(&host).with(&gate));
    check(&api, &gateway).await;
    // What a chat may remove is as before, and what is made from now on has a maker.
    let address = listening_until(host.service()).await.0;
    let client = chat(address, &gateway, "bob", "d1");
    let listed = api.get(DRIVE).await;
    for fact in listed.as_array().unwrap() {
        let ask = json!({"scope": "drive", "factId": fact["id"]});
        match fact["source"] == "ai" {
            true => assert_eq!(client.does("remove_memory", ask).await["isRemoved"], true),
            false => drop(client.is_refused("remove_memory", ask).await),
        }
    }
    let again = chat(address, &gateway, GONE, "d1");
    again.does("save_memory", json!({"scope": "drive", "fact": "a by a tool"})).await;
    assert_eq!(by(&told(&api).await, &json!(GONE)), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_forgets_less_than_everything_is_still_named() {
    let (_host, api, gateway, (address, _)) = host_with(json!({}), pagespace()).await;
    let client = chat(address, &gateway, GONE, "d1");
    client.does("save_memory", json!({"scope": "drive", "fact": "Builds on Mondays"})).await;
    for scope in [
        json!({"companyId": "acme", "subjectId": GONE, "runId": "r1"}),
        json!({"companyId": "acme", "subjectId": "bob"}),
        json!({"companyId": "acme", "namespace": "d2"}),
    ] {
        forget(&api, scope).await;
        assert_eq!(told(&api).await[0].1, json!(GONE));
    }
    // The user may do it, too, and a drive that is forgotten is empty.
    let body = json!({"scope": {"companyId": "acme", "subjectId": GONE}});
    let path = "/runtime/v1/companies/acme/scope/forget";
    as_person(&gateway, Method::Post, path, (GONE, "agent"), Some(body)).await.fine();
    assert_eq!(told(&api).await[0].1, Value::Null);
    forget(&api, json!({"companyId": "acme", "namespace": "d1"})).await;
    assert_eq!(api.get(DRIVE).await, json!([]));
}

/// Without PageSpace's section it is a scope like any other: names of writers stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_of_no_users_keeps_its_writers() {
    let host = TestHost::new(&["facts"]).await.unwrap();
    let api = Api::new(&host);
    let binding = json!({"key": "facts", "providerKey": "facts", "default": true,
        "grants": {"storageBytes": 1 << 20, "clock": true}});
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    let agent = api.agent(GONE).await;
    let body = json!({"scope": {"companyId": "acme", "namespace": "d1"},
        "records": [{"text": "Builds on Mondays"}]});
    let handle = agent.post(RECORDS, &body).await.fine()["records"][0].clone();
    forget(&api, json!({"companyId": "acme", "subjectId": GONE})).await;
    let get = json!({"scope": {"companyId": "acme"}, "handle": handle});
    let found = api.post("/runtime/v1/companies/acme/get", &get).await.fine();
    assert_eq!(found["row"]["writtenBy"], format!("agent:{GONE}"), "{found}");
}

/// The lists and the preambles have the same facts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_fact_is_in_a_preamble_and_in_no_list() {
    let (_host, api, gateway, _) = host_with(json!({}), pagespace()).await;
    let member = ("u1", "agent");
    let (user, drive, company) = ("/api/memory/user", DRIVE, "/api/memory/company");
    let of_user = || json!({"companyId": "acme", "subjectId": "u1"});
    let of_drive = || json!({"companyId": "acme", "namespace": "d1"});
    let of_both = || json!({"companyId": "acme", "subjectId": "u1", "namespace": "d1"});
    // A member is confined to itself: what it says to nobody is its own.
    for (scope, metadata, list, of_member) in [
        (of_user(), json!({"userId": "u9"}), user, user),
        (of_user(), json!({"driveId": "d1"}), user, user),
        (of_user(), json!({"projectId": "p"}), user, user),
        (of_both(), json!({"scope": "user", "driveId": "d1"}), user, user),
        (of_both(), json!({"scope": "drive", "userId": "u1"}), drive, drive),
        (of_drive(), json!({"userId": "u1"}), drive, user),
        (of_drive(), json!({"driveId": "d9"}), drive, drive),
        (of_drive(), json!({"projectId": "p"}), drive, user),
        (json!({"companyId": "acme"}), json!({"userId": "u9"}), company, user),
        (json!({"companyId": "acme"}), json!({"driveId": "d9"}), company, user),
    ] {
        let body = json!({"scope": scope, "records": [{"text": "Told", "metadata": metadata}]});
        let written = [
            (api.post(RECORDS, &body).await.fine(), list),
            (
                as_person(&gateway, Method::Post, RECORDS, member, Some(body)).await.fine(),
                of_member,
            ),
        ];
        assert_eq!(preamble(&gateway, "u1", "d1").await.matches("- Told\n").count(), 2);
        for (written, list) in written {
            let id = written["records"][0]["providerRecordId"].as_str().unwrap();
            let mut there = Vec::new();
            for path in [user, drive, company, "/api/memory/drive/d9", "/api/memory/drive/p"] {
                let headers = [("x-user-id", "u1")];
                let found = api.send(Method::Get, path, None, &headers).await.fine();
                if found.as_array().unwrap().iter().any(|fact| fact["id"] == id) {
                    there.push(path);
                }
            }
            assert_eq!(there, [list], "{scope} {metadata}");
            let of_other = api.send(Method::Get, user, None, &[("x-user-id", "u9")]).await.fine();
            assert_eq!(texts(&of_other), [""; 0], "{scope} {metadata}");
            let one = match list == drive {
                true => format!("/api/memory/drive/{id}"),
                false => format!("{list}/{id}"),
            };
            let gone = api.send(Method::Delete, &one, None, &[("x-user-id", "u1")]).await;
            assert_eq!(gone.status, 204, "{scope} {metadata}: {}", gone.text);
        }
        assert_eq!(preamble(&gateway, "u1", "d1").await, "", "{scope} {metadata}");
    }
}
