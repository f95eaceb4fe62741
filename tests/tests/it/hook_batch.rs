//! Events of hooks in batches: each has its own result, and is the same event as if it had come
//! alone.

use std::time::{Duration, Instant};

use memhost_server::Method;
use memhost_tests::{TestHost, eventually};
use serde_json::{Value, json};

use super::hooks::{DELIVERIES, HOOKS, event};
use super::support::{Api, bind, extracting};

const BATCH: &str = "/runtime/v1/companies/acme/hooks/batch";

/// An event that nobody waits for.
fn unawaited(id: &str, text: &str) -> Value {
    let mut event = event(id, text);
    event.as_object_mut().unwrap().remove("waitMs");
    event
}

fn comment(id: &str, text: &str) -> Value {
    json!({
        "hookKind": "post_run_capture", "hookId": id, "triggeredAt": "2026-11-20T10:00:00Z",
        "scope": {"companyId": "acme", "issueId": "i1"},
        "source": {"kind": "issue_comment", "companyId": "acme", "issueId": "i1", "commentId": id},
        "payload": {"text": text}, "mode": "capture_record",
    })
}

fn outcomes(answer: &Value) -> Vec<&str> {
    answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["outcome"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_event_has_its_own_result_and_one_that_is_refused_stops_no_other() {
    let (_host, api) = extracting().await;
    let alone = api.post(HOOKS, &event("alone", "sent alone")).await.fine();
    let mut elsewhere = unawaited("elsewhere", "of another company");
    elsewhere["scope"]["companyId"] = json!("other");
    let mut elsewhere_bound = unawaited("nobodys", "for a binding that is not there");
    elsewhere_bound["bindingKey"] = json!("nobodys");
    let events = json!([
        unawaited("b1", "first"),
        unawaited("alone", "sent alone"),
        {"hookKind": "post_run_capture"},
        elsewhere,
        unawaited("b1", "first again"),
        event("waits", "asks to wait"),
        {"hookKind": "pre_run_hydrate", "hookId": "r", "triggeredAt": "2026-11-20T10:00:00Z",
         "scope": {"companyId": "acme"}, "query": "x"},
        ["not", "an", "object"],
        {"hookKind": "unheard_of", "hookId": "u", "triggeredAt": "2026-11-20T10:00:00Z",
         "scope": {"companyId": "acme"}, "source": {"kind": "run", "companyId": "acme"},
         "payload": {"text": "t"}},
        elsewhere_bound,
        unawaited("b2", "last"),
    ]);
    let answer = api.post(BATCH, &json!({"events": events})).await.fine();
    let expected = [
        "accepted",
        "duplicate",
        "refused",
        "refused",
        "duplicate",
        "refused",
        "refused",
        "refused",
        "not_taken",
        "refused",
        "accepted",
    ];
    assert_eq!(outcomes(&answer), expected, "{answer}");
    let counts = ["accepted", "duplicates", "notTaken", "refused"]
        .map(|name| answer[name].as_u64().unwrap());
    assert_eq!(counts, [2, 2, 1, 6]);
    let results = &answer["results"];
    assert_eq!(results[1]["deliveryIds"][0], alone["deliveries"][0]["id"]);
    assert_eq!(results[4]["deliveryIds"], results[0]["deliveryIds"]);
    for (index, field) in [(2, "hookId"), (3, "scope.companyId"), (5, "waitMs"), (6, "hookKind")] {
        assert_eq!(results[index]["problem"]["field"], field, "{}", results[index]);
        assert_eq!(results[index]["index"], index);
    }
    assert!(results[8]["notTaken"]["reason"].as_str().unwrap().contains("unheard_of"));
    assert_eq!(results[9]["problem"]["code"], "no_binding", "{}", results[9]);
    // The same batch again, and each event alone, are known.
    let again = api.post(BATCH, &json!({"events": events})).await.fine();
    assert_eq!(again["accepted"], 0, "{again}");
    assert_eq!(again["results"][0]["deliveryIds"], results[0]["deliveryIds"]);
    assert_eq!(api.post(HOOKS, &event("b2", "last")).await.fine()["isDuplicate"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_bounded_and_needs_the_right_to_deliver() {
    let (_host, api) = extracting().await;
    let many: Vec<Value> = (0..1_001).map(|number| unawaited(&format!("e{number}"), "t")).collect();
    for events in [json!([]), json!(many)] {
        let refused = api.post(BATCH, &json!({"events": events})).await;
        assert_eq!(
            (refused.status, &refused.json["field"]),
            (400, &json!("events")),
            "{}",
            refused.text
        );
    }
    let body = json!({"name": "a", "role": "auditor"});
    let token = api.post("/control/v1/companies/acme/tokens", &body).await.fine()["value"]
        .as_str()
        .unwrap()
        .to_owned();
    let refused = api.with(&token).post(BATCH, &json!({"events": [unawaited("e", "t")]})).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    assert_eq!(api.get(DELIVERIES).await["items"], json!([]));
}

/// What a crash leaves of a batch is all of it or nothing, and sending it again gives each event
/// once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_sent_again_after_a_restart_is_captured_once() {
    let mut host = TestHost::new(&["extracts"]).await.unwrap();
    let events: Vec<Value> = (0..200)
        .map(|number| unawaited(&format!("c{number}"), &format!("fact {number}")))
        .collect();
    let api = Api::new(&host);
    bind(&api, "acme", "extracts", &json!({})).await;
    let first = api.post(BATCH, &json!({"events": events[..150]})).await.fine();
    assert_eq!(first["accepted"], 150);
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    let second = api.post(BATCH, &json!({"events": events})).await.fine();
    assert_eq!((&second["accepted"], &second["duplicates"]), (&json!(50), &json!(150)), "{second}");
    eventually("all are delivered", async || {
        let page = api.get(&format!("{DELIVERIES}?status=pending&limit=1")).await;
        page["items"].as_array().unwrap().is_empty()
    })
    .await;
    let counted = api.query("acme", "count calls/").await;
    assert_eq!(counted[0], "1 200", "each was captured once");
}

/// `BATCH_EVENTS=10000` compares more of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_takes_less_time_than_its_events_alone_and_begins_them_in_order() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let body = json!({"key": "default", "providerKey": "local-markdown"});
    api.send(
        Method::Put,
        "/control/v1/companies/acme/default-binding",
        Some(body.to_string()),
        &[],
    )
    .await
    .fine();
    let count =
        std::env::var("BATCH_EVENTS").ok().and_then(|count| count.parse().ok()).unwrap_or(300);
    let some = 100;
    let began = Instant::now();
    for number in 0..some {
        api.post(HOOKS, &comment(&format!("alone-{number}"), &format!("Alone {number}")))
            .await
            .fine();
    }
    let alone = began.elapsed() / some;
    let all: Vec<Value> = (0..count)
        .map(|number| comment(&format!("c{number}"), &format!("Comment {number} says so")))
        .collect();
    let began = Instant::now();
    for events in all.chunks(1_000) {
        let answer = api.post(BATCH, &json!({"events": events})).await.fine();
        assert_eq!(answer["accepted"], events.len(), "{answer}");
    }
    let together = began.elapsed() / u32::try_from(count).unwrap();
    eventually("all are delivered", async || {
        let page = api.get(&format!("{DELIVERIES}?status=pending&limit=1")).await;
        page["items"].as_array().unwrap().is_empty()
    })
    .await;
    let delivered = began.elapsed();
    println!(
        "accepting: {alone:?} alone, {together:?} in a batch; {count} delivered in {delivered:?}"
    );
    assert!(together < alone, "{together:?} in a batch, {alone:?} alone");
    assert!(together < Duration::from_millis(12), "10,000 in two minutes");
    let page = api.get("/control/v1/companies/acme/operations?kind=capture&limit=1000").await;
    let begun: Vec<i64> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .filter_map(|operation| {
            operation["hook"]["hookId"].as_str()?.strip_prefix('c')?.parse().ok()
        })
        .collect();
    // Eight run at a time, so neighbours may change places.
    let far = begun.windows(2).filter(|pair| (pair[1] - pair[0]).abs() > 16).count();
    assert_eq!(far, 0, "{begun:?}");
}

/// A run's token is told nothing of another run's event, and its own events are accepted all the
/// same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_of_another_run_is_refused_alone() {
    let (_host, api) = extracting().await;
    let of_run = async |run: &str| {
        let body = json!({"name": run, "role": "agent", "agentId": "ada", "runId": run});
        let made = api.post("/control/v1/companies/acme/tokens", &body).await.fine();
        api.with(made["value"].as_str().unwrap())
    };
    let (first, second) = (of_run("r1").await, of_run("r2").await);
    let sent = |id: &str| {
        json!({
            "hookKind": "post_run_capture", "hookId": id, "triggeredAt": "2026-11-20T10:00:00Z",
            "scope": {"companyId": "acme"}, "source": {"kind": "run", "companyId": "acme"},
            "payload": {"text": id},
        })
    };
    let answer = first.post(BATCH, &json!({"events": [sent("end")]})).await.fine();
    assert_eq!(outcomes(&answer), ["accepted"]);
    let answer = second.post(BATCH, &json!({"events": [sent("end"), sent("own")]})).await.fine();
    assert_eq!(outcomes(&answer), ["refused", "accepted"], "{answer}");
    let refused = &answer["results"][0];
    assert_eq!(
        (&refused["problem"]["code"], &refused["problem"]["field"]),
        (&json!("forbidden"), &json!("hookId"))
    );
    assert!(refused.get("deliveryIds").is_none(), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_that_is_too_late_is_refused_at_its_field() {
    let (_host, api) = extracting().await;
    let mut late = unawaited("late", "t");
    late["triggeredAt"] = json!("9999-12-31T23:59:59Z");
    let refused = api.post(HOOKS, &late).await;
    assert_eq!((refused.status, &refused.json["field"]), (400, &json!("triggeredAt")));
}

/// A host that is stopped while it delivers leaves a whole store, and looking at the store delivers
/// nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_whole_after_a_stop_in_the_middle_of_deliveries() {
    let (mut host, api) = extracting().await;
    let events: Vec<Value> =
        (0..1_000).map(|n| unawaited(&format!("b{n}"), &format!("event {n}"))).collect();
    api.post(BATCH, &json!({"events": events})).await.fine();
    eventually("some are delivered", async || {
        let delivered = api.get(&format!("{DELIVERIES}?status=delivered&limit=20")).await;
        delivered["items"].as_array().unwrap().len() == 20
    })
    .await;
    drop(api);
    host.stop().await;
    host.change(|options| options.has_background = false);
    let pending = async |host: &mut TestHost| {
        host.start().await.unwrap();
        let api = Api::new(host);
        let page = api.get(&format!("{DELIVERIES}?status=pending&limit=1000")).await;
        drop(api);
        host.stop().await;
        page["items"].as_array().unwrap().len()
    };
    let before = pending(&mut host).await;
    assert!(before > 0, "everything was delivered before the stop");
    let home = tempfile::tempdir().unwrap();
    let data = host.data_dir().display().to_string();
    let arguments = ["store", "verify", "--data-dir", &data].map(str::to_owned);
    let done = super::cli::run(home.path(), &[], &arguments, "").await;
    assert!(done.code == 0 && done.out.contains("no problems"), "{done:?}");
    assert_eq!(pending(&mut host).await, before, "looking has delivered something");
}
