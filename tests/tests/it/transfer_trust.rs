//! An import trusts nothing that its file says.

use memhost_server::Method;
use memhost_tests::{TestHost, eventually};
use serde_json::{Value, json};

use super::company::{fill, path};
use super::support::{Answer, Api, bind, extracting};

const FREELY: &str = "import?acceptGrants=true&scope=company";

async fn import(there: &Api, query: &str, text: &str) -> Answer {
    there.send(Method::Post, &path(query), Some(text.to_owned()), &[]).await
}

/// A company in a host with the guest `extracts`, with one of everything.
async fn exported() -> String {
    let (_host, api) = extracting().await;
    fill(&api).await;
    // Sums are written by another thread.
    let mut text = String::new();
    eventually("the export has sums", async || {
        text = api.send(Method::Get, &path("export"), None, &[]).await.text;
        text.contains(r#""type":"bytes""#)
    })
    .await;
    text
}

/// The same lines with some replaced, and the count at the end.
fn with(text: &str, mut change: impl FnMut(&mut Value) -> Vec<Value>) -> String {
    let mut lines: Vec<Value> = Vec::new();
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let more = change(&mut line);
        lines.push(line);
        lines.extend(more);
    }
    let count = lines.len() - 1;
    lines.last_mut().unwrap()["lines"] = count.into();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Changes the first row of a table.
fn with_row(text: &str, table: &str, change: impl Fn(&mut Value)) -> String {
    let mut is_done = false;
    let changed = with(text, |line| {
        if line["table"] == table && !is_done {
            is_done = true;
            change(line);
        }
        Vec::new()
    });
    assert!(is_done, "the export has no row of {table}");
    changed
}

async fn is_empty(there: &Api, host: &TestHost) {
    assert_eq!(there.get(&path("bindings")).await["items"], json!([]));
    let kept = host.operations("acme").await.unwrap();
    assert!(kept.is_empty(), "{kept:?}");
    assert!(!host.data_dir().join("memory/acme").exists());
}

/// A review in the file names another company's binding. Before, it hid that company's record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_cannot_reach_another_companys_binding() {
    let export = exported().await;
    let host = TestHost::new(&["extracts"]).await.unwrap();
    let there = Api::new(&host);
    bind(&there, "victim", "extracts", &json!({})).await;
    there.capture("victim", "the victims' fact").await.fine();
    let binding = there.get("/control/v1/companies/victim/bindings/extracts").await["id"].clone();
    let ask = json!({"scope": {"companyId": "victim"}, "query": "fact"});
    let found = there.post("/runtime/v1/companies/victim/query", &ask).await.fine();
    let record = found["snippets"][0]["handle"].clone();
    let foreign = |table: &str| {
        with_row(&export, table, |line| {
            line["value"]["bindingId"] = binding.clone();
            line["value"]["subject"] = json!({"record": record});
            line["value"]["status"] = "pending".into();
            line["value"]["bindingKey"] = "extracts".into();
        })
    };
    let files = [
        foreign("reviews"),
        with_row(&export, "jobs", |line| line["value"]["bindingId"] = binding.clone()),
        with_row(&export, "deliveries", |line| line["value"]["bindingId"] = binding.clone()),
        with_row(&export, "bindings", |line| line["value"]["id"] = binding.clone()),
    ];
    for (number, file) in files.iter().enumerate() {
        let answer = import(&there, FREELY, file).await;
        assert_eq!(answer.status, 400, "{number}: {}", answer.text);
        assert_eq!(there.query("victim", "fact").await, ["the victims' fact"], "{number}");
        is_empty(&there, &host).await;
    }
}

/// Each of these is refused with the line, and nothing of it stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_names_what_is_not_its_own_leaves_nothing() {
    let export = exported().await;
    let host = TestHost::new(&["extracts"]).await.unwrap();
    let there = Api::new(&host);
    let row = |table: &str, pointer: &str, value: Value| {
        with_row(&export, table, |line| *line.pointer_mut(pointer).unwrap() = value.clone())
    };
    let other_id = json!("0199f0a0-0000-7000-8000-000000000000");
    let operation = |change: &dyn Fn(&mut Value)| {
        let mut is_done = false;
        with(&export, |line| {
            if line["type"] == "operation" && !is_done {
                is_done = true;
                change(&mut line["value"]);
            }
            Vec::new()
        })
    };
    let far =
        memhost_types::OperationId::new(1, memhost_types::OperationId::MAX_SEQUENCE, 0).to_string();
    let many = {
        let mut is_done = false;
        with(&export, |line| {
            if line["table"] != "bindings" || is_done {
                return Vec::new();
            }
            is_done = true;
            let hex = |key: &str| key.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
            let more = (0..1_100).map(|n| {
                let (mut copy, key) = (line.clone(), format!("copy{n}"));
                copy["key"] = hex(&key).into();
                copy["value"]["key"] = key.into();
                copy["value"]["id"] = format!("0199f0a0-0000-7000-8000-{n:012}").into();
                copy["value"]["providerKey"] = "local-markdown".into();
                copy["value"]["config"] = json!({});
                copy
            });
            more.collect()
        })
    };
    let files = [
        ("a row of another company", row("bindings", "/value/companyId", json!("victim"))),
        ("a key of its own making", row("bindings", "/key", json!("41"))),
        ("a key of another table's shape", row("activity", "/key", json!("00"))),
        ("a review of no binding", row("reviews", "/value/bindingId", other_id.clone())),
        (
            "a job of no binding that is due",
            with_row(&export, "jobs", |line| {
                line["value"]["bindingId"] = other_id.clone();
                line["value"]["dueAt"] = json!("2026-01-01T00:00:00Z");
            }),
        ),
        ("an assignment to no binding", row("targets", "/value/bindingKey", json!("nothing"))),
        (
            "a budget of no binding",
            with_row(&export, "budgets", |line| {
                line["value"]["bindingKey"] = json!("nothing");
                line["key"] = json!("6e6f7468696e67006d6f6e7468");
            }),
        ),
        ("a table that is not exported", row("activity", "/table", json!("tokens"))),
        ("a table of the host", row("activity", "/table", json!("host"))),
        ("an undecodable binding", row("bindings", "/value", json!({"key": "x"}))),
        ("a revision that overflows", row("bindings", "/value/revision", json!(u64::MAX))),
        ("attempts that overflow", row("jobs", "/value/attempts", json!(u32::MAX))),
        ("a limit that is none", row("bindings", "/value/limits/memoryBytes", json!(u64::MAX))),
        ("an operation that goes on", operation(&|value| value["outcome"] = json!("in_progress"))),
        ("an operation with the last number", operation(&|value| value["id"] = json!(far))),
        (
            "an operation with a long id",
            operation(&|value| value["scope"]["projectId"] = json!("p".repeat(129))),
        ),
        (
            "an operation with a long log",
            operation(&|value| {
                value["log"] = json!([{"level": "info", "text": "x".repeat(3 << 20)}]);
            }),
        ),
        (
            "a job with a long id",
            row("jobs", "/value/scope", json!({"companyId": "acme", "issueId": "i".repeat(129)})),
        ),
        (
            "an operation of another company",
            operation(&|value| value["scope"]["companyId"] = json!("victim")),
        ),
        (
            "a record of another provider",
            with(&export, |line| {
                if line["type"] == "record" {
                    line["value"]["handle"]["providerKey"] = json!("local-markdown");
                }
                Vec::new()
            }),
        ),
        (
            "a record with a source of another company",
            with(&export, |line| {
                if line["type"] == "record" {
                    line["value"]["source"] = json!({"kind": "manual_note", "companyId": "victim"});
                }
                Vec::new()
            }),
        ),
        (
            "sums that have been summed to come",
            with(&export, |line| {
                if line["type"] != "bytes" {
                    return Vec::new();
                }
                let mut more = line.clone();
                more["key"] = json!("730000000000000fff");
                vec![more]
            }),
        ),
        ("too many bindings", many),
        ("a deep line", format!("{}\n{}\n", export.lines().next().unwrap(), "[".repeat(100_000))),
        (
            "many values",
            format!("{}\n[{}1]\n", export.lines().next().unwrap(), "1,".repeat(300_000)),
        ),
        ("a long line", format!("{}\n{}\n", export.lines().next().unwrap(), " ".repeat(17 << 20))),
        ("cut off in the middle of a line", export[..export.len() / 2].to_owned()),
    ];
    for (what, file) in files {
        let answer = import(&there, FREELY, &file).await;
        assert!(matches!(answer.status, 400 | 422), "{what}: {} {}", answer.status, answer.text);
        is_empty(&there, &host).await;
    }
    // What is left of the failed ones prevents nothing.
    import(&there, FREELY, &export).await.fine();
    assert!(host.service().control().verify_store().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_and_limits_of_an_import_wait_for_an_operator_and_so_do_the_records() {
    let export = exported().await;
    let everything = |line: &mut Value| {
        line["value"]["grants"]["storageBytes"] = json!(1_u64 << 50);
        line["value"]["grants"]["http"] =
            json!([{"origin": "http://169.254.169.254", "privateRanges": ["169.254.0.0/16"]}]);
        line["value"]["limits"]["callTimeoutMs"] = json!(600_000);
    };
    let export = with(&export, |line| {
        if line["table"] == "bindings" {
            everything(line);
        }
        Vec::new()
    });
    let mut host = TestHost::new(&["extracts"]).await.unwrap();
    let there = Api::new(&host);
    // Records of which nobody knows the scope become visible to everybody only if the operator says
    // so.
    let is_row = |line: &&str| line.contains("\"table\":\"records\"");
    let unknown: String =
        export.lines().filter(|line| !is_row(line)).map(|line| format!("{line}\n")).collect();
    let answer = import(&there, "import", &unknown).await;
    assert!(answer.status == 400 && answer.text.contains("--scope company"), "{}", answer.text);
    is_empty(&there, &host).await;
    let done = import(&there, "import?scope=company", &export).await.fine();
    assert_eq!(done["requested"], json!(["careful", "extracts"]));
    assert!(done["records"] == 0 && done["waiting"].as_u64() > Some(5), "{done}");
    let shown = there.get(&path("bindings/extracts")).await;
    let grants = &shown["grants"];
    assert_eq!((&grants["storageBytes"], &grants["http"]), (&json!(0), &json!([])), "{shown}");
    assert_ne!(shown["limits"]["callTimeoutMs"], 600_000);
    assert!(shown["warnings"].to_string().contains("--requested"), "{shown}");
    let grants = there.get(&path("bindings/extracts/grants")).await;
    assert_eq!(grants["requested"]["grants"]["storageBytes"], 1_u64 << 50);
    // An administrator cannot decide.
    let made = there
        .post(&path("tokens"), &json!({"name": "a", "role": "company_administrator"}))
        .await
        .fine();
    let admin = there.with(made["value"].as_str().unwrap());
    assert_eq!(admin.put(&path("bindings/extracts/grants"), &json!({})).await.status, 403);
    // They wait over a restart, and are in the next export.
    drop((there, admin));
    host.stop().await;
    host.start().await.unwrap();
    let there = Api::new(&host);
    let again = there.send(Method::Get, &path("export"), None, &[]).await.text;
    // Lines that were changed above have their members in another order.
    let parsed = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let records = |text: &str| text.lines().filter(|line| parsed(line)["type"] == "record").count();
    assert_eq!(records(&again), records(&export));
    // One that waits can be forgotten.
    let is_fact = |line: &Value| line["type"] == "record" && line.to_string().contains("fact 3");
    let record = again.lines().map(parsed).find(is_fact).unwrap();
    let forget = json!({
        "scope": {"companyId": "acme"}, "bindingKey": "extracts",
        "handles": [record["value"]["handle"]],
    });
    let forgotten = there.post("/runtime/v1/companies/acme/forget", &forget).await.fine();
    assert_eq!(forgotten["outcomes"][0]["effect"], "hard", "{forgotten}");
    let left = there.send(Method::Get, &path("export"), None, &[]).await.text;
    assert_eq!(records(&left), records(&export) - 1);
    // The decision is another one than what was asked for: the records go on by themselves.
    there.put(&path("bindings/extracts/grants"), &json!({"storageBytes": 64 << 20})).await.fine();
    let found = async || there.query("acme", "fact").await.len();
    eventually("the records are with their provider", async || found().await == 4).await;
    let shown = async || there.get(&path("bindings/extracts")).await;
    eventually("nothing waits", async || shown().await.get("warnings").is_none()).await;
    assert!(shown().await.get("requested").is_none());
    assert!(
        there.get(&path("bindings/careful")).await["warnings"].to_string().contains("--requested")
    );
    // What waits goes with its binding.
    there.send(Method::Delete, &path("bindings/careful"), None, &[]).await.fine();
    drop(there);
    host.stop().await;
    let db = memhost_tests::open_store(host.data_dir());
    assert_eq!(db.open_tree("waiting").unwrap().len(), 0);
    assert_eq!(db.open_tree("host").unwrap().scan_prefix(b"waiting").count(), 0);
}

/// Nothing that a new binding would not get needs no decision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_built_in_provider_needs_no_decision() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    api.capture("acme", "a plain fact").await.fine();
    let export = api.send(Method::Get, &path("export"), None, &[]).await.text;
    let other = TestHost::new(&[]).await.unwrap();
    let there = Api::new(&other);
    let done = import(&there, "import?scope=company", &export).await.fine();
    assert!(done.get("requested").is_none() && done["waiting"] == 0, "{done}");
    assert_eq!(there.query("acme", "fact").await, ["a plain fact"]);
}
