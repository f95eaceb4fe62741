//! A company that is restored in place, a restored data directory that is quiet, and an erasure
//! that says beforehand what it cannot do.

use std::sync::Arc;

use memhost_core::{end_quiet, restore_backup};
use memhost_server::Method;
use memhost_tests::clock::TestClock;
use memhost_tests::{TestHost, caller, eventually, parse};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::cli::Terminal;
use super::mem0;
use super::support::{Answer, Api, bind_provider};

const CONTROL: &str = "/control/v1/companies/acme";
const RUNTIME: &str = "/runtime/v1/companies/acme";

/// A host with `acme` and `other`, each with notes in files and facts of its own lines.
async fn host() -> (TestHost, Api) {
    let host = TestHost::new(&["reference"]).await.unwrap();
    let api = Api::new(&host);
    for company in ["acme", "other"] {
        bind_provider(&api, company, "reference").await;
        bind_provider(&api, company, "local-markdown").await;
        for key in ["reference", "local-markdown"] {
            for text in ["the gate is green", "the lamp is blue", "the door is red"] {
                write(&api, company, key, &format!("{text} in {key}")).await;
            }
        }
    }
    (host, api)
}

async fn write(api: &Api, company: &str, key: &str, text: &str) -> Value {
    let body = json!({
        "scope": {"companyId": company}, "bindingKey": key, "records": [{"text": text}],
    });
    let path = format!("/runtime/v1/companies/{company}/records");
    api.post(&path, &body).await.fine()["records"][0].clone()
}

async fn all(api: &Api, company: &str, key: &str) -> Vec<(Value, String)> {
    let path = format!("/runtime/v1/companies/{company}/list");
    let body = json!({"scope": {"companyId": company}, "bindingKey": key});
    let listed = api.post(&path, &body).await.fine();
    let mut all: Vec<(Value, String)> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["handle"].clone(), item["text"].as_str().unwrap().trim().to_owned()))
        .collect();
    all.sort_by(|(_, a), (_, b)| a.cmp(b));
    all
}

async fn texts(api: &Api, company: &str, key: &str) -> Vec<String> {
    all(api, company, key).await.into_iter().map(|(_, text)| text).collect()
}

async fn forget(api: &Api, key: &str, handle: &Value) {
    let body = json!({"scope": {"companyId": "acme"}, "bindingKey": key, "handles": [handle]});
    api.post(&format!("{RUNTIME}/forget"), &body).await.fine();
}

async fn restore(api: &Api, lines: String) -> Answer {
    api.send(Method::Post, &format!("{CONTROL}/restore"), Some(lines), &[]).await
}

async fn export(api: &Api) -> String {
    let export = api.send(Method::Get, &format!("{CONTROL}/export"), None, &[]).await;
    assert_eq!(export.status, 200, "{}", export.text);
    export.text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_company_is_restored_in_place_and_what_was_forgotten_stays_forgotten() {
    let (mut host, api) = host().await;
    let make = async |name: &str| {
        let body = json!({"name": name, "role": "auditor"});
        api.post(&format!("{CONTROL}/tokens"), &body).await.fine()
    };
    let (token, gone) = (make("kept").await, make("revoked").await);
    let before = export(&api).await;
    let others: Vec<Vec<String>> =
        [texts(&api, "other", "reference").await, texts(&api, "other", "local-markdown").await]
            .into();
    let mut kept = Vec::new();
    for key in ["reference", "local-markdown"] {
        let were = all(&api, "acme", key).await;
        assert_eq!(were.len(), 3);
        // One is forgotten, one is lost, and one comes afterwards that should not be there.
        forget(&api, key, &were[0].0).await;
        write(&api, "acme", key, "a wrong one").await;
        kept.push(were[1..].iter().map(|(_, text)| text.clone()).collect::<Vec<_>>());
    }
    api.put(&format!("{CONTROL}/budgets/day"), &json!({"limitCents": 7})).await.fine();
    let id = gone["id"].as_str().unwrap();
    let path = format!("{CONTROL}/tokens/{id}");
    api.send(Method::Delete, &path, None, &[]).await.fine();
    // The files of a provider are lost, as after an accident with the disk.
    let memory = host.data_dir().join("memory/acme");
    for directory in std::fs::read_dir(&memory).unwrap() {
        let directory = directory.unwrap().path();
        for file in std::fs::read_dir(&directory).unwrap().flatten() {
            if file.path().is_file() {
                std::fs::remove_file(file.path()).unwrap();
            }
        }
    }
    let done = restore(&api, before.clone()).await.fine();
    assert_eq!(done["bindings"], json!(["local-markdown", "reference"]), "{done}");
    assert_eq!((&done["forgotten"], &done["notRestored"]), (&json!(2), &json!({})), "{done}");
    for (key, kept) in ["reference", "local-markdown"].into_iter().zip(&kept) {
        assert_eq!(texts(&api, "acme", key).await, *kept, "{key}");
    }
    let entries = api.get(&format!("{CONTROL}/activity")).await;
    let restored = entries["items"].as_array().unwrap().iter();
    assert_eq!(restored.filter(|entry| entry["action"] == "company_restored").count(), 1);
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    for (key, kept) in ["reference", "local-markdown"].into_iter().zip(&kept) {
        assert_eq!(texts(&api, "acme", key).await, *kept, "{key}, after a restart");
    }
    assert_eq!(
        vec![texts(&api, "other", "reference").await, texts(&api, "other", "local-markdown").await],
        others
    );
    let as_auditor = api.with(token["value"].as_str().unwrap());
    as_auditor.get(&format!("{CONTROL}/bindings")).await;
    let revoked = api.with(gone["value"].as_str().unwrap());
    let revoked = revoked.send(Method::Get, &format!("{CONTROL}/bindings"), None, &[]).await;
    assert_eq!(revoked.status, 401, "{}", revoked.text);
    let budgets = api.get(&format!("{CONTROL}/budgets")).await;
    assert_eq!(budgets["items"][0]["limitCents"], 7, "{budgets}");
    assert!(host.service().control().verify_store().await.unwrap().is_empty());
    // Nothing of what was there is left behind: one directory a binding.
    let left = std::fs::read_dir(host.data_dir().join("memory/acme")).unwrap().count();
    assert!(left <= 2, "{left} directories");
    // The same again is the same.
    let again = restore(&api, before).await.fine();
    assert_eq!(again["forgotten"], 2, "{again}");
    assert_eq!(texts(&api, "acme", "reference").await, kept[0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_that_fails_leaves_everything_as_it_was() {
    let (mut host, api) = host().await;
    let before = export(&api).await;
    let late = write(&api, "acme", "reference", "a later one").await;
    let were = all(&api, "acme", "reference").await;
    let lines: Vec<&str> = before.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n");
    let renamed = before.replacen("\"acme\"", "\"emca\"", 1);
    let broken = [&lines[..lines.len() - 1].join("\n"), "\nnot json\n"].concat();
    for wrong in [cut.clone(), renamed, broken, String::new()] {
        let refused = restore(&api, wrong).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert_eq!(all(&api, "acme", "reference").await, were);
    }
    // The host ends in the middle: the company is closed while it is restored.
    let (sender, receiver) = mpsc::channel(10_000);
    let service = Arc::clone(host.service());
    let restoring = tokio::spawn(async move {
        service.transfer().restore(&caller(), &parse("acme"), false, receiver).await
    });
    for line in &lines[..lines.len() - 1] {
        sender.send(Ok(format!("{line}\n"))).await.unwrap();
    }
    let listed = async || api.send(Method::Get, &format!("{CONTROL}/bindings"), None, &[]).await;
    eventually("the restore has begun", async || listed().await.status == 503).await;
    let closed = listed().await;
    assert_eq!(closed.problem(), (503, "importing"));
    assert!(closed.headers.contains_key("retry-after"));
    assert_eq!(api.get("/control/v1/companies/other/bindings").await["items"][0]["enabled"], true);
    drop(sender);
    assert!(restoring.await.unwrap().is_err());
    assert_eq!(all(&api, "acme", "reference").await, were);
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(all(&api, "acme", "reference").await, were);
    forget(&api, "reference", &late).await;
}

/// What a provider has at another system is not replaced, and its binding is named. The backup's
/// host asks that system nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_restores_what_the_host_keeps_and_names_the_rest() {
    let terminal = Terminal::open(&["mem0"]).await;
    let api = Api::new(&terminal.host);
    bind_provider(&api, "acme", "local-markdown").await;
    let (port, state) = mem0::serve();
    let config = json!({"url": format!("http://127.0.0.1:{port}"), "api": "self-hosted"});
    let body = json!({"key": "mem0", "providerKey": "mem0", "config": config});
    api.post(&format!("{CONTROL}/bindings"), &body).await.fine();
    mem0::grant(&api, port).await;
    write(&api, "acme", "mem0", "at mem0").await;
    write(&api, "acme", "local-markdown", "the gate is green").await;
    let backup = terminal.host.directory().join("backup");
    terminal.fine(&format!("store backup --to {}", backup.display())).await;
    let handle = write(&api, "acme", "local-markdown", "a wrong one").await;
    let asked = state.lock().unwrap().keys.len();
    let told = terminal.fine(&format!("company restore {}", backup.display())).await;
    assert!(told.contains("restored 1 record of local-markdown"), "{told}");
    assert!(told.contains("the binding mem0 is as it was") && told.contains("127.0.0.1"), "{told}");
    assert_eq!(texts(&api, "acme", "local-markdown").await, ["the gate is green"]);
    assert_eq!(state.lock().unwrap().keys.len(), asked, "mem0 was asked");
    assert_eq!(state.lock().unwrap().memories.len(), 1);
    assert!(handle.is_object());
}

/// A data directory that was restored, such as for a test, sends nothing to anybody until the
/// operator says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_directory_is_quiet_until_the_operator_ends_that() {
    let (port, state) = mem0::serve();
    let (host, api) = mem0::host(port).await;
    mem0::grant(&api, port).await;
    write(&api, "acme", "mem0", "at mem0").await;
    let backup = host.directory().join("backup");
    let body = json!({"directory": backup, "withVaultKey": true});
    api.post("/control/v1/backups", &body).await.fine();
    let restored = host.directory().join("restored");
    restore_backup(&backup, &restored).unwrap();
    let asked = state.lock().unwrap().keys.len();
    let second = TestHost::with(&["mem0"], |options| options.data_dir = restored.clone()).await;
    let mut second = second.unwrap();
    let there = Api::new(&second);
    let ask = json!({"scope": {"companyId": "acme"}, "query": "mem0"});
    let refused = there.post(&format!("{RUNTIME}/query"), &ask).await;
    assert!(refused.status >= 400, "{}", refused.text);
    let checks = there.get("/control/v1/doctor").await;
    let quiet = checks["items"].as_array().unwrap().iter().find(|check| check["name"] == "quiet");
    let quiet = quiet.unwrap_or_else(|| panic!("{checks}"));
    assert!(quiet["advice"].as_str().unwrap().contains("--end-quiet"), "{quiet}");
    assert_eq!(state.lock().unwrap().keys.len(), asked, "mem0 was asked");
    drop(there);
    second.stop().await;
    end_quiet(&restored).unwrap();
    second.start().await.unwrap();
    let there = Api::new(&second);
    assert_eq!(there.query("acme", "mem0").await, ["at mem0"]);
    let checks = there.get("/control/v1/doctor").await;
    assert!(!checks.to_string().contains("--end-quiet"), "{checks}");
}

/// An erasure says what a provider cannot forget before it closes the company.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_names_what_cannot_forget_before_it_closes_the_company() {
    let (port, _state) = mem0::serve();
    let (_host, api) = mem0::host(port).await;
    mem0::grant(&api, port).await;
    write(&api, "acme", "mem0", "at mem0").await;
    let secret = format!("{CONTROL}/secrets/MEM0_API_KEY");
    api.send(Method::Delete, &secret, None, &[]).await.fine();
    let erase = async |abandon: Value| {
        let body = json!({"confirm": "acme", "abandon": abandon});
        api.post(&format!("{CONTROL}/erase"), &body).await
    };
    let refused = erase(json!([])).await;
    assert_eq!(refused.problem(), (409, "not_forgotten"), "{}", refused.text);
    let detail = refused.json["detail"].as_str().unwrap();
    assert!(detail.contains("nothing was erased") && detail.contains("MEM0_API_KEY"), "{detail}");
    assert!(detail.contains("--abandon mem0"), "{detail}");
    api.get(&format!("{CONTROL}/bindings")).await;
    let erased = erase(json!(["mem0"])).await.fine();
    assert_eq!(erased["abandoned"], json!({"mem0": "operator"}), "{erased}");
    // The id is burnt, and whoever tries says so.
    let told = api.put(CONTROL, &json!({})).await;
    assert_eq!(told.problem(), (410, "company_erased"));
    let detail = told.json["detail"].as_str().unwrap();
    let day = &erased["erasedAt"].as_str().unwrap()[..10];
    let wanted = format!(
        "the id acme was erased here by operator on {day} and is not used again on this host; \
         import it on another one"
    );
    assert_eq!(detail, wanted);
}

/// What nobody has approved is shown to nobody because a company was restored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waited_for_a_person_waits_again() {
    let (mut host, api) = host().await;
    let key = "local-markdown";
    let (binding, ada) = (format!("{CONTROL}/bindings/{key}"), api.agent("ada").await);
    api.patch(&binding, &json!({"policy": {"review": {"all": true}}})).await.fine();
    for text in ["nobody has decided", "as it is", "with the name of Jane"] {
        write(&ada, "acme", key, text).await;
    }
    api.patch(&binding, &json!({"policy": {"review": null}})).await.fine();
    let file = export(&api).await;
    let pending = async |api: &Api| {
        let items = api.get(&format!("{CONTROL}/reviews?status=pending")).await["items"].clone();
        let items = items.as_array().unwrap().clone();
        let mut all: Vec<(String, String)> = items
            .iter()
            .map(|item| {
                let text = |field: &str| item[field].as_str().unwrap().trim().to_owned();
                (text("text"), text("id"))
            })
            .collect();
        all.sort();
        all
    };
    for (text, id) in pending(&api).await {
        let decision = match text.as_str() {
            "as it is" => json!({"decision": "approve"}),
            "with the name of Jane" => json!({"decision": "edit", "text": "without the name"}),
            _ => continue,
        };
        api.post(&format!("{CONTROL}/reviews/{id}/decision"), &decision).await.fine();
    }
    restore(&api, file).await.fine();
    let shown = texts(&api, "acme", key).await;
    assert!(shown.contains(&"as it is".to_owned()), "{shown:?}");
    let leaks = |shown: &[String]| {
        shown.iter().any(|text| text.contains("decided") || text.contains("Jane"))
    };
    assert!(!leaks(&shown), "{shown:?}");
    let again = pending(&api).await;
    let waiting: Vec<&str> = again.iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(waiting, ["nobody has decided", "with the name of Jane"]);
    drop((api, ada));
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert!(!leaks(&texts(&api, "acme", key).await));
    // A person decides as before.
    let id = &again[0].1;
    let approve = json!({"decision": "approve"});
    api.post(&format!("{CONTROL}/reviews/{id}/decision"), &approve).await.fine();
    assert!(texts(&api, "acme", key).await.contains(&"nobody has decided".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_became_private_stays_private() {
    let (mut host, api) = host().await;
    let (ada, bob) = (api.agent("ada").await, api.agent("bob").await);
    for key in ["reference", "local-markdown"] {
        let handle = write(&ada, "acme", key, "the safe is behind the clock").await;
        let file = export(&api).await;
        let record = json!({"id": handle["providerRecordId"], "text": "the safe is gone"});
        let body = json!({"scope": {"companyId": "acme", "agentId": "ada"}, "bindingKey": key,
            "records": [record], "visibility": "agent"});
        ada.post(&format!("{RUNTIME}/records"), &body).await.fine();
        let sees = async |api: &Api| {
            texts(api, "acme", key).await.iter().any(|text| text.contains("behind the clock"))
        };
        restore(&api, file).await.fine();
        assert_eq!((sees(&ada).await, sees(&bob).await), (true, false), "{key}");
    }
    drop((api, ada, bob));
    host.stop().await;
    host.start().await.unwrap();
    let bob = Api::new(&host).agent("bob-2").await;
    for key in ["reference", "local-markdown"] {
        let shown = texts(&bob, "acme", key).await;
        assert!(!shown.iter().any(|text| text.contains("clock")), "{shown:?}");
    }
}

/// A restored binding is the one that was there: its log, its figures and what its records came
/// from go on, also where it is restored again or the company moves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_a_restored_binding_goes_on() {
    let (host, api) = host().await;
    let body = json!({"scope": {"companyId": "acme"}, "bindingKey": "reference", "query": "lamp"});
    let asked = api.post(&format!("{RUNTIME}/query"), &body).await.fine();
    let before = api.get(&format!("{CONTROL}/bindings/reference")).await["id"].clone();
    for _ in 0..2 {
        let file = export(&api).await;
        let restored = format!("{CONTROL}/restore?scope=company");
        api.send(Method::Post, &restored, Some(file), &[]).await.fine();
    }
    let check = async |api: &Api| {
        assert_eq!(api.get(&format!("{CONTROL}/bindings/reference")).await["id"], before);
        let id = asked["operationId"].as_str().unwrap();
        let explained = api.get(&format!("{CONTROL}/operations/{id}/explanation")).await;
        let states: Vec<&Value> = explained["records"]
            .as_array()
            .unwrap()
            .iter()
            .map(|record| &record["state"])
            .collect();
        assert!(
            !states.is_empty() && states.iter().all(|state| *state == "unchanged"),
            "{explained}"
        );
        let evaluation = api.get(&format!("{CONTROL}/evaluation")).await;
        let rows = evaluation["bindings"].as_array().unwrap().iter();
        let own: Vec<_> = rows.filter(|row| row["bindingKey"] == "reference").collect();
        assert_eq!(own.len(), 1, "{evaluation}");
        let of = before.as_str().unwrap();
        let listed = api.get(&format!("{CONTROL}/operations?bindingId={of}&limit=500")).await;
        let kinds = listed["items"].as_array().unwrap().iter().map(|one| one["kind"].clone());
        let kinds: Vec<Value> = kinds.collect();
        assert!(kinds.contains(&json!("query")), "{kinds:?}");
        assert!(
            kinds.iter().filter(|kind| **kind == json!("record_upsert")).count() >= 3,
            "{kinds:?}"
        );
    };
    check(&api).await;
    // The whole company at another host.
    let file = export(&api).await;
    let other = TestHost::new(&["reference"]).await.unwrap();
    let there = Api::new(&other);
    let into = format!("{CONTROL}/import?scope=company&acceptGrants=true");
    let moved = there.send(Method::Post, &into, Some(file), &[]).await;
    assert_eq!(moved.status, 201, "{}", moved.text);
    check(&there).await;
    drop((api, there));
    drop((host, other));
}

/// Where records are restored, their binding has another storage. What it may spend, what waits for
/// it and what it has taken already stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn budgets_and_deliveries_go_on_in_a_restored_binding() {
    let mut host = TestHost::new(&["extracts"]).await.unwrap();
    let api = Api::new(&host);
    bind_provider(&api, "acme", "extracts").await;
    let binding = api.get(&format!("{CONTROL}/bindings")).await["items"][0].clone();
    let path = format!("{CONTROL}/bindings/{}", binding["key"].as_str().unwrap());
    api.put(&format!("{path}/budgets/month"), &json!({"limitCents": 2})).await.fine();
    api.capture("acme", "metered 3").await.fine();
    assert_eq!(api.capture("acme", "metered 1").await.status, 402);
    let hook = |id: &str, wait: u32| {
        json!({"hookKind": "post_run_capture", "hookId": id, "waitMs": wait,
            "bindingKey": "extracts", "triggeredAt": "2026-11-20T10:00:00Z",
            "scope": {"companyId": "acme"},
            "source": {"kind": "run", "companyId": "acme", "runId": id}, "payload": {"text": id}})
    };
    let send = async |api: &Api, hook: Value| api.post(&format!("{RUNTIME}/hooks"), &hook).await;
    api.patch(&path, &json!({"enabled": false})).await.fine();
    let waiting = send(&api, hook("waits", 0)).await.fine();
    assert_eq!(waiting["deliveries"][0]["status"], "pending", "{waiting}");
    let file = export(&api).await;
    let restored = format!("{CONTROL}/restore?scope=company");
    let restored = api.send(Method::Post, &restored, Some(file), &[]).await.fine();
    assert_eq!(restored["bindings"], json!(["extracts"]), "{restored}");
    api.patch(&path, &json!({"enabled": true})).await.fine();
    let again = send(&api, hook("waits", 0)).await.fine();
    assert_eq!(again["isDuplicate"], true, "{again}");
    let now = api.get(&format!("{CONTROL}/bindings")).await["items"][0]["id"].clone();
    assert_eq!(now, binding["id"]);
    assert_eq!(again["deliveries"][0]["bindingId"], now, "{again}");
    assert_eq!(api.capture("acme", "metered 3").await.status, 402);
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(api.capture("acme", "metered 4").await.status, 402, "after a restart");
    assert_eq!(send(&api, hook("waits", 0)).await.fine()["isDuplicate"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_earlier_now_does_not_come_back() {
    let clock = TestClock::new();
    let shared = Arc::clone(&clock) as _;
    let host = TestHost::with(&[], |options| options.clock = shared).await.unwrap();
    let api = Api::new(&host);
    let key = "local-markdown";
    bind_provider(&api, "acme", key).await;
    let handle = write(&api, "acme", key, "the safe is behind the clock").await;
    let file = export(&api).await;
    let at = memhost_ports::Clock::now(&*clock) + jiff::SignedDuration::from_hours(1);
    let record = json!({"id": handle["providerRecordId"], "text": "soon over",
        "expiresAt": at.to_string()});
    let body = json!({"scope": {"companyId": "acme"}, "bindingKey": key, "records": [record]});
    api.post(&format!("{RUNTIME}/records"), &body).await.fine();
    restore(&api, file).await.fine();
    assert_eq!(texts(&api, "acme", key).await, ["the safe is behind the clock"]);
    clock.advance(jiff::SignedDuration::from_hours(2));
    assert_eq!(texts(&api, "acme", key).await, [""; 0]);
}

/// Whoever imported the lines would show the records to everybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_of_private_records_leave_with_the_whole_company_only() {
    let (_host, api) = host().await;
    let ada = api.agent("ada").await;
    let lines = async || {
        let body = json!({"scope": {"companyId": "acme"}, "bindingKey": "reference"});
        api.post(&format!("{RUNTIME}/export"), &body).await
    };
    assert!(lines().await.fine()["lines"].as_str().unwrap().contains("the gate is green"));
    let body = json!({"scope": {"companyId": "acme", "agentId": "ada"}, "bindingKey": "reference",
        "records": [{"text": "mine"}], "visibility": "agent"});
    ada.post(&format!("{RUNTIME}/records"), &body).await.fine();
    let refused = lines().await;
    assert_eq!(refused.problem(), (403, "forbidden"), "{}", refused.text);
    assert!(refused.text.contains("memhost company export"), "{}", refused.text);
    assert!(export(&api).await.contains("mine"));
}

/// What people decided holds for the restored records, also after a restart: of a record and a
/// change of it the later item counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_hold_in_a_restored_binding() {
    let (mut host, api) = host().await;
    let key = "local-markdown";
    let (binding, ada) = (format!("{CONTROL}/bindings/{key}"), api.agent("ada").await);
    api.patch(&binding, &json!({"policy": {"review": {"all": true}}})).await.fine();
    let decide = async |api: &Api, wanted: &str| {
        let items = api.get(&format!("{CONTROL}/reviews?status=pending")).await["items"].clone();
        let items = items.as_array().unwrap();
        let item = items.iter().find(|item| item["text"].as_str().unwrap().contains(wanted));
        let id = item.unwrap_or_else(|| panic!("{items:?}"))["id"].as_str().unwrap();
        let path = format!("{CONTROL}/reviews/{id}/decision");
        api.post(&path, &json!({"decision": "approve"})).await.fine();
    };
    let handle = write(&ada, "acme", key, "delta as it was").await;
    write(&ada, "acme", key, "omega is approved").await;
    decide(&api, "delta as it was").await;
    decide(&api, "omega").await;
    let body = json!({"scope": {"companyId": "acme"}, "bindingKey": key, "handle": handle,
        "patch": {"record": {"text": "delta as it is now"}}});
    ada.post(&format!("{RUNTIME}/correct"), &body).await.fine();
    let file = export(&api).await;
    restore(&api, file).await.fine();
    let shown = texts(&api, "acme", key).await;
    assert!(shown.contains(&"omega is approved".to_owned()), "{shown:?}");
    assert!(shown.contains(&"delta as it was".to_owned()), "{shown:?}");
    let public = api.get(&binding).await["id"].clone();
    let reviews = api.get(&format!("{CONTROL}/reviews")).await;
    let ids = reviews["items"].as_array().unwrap().iter().map(|item| item["bindingId"].clone());
    assert!(ids.clone().count() >= 3 && ids.clone().all(|id| id == public), "{reviews}");
    decide(&api, "delta as it is now").await;
    let now = texts(&api, "acme", key).await;
    assert!(now.contains(&"delta as it is now".to_owned()), "{now:?}");
    drop((api, ada));
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(texts(&api, "acme", key).await, now);
}

/// A restore takes a record back to what it was before somebody asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_restore_undid_has_changed() {
    let (_host, api) = host().await;
    let key = "reference";
    let handle = write(&api, "acme", key, "iota as it was").await;
    let file = export(&api).await;
    let body = json!({"scope": {"companyId": "acme"}, "bindingKey": key, "handle": handle,
        "patch": {"record": {"text": "iota as it is now"}}});
    api.post(&format!("{RUNTIME}/correct"), &body).await.fine();
    let body = json!({"scope": {"companyId": "acme"}, "bindingKey": key, "query": "iota"});
    let asked = api.post(&format!("{RUNTIME}/query"), &body).await.fine();
    restore(&api, file).await.fine();
    let id = asked["operationId"].as_str().unwrap();
    let explained = api.get(&format!("{CONTROL}/operations/{id}/explanation")).await;
    let records = explained["records"].as_array().unwrap();
    let own = records.iter().find(|one| one["handle"] == handle);
    assert_eq!(own.unwrap_or_else(|| panic!("{explained}"))["state"], "changed", "{explained}");
}
