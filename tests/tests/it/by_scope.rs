//! Forgetting a scope: what was written for an agent, a subject, a run and so on goes, and nothing
//! else, with providers that forget it at once and with those that cannot.

use memhost_server::Method;
use memhost_tests::{TestHost, open_store};
use serde_json::{Value, json};

use super::cli::Terminal;
use super::mcp_http::token;
use super::support::{Answer, Api, bind_provider};
use super::whose::{ask, written};

pub(super) const FORGET: &str = "/runtime/v1/companies/acme/scope/forget";

/// A scope of `acme`.
pub(super) fn of(scope: &Value) -> Value {
    let mut whole = json!({"companyId": "acme"});
    whole.as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
    json!({"scope": whole})
}

pub(super) async fn forget(api: &Api, scope: Value) -> Answer {
    api.post(FORGET, &of(&scope)).await
}

/// The texts of all records of a company's default binding.
async fn texts(api: &Api, company: &str) -> Vec<String> {
    let page = ask(api, company, "list", json!({"limit": 1000})).await.fine();
    let items = page["items"].as_array().unwrap().iter();
    let mut all: Vec<String> =
        items.map(|item| item["text"].as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

/// Writes a record in a scope of `acme`.
async fn write(api: &Api, scope: Value, text: &str, visibility: &str) -> Value {
    let mut beside = of(&scope);
    beside["visibility"] = json!(visibility);
    written(api, "acme", text, &beside).await
}

async fn host(provider: &str) -> (TestHost, Api) {
    let guests: &[&str] =
        if provider == "local-markdown" { &[] } else { std::slice::from_ref(&provider) };
    let host = TestHost::new(guests).await.unwrap();
    let api = Api::new(&host);
    for company in ["acme", "zeta"] {
        bind_provider(&api, company, provider).await;
    }
    (host, api)
}

/// `reference` forgets a partition at once, and the others have none of that. `hosted` can, and
/// leaves the partitions to the host: it would be asked for what it does not tell apart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_wrote_goes_and_what_others_wrote_stays_also_after_a_restart() {
    for (provider, operations) in
        [("local-markdown", 1), ("extracts", 1), ("reference", 2), ("hosted", 1)]
    {
        let (mut host, api) = host(provider).await;
        let (ada, carol) = (api.agent("ada").await, api.agent("carol").await);
        for (agent, name) in [(&ada, "ada"), (&carol, "carol")] {
            written(agent, "acme", &format!("shared by {name}"), &json!({"visibility": "company"}))
                .await;
            written(agent, "acme", &format!("private to {name}"), &json!({"visibility": "agent"}))
                .await;
        }
        written(&api, "acme", "of the company", &json!({})).await;
        let there =
            json!({"scope": {"companyId": "zeta", "agentId": "ada"}, "visibility": "agent"});
        written(&api, "zeta", "of another company", &there).await;

        let others = forget(&carol, json!({"agentId": "ada"})).await;
        assert_eq!(
            (others.status, others.json["field"].as_str()),
            (403, Some("scope.agentId")),
            "{provider}"
        );
        assert_eq!(texts(&api, "acme").await.len(), 5, "{provider}");

        let gone = forget(&ada, json!({"agentId": "ada"})).await.fine();
        let at = &gone["bindings"][0];
        assert_eq!(
            (&at["forgotten"], &gone["isComplete"]),
            (&json!(2), &json!(true)),
            "{provider}: {gone}"
        );
        assert_eq!(at["operationIds"].as_array().unwrap().len(), operations, "{provider}: {gone}");
        for id in at["operationIds"].as_array().unwrap() {
            let path = format!("/control/v1/companies/acme/operations/{}", id.as_str().unwrap());
            let operation = api.get(&path).await;
            let told = ["kind", "outcome", "principal"]
                .map(|name| operation[name].as_str().unwrap().to_owned());
            assert_eq!(told, ["forget", "succeeded", "agent:ada"], "{provider}: {operation}");
        }
        let left = ["of the company", "private to carol", "shared by carol"];
        assert_eq!(texts(&api, "acme").await, left, "{provider}");
        assert_eq!(texts(&api, "zeta").await, ["of another company"], "{provider}");

        // It can be sent again, and what is written from then on is kept.
        let again = forget(&ada, json!({"agentId": "ada"})).await.fine();
        assert_eq!(
            (&again["bindings"][0]["forgotten"], &again["isComplete"]),
            (&json!(0), &json!(true)),
            "{again}"
        );
        drop((ada, carol, api));
        host.stop().await;
        host.start().await.unwrap();
        let api = Api::new(&host);
        assert_eq!(texts(&api, "acme").await, left, "{provider}, after a restart");
        write(&api, json!({"agentId": "ada"}), "ada again", "agent").await;
        assert!(texts(&api, "acme").await.contains(&"ada again".to_owned()), "{provider}");
    }
}

/// A provider that forgets a partition at once knows no runs: it would forget all that the agent
/// has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scope_with_a_context_takes_no_more_than_what_has_it() {
    for provider in ["local-markdown", "reference"] {
        let (_host, api) = host(provider).await;
        for run in ["r1", "r2"] {
            write(&api, json!({"agentId": "ada", "runId": run}), &format!("in {run}"), "agent")
                .await;
        }
        write(&api, json!({"agentId": "carol", "runId": "r1"}), "carol in r1", "agent").await;
        forget(&api, json!({"agentId": "ada", "runId": "r1"})).await.fine();
        assert_eq!(texts(&api, "acme").await, ["carol in r1", "in r2"], "{provider}");
        // Each part is enough, and all that are named count.
        for (part, value) in [
            ("projectId", "p"),
            ("issueId", "i"),
            ("subjectId", "s"),
            ("sessionKey", "k"),
            ("namespace", "n"),
        ] {
            for value in [value, "other"] {
                let mut scope = json!({"runId": "r3"});
                scope[part] = json!(value);
                write(&api, scope, &format!("{part} {value}"), "company").await;
            }
            let mut scope = json!({});
            scope[part] = json!(value);
            forget(&api, scope).await.fine();
            let left = texts(&api, "acme").await;
            assert!(!left.contains(&format!("{part} {value}")), "{provider}: {left:?}");
            assert!(left.contains(&format!("{part} other")), "{provider}: {left:?}");
        }
    }
}

/// Whoever is confined forgets what they may read. The others forget what is private to anybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_forgets_what_they_may_not_read() {
    for provider in ["local-markdown", "reference"] {
        let (host, api) = host(provider).await;
        let gateway = api
            .with(&token(&host, "acme", json!({"name": "gateway", "role": "integration"})).await);
        write(&api, json!({"agentId": "carol", "subjectId": "u1"}), "private to carol", "agent")
            .await;
        write(&api, json!({"agentId": "carol", "subjectId": "u1"}), "private to u1", "person")
            .await;
        write(&api, json!({"subjectId": "u1"}), "about u1", "company").await;
        let as_person = [("x-memhost-act-as-person", "u1")];
        let body = of(&json!({"subjectId": "u1"})).to_string();
        gateway.send(Method::Post, FORGET, Some(body), &as_person).await.fine();
        assert_eq!(texts(&api, "acme").await, ["private to carol"], "{provider}");
        write(&api, json!({"agentId": "carol", "subjectId": "u1"}), "private to u1", "person")
            .await;
        let carol = api.agent("carol").await;
        forget(&carol, json!({"agentId": "carol"})).await.fine();
        assert_eq!(texts(&api, "acme").await, ["private to u1"], "{provider}");
        forget(&api, json!({"agentId": "carol"})).await.fine();
        assert_eq!(texts(&api, "acme").await, Vec::<String>::new(), "{provider}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scope_names_something_beside_the_company() {
    let (host, api) = host("local-markdown").await;
    written(&api, "acme", "stays", &json!({})).await;
    let ada = api.agent("ada").await;
    written(&ada, "acme", "ada's", &json!({})).await;
    // An agent's token fills in the agent, and that is not a scope which somebody has named.
    for caller in [&api, &ada] {
        let refused = forget(caller, json!({})).await;
        assert_eq!(
            (refused.status, refused.json["field"].as_str()),
            (400, Some("scope")),
            "{}",
            refused.text
        );
        assert!(refused.text.contains("memhost company delete"), "{}", refused.text);
    }
    let elsewhere = api.post(FORGET, &json!({"scope": {"companyId": "zeta", "runId": "r"}})).await;
    assert_eq!(
        (elsewhere.status, elsewhere.json["field"].as_str()),
        (400, Some("scope.companyId"))
    );
    let unknown = of(&json!({"runId": "r1"}));
    let unknown = json!({"scope": unknown["scope"], "bindingKey": "nowhere"});
    assert_eq!(api.post(FORGET, &unknown).await.status, 404);
    let auditor = api.with(&token(&host, "acme", json!({"name": "a", "role": "auditor"})).await);
    assert_eq!(forget(&auditor, json!({"runId": "r1"})).await.status, 403);
    let zeta = api
        .with(&token(&host, "zeta", json!({"name": "z", "role": "company_administrator"})).await);
    assert_eq!(forget(&zeta, json!({"agentId": "ada"})).await.status, 403);
    assert_eq!(texts(&api, "acme").await, ["ada's", "stays"]);
}

/// A token for one run forgets its run only, whatever else the agent has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_for_one_run_forgets_that_run() {
    let (host, api) = host("local-markdown").await;
    for run in ["r1", "r2"] {
        write(&api, json!({"agentId": "ada", "runId": run}), &format!("in {run}"), "company").await;
    }
    let body = json!({"name": "r", "role": "agent", "agentId": "ada", "runId": "r1"});
    let of_run = api.with(&token(&host, "acme", body).await);
    forget(&of_run, json!({"agentId": "ada"})).await.fine();
    assert_eq!(texts(&api, "acme").await, ["in r2"]);
}

/// A provider may have records that the host has no row of. Where it says what they were for, they
/// go, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_the_provider_knows_is_looked_for() {
    let (mut host, api) = host("cross-agent").await;
    for project in ["p1", "p2"] {
        write(&api, json!({"projectId": project}), &format!("of {project}"), "company").await;
    }
    drop(api);
    host.stop().await;
    let store = open_store(host.data_dir());
    for tree in ["records", "record_sources"] {
        store.open_tree(tree).unwrap().clear().unwrap();
    }
    store.flush().unwrap();
    drop(store);
    host.start().await.unwrap();
    let api = Api::new(&host);
    let gone = forget(&api, json!({"projectId": "p1"})).await.fine();
    assert_eq!(gone["bindings"][0]["forgotten"], 1, "{gone}");
    assert_eq!(texts(&api, "acme").await, ["of p2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_binding_or_all_of_them_and_one_that_fails_stops_no_other() {
    let (_host, api) = host("extracts").await;
    super::support::bind(&api, "acme", "second", &json!({})).await;
    let in_run = json!({"runId": "r1"});
    for key in ["extracts", "second"] {
        let mut beside = of(&in_run);
        beside["bindingKey"] = json!(key);
        written(&api, "acme", &format!("at {key}"), &beside).await;
    }
    let mut body = of(&in_run);
    body["bindingKey"] = json!("extracts");
    let gone = api.post(FORGET, &body).await.fine();
    assert_eq!(gone["bindings"].as_array().unwrap().len(), 1, "{gone}");
    assert_eq!(texts(&api, "acme").await, ["at second"]);
    let first = "/control/v1/companies/acme/bindings/extracts";
    api.patch(first, &json!({"enabled": false})).await.fine();
    let gone = forget(&api, in_run.clone()).await.fine();
    assert_eq!(
        (&gone["isComplete"], gone["bindings"].as_array().unwrap().len()),
        (&json!(false), 2),
        "{gone}"
    );
    assert!(gone["bindings"][0]["error"].as_str().unwrap().contains("disabled"), "{gone}");
    assert_eq!(texts(&api, "acme").await, Vec::<String>::new());
    api.patch(first, &json!({"enabled": true})).await.fine();
    assert_eq!(forget(&api, in_run).await.fine()["isComplete"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_asks_before_it_forgets_a_scope() {
    let terminal = Terminal::open(&[]).await;
    terminal.fine("note 'in the run' --run r1").await;
    terminal.fine("note 'outside of it'").await;
    for (line, says) in [
        ("forget --whole-scope --yes", "--whole-scope"),
        ("forget --whole-scope --run r1", "--yes"),
        ("forget --yes --run r1", "--whole-scope"),
        ("forget some --whole-scope --yes --run r1", "--whole-scope"),
    ] {
        let done = terminal.run(line).await;
        assert_eq!(done.code, 2, "{line}: {done:?}");
        assert!(done.err.contains(says), "{line}: {done:?}");
    }
    let gone = terminal.json("record delete --whole-scope --run r1 --yes").await;
    assert_eq!(
        (&gone["bindings"][0]["forgotten"], &gone["isComplete"]),
        (&json!(1), &json!(true)),
        "{gone}"
    );
    let left = terminal.fine("record list").await;
    assert!(left.contains("outside of it") && !left.contains("in the run"), "{left}");
}
