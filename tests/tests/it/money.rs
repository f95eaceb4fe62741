//! Costs: exact sums, cost events for directly billed usage only, and budgets.

use std::sync::Arc;

use memhost_server::Method;
use serde_json::{Value, json};

use super::support::{Api, bind, extracting};

const COMPANY: &str = "/control/v1/companies/acme";

fn path(rest: &str) -> String {
    format!("{COMPANY}/{rest}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_is_billed_directly_makes_a_cost_event() {
    let (mut host, api) = extracting().await;
    let body = json!({
        "scope": {
            "companyId": "acme", "agentId": "ada", "issueId": "i1", "runId": "r1",
            "projectId": "p1",
        },
        "source": {"kind": "run", "companyId": "acme", "runId": "r1"},
        "payload": {"text": "metered 3"},
    });
    let captured = api.post("/runtime/v1/companies/acme/capture", &body).await.fine();
    // Without a run it would be billed.
    let mut included = body.clone();
    included["scope"] = json!({"companyId": "acme", "runId": "r1"});
    included["payload"]["text"] = json!("included in the run");
    api.post("/runtime/v1/companies/acme/capture", &included).await.fine();
    api.capture("acme", "free of charge").await.fine();
    let events = api.get(&path("cost-events")).await;
    assert_eq!(events["items"].as_array().unwrap().len(), 1, "{events}");
    let event = &events["items"][0];
    let expected = json!({
        "operationId": captured["operationId"], "agentId": "ada", "issueId": "i1",
        "heartbeatRunId": "r1",
        "projectId": "p1", "bindingKey": "extracts", "provider": "expensive", "biller": "biller",
        "model": "model-1",
        "billingType": "metered_api", "costStatus": "reported", "costCents": 3, "inputTokens": 100,
        "cachedInputTokens": 10, "outputTokens": 20, "embeddingTokens": 5,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&event[name], value, "{name}");
    }
    let operation =
        api.get(&path(&format!("operations/{}", captured["operationId"].as_str().unwrap()))).await;
    assert_eq!(operation["costEventIds"], json!([event["id"]]));
    assert_eq!(operation["attributionMode"], "billed_directly");
    // Sums by every dimension, before and after a restart.
    let (api, host_again) = (api, &mut host);
    let sums = |api: &Api, rest: &'static str| {
        let address = path(rest);
        let api = api.with_same();
        async move { api.get(&address).await }
    };
    let before = sums(&api, "costs?groupBy=provider,model").await;
    let row =
        before["rows"].as_array().unwrap().iter().find(|row| row["model"] == "model-1").unwrap();
    assert_eq!(
        (&row["costCents"], &row["reportedCostCents"], &row["inputTokens"]),
        (&json!(3), &json!(4), &json!(200))
    );
    assert_eq!(
        (&before["total"]["operations"], &before["total"]["writes"]),
        (&json!(3), &json!(3))
    );
    assert!(before["total"]["latencyP99Us"].as_u64() >= before["total"]["latencyP50Us"].as_u64());
    let by_agent = sums(&api, "costs?groupBy=agent").await;
    let ada =
        by_agent["rows"].as_array().unwrap().iter().find(|row| row["agentId"] == "ada").unwrap();
    assert_eq!((&ada["costCents"], &ada["operations"]), (&json!(3), &json!(1)));
    let by_work = sums(&api, "costs?groupBy=issue,project,run").await;
    let rows = by_work["rows"].as_array().unwrap();
    let row = |issue: &str, run: &str| {
        let found = rows.iter().find(|row| row["issueId"] == issue && row["runId"] == run);
        found.map(|row| (row["costCents"].clone(), row["operations"].clone())).unwrap()
    };
    assert_eq!(row("i1", "r1"), (json!(3), json!(1)), "{by_work}");
    // The run is in the scope of one, and in the source of the other.
    assert_eq!(row("", "r1"), (json!(0), json!(2)), "{by_work}");
    assert_eq!((&by_work["isComplete"], &by_work["total"]), (&json!(true), &before["total"]));
    drop(api);
    host_again.stop().await;
    host_again.start().await.unwrap();
    let api = Api::new(host_again);
    assert_eq!(api.get(&path("costs?groupBy=provider,model")).await, before);
    for (wrong, field) in
        [("costs?groupBy=weather", "groupBy"), ("costs?since=2026-02-01&until=2026-01-01", "since")]
    {
        let answer = api.send(Method::Get, &path(wrong), None, &[]).await;
        assert_eq!((answer.status, &answer.json["field"]), (400, &json!(field)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flat_charges_are_finance_events_and_no_operations() {
    let (_host, api) = extracting().await;
    api.capture("acme", "metered 1").await.fine();
    let before = api.get(&path("costs")).await["total"].clone();
    let corrected = api.get(&path("cost-events")).await["items"][0]["id"].clone();
    let charge = json!({
        "eventKind": "log_storage_charge", "biller": "vendor", "amountCents": 1999,
        "occurredAt": "2026-11-01T00:00:00Z",
        "description": "November", "bindingKey": "extracts", "estimated": true, "issueId": "i1",
        "projectId": "p1",
        "heartbeatRunId": "r1", "quantity": 3, "unit": "gb_month", "costEventId": corrected,
    });
    let made = api.post(&path("finance-events"), &charge).await.fine();
    assert_eq!(
        (&made["amountCents"], &made["currency"], &made["direction"]),
        (&json!(1999), &json!("USD"), &json!("debit"))
    );
    let listed = api.get(&path("finance-events")).await;
    assert_eq!(listed["items"], json!([made]));
    assert_eq!(made["costEventId"], corrected);
    assert_eq!(api.get(&path("costs")).await["total"], before);
    let mut wrong = charge.clone();
    wrong["currency"] = json!("dollars");
    assert_eq!(api.post(&path("finance-events"), &wrong).await.json["field"], "currency");
    for (field, value) in
        [("amountCents", json!(0.5)), ("bindingKey", json!("nobody")), ("quantity", json!(null))]
    {
        let mut wrong = charge.clone();
        wrong[field] = value;
        let answer = api.post(&path("finance-events"), &wrong).await;
        assert_eq!((answer.status, &answer.json["field"]), (400, &json!(field)), "{}", answer.text);
    }
}

/// A charge belongs to a cost event of its own company, or to none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_names_a_cost_event_of_its_own_company() {
    let (_host, api) = extracting().await;
    bind(&api, "zeta", "extracts", &json!({})).await;
    api.capture("zeta", "metered 1").await.fine();
    let theirs = api.get("/control/v1/companies/zeta/cost-events").await["items"][0]["id"].clone();
    let charge = |event: &Value| {
        json!({
            "eventKind": "platform_fee", "biller": "vendor", "amountCents": 1,
            "occurredAt": "2026-11-01T00:00:00Z", "costEventId": event,
        })
    };
    for wrong in [&theirs, &json!("01890000-0000-7000-8000-000000000000")] {
        let refused = api.post(&path("finance-events"), &charge(wrong)).await;
        assert_eq!(
            (refused.status, &refused.json["field"]),
            (400, &json!("costEventId")),
            "{}",
            refused.text
        );
        let detail = refused.json["detail"].as_str().unwrap();
        assert!(
            detail.contains(wrong.as_str().unwrap()) && detail.contains("memhost cost list"),
            "{detail}"
        );
    }
    assert_eq!(api.get(&path("finance-events")).await["items"], json!([]));
    let made = api.post("/control/v1/companies/zeta/finance-events", &charge(&theirs)).await.fine();
    assert_eq!(made["costEventId"], theirs);
}

/// The operator decides what is billed, whatever the provider says. Without a run nothing is
/// included in one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_policy_decides_what_is_billed() {
    let (_host, api) = extracting().await;
    let attribute = async |mode: Value| {
        let policy = json!({"policy": {"attribution": mode}});
        api.patch(&path("bindings/extracts"), &policy).await.fine();
    };
    let billed = async |text: &str, run: Option<&str>| {
        let body = json!({"scope": {"companyId": "acme", "runId": run}, "payload": {"text": text},
            "source": {"kind": "run", "companyId": "acme"}});
        let made = api.post("/runtime/v1/companies/acme/capture", &body).await.fine();
        let id = made["operationId"].as_str().unwrap().to_owned();
        let operation = api.get(&path(&format!("operations/{id}"))).await;
        (
            operation["attributionMode"].clone(),
            operation["costEventIds"].as_array().map_or(0, Vec::len),
        )
    };
    attribute(json!("untracked")).await;
    assert_eq!(billed("metered 3", None).await, (json!("untracked"), 0));
    attribute(json!("included_in_run")).await;
    assert_eq!(billed("metered 3", Some("r1")).await, (json!("included_in_run"), 0));
    assert_eq!(billed("metered 3", None).await, (json!("billed_directly"), 1));
    attribute(json!("billed_directly")).await;
    assert_eq!(billed("included in the run", Some("r1")).await, (json!("billed_directly"), 1));
    attribute(Value::Null).await;
    assert_eq!(billed("included in the run", Some("r1")).await.1, 0);
    // Who is billed is always said.
    for event in api.get(&path("cost-events")).await["items"].as_array().unwrap() {
        assert_eq!(event["agentId"], "operator", "{event}");
        assert!(!event["model"].as_str().unwrap().is_empty());
    }
}

/// What a company has can be read, exported and forgotten with a used-up budget, and what costs
/// nothing goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_up_budget_stops_only_what_may_cost_something() {
    let (_host, api) = extracting().await;
    let made = api.capture("acme", "a fact").await.fine();
    let handle = &made["records"][0];
    api.put(&path("budgets/month"), &json!({"limitCents": 0})).await.fine();
    assert_eq!(api.capture("acme", "metered 1").await.problem(), (402, "budget_exceeded"));
    let scope = json!({"companyId": "acme"});
    for (route, body) in [
        ("list", json!({"scope": scope})),
        ("get", json!({"scope": scope, "handle": handle})),
        ("forget", json!({"scope": scope, "handles": [handle]})),
    ] {
        let answer = api.post(&format!("/runtime/v1/companies/acme/{route}"), &body).await;
        assert_eq!(answer.status, 200, "{route}: {}", answer.text);
    }
    let lines = api.send(Method::Get, &path("export"), None, &[]).await;
    assert!(lines.text.lines().last().unwrap().contains("\"end\""), "{}", lines.text);
    // A binding whose provider reaches no other system and has cost nothing.
    let body = json!({"key": "notes", "providerKey": "local-markdown"});
    api.post(&path("bindings"), &body).await.fine();
    let query = json!({"scope": scope, "query": "x", "bindingKey": "notes"});
    api.post("/runtime/v1/companies/acme/query", &query).await.fine();
    let query = json!({"scope": scope, "query": "x"});
    assert_eq!(api.post("/runtime/v1/companies/acme/query", &query).await.status, 402);
    api.patch(&path("bindings/extracts"), &json!({"policy": {"attribution": "external_invoice"}}))
        .await
        .fine();
    api.post("/runtime/v1/companies/acme/query", &query).await.fine();
}

async fn state(api: &Api) -> Value {
    let budgets = api.get(&path("budgets")).await;
    json!([budgets["items"][0]["state"], budgets["items"][0]["spentCents"]])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_warns_refuses_and_admits_again() {
    let (mut host, api) = extracting().await;
    api.put(&path("budgets/month"), &json!({"limitCents": 10, "warnShare": 0.5})).await.fine();
    assert_eq!(state(&api).await, json!(["open", 0]));
    for _ in 0..5 {
        api.capture("acme", "metered 1").await.fine();
    }
    assert_eq!(state(&api).await, json!(["warning", 5]));
    for _ in 0..5 {
        api.capture("acme", "metered 1").await.fine();
    }
    assert_eq!(state(&api).await, json!(["stopped", 10]));
    let refused = api.capture("acme", "metered 1").await;
    assert_eq!(refused.problem(), (402, "budget_exceeded"));
    let detail = refused.json["detail"].as_str().unwrap();
    assert!(
        detail.contains("company's budget of 10 cents a month")
            && detail.contains("memhost budget update"),
        "{detail}"
    );
    assert!(refused.headers.contains_key("retry-after"));
    let query = json!({"scope": {"companyId": "acme"}, "query": "x"});
    assert_eq!(
        api.post("/runtime/v1/companies/acme/query", &query).await.problem(),
        (402, "budget_exceeded")
    );
    // The spending is known after a restart, too.
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(api.capture("acme", "metered 1").await.problem(), (402, "budget_exceeded"));
    api.put(&path("budgets/month"), &json!({"limitCents": 11})).await.fine();
    api.capture("acme", "metered 1").await.fine();
    assert_eq!(api.capture("acme", "metered 1").await.status, 402);
    // A binding's own budget is its own.
    api.send(Method::Delete, &path("budgets/month"), None, &[]).await.fine();
    api.put(&path("bindings/extracts/budgets/day"), &json!({"limitCents": 0})).await.fine();
    assert_eq!(api.capture("acme", "metered 1").await.status, 402);
    bind(&api, "acme", "other", &json!({})).await;
    api.capture("acme", "metered 1").await.fine();
    assert_eq!(
        api.send(Method::Delete, &path("budgets/month"), None, &[]).await.problem(),
        (404, "no_budget")
    );
    assert_eq!(
        api.put(&path("budgets/week"), &json!({"limitCents": 1})).await.json["field"],
        "period"
    );
    let refused = api.put(&path("budgets/day"), &json!({"limitCents": 1, "warnShare": 2})).await;
    assert_eq!(refused.json["field"], "warnShare");
}

/// With `n` calls at once, at most `n - 1` calls more than the limit are paid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_holds_for_concurrent_calls() {
    const CALLERS: u64 = 4;
    let (_host, api) = extracting().await;
    api.put(&path("budgets/day"), &json!({"limitCents": 50})).await.fine();
    let api = Arc::new(api);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let api = Arc::clone(&api);
        tasks.spawn(async move {
            let mut spent = 0_u64;
            loop {
                match api.capture("acme", "metered 1").await.status {
                    200 => spent += 1,
                    402 => return spent,
                    other => panic!("{other}"),
                }
            }
        });
    }
    let spent: u64 = tasks.join_all().await.into_iter().sum();
    assert!((50..50 + CALLERS).contains(&spent), "{spent} cents of 50");
    let budgets = api.get(&path("budgets")).await;
    assert_eq!(budgets["items"][0]["spentCents"].as_u64(), Some(spent));
    assert_eq!(api.get(&path("costs")).await["total"]["costCents"].as_u64(), Some(spent));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capture_over_the_budget_is_queued_if_the_policy_says_so() {
    let (_host, api) = extracting().await;
    bind(&api, "acme", "patient", &json!({"onBudget": "queue"})).await;
    api.put(&path("budgets/day"), &json!({"limitCents": 1})).await.fine();
    api.capture("acme", "metered 1").await.fine();
    let kept = api.capture("acme", "a fact that must not be lost").await.fine();
    assert!(kept["held"]["reason"].as_str().unwrap().contains("budget"), "{kept}");
    let delivery = path(&format!("deliveries/{}", kept["held"]["deliveryId"].as_str().unwrap()));
    let waiting = api.get(&delivery).await;
    assert_eq!(
        (&waiting["status"], &waiting["attempts"]),
        (&json!("pending"), &json!(0)),
        "{waiting}"
    );
    let operation =
        api.get(&path(&format!("operations/{}", kept["operationId"].as_str().unwrap()))).await;
    assert_eq!(
        (&operation["outcome"], &operation["error"]["code"]),
        (&json!("held"), &json!("budget_exceeded"))
    );
    // With more budget it is delivered.
    api.put(&path("budgets/day"), &json!({"limitCents": 100})).await.fine();
    api.until(&delivery, |delivery| delivery["status"] == "delivered").await;
    assert_eq!(api.query("acme", "must not be lost").await, ["a fact that must not be lost"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evaluation_is_computed_from_records() {
    let (_host, api) = extracting().await;
    let first = api.capture("acme", "alpha").await.fine()["records"][0].clone();
    api.capture("acme", "beta").await.fine();
    let of_run = json!({"companyId": "acme", "runId": "r2"});
    for text in ["alpha", "beta", "gamma"] {
        let asked = json!({"scope": of_run, "query": text});
        api.post("/runtime/v1/companies/acme/query", &asked).await.fine();
    }
    // A person who looks changes nothing.
    api.query("acme", "delta").await;
    let look = json!({"scope": {"companyId": "acme"}, "handle": first});
    api.post("/runtime/v1/companies/acme/get", &look).await.fine();
    let report = api.get(&path("evaluation")).await;
    let total = &report["total"];
    assert_eq!((&total["queries"], &total["recallHitRate"]), (&json!(3), &json!(0.0)), "{report}");
    assert!((total["emptyQueryRate"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9);
    // One record is opened and the other cited, so both queries count as hits.
    let get = json!({"scope": of_run, "handle": first});
    api.post("/runtime/v1/companies/acme/get", &get).await.fine();
    assert_eq!(api.get(&path("evaluation")).await["total"]["recallHitRate"], 0.5);
    let beta = json!({"scope": {"companyId": "acme"}, "query": "beta"});
    let handle =
        api.post("/runtime/v1/companies/acme/query", &beta).await.fine()["snippets"][0]["handle"]
            .clone();
    let note = json!({
        "scope": {"companyId": "acme"},
        "source": {"kind": "run", "companyId": "acme", "runId": "r2"},
        "payload": {"text": "built on beta"},
        "metadata": {"citedRecords": [handle]},
    });
    api.post("/runtime/v1/companies/acme/capture", &note).await.fine();
    let report = api.get(&path("evaluation")).await;
    assert_eq!(
        (&report["total"]["recallHitRate"], &report["isComplete"]),
        (&json!(1.0), &json!(true)),
        "{report}"
    );
    assert_eq!(report["bindings"][0]["bindingKey"], "extracts");
}

/// A job that waits for a budget is looked at when there is one, and leaves no operations until
/// then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_waits_for_a_budget_runs_when_it_is_raised() {
    let (_host, api) = extracting().await;
    // The capture that leaves the job may still be paid.
    api.capture("acme", "metered 1").await.fine();
    api.put(&path("budgets/day"), &json!({"limitCents": 2})).await.fine();
    let captured = api.capture("acme", "job slices 3000").await.fine();
    assert_eq!(captured["jobs"].as_array().unwrap().len(), 1, "{captured}");
    api.put(&path("budgets/day"), &json!({"limitCents": 1})).await.fine();
    let job = api.get(&path("jobs")).await["items"][0]["id"].as_str().unwrap().to_owned();
    let job = path(&format!("jobs/{job}"));
    api.until(&job, |job| job["errorCode"] == "budget_exceeded").await;
    let report = api.get(&path("evaluation")).await;
    assert_eq!(report["total"]["extractionFailures"], 0, "{report}");
    api.put(&path("budgets/day"), &json!({"limitCents": 100})).await.fine();
    api.until(&job, |job| job.get("errorCode").is_none()).await;
    api.post(&format!("{job}/cancel"), &json!({})).await.fine();
}
