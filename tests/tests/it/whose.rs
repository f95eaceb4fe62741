//! Whose memory: a record that is private to one agent is answered to no other one, with every
//! provider and over every surface, also after a restart and after a crash in the middle of the
//! write.

use memhost_tests::TestHost;
use memhost_tests::faults::Faults;
use serde_json::{Value, json};

use super::cli::Terminal;
use super::mcp_http::{Client, listening, token};
use super::support::{Answer, Api};

/// Every provider that ships, and a guest that knows neither agents nor scopes nor times.
pub(crate) const PROVIDERS: [&str; 5] =
    ["local-markdown", "cross-agent", "facts", "taxonomy", "extracts"];
/// A word of the private record, and of nothing else.
const SECRET: &str = "marzipan";

pub(crate) async fn bind(api: &Api, company: &str, key: &str, provider: &str, policy: &Value) {
    let mut body = json!({"key": key, "providerKey": provider, "policy": policy, "default": true});
    // The built-in provider has its grants by default.
    if provider != "local-markdown" {
        body["grants"] = json!({"storageBytes": 64 << 20, "clock": true});
    }
    api.post(&format!("/control/v1/companies/{company}/bindings"), &body).await.fine();
}

/// A host with every provider, and `acme` and `zeta` bound to this one.
pub(crate) async fn host(provider: &str) -> (TestHost, Api) {
    let host = TestHost::new(&["cross-agent", "facts", "taxonomy", "extracts"]).await.unwrap();
    let api = Api::new(&host);
    for company in ["acme", "zeta"] {
        bind(&api, company, "memory", provider, &json!({})).await;
    }
    (host, api)
}

/// The agents ada and carol of `acme`, and ada of `zeta`.
pub(crate) async fn agents(host: &TestHost) -> [Api; 3] {
    let api = Api::new(host);
    let mut agents = Vec::new();
    for (company, agent) in [("acme", "ada"), ("acme", "carol"), ("zeta", "ada")] {
        let name = format!("{agent}-{}", agents.len());
        let made =
            token(host, company, json!({"name": name, "role": "agent", "agentId": agent})).await;
        agents.push(api.with(&made));
    }
    agents.try_into().unwrap_or_else(|_| unreachable!())
}

/// Writes one record, with what else is in the body.
pub(crate) async fn write(api: &Api, company: &str, text: &str, beside: &Value) -> Answer {
    let record = json!({"text": text, "metadata": {"kind": "fact", "confidence": 0.99}});
    let mut body = json!({"scope": {"companyId": company}, "records": [record]});
    body.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
    api.post(&format!("/runtime/v1/companies/{company}/records"), &body).await
}

pub(crate) async fn written(api: &Api, company: &str, text: &str, beside: &Value) -> Value {
    write(api, company, text, beside).await.fine()["records"][0].clone()
}

pub(crate) async fn ask(api: &Api, company: &str, what: &str, beside: Value) -> Answer {
    let mut body = json!({"scope": {"companyId": company}});
    body.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
    api.post(&format!("/runtime/v1/companies/{company}/{what}"), &body).await
}

fn event(id: &str, query: &str) -> Value {
    json!({
        "hookKind": "pre_run_hydrate", "hookId": id, "triggeredAt": "2026-11-20T10:00:00Z",
        "query": query,
        "scope": {"companyId": "acme"}, "deadlineMs": 30_000, "tokenBudget": 5_000,
    })
}

/// Everything that a company's memory answers a caller, as one text.
async fn everything(api: &Api, company: &str, hook: &str, handle: &Value) -> String {
    let mut all = String::new();
    for (what, beside) in [
        ("query", json!({"query": SECRET, "topK": 50})),
        ("query", json!({"query": "", "intent": "agent_preamble"})),
        ("list", json!({"limit": 100})),
        ("get", json!({"handle": handle})),
        ("explain", json!({"query": "who likes what"})),
        ("browse", json!({"limit": 100})),
    ] {
        let answer = ask(api, company, what, beside).await;
        let known = what == "get" || what == "explain" || what == "browse";
        assert!(answer.status == 200 || known, "{what}: {}", answer.text);
        all.push_str(&answer.text);
    }
    if company == "acme" {
        let delivered =
            api.post("/runtime/v1/companies/acme/hooks", &event(hook, SECRET)).await.fine();
        all.push_str(&delivered.to_string());
    }
    // What a request itself says is in no record.
    all.replace(&format!("\"query\":\"{SECRET}\""), "")
}

fn id_of(handle: &Value) -> &str {
    handle["providerRecordId"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_record_is_answered_to_its_agent_alone_with_every_provider() {
    for provider in PROVIDERS {
        let (host, api) = host(provider).await;
        let [ada, carol, outsider] = agents(&host).await;
        let shared = written(&ada, "acme", "Everybody likes the canteen", &json!({})).await;
        let handle =
            written(&ada, "acme", &format!("Ada likes {SECRET}"), &json!({"visibility": "agent"}))
                .await;
        let texts = async |api: &Api| {
            [
                api.query("acme", &format!("likes {SECRET}")).await,
                api.query("acme", "canteen").await,
            ]
            .concat()
            .join("\n")
        };
        let own = texts(&ada).await;
        assert!(own.contains(SECRET) && own.contains("canteen"), "{provider}: {own}");
        assert!(texts(&carol).await.contains("canteen"), "{provider}");
        let row = ask(&ada, "acme", "get", json!({"handle": handle})).await.fine()["row"].clone();
        assert_eq!(
            (&row["visibility"], &row["scope"]["agentId"]),
            (&json!("agent"), &json!("ada")),
            "{provider}"
        );
        assert_eq!(row["writtenBy"], "agent:ada", "{provider}");
        let admins = ask(&api, "acme", "get", json!({"handle": handle})).await.fine();
        assert!(
            admins.to_string().contains(SECRET),
            "{provider}: who may view the company sees it"
        );
        for (other, company) in [(&carol, "acme"), (&outsider, "zeta")] {
            let found = everything(other, company, "private", &handle).await;
            assert!(!found.contains(SECRET), "{provider} {company}: {found}");
            assert!(!found.contains(&format!("\"{}\"", id_of(&handle))), "{provider}: {found}");
        }
        let as_carol = json!({"scope": {"companyId": "acme", "agentId": "carol"}, "query": SECRET});
        let found = api.post("/runtime/v1/companies/acme/query", &as_carol).await.fine();
        assert!(
            !found["snippets"].to_string().contains(SECRET),
            "{provider}: a scope narrows what an operator gets"
        );
        // Nor can others change it, or take its place.
        let forgot =
            ask(&carol, "acme", "forget", json!({"handles": [handle, shared]})).await.fine();
        let effects: Vec<&Value> =
            forgot["outcomes"].as_array().unwrap().iter().map(|one| &one["effect"]).collect();
        assert_eq!(effects, [&json!("not_found"), &json!("hard")], "{provider}: {forgot}");
        let patch = json!({"handle": handle, "patch": {"record": {"text": "Ada likes nothing"}}});
        let corrected = ask(&carol, "acme", "correct", patch).await;
        assert!(corrected.status >= 400, "{provider}: {}", corrected.text);
        let taken = json!({"records": [{"id": id_of(&handle), "text": "mine now"}]});
        let taken = ask(&carol, "acme", "records", taken).await;
        assert!(taken.status >= 400 && !taken.text.contains(SECRET), "{provider}: {}", taken.text);
        assert!(
            ask(&ada, "acme", "get", json!({"handle": handle})).await.text.contains(SECRET),
            "{provider}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_stays_private_after_a_restart_a_correction_and_a_replacement() {
    for provider in ["local-markdown", "extracts"] {
        let (mut host, api) = host(provider).await;
        let [ada, ..] = agents(&host).await;
        let token = ada.token().to_owned();
        let handle =
            written(&ada, "acme", &format!("Ada likes {SECRET}"), &json!({"visibility": "agent"}))
                .await;
        drop((api, ada));
        host.stop().await;
        host.start().await.unwrap();
        let api = Api::new(&host);
        let [_, carol, _] = agents(&host).await;
        let ada = api.with(&token);
        assert!(
            !everything(&carol, "acme", "restarted", &handle).await.contains(SECRET),
            "{provider}"
        );
        // An administrator changes it: it stays ada's.
        let text = format!("Ada loves {SECRET}");
        let replaced = json!({"records": [{"id": id_of(&handle), "text": text}]});
        ask(&api, "acme", "records", replaced).await.fine();
        assert!(
            !everything(&carol, "acme", "replaced", &handle).await.contains(SECRET),
            "{provider}"
        );
        assert!(
            ask(&ada, "acme", "get", json!({"handle": handle})).await.text.contains(&text),
            "{provider}"
        );
        // Its owner gives it to everybody.
        let given =
            json!({"records": [{"id": id_of(&handle), "text": text}], "visibility": "company"});
        ask(&ada, "acme", "records", given).await.fine();
        assert!(everything(&carol, "acme", "given", &handle).await.contains(SECRET), "{provider}");
    }
}

/// The provider has the record, and the host ends before the completion is on disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_between_the_write_and_its_completion_shows_nothing() {
    let (faults, wrap) = Faults::new();
    let mut host =
        TestHost::with(&["extracts"], |options| options.wrap_store = Some(wrap)).await.unwrap();
    let api = Api::new(&host);
    bind(&api, "acme", "memory", "extracts", &json!({})).await;
    let [ada, carol] = [("ada", "1"), ("carol", "2")]
        .map(|(agent, name)| json!({"name": name, "role": "agent", "agentId": agent}));
    let ada = api.with(&token(&host, "acme", ada).await);
    let carol = token(&host, "acme", carol).await;
    let before = written(&ada, "acme", "Everybody likes the canteen", &json!({})).await;
    faults.break_completions(2);
    let refused =
        write(&ada, "acme", &format!("Ada likes {SECRET}"), &json!({"visibility": "agent"})).await;
    assert!(refused.status >= 500, "{}", refused.text);
    let other = api.with(&carol);
    assert!(!other.query("acme", "likes").await.join("\n").contains(SECRET));
    drop((api, ada, other));
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    let carol = api.with(&carol);
    let listed = ask(&carol, "acme", "list", json!({"limit": 100})).await.fine();
    assert!(!listed.to_string().contains(SECRET), "{listed}");
    assert!(listed.to_string().contains("canteen"), "what has a row is answered: {listed}");
    let all = ask(&api, "acme", "list", json!({"limit": 100})).await.fine();
    assert!(
        all.to_string().contains(SECRET),
        "the provider has it, and who may view the company sees it: {all}"
    );
    assert!(ask(&carol, "acme", "get", json!({"handle": before})).await.text.contains("canteen"));
    let id = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["text"].as_str().unwrap().contains(SECRET));
    let handle = id.unwrap()["handle"].clone();
    assert_eq!(
        ask(&carol, "acme", "get", json!({"handle": handle})).await.fine()["record"],
        Value::Null
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_hooks_and_captures_bring_is_as_private_as_they_say() {
    let (host, api) = host("extracts").await;
    let [ada, carol, _] = agents(&host).await;
    let mut event = json!({
        "hookKind": "post_run_capture", "hookId": "h1", "triggeredAt": "2026-11-20T10:00:00Z",
        "waitMs": 20_000,
        "scope": {"companyId": "acme"},
        "source": {"kind": "run", "companyId": "acme", "runId": "r1"},
        "payload": {"text": format!("From a hook: {SECRET}")}, "visibility": "agent",
    });
    let taken = ada.post("/runtime/v1/companies/acme/hooks", &event).await.fine();
    assert_eq!(taken["deliveries"][0]["status"], "delivered", "{taken}");
    let capture = json!({
        "source": {"kind": "run", "companyId": "acme", "runId": "r1"}, "visibility": "agent",
        "payload": {"text": format!("From a capture: {SECRET}")},
    });
    ask(&ada, "acme", "capture", capture).await.fine();
    assert_eq!(ada.query("acme", "From").await.len(), 2);
    assert!(carol.query("acme", "From").await.is_empty());
    // A job that a private capture leaves brings private records.
    let job = json!({
        "source": {"kind": "run", "companyId": "acme"}, "visibility": "agent",
        "payload": {"text": format!("job a {SECRET} fact")},
    });
    ask(&ada, "acme", "capture", job).await.fine();
    let jobs = "/control/v1/companies/acme/jobs";
    api.until(jobs, |page| page["items"][0]["status"] == "succeeded").await;
    assert_eq!(ada.query("acme", &format!("a {SECRET} fact")).await.len(), 3);
    assert!(carol.query("acme", &format!("a {SECRET} fact")).await.is_empty());
    // Without an agent or a person there is nobody to whom it could be private.
    event["hookId"] = json!("h2");
    for (visibility, field) in [("agent", "scope.agentId"), ("person", "scope.subjectId")] {
        event["visibility"] = json!(visibility);
        let refused = api.post("/runtime/v1/companies/acme/hooks", &event).await;
        assert!(refused.status == 400 && refused.text.contains(field), "{}", refused.text);
        let refused = write(&api, "acme", "nobody's", &json!({"visibility": visibility})).await;
        assert!(refused.status == 400 && refused.text.contains(field), "{}", refused.text);
    }
}

/// A provider without agents, and more private records than a query asks for: the others still find
/// theirs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn private_records_push_no_shared_one_out_of_an_answer() {
    let (host, _) = host("extracts").await;
    let [ada, carol, _] = agents(&host).await;
    let many: Vec<Value> =
        (0..120).map(|n| json!({"text": format!("a private fact {n}")})).collect();
    let private = json!({"records": many, "visibility": "agent"});
    ask(&ada, "acme", "records", private).await.fine();
    written(&ada, "acme", "a shared fact", &json!({})).await;
    assert_eq!(carol.query("acme", "fact").await, ["a shared fact"]);
    let mut listed = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = ask(&carol, "acme", "list", json!({"limit": 10, "cursor": cursor})).await.fine();
        listed.extend(page["items"].as_array().unwrap().clone());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(listed.len(), 1, "{listed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_answered_their_own_records_and_no_agent_claims_to_be_one() {
    let (host, api) = host("extracts").await;
    let [ada, ..] = agents(&host).await;
    let of = |person: &str| json!({"companyId": "acme", "subjectId": person});
    let private = json!({"scope": of("u1"), "visibility": "person"});
    written(&api, "acme", &format!("u1 likes {SECRET}"), &private).await;
    let found = async |api: &Api, scope: Value| {
        let body = json!({"scope": scope, "query": SECRET});
        api.post("/runtime/v1/companies/acme/query", &body).await.fine()["snippets"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(found(&api, of("u1")).await, 1);
    assert_eq!(found(&api, of("u2")).await, 0);
    assert_eq!(found(&ada, of("u1")).await, 0);
    let gateway = json!({"name": "gateway", "role": "integration"});
    let gateway = api.with(&token(&host, "acme", gateway).await);
    let body = json!({"scope": {"companyId": "acme"}, "query": SECRET}).to_string();
    for (person, count) in [("u1", 1), ("u2", 0)] {
        let headers = [("x-memhost-act-as-person", person)];
        let path = "/runtime/v1/companies/acme/query";
        let answer = gateway
            .send(memhost_server::Method::Post, path, Some(body.clone()), &headers)
            .await
            .fine();
        assert_eq!(answer["snippets"].as_array().unwrap().len(), count, "{person}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_note_over_mcp_is_the_agents_own_if_it_says_so() {
    let (host, _) = host("extracts").await;
    let address = listening(host.service()).await;
    let client = async |agent: &str| {
        let made =
            token(&host, "acme", json!({"name": agent, "role": "agent", "agentId": agent})).await;
        Client::new(address, &made)
    };
    let (ada, carol) = (client("ada").await, client("carol").await);
    let note = json!({"text": format!("Ada likes {SECRET}"), "visibility": "agent"});
    ada.does("memory.note", note).await;
    let found = async |client: &Client| {
        client.does("memory.search", json!({"query": SECRET})).await["records"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!((found(&ada).await, found(&carol).await), (1, 0));
    let resources = carol.ask("resources/list", json!({})).await;
    assert!(!resources.to_string().contains(SECRET), "{resources}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_writes_private_records_and_filters() {
    let terminal = Terminal::open(&["extracts"]).await;
    let api = Api::new(&terminal.host);
    bind(&api, "acme", "memory", "extracts", &json!({})).await;
    terminal
        .fine(&format!("note 'Ada likes {SECRET}' --agent ada --issue i1 --visibility agent"))
        .await;
    terminal.fine("note 'Everybody likes the canteen' --agent ada --issue i2").await;
    let list = async |line: &str| {
        terminal.json(&format!("record list {line}")).await["items"].as_array().unwrap().len()
    };
    assert_eq!(list("--agent carol").await, 1);
    assert_eq!(list("--agent ada").await, 2);
    assert_eq!(list("").await, 2);
    assert_eq!(list("--from-issue i2").await, 1);
    assert_eq!(list("--from-issue NONE").await, 0);
    assert_eq!(list("--from-agent ada --containing CANTEEN").await, 1);
    let wrong = terminal.run("note x --agent ada --visibility mine").await;
    assert!(wrong.code != 0 && wrong.err.contains("company"), "{wrong:?}");
}
