//! A provider in front of somebody else's service: an address from the configuration, work that it
//! leaves to the host, health, and forgetting everything at once.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::Api;

const RUNTIME: &str = "/runtime/v1/companies/acme";
const CONTROL: &str = "/control/v1/companies/acme";
const BINDING: &str = "/control/v1/companies/acme/bindings/hosted";

/// A server that says `here I am` to every request.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut line = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                line.clear();
            }
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nhere I am",
            );
        }
    });
    port
}

async fn hosted(config: &Value) -> (TestHost, Api) {
    let host = TestHost::new(&["hosted"]).await.unwrap();
    let api = Api::new(&host);
    let grants = json!({"storageBytes": 64 << 20});
    let body = json!({
        "key": "hosted", "providerKey": "hosted", "config": config, "grants": grants,
        "default": true,
    });
    api.post(&format!("{CONTROL}/bindings"), &body).await.fine();
    (host, api)
}

/// The one snippet that the guest answers about itself.
async fn told(api: &Api, question: &str) -> String {
    api.query("acme", question).await.pop().unwrap()
}

async fn ask(api: &Api, port: u16) -> String {
    let request = json!({
        "method": "GET", "scheme": "http", "path": "/", "authority": format!("localhost:{port}"),
    });
    told(api, &request.to_string()).await
}

fn warnings(binding: &Value) -> String {
    binding["warnings"].to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_of_the_configuration_is_granted_as_it_is_and_no_other() {
    let (one, other) = (server(), server());
    let url = |port: u16| format!("http://localhost:{port}/v1?x=y");
    let origin = |port: u16| format!("http://localhost:{port}");
    let (_host, api) = hosted(&json!({"url": url(one)})).await;
    let grants = format!("{BINDING}/grants");
    let asked = api.get(&grants).await["asked"].clone();
    let address = asked
        .as_array()
        .unwrap()
        .iter()
        .find(|asked| asked["permission"]["kind"] == "http")
        .unwrap();
    assert_eq!(address["permission"]["detail"]["origin"], origin(one), "{address}");
    assert_eq!(address["configuredBy"], "{{config:/url}}");
    assert!(warnings(&api.get(BINDING).await).contains(&origin(one)), "it is not granted yet");
    assert!(ask(&api, one).await.starts_with("refused"));

    let http =
        |port: u16| json!([{"origin": origin(port), "privateRanges": ["127.0.0.0/8", "::1/128"]}]);
    let grant = |port: u16| json!({"storageBytes": 64 << 20, "http": http(port)});
    let refused = api.put(&grants, &grant(other)).await;
    assert_eq!(refused.problem(), (400, "invalid_request"), "{refused:?}");
    assert!(refused.text.contains(&origin(one)), "it says what is asked for: {refused:?}");
    api.put(&grants, &grant(one)).await.fine();
    assert!(ask(&api, one).await.ends_with("here I am"));
    assert!(told(&api, "grants").await.contains(&origin(one)));
    assert!(api.get(BINDING).await.get("warnings").is_none());

    // The grant does not follow the configuration.
    api.patch(BINDING, &json!({"config": {"url": url(other)}})).await.fine();
    for port in [one, other] {
        assert!(ask(&api, port).await.starts_with("refused"), "{port}");
    }
    let changed = api.get(BINDING).await;
    assert!(warnings(&changed).contains(&origin(other)), "{changed}");
    assert_eq!(
        api.get(&grants).await["granted"]["http"][0]["origin"],
        origin(one),
        "nothing was granted by itself"
    );
    api.put(&grants, &grant(other)).await.fine();
    assert!(ask(&api, other).await.ends_with("here I am"));
    assert!(ask(&api, one).await.starts_with("refused"));

    // Only a plain address can come out.
    for wrong in ["ftp://a.example", "https://*.a.example", "https://u:p@a.example", "a.example"] {
        let refused = api.patch(BINDING, &json!({"config": {"url": wrong}})).await;
        assert_eq!(refused.problem(), (422, "invalid_config"), "{wrong}: {refused:?}");
        assert!(refused.text.contains("/url"), "{refused:?}");
    }
    // Without one the provider works as far as it can.
    api.patch(BINDING, &json!({"config": {}})).await.fine();
    assert!(api.get(BINDING).await.get("warnings").is_none(), "it can do without");
}

async fn upsert(api: &Api, texts: &[&str]) -> super::support::Answer {
    let records: Vec<Value> = texts.iter().map(|text| json!({"text": text})).collect();
    api.post(
        &format!("{RUNTIME}/records"),
        &json!({"scope": {"companyId": "acme"}, "records": records}),
    )
    .await
}

async fn operations(api: &Api, kind: &str) -> Vec<Value> {
    let found = api.get(&format!("{CONTROL}/operations?kind={kind}")).await;
    found["items"].as_array().unwrap().clone()
}

async fn listed(api: &Api) -> Vec<Value> {
    let body = json!({"scope": {"companyId": "acme"}, "limit": 100});
    api.post(&format!("{RUNTIME}/list"), &body).await.fine()["items"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_much_at_once_is_divided_and_is_one_operation() {
    let (_host, api) = hosted(&json!({})).await;
    let texts: Vec<String> = (0..10).map(|n| format!("record number {n}")).collect();
    let written = upsert(&api, &texts.iter().map(String::as_str).collect::<Vec<_>>()).await.fine();
    assert_eq!(written["records"].as_array().unwrap().len(), 10);
    assert_eq!(told(&api, "calls upserts").await, "4", "ten records, three at once");
    let operation = &operations(&api, "record_upsert").await;
    assert_eq!((operation.len(), &operation[0]["recordCount"]), (1, &json!(10)), "{operation:?}");
    let find = async |n: usize| api.query("acme", &texts[n]).await;
    assert!(find(7).await.contains(&texts[7]));

    let handles = &written["records"].as_array().unwrap()[..5];
    let body = json!({"scope": {"companyId": "acme"}, "handles": handles});
    let forgotten = api.post(&format!("{RUNTIME}/forget"), &body).await.fine();
    let outcomes = forgotten["outcomes"].as_array().unwrap();
    assert!(
        outcomes.len() == 5 && outcomes.iter().all(|outcome| outcome["effect"] == "hard"),
        "{forgotten}"
    );
    assert_eq!(outcomes[4]["handle"], handles[4]);
    assert_eq!(told(&api, "calls forgets").await, "3");
    assert_eq!(listed(&api).await.len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_fails_leaves_the_parts_before_it_and_says_so() {
    let (_host, api) = hosted(&json!({})).await;
    let failed = upsert(&api, &["one", "two", "three", "four", "refuse", "six", "seven"]).await;
    assert_eq!(failed.problem(), (400, "invalid_request"), "{failed:?}");
    assert!(failed.text.contains("3 of 7 records were written"), "{failed:?}");
    assert_eq!(listed(&api).await.len(), 3);
    let operation = &operations(&api, "record_upsert").await[0];
    assert_eq!(
        (&operation["outcome"], &operation["recordCount"]),
        (&json!("failed"), &json!(3)),
        "{operation}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_filters_for_a_provider_that_cannot() {
    let (_host, api) = hosted(&json!({})).await;
    let team = |n: usize| if n.is_multiple_of(10) { "red" } else { "blue" };
    let of =
        |n: usize| json!({"text": format!("a meeting, number {n}"), "metadata": {"team": team(n)}});
    let records: Vec<Value> = (0..60).map(of).collect();
    api.post(
        &format!("{RUNTIME}/records"),
        &json!({"scope": {"companyId": "acme"}, "records": records}),
    )
    .await
    .fine();
    let body = json!({
        "scope": {"companyId": "acme"}, "query": "meeting", "topK": 6,
        "metadataFilter": {"team": "red"},
    });
    let found = api.post(&format!("{RUNTIME}/query"), &body).await.fine();
    let found = found["snippets"].as_array().unwrap();
    assert_eq!(found.len(), 6, "all of them, although four times as many were asked for at first");
    assert!(found.iter().all(|snippet| snippet["metadata"]["team"] == "red"), "{found:?}");
    let (mut all, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let mut body =
            json!({"scope": {"companyId": "acme"}, "limit": 7, "metadataFilter": {"team": "red"}});
        if cursor.is_string() {
            body["cursor"] = cursor;
        }
        let page = api.post(&format!("{RUNTIME}/list"), &body).await.fine();
        all.extend(page["items"].as_array().unwrap().clone());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(all.len(), 6, "{all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_keeps_the_partitions_of_a_provider_that_cannot() {
    let (_host, api) = hosted(&json!({})).await;
    let company = json!({"companyId": "acme"});
    let of = |member: &str, value: &str| {
        let mut scope = company.clone();
        scope[member] = json!(value);
        scope
    };
    let write = async |scope: Value, text: &str, visibility: &str| {
        let body = json!({"scope": scope, "records": [{"text": text}], "visibility": visibility});
        let written = api.post(&format!("{RUNTIME}/records"), &body).await.fine();
        written["records"][0].clone()
    };
    let find = async |scope: &Value| {
        let body = json!({"scope": scope, "query": "parking"});
        let found = api.post(&format!("{RUNTIME}/query"), &body).await.fine();
        let mut texts: Vec<String> = found["snippets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["text"].as_str().unwrap().to_owned())
            .collect();
        texts.sort();
        texts
    };
    write(company.clone(), "parking for all", "company").await;
    let private = write(of("agentId", "ada"), "parking of ada", "agent").await;
    write(of("subjectId", "u1"), "parking of u1", "company").await;
    let named = write(of("namespace", "n1"), "parking in n1", "company").await;
    assert_eq!(find(&of("subjectId", "u2")).await, ["parking for all", "parking in n1"]);
    assert_eq!(
        find(&of("subjectId", "u1")).await,
        ["parking for all", "parking in n1", "parking of u1"]
    );
    assert_eq!(
        find(&of("namespace", "n2")).await,
        ["parking for all", "parking of ada", "parking of u1"]
    );
    assert_eq!(
        find(&of("agentId", "bob")).await,
        ["parking for all", "parking in n1", "parking of u1"]
    );
    let read = async |scope: Value, handle: &Value| {
        let body = json!({"scope": scope, "handle": handle});
        api.post(&format!("{RUNTIME}/get"), &body).await.fine()["record"].clone()
    };
    assert!(read(of("namespace", "n2"), &named).await.is_null());
    assert!(read(of("namespace", "n1"), &named).await.is_object());
    assert!(read(of("agentId", "bob"), &private).await.is_null());
    let body = json!({"scope": of("namespace", "n2"), "limit": 100});
    let page = api.post(&format!("{RUNTIME}/list"), &body).await.fine();
    assert_eq!(page["items"].as_array().unwrap().len(), 3, "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_knows_what_is_left_of_it_and_what_was_granted() {
    let (_host, api) = hosted(&json!({})).await;
    let left: u64 = told(&api, "remaining").await.parse().unwrap();
    assert!(
        (20_000..=30_000).contains(&left) && left.is_multiple_of(100),
        "{left}: in steps without `clock`"
    );
    api.patch(BINDING, &json!({"limits": {"callTimeoutMs": 5_000}})).await.fine();
    let left: u64 = told(&api, "remaining").await.parse().unwrap();
    assert!((1_000..=5_000).contains(&left), "{left}");
    assert_eq!(told(&api, "limit callTimeoutMs").await, "Some(5000)");
    assert_eq!(told(&api, "limit ofNothing").await, "None");
    assert_eq!(told(&api, "grants").await, format!("[Grant::Storage({})]", 64 << 20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_asked_when_a_binding_is_made_and_by_doctor() {
    let (_host, api) = hosted(&json!({"url": "https://a.example"})).await;
    let found = &api.get(BINDING).await["health"];
    assert_eq!(found["summary"], "the service at `https://a.example` answers", "{found}");
    assert_eq!(operations(&api, "health").await.len(), 1, "each question has a record");
    api.patch(BINDING, &json!({"config": {"key": "refused"}})).await.fine();
    let doctor = api.get("/control/v1/doctor").await.to_string();
    assert!(doctor.contains("the service does not know this key"), "{doctor}");
    assert!(
        doctor.contains("a list may repeat or miss records while others write"),
        "what is not promised: {doctor}"
    );
    let found = &api.get(BINDING).await["health"];
    assert_eq!(found["error"]["code"], "unauthorized", "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_credentials_open_the_circuit_and_the_provider_is_asked_why() {
    let (_host, api) = hosted(&json!({"key": "refused"})).await;
    let query = json!({"scope": {"companyId": "acme"}, "query": "unauthorized"});
    let before = operations(&api, "health").await.len();
    let refused = api.post(&format!("{RUNTIME}/query"), &query).await;
    assert!(refused.text.contains("the key was revoked"), "{refused:?}");
    let binding = api.until(BINDING, |binding| binding["breaker"]["state"] == "open").await;
    assert!(binding["failing"].as_str().unwrap().contains("the key was revoked"), "{binding}");
    assert_eq!(upsert(&api, &["x"]).await.problem(), (503, "circuit_open"));
    let path = format!("{CONTROL}/operations?kind=health");
    api.until(&path, |found| found["items"].as_array().unwrap().len() > before).await;
    let doctor = api.get("/control/v1/doctor").await.to_string();
    assert!(
        doctor.contains("its circuit is open") && doctor.contains("the key was revoked"),
        "{doctor}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_rests_opens_the_circuit_when_it_goes_on() {
    let (_host, api) = hosted(&json!({})).await;
    let query = json!({"scope": {"companyId": "acme"}, "query": "unavailable"});
    for _ in 0..8 {
        let refused = api.post(&format!("{RUNTIME}/query"), &query).await;
        assert_eq!(refused.problem(), (503, "unavailable"), "{refused:?}");
    }
    let refused = api.post(&format!("{RUNTIME}/query"), &query).await;
    assert_eq!(refused.problem(), (503, "circuit_open"), "{refused:?}");
    assert!(refused.text.contains("the service rests"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_company_is_erased_at_once_where_the_provider_can() {
    let (_host, api) = hosted(&json!({"forgets_scopes_only": true})).await;
    upsert(&api, &["one", "two", "three", "four"]).await.fine();
    let erased = api.post(&format!("{CONTROL}/erase"), &json!({"confirm": "acme"})).await.fine();
    assert_eq!(erased["forgotten"]["hosted"], 4, "{erased}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_comes_with_its_turns() {
    let (_host, api) = hosted(&json!({})).await;
    let capture = async |payload: Value| {
        let body = json!({
            "scope": {"companyId": "acme"},
            "source": {"kind": "run", "companyId": "acme", "runId": "r1"},
            "payload": payload, "mode": "capture_record",
        });
        api.post(&format!("{RUNTIME}/capture"), &body).await
    };
    let turns = json!([
        {"role": "user", "name": "Ada", "text": "Where is the key?", "at": "2026-11-23T10:00:00Z"},
        {"role": "assistant", "text": "Under the mat."},
    ]);
    capture(json!({"turns": turns})).await.fine();
    assert_eq!(
        api.query("acme", "mat").await,
        ["user (Ada): Where is the key?\n\nassistant: Under the mat."]
    );
    for (payload, field) in [
        (json!({}), "payload"),
        (json!({"turns": []}), "payload"),
        (json!({"turns": [{"role": "user", "text": " "}]}), "payload.turns"),
        (json!({"turns": [{"role": "", "text": "x"}]}), "payload.turns.0.role"),
        (json!({"turns": [{"role": "user", "text": "x", "name": ""}]}), "payload.turns.0.name"),
        (
            json!({
                "turns": [
                    {"role": "user", "text": "x".repeat(1 << 19)},
                    {"role": "user", "text": "y".repeat(1 << 20)},
                ],
            }),
            "payload.turns.1.text",
        ),
    ] {
        let refused = capture(payload).await;
        assert_eq!(
            (refused.status, refused.json["field"].as_str()),
            (400, Some(field)),
            "{refused:?}"
        );
    }
}
