//! `memhost bridge claude-mem`: on databases with a schema written here, and on one that the npm
//! package creates, if it and `bun` are installed (`just claude-mem`).

use std::path::{Path, PathBuf};
use std::process::Command;

use memhost_tests::{Serving, TestHost, needed, repository};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::support::Api;

const TOKEN: &str = "a-token-of-sixteen-characters-or-more";

/// A host that listens, with the provider as the default of `acme`, and a directory.
pub(super) struct Place {
    _host: TestHost,
    pub(super) api: Api,
    serving: Serving,
    directory: tempfile::TempDir,
}

impl Place {
    pub(super) async fn new() -> Self {
        let host = TestHost::new(&["cross-agent"]).await.unwrap();
        let api = Api::new(&host);
        let binding = json!({"key": "shared", "providerKey": "cross-agent", "default": true,
            "grants": {"storageBytes": 64 << 20}});
        api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
        let serving = Serving::start(&host, TOKEN).await.unwrap();
        // A separate directory, because cargo may have put another `memhost-bridge` beside the
        // programs of the tests.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let bin = directory.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::fs::hard_link(env!("CARGO_BIN_EXE_memhost-cli"), bin.join("memhost")).unwrap();
        std::fs::hard_link(env!("CARGO_BIN_EXE_bridge-program"), bin.join("memhost-bridge"))
            .unwrap();
        Self { _host: host, api, serving, directory }
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs the bridge, and answers its exit code and what it said.
    async fn bridge(&self, arguments: &[&str]) -> (i32, String) {
        self.run(&[&["claude-mem"], arguments].concat()).await
    }

    /// The same for any system.
    pub(super) async fn run(&self, arguments: &[&str]) -> (i32, String) {
        let mut command = Command::new(self.file("bin/memhost"));
        command.arg("bridge").args(arguments).args(["-o", "json", "--binding", "shared"]);
        command.env_clear().env("HOME", self.directory.path());
        command
            .env("MEMHOST_URL", self.serving.url())
            .env("MEMHOST_TOKEN", TOKEN)
            .env("MEMHOST_COMPANY", "acme");
        let done = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let said = if done.status.success() { done.stdout } else { done.stderr };
        (done.status.code().unwrap(), String::from_utf8(said).unwrap())
    }

    async fn fine(&self, arguments: &[&str]) -> Value {
        let (code, said) = self.bridge(arguments).await;
        assert_eq!(code, 0, "{said}");
        serde_json::from_str(&said).unwrap()
    }

    pub(super) async fn records(&self, project: &str) -> Vec<Value> {
        let body = json!({"scope": {"companyId": "acme", "projectId": project}, "limit": 1000});
        let mut page = self.api.post("/runtime/v1/companies/acme/list", &body).await.fine();
        page["items"].as_array_mut().unwrap().drain(..).collect()
    }
}

/// A small database with the columns of older versions of claude-mem, and one unknown column.
fn store(file: &Path, rows: i64) {
    let store = Connection::open(file).unwrap();
    store
        .execute_batch(
            "CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, content_session_id TEXT, \
             memory_session_id TEXT UNIQUE,
               project TEXT, started_at TEXT, started_at_epoch INTEGER, completed_at_epoch INTEGER);
             CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, project \
             TEXT, text TEXT,
               type TEXT, title TEXT, narrative TEXT, facts TEXT, concepts TEXT, created_at TEXT, \
               created_at_epoch INTEGER, odd REAL);
             INSERT INTO sdk_sessions VALUES (1, 's1', 'm1', 'widgets', '2026-01-01', \
             1767225600000, 1767229200000);",
        )
        .unwrap();
    for number in 0..rows {
        store
            .execute(
                "INSERT INTO observations VALUES (?1, 'm1', 'widgets', NULL, 'decision', 'Gate ' \
                 || ?1, 'It is locked',
                   '[\"a fact\"]', '[\"doors\"]', '2026-01-01', 1767225600000 + ?1, 0.5)",
                [number + 1],
            )
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_is_imported_once_and_exported_unchanged() {
    let place = Place::new().await;
    let (file, out, copy) =
        (place.file("claude-mem.db"), place.file("out.db"), place.file("copy.db"));
    store(&file, 450);
    let [file, out, copy] = [&file, &out, &copy].map(|path| path.to_str().unwrap());
    let report = place.fine(&["import", file]).await;
    assert_eq!(
        report,
        json!({
            "rows": 450, "sessions": 1, "imported": 450, "unchanged": 0, "events": 2, "leftOut": [],
        })
    );
    let first = place.records("widgets").await;
    assert_eq!(first.len(), 450);
    let one = first.iter().find(|record| record["summary"] == "Gate 7").unwrap();
    assert_eq!(one["text"], "Gate 7\n\nIt is locked\n\n- a fact");
    let metadata = &one["metadata"];
    for (name, value) in [
        ("agentKind", "claude"),
        ("source", "imported"),
        ("type", "decision"),
        ("sessionId", "s1"),
        ("projectId", "widgets"),
        ("createdAt", "2026-01-01T00:00:00.007Z"),
        ("externalRef", "claude-mem:observations/m1/7"),
    ] {
        assert_eq!(metadata[name], value, "{name}");
    }
    let operations =
        place.api.get("/control/v1/companies/acme/operations?kind=record_upsert").await;
    assert_eq!(operations["items"].as_array().unwrap().len(), 3, "every write is an operation");
    let again = place.fine(&["import", file]).await;
    assert_eq!((&again["imported"], &again["unchanged"]), (&json!(0), &json!(450)));
    assert_eq!(place.records("widgets").await, first, "nothing was even touched");
    let events = place.api.get("/control/v1/companies/acme/events?sessionId=s1").await;
    assert_eq!(events["items"].as_array().unwrap().len(), 2, "{events}");
    // A record that was not imported is exported, too.
    let own = json!({
        "scope": {"companyId": "acme", "projectId": "widgets"},
        "records": [{
            "text": "Own words\nand more", "metadata": {
                "projectId": "widgets", "type": "fact", "agentKind": "codex", "sessionId": "s9",
                "tags": ["t"],
            },
        }],
    });
    place.api.post("/runtime/v1/companies/acme/records", &own).await.fine();
    let report = place.fine(&["export", out, "--project", "widgets"]).await;
    assert_eq!(report, json!({"records": 451, "written": 451, "unchanged": 0}));
    let rows = |file: &str| {
        let store = Connection::open(file).unwrap();
        let question = "SELECT title || '|' || narrative || '|' || concepts || '|' || \
                        o.created_at_epoch || '|' ||
            s.content_session_id FROM observations o JOIN sdk_sessions s USING (memory_session_id)
            WHERE title LIKE 'Gate%' ORDER BY o.created_at_epoch";
        let mut query = store.prepare(question).unwrap();
        let rows = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>()
    };
    assert_eq!(rows(out), rows(file));
    // Into a copy of the original database: only missing rows are added.
    let report = place.fine(&["export", copy, "--copy-of", file, "--project", "widgets"]).await;
    assert_eq!(report["unchanged"], 450);
    assert_eq!(rows(copy), rows(file));
    assert_eq!(rows(file).len(), 450, "the store itself is only read");
    // And into another project: all rows, and the own record with its id.
    let report = place.fine(&["import", out, "--project", "elsewhere"]).await;
    assert_eq!(report["imported"], 450 + 1, "{report}");
}

/// A database may come from anybody. Its schema calls nothing that does more than compute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schema_of_a_database_is_not_trusted() {
    let place = Place::new().await;
    let (file, out) = (place.file("theirs.db"), place.file("copy.db"));
    store(&file, 1);
    let trigger = "CREATE TRIGGER calls AFTER INSERT ON observations BEGIN SELECT \
                   rtreecheck('observations'); END;";
    Connection::open(&file).unwrap().execute_batch(trigger).unwrap();
    let own = json!({
        "scope": {"companyId": "acme", "projectId": "widgets"},
        "records": [{"text": "Paint it green"}],
    });
    place.api.post("/runtime/v1/companies/acme/records", &own).await.fine();
    let [file, out] = [&file, &out].map(|path| path.to_str().unwrap());
    let export = ["claude-mem", "export", out, "--copy-of", file, "--project", "widgets"];
    let (code, said) = place.run(&export).await;
    assert!(code != 0 && said.contains("unsafe use of rtreecheck"), "{code}: {said}");
    assert!(!Path::new(out).exists(), "a half-written database is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_has_one_projects_items_and_keeps_preferences() {
    let place = Place::new().await;
    let write = |project: &str, text: &str, metadata: Value| {
        json!({
            "scope": {"companyId": "acme", "projectId": project},
            "records": [{"text": text, "metadata": metadata}],
        })
    };
    for body in [
        write("widgets", "Prefers short answers", json!({"type": "preference"})),
        write("other", "For every project", json!({"visibility": "global"})),
        json!({"scope": {"companyId": "acme"}, "records": [{"text": "Of no project"}]}),
    ] {
        place.api.post("/runtime/v1/companies/acme/records", &body).await.fine();
    }
    assert_eq!(place.records("widgets").await.len(), 3, "a session there sees all of them");
    let out = place.file("out.db");
    let report = place.fine(&["export", out.to_str().unwrap(), "--project", "widgets"]).await;
    assert_eq!(report["records"], 1);
    // The record itself is in our own column; without it the concept is left.
    let store = Connection::open(&out).unwrap();
    store.execute_batch("UPDATE observations SET content_hash = NULL, metadata = NULL").unwrap();
    drop(store);
    place.fine(&["import", out.to_str().unwrap(), "--project", "back"]).await;
    let back = place.records("back").await;
    let back = back.iter().find(|record| record["metadata"]["projectId"] == "back").unwrap();
    assert_eq!(back["metadata"]["type"], "preference");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_names_of_columns_are_read() {
    let place = Place::new().await;
    let file = place.file("old.db");
    let store = Connection::open(&file).unwrap();
    store
        .execute_batch(
            "CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, claude_session_id TEXT, \
             sdk_session_id TEXT UNIQUE,
               project TEXT, started_at TEXT, started_at_epoch INTEGER);
             CREATE TABLE observations (id INTEGER PRIMARY KEY, sdk_session_id TEXT, project TEXT, \
             type TEXT, title TEXT,
               created_at TEXT, created_at_epoch INTEGER);
             INSERT INTO sdk_sessions VALUES (1, 's1', 'm1', 'widgets', '2026-01-01', \
             1767225600000);
             INSERT INTO observations VALUES (1, 'm1', 'widgets', 'decision', 'SQLite', \
             '2026-01-01', 1767225600000);",
        )
        .unwrap();
    drop(store);
    place.fine(&["import", file.to_str().unwrap()]).await;
    let found = place.records("widgets").await;
    assert_eq!((found.len(), &found[0]["metadata"]["sessionId"]), (1, &json!("s1")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unusable_file_is_named() {
    let place = Place::new().await;
    let (none, text, empty) =
        (place.file("none.db"), place.file("text.db"), place.file("empty.db"));
    std::fs::write(&text, "no database, but long enough to be looked at as if it were one")
        .unwrap();
    Connection::open(&empty).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    for (file, says) in
        [(&none, "does not exist"), (&text, "not a database"), (&empty, "no table `sdk_sessions`")]
    {
        let (code, said) = place.bridge(&["import", file.to_str().unwrap()]).await;
        assert!(
            code == 2 && said.contains(says) && said.contains(file.to_str().unwrap()),
            "{said}"
        );
    }
    let (code, said) = place.bridge(&["export", empty.to_str().unwrap()]).await;
    assert!(code == 2 && said.contains("the file exists"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_or_unknown_program_is_named_and_a_failed_export_leaves_no_file() {
    let place = Place::new().await;
    let (file, out, program) =
        (place.file("claude-mem.db"), place.file("out.db"), place.file("bin/memhost-bridge"));
    store(&file, 1);
    // The program has created the file when the host refuses: this company has no such binding.
    let refused = ["export", out.to_str().unwrap(), "--company", "nobody"];
    let (code, said) = place.bridge(&refused).await;
    assert!(code == 3 && !out.exists(), "{code}: {said}");
    std::fs::remove_file(&program).unwrap();
    let import = ["import", file.to_str().unwrap()];
    let (code, said) = place.bridge(&import).await;
    assert!(
        code == 2 && said.contains("memhost-bridge: not found") && said.contains("cargo install"),
        "{said}"
    );
    std::fs::write(&program, "#!/bin/sh\necho '{\"protocol\": 0}'\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let (code, said) = place.bridge(&import).await;
    assert!(code == 2 && said.contains("another version"), "{said}");
}

/// Creates a database with claude-mem's own code, or prints its content.
const SCRIPT: &str = r#"
const { SessionStore } = require(process.argv[2]);
const store = new SessionStore(process.argv[3]);
if (process.argv[4] === "make") {
  const id = store.createSDKSession("content-1", "widgets", "lock the gate", "Gates", "claude");
  store.updateMemorySessionId(id, "memory-1");
  store.storeObservation("memory-1", "widgets", {
    type: "decision", title: "The gate is locked", subtitle: "at night", facts: ["by nine"],
    narrative: "Somebody walked in.", concepts: ["doors"], files_read: ["a.rs"],
    files_modified: [] }, 1);
  store.storeSummary("memory-1", "widgets", {
    request: "lock the gate", investigated: "doors", learned: "it was open",
    completed: "locked", next_steps: "paint it", notes: null }, 1);
}
console.log(JSON.stringify({
  observations: store.db.query("select * from observations order by id").all(),
  summaries: store.db.query("select * from session_summaries").all(),
  found: store.getObservationById(1), projects: store.getAllProjects() }));
store.close();
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_the_real_package_is_imported_and_exported() {
    let made = repository().join("target/claude-mem");
    let package = made.join("package/plugin/sqlite/SessionStore.js");
    let bun = [made.join("bun/package/bin/bun"), PathBuf::from("bun")];
    let runs = |bun: &&PathBuf| {
        Command::new(bun).arg("--version").output().is_ok_and(|done| done.status.success())
    };
    let missing =
        "claude-mem and bun are not in target/claude-mem; `just claude-mem` puts them there";
    let Some(bun) = needed(bun.iter().find(|bun| package.exists() && runs(bun)).ok_or(missing))
    else {
        return;
    };
    let place = Place::new().await;
    let script = place.file("store.cjs");
    std::fs::write(&script, SCRIPT).unwrap();
    let claude_mem = |file: &str, what: &str| -> Value {
        let mut command = Command::new(bun);
        command
            .arg(&script)
            .arg(&package)
            .arg(place.file(file))
            .arg(what)
            .env("HOME", place.directory.path());
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let said = String::from_utf8(done.stdout).unwrap();
        serde_json::from_str(said.lines().last().unwrap()).unwrap()
    };
    let before = claude_mem("real.db", "make");
    let [real, out, copy] =
        ["real.db", "out.db", "copy.db"].map(|name| place.file(name).to_str().unwrap().to_owned());
    let report = place.fine(&["import", &real]).await;
    assert_eq!((&report["rows"], &report["imported"]), (&json!(2), &json!(2)), "{report}");
    assert_eq!(place.fine(&["import", &real]).await["imported"], 0);
    assert_eq!(place.api.query_in("acme", "widgets", "who walked in?").await.len(), 1);
    let own = json!({
        "scope": {"companyId": "acme", "projectId": "widgets"},
        "records": [{
            "text": "Paint it green", "metadata": {"type": "preference", "agentKind": "codex"},
        }],
    });
    place.api.post("/runtime/v1/companies/acme/records", &own).await.fine();
    for (name, file, arguments) in [
        ("out.db", &out, &["--project", "widgets"][..]),
        ("copy.db", &copy, &["--project", "widgets", "--copy-of", &real]),
    ] {
        place.fine(&[&["export", file], arguments].concat()).await;
        let after = claude_mem(name, "look");
        assert_eq!(after["observations"].as_array().unwrap().len(), 2, "{name}: {after}");
        for column in [
            "title",
            "subtitle",
            "narrative",
            "facts",
            "concepts",
            "files_read",
            "content_hash",
            "created_at_epoch",
        ] {
            let values: Vec<&Value> =
                after["observations"].as_array().unwrap().iter().map(|row| &row[column]).collect();
            assert!(
                values.contains(&&before["observations"][0][column]),
                "{name} {column}: {values:?}"
            );
        }
        assert_eq!(after["summaries"][0]["learned"], "it was open", "{name}");
        assert_eq!(after["projects"], json!(["widgets"]), "{name}");
    }
}
