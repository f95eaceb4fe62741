//! What is newer is decided by when an event happened, and not by when it arrived.

use jiff::{SignedDuration, Timestamp};
use memhost_tests::{TestHost, eventually};
use serde_json::{Value, json};

use super::hooks::{DELIVERIES, HOOKS};
use super::support::{Api, bind_provider};

/// A time so many seconds before or after now.
fn at(seconds: i64) -> String {
    (Timestamp::now() + SignedDuration::from_secs(seconds)).to_string()
}

fn comment(company: &str) -> Value {
    json!({"kind": "issue_comment", "companyId": company, "issueId": "i1", "commentId": "c1"})
}

fn event(company: &str, text: &str, triggered_at: &str) -> Value {
    json!({
        "hookKind": "post_run_capture", "hookId": text, "triggeredAt": triggered_at,
        "scope": {"companyId": company, "issueId": "i1"}, "source": comment(company),
        "payload": {"text": text},
    })
}

fn revision(company: &str, text: &str, triggered_at: &str) -> Value {
    let mut event = event(company, text, triggered_at);
    event["replacesSource"] = json!(true);
    event
}

async fn send(api: &Api, event: &Value) {
    let company = event["scope"]["companyId"].as_str().unwrap();
    api.post(&HOOKS.replace("acme", company), event).await.fine();
    let waiting = format!("{}?status=pending&limit=1", DELIVERIES.replace("acme", company));
    eventually("no delivery is pending", async || {
        api.get(&waiting).await["items"].as_array().unwrap().is_empty()
    })
    .await;
}

async fn texts(api: &Api, company: &str) -> Vec<String> {
    let body = json!({"scope": {"companyId": company}});
    let page = api.post(&format!("/runtime/v1/companies/{company}/list"), &body).await.fine();
    let items = page["items"].as_array().unwrap();
    let mut all: Vec<String> =
        items.iter().map(|item| item["text"].as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

async fn status(api: &Api, id: &str) -> String {
    let all = api.get(&format!("{DELIVERIES}?hookId={id}")).await;
    format!("{}: {}", all["items"][0]["status"], all["items"][0]["error"]["message"])
}

async fn forget(api: &Api, company: &str) {
    let body = json!({"scope": {"companyId": company}, "sources": [{"commentId": "c1"}]});
    let path = format!("/runtime/v1/companies/{company}/sources/forget");
    let gone = api.post(&path, &body).await.fine();
    assert_eq!(gone["isComplete"], true, "{gone}");
}

async fn host() -> (TestHost, Api) {
    let host = TestHost::new(&["cross-agent"]).await.unwrap();
    let api = Api::new(&host);
    (host, api)
}

async fn restarted(host: &mut TestHost, api: Api) -> Api {
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    Api::new(host)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_revision_that_comes_late_replaces_nothing() {
    for provider in ["local-markdown", "cross-agent"] {
        let (mut host, api) = host().await;
        bind_provider(&api, "acme", provider).await;
        bind_provider(&api, "globex", provider).await;
        send(&api, &revision("acme", "first", &at(-60))).await;
        send(&api, &revision("acme", "third", &at(-20))).await;
        assert_eq!(texts(&api, "acme").await, ["third"], "{provider}");
        let api = restarted(&mut host, api).await;
        send(&api, &revision("acme", "second", &at(-40))).await;
        assert_eq!(texts(&api, "acme").await, ["third"], "{provider}");
        let told = status(&api, "second").await;
        assert!(told.contains("discarded") && told.contains("something newer"), "{told}");
        // So is what only says that the comment was written.
        send(&api, &event("acme", "zeroth", &at(-80))).await;
        assert_eq!(texts(&api, "acme").await, ["third"], "{provider}");
        // At one time the later arrival counts, and another company's comment is another one.
        let now = at(-10);
        send(&api, &revision("acme", "fourth", &now)).await;
        send(&api, &revision("acme", "fifth", &now)).await;
        send(&api, &revision("globex", "second", &at(-40))).await;
        assert_eq!(texts(&api, "acme").await, ["fifth"], "{provider}");
        assert_eq!(texts(&api, "globex").await, ["second"], "{provider}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happened_before_a_forgetting_is_not_stored_when_it_comes_late() {
    for provider in ["local-markdown", "cross-agent"] {
        let (mut host, api) = host().await;
        bind_provider(&api, "acme", provider).await;
        bind_provider(&api, "globex", provider).await;
        send(&api, &event("acme", "said", &at(-60))).await;
        forget(&api, "acme").await;
        let api = restarted(&mut host, api).await;
        send(&api, &event("acme", "late", &at(-30))).await;
        assert_eq!(texts(&api, "acme").await, Vec::<String>::new(), "{provider}");
        assert!(status(&api, "late").await.contains("discarded"));
        send(&api, &event("globex", "late", &at(-30))).await;
        assert_eq!(texts(&api, "globex").await, ["late"], "{provider}");
        // Somebody wrote it again.
        send(&api, &event("acme", "again", &at(0))).await;
        assert_eq!(texts(&api, "acme").await, ["again"], "{provider}");
        // The same goes for what is within a scope.
        let scope = json!({"scope": {"companyId": "acme", "issueId": "i1"}});
        api.post("/runtime/v1/companies/acme/scope/forget", &scope).await.fine();
        send(&api, &event("acme", "later", &at(-30))).await;
        assert_eq!(texts(&api, "acme").await, Vec::<String>::new(), "{provider}");
    }
}

/// A clock that is fast must neither keep out what follows nor survive a forgetting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_after_the_arrival_counts_as_the_arrival() {
    let (_host, api) = host().await;
    bind_provider(&api, "acme", "local-markdown").await;
    send(&api, &revision("acme", "fast", &at(3_600))).await;
    send(&api, &revision("acme", "next", &at(1))).await;
    assert_eq!(texts(&api, "acme").await, ["next"]);
    forget(&api, "acme").await;
    send(&api, &event("acme", "new", &at(1))).await;
    assert_eq!(texts(&api, "acme").await, ["new"]);
}

/// A capture that says which event it is of is as old as the event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_captured_event_is_as_old_as_the_event() {
    let (_host, api) = host().await;
    bind_provider(&api, "acme", "local-markdown").await;
    let capture = async |text: &str, seconds: i64, replaces: bool| {
        let body = json!({
            "scope": {"companyId": "acme", "issueId": "i1"}, "source": comment("acme"),
            "payload": {"text": text}, "replacesSource": replaces,
            "hook": {"hookKind": "manual_capture", "hookId": text, "triggeredAt": at(seconds)},
        });
        api.post("/runtime/v1/companies/acme/capture", &body).await
    };
    capture("second", -20, true).await.fine();
    let late = capture("first", -40, true).await;
    assert_eq!(late.problem(), (409, "outdated"), "{}", late.text);
    assert!(late.text.contains("something newer took its place"), "{}", late.text);
    assert_eq!(texts(&api, "acme").await, ["second"]);
    forget(&api, "acme").await;
    assert_eq!(capture("late", -30, false).await.status, 409);
    assert_eq!(texts(&api, "acme").await, Vec::<String>::new());
    capture("again", 0, false).await.fine();
    assert_eq!(texts(&api, "acme").await, ["again"]);
}
