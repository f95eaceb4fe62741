//! How long deliveries, jobs, events, review texts, cost events and the activity log are kept.

use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::company::{fill, path};
use super::support::{Api, bind};

/// Deliveries, jobs, events, review texts, cost events and the activity log are kept for a time,
/// also without a setting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_else_is_kept_as_long_as_the_retention_says() {
    let clock = memhost_tests::clock::TestClock::new();
    let shared = std::sync::Arc::clone(&clock);
    let host = TestHost::with(&["extracts"], |options| {
        options.clock = shared;
        options.retry.first = std::time::Duration::from_millis(10);
    })
    .await
    .unwrap();
    let api = Api::new(&host);
    bind(&api, "acme", "extracts", &json!({})).await;
    fill(&api).await;
    let held = api.get(&path("reviews?status=pending")).await["items"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let decided = api
        .post(&path(&format!("reviews/{held}/decision")), &json!({"decision": "approve"}))
        .await
        .fine();
    assert_eq!(decided["text"], "waits for a person");
    let lists = ["deliveries", "jobs", "events", "cost-events", "activity"];
    let counts = async || {
        let mut counts = Vec::new();
        for list in lists {
            counts.push(api.get(&path(list)).await["items"].as_array().unwrap().len());
        }
        counts
    };
    let before = counts().await;
    assert!(before.iter().all(|count| *count > 0), "{before:?}");
    let swept = async |days: i64, set: Value| {
        clock.advance(jiff::SignedDuration::from_hours(days * 24));
        api.put(&path("retention"), &set).await.fine();
        counts().await
    };
    let after = swept(31, json!({})).await;
    assert_eq!((after[0], after[1], after[2]), (0, before[1], before[2]), "deliveries go first");
    // The same event is a new one now.
    let hook = json!({
        "hookKind": "post_run_capture", "hookId": "h", "triggeredAt": "2026-11-20T00:00:00Z",
        "scope": {"companyId": "acme"}, "source": {"kind": "run", "companyId": "acme"},
        "payload": {"text": "by hook"}, "waitMs": 10_000,
    });
    let again = api.post("/runtime/v1/companies/acme/hooks", &hook).await.fine();
    assert_eq!(again["isDuplicate"], false);
    let after = swept(60, json!({"deliveriesMaxAgeDays": null})).await;
    assert_eq!((after[0], after[1], after[2]), (1, 0, 0), "null is no end");
    let item = &api.get(&path("reviews?status=approved")).await["items"][0];
    assert_eq!(
        (&item["text"], &item["status"]),
        (&json!(""), &json!("approved")),
        "the decision stays"
    );
    let after = swept(800, json!({"deliveriesMaxAgeDays": 1})).await;
    assert_eq!((after[0], after[3]), (0, 0));
    assert_eq!(
        api.put(&path("retention"), &json!({"jobsMaxAgeDays": 0})).await.json["field"],
        "jobsMaxAgeDays"
    );
    assert!(
        api.get(&path("costs?since=2026-01-01&until=2030-01-01")).await["total"]["costCents"]
            .as_u64()
            > Some(0)
    );
}
