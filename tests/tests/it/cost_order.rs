//! Cost events, oldest first: a reader that keeps its cursor gets each of them once.

use std::sync::Arc;

use memhost_server::Method;
use memhost_tests::clock::TestClock;
use memhost_tests::faults::Faults;
use memhost_tests::{TestHost, eventually};
use serde_json::{Value, json};

use super::cli::Terminal;
use super::support::{Api, bind, extracting};

fn path(company: &str, rest: &str) -> String {
    format!("/control/v1/companies/{company}/{rest}")
}

/// Reads a company's cost events from a cursor on, two at a time, and answers what each cost and
/// the last cursor.
async fn read_on(api: &Api, company: &str, cursor: &mut Option<String>) -> Vec<u64> {
    let mut cents = Vec::new();
    loop {
        let from = cursor.as_ref().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let page =
            api.get(&path(company, &format!("cost-events?order=oldest&limit=2{from}"))).await;
        assert!(page.get("trimmedBefore").is_none(), "{page}");
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2, "{page}");
        cents.extend(items.iter().map(|event| event["costCents"].as_u64().unwrap()));
        *cursor = Some(page["nextCursor"].as_str().unwrap().to_owned());
        if page["more"] == false {
            return cents;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_that_ends_late_comes_after_the_cursor() {
    let (mut host, api) = extracting().await;
    api.put("/control/v1/companies/zeta", &json!({})).await.fine();
    bind(&api, "zeta", "extracts", &json!({})).await;
    let (mut ours, mut theirs) = (None, None);
    assert_eq!(read_on(&api, "acme", &mut ours).await, [0; 0]);
    let slow = {
        let api = api.with_same();
        tokio::spawn(async move { api.capture("acme", "metered 1 after go").await.fine() })
    };
    let works = async || {
        host.usage("acme", "extracts").await.is_some_and(|usage| usage.calls_in_flight > 0)
    };
    eventually("the slow call runs", works).await;
    for cents in [2, 3, 4] {
        api.capture("acme", &format!("metered {cents}")).await.fine();
    }
    api.capture("zeta", "metered 9").await.fine();
    assert_eq!(read_on(&api, "acme", &mut ours).await, [2, 3, 4]);
    assert_eq!(read_on(&api, "acme", &mut ours).await, [0; 0]);
    api.capture("acme", "go").await.fine();
    slow.await.unwrap();
    assert_eq!(read_on(&api, "acme", &mut ours).await, [1], "it began first and ended last");
    assert_eq!(read_on(&api, "zeta", &mut theirs).await, [9]);
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(read_on(&api, "acme", &mut ours).await, [0; 0]);
    api.capture("zeta", "metered 8").await.fine();
    api.capture("acme", "metered 5").await.fine();
    assert_eq!(read_on(&api, "acme", &mut ours).await, [5]);
    assert_eq!(read_on(&api, "zeta", &mut theirs).await, [8]);
    assert_eq!(read_on(&api, "acme", &mut None).await, [2, 3, 4, 1, 5]);
    // Newest first stays as it is, and its cursors are its own.
    let newest = api.get(&path("acme", "cost-events?limit=1")).await;
    assert_eq!(
        (&newest["items"][0]["costCents"], &newest["more"]),
        (&json!(5), &json!(true)),
        "{newest}"
    );
    let cursor = newest["nextCursor"].as_str().unwrap();
    for (wrong, field) in [
        (format!("cost-events?order=oldest&cursor={cursor}"), "cursor"),
        (format!("cost-events?cursor={}", ours.as_deref().unwrap()), "cursor"),
        (format!("cost-events?order=oldest&cursor={}", theirs.as_deref().unwrap()), "cursor"),
        ("cost-events?order=sideways".to_owned(), "order"),
    ] {
        let answer = api.send(Method::Get, &path("acme", &wrong), None, &[]).await;
        assert_eq!(
            (answer.status, &answer.json["field"]),
            (400, &json!(field)),
            "{wrong}: {}",
            answer.text
        );
    }
    // A filter counts, too: a page may be empty although its cursor moves on.
    let agent = api.get(&path("acme", "cost-events?order=oldest&agentId=nobody")).await;
    assert_eq!((&agent["items"], &agent["more"]), (&json!([]), &json!(false)));
}

/// A reader that was away longer than events are kept learns that some are gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_learns_what_retention_has_removed() {
    let clock = TestClock::new();
    let shared = Arc::clone(&clock);
    let mut host = TestHost::with(&["extracts"], |options| options.clock = shared).await.unwrap();
    let api = Api::new(&host);
    bind(&api, "acme", "extracts", &json!({})).await;
    let oldest = |api: &Api, cursor: &Value| {
        let from = cursor.as_str().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let (api, path) =
            (api.with_same(), path("acme", &format!("cost-events?order=oldest{from}")));
        async move {
            let page = api.get(&path).await;
            let cents: Vec<u64> = page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|event| event["costCents"].as_u64().unwrap())
                .collect();
            (cents, page["trimmedBefore"].clone(), page["nextCursor"].clone())
        }
    };
    api.capture("acme", "metered 1").await.fine();
    let (cents, trimmed, first) = oldest(&api, &Value::Null).await;
    assert_eq!((cents, trimmed), (vec![1], Value::Null));
    api.capture("acme", "metered 2").await.fine();
    let (.., second) = oldest(&api, &first).await;
    clock.advance(jiff::SignedDuration::from_hours(10 * 24));
    api.capture("acme", "metered 3").await.fine();
    api.put(&path("acme", "retention"), &json!({"costEventsMaxAgeDays": 5})).await.fine();
    // The first reader has missed one; the second one nothing.
    let (cents, trimmed, _) = oldest(&api, &first).await;
    assert_eq!(cents, [3]);
    let before: jiff::Timestamp = trimmed.as_str().expect("it says what is gone").parse().unwrap();
    let days = memhost_ports::Clock::now(&*clock).duration_since(before).as_hours() / 24;
    assert_eq!(days, 5);
    let (cents, trimmed, third) = oldest(&api, &second).await;
    assert_eq!((cents, trimmed), (vec![3], Value::Null));
    // Nothing is left. The next event has another number all the same, also after a restart.
    clock.advance(jiff::SignedDuration::from_hours(10 * 24));
    api.put(&path("acme", "retention"), &json!({"costEventsMaxAgeDays": 5})).await.fine();
    let (cents, trimmed, fourth) = oldest(&api, &second).await;
    assert!(cents.is_empty() && trimmed.is_string(), "{trimmed}");
    assert_eq!(oldest(&api, &fourth).await.1, Value::Null, "it is said once");
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    api.capture("acme", "metered 4").await.fine();
    for cursor in [&third, &fourth] {
        assert_eq!(oldest(&api, cursor).await.0, [4]);
        assert_eq!(oldest(&api, cursor).await.1, Value::Null);
    }
}

/// A number that a crash takes back is given to another event. So a cursor leads past nothing that
/// is not on disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_is_answered_when_what_is_before_it_is_on_disk() {
    let (faults, wrap) = Faults::new();
    let host =
        TestHost::with(&["extracts"], |options| options.wrap_store = Some(wrap)).await.unwrap();
    let api = Api::new(&host);
    bind(&api, "acme", "extracts", &json!({})).await;
    api.capture("acme", "metered 1").await.fine();
    faults.break_commits(true);
    let answer = api.send(Method::Get, &path("acme", "cost-events?order=oldest"), None, &[]).await;
    assert!(answer.status >= 500, "{}", answer.text);
    faults.break_commits(false);
    assert_eq!(read_on(&api, "acme", &mut None).await, [1]);
}

/// The command line reads on from a cursor as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_lists_the_oldest_first() {
    let terminal = Terminal::open(&["extracts"]).await;
    let api = Api::new(&terminal.host);
    bind(&api, "acme", "extracts", &json!({})).await;
    for cents in 1..=3 {
        api.capture("acme", &format!("metered {cents}")).await.fine();
    }
    let cents = |page: &Value| -> Vec<u64> {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["costCents"].as_u64().unwrap())
            .collect()
    };
    let page = terminal.json("cost list --oldest --limit 2").await;
    assert_eq!((cents(&page), &page["more"]), (vec![1, 2], &json!(true)));
    let page = terminal
        .json(&format!("cost list --oldest --cursor {}", page["nextCursor"].as_str().unwrap()))
        .await;
    assert_eq!((cents(&page), &page["more"]), (vec![3], &json!(false)));
    let all = terminal.json("cost list --oldest --all --limit 2").await;
    assert_eq!(
        (cents(&all), &all["nextCursor"]),
        (vec![1, 2, 3], &page["nextCursor"]),
        "what is read on from"
    );
    let shown = terminal.fine("cost list --oldest").await;
    assert!(shown.contains("what comes later: --cursor"), "{shown}");
    assert_eq!(cents(&terminal.json("cost list").await), [3, 2, 1]);
}
