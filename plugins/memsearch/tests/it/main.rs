//! The provider from outside, natively: what it writes, what it reads of others, and what stays
//! across a restart.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::fs;
use std::path::PathBuf;

use memhost_memsearch::Memsearch;
use memhost_sdk::testing::{capture, forget, list, query, reopen, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Correction, Provider, testing};
use serde_json::json;

struct Home {
    directory: tempfile::TempDir,
    provider: Memsearch,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let provider = testing::open_in(directory.path(), json!({})).unwrap();
        Self { directory, provider }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn write(&mut self, id: Option<&str>, text: &str, at: &str) -> RecordId {
        let record = RecordWrite {
            id: id.map(str::to_owned),
            text: text.to_owned(),
            metadata: Some(r#"{"topic":"-->","n":1.50}"#.to_owned()),
            created_at: Some(at.to_owned()),
            ..RecordWrite::default()
        };
        let scope = Scope { session_key: Some("standup".to_owned()), ..scope() };
        let request = UpsertRequest {
            scope,
            records: vec![record],
            ..upsert(&format!("op-{at}-{}", text.len()), &[])
        };
        self.provider.upsert_records(request).unwrap().records.remove(0)
    }

    fn ask(&mut self, question: &str) -> Vec<String> {
        self.provider
            .query(query(question))
            .unwrap()
            .snippets
            .into_iter()
            .map(|snippet| snippet.text)
            .collect()
    }

    fn get(&mut self, id: &str) -> Option<Snippet> {
        self.provider.get_record(id.to_owned(), scope()).unwrap().snippet
    }

    fn correct(&mut self, id: &str, text: &str) {
        let patch =
            Patch::Replacement(RecordWrite { text: text.to_owned(), ..RecordWrite::default() });
        let request = CorrectRequest {
            operation_id: "c".to_owned(),
            id: id.to_owned(),
            scope: scope(),
            patch,
        };
        self.provider.correct(request).unwrap();
    }

    fn forget(&mut self, id: &str) -> ForgetEffect {
        self.provider
            .forget(forget(vec![id.to_owned()], scope()))
            .unwrap()
            .outcomes
            .remove(0)
            .effect
    }
}

#[test]
fn a_day_is_a_journal_with_its_sessions() {
    let mut home = Home::new();
    let gate = home.write(None, "The gate is red.\n\n## Why\nPaint.", "2026-03-01T12:00:30Z");
    home.write(Some("door"), "The door is shut.", "2026-03-01T12:05:00Z");
    home.write(None, "Another day.", "2026-03-02T08:00:00Z");
    assert_eq!(home.files(), ["2026-03-01.md", "2026-03-02.md"]);
    let journal = home.read("2026-03-01.md");
    assert!(
        journal.starts_with(
            "# 2026-03-01\n\n## Session 12:00\n\n### 12:00\n<!-- session:standup -->\n"
        ),
        "{journal}"
    );
    assert!(
        journal.ends_with("-->\nThe door is shut.\n\n") && !journal.contains("company"),
        "{journal}"
    );
    assert_eq!(journal.matches("## Session").count(), 1, "{journal}");
    home.provider = reopen().unwrap();
    let found = home.get(&gate).unwrap();
    assert_eq!(found.text, "The gate is red.\n\n## Why\nPaint.");
    assert_eq!(found.metadata.as_deref(), Some(r#"{"topic":"-->","n":1.50}"#));
    assert_eq!(found.created_at.as_deref(), Some("2026-03-01T12:00:30Z"));
    assert_eq!(found.scope.unwrap().session_key.as_deref(), Some("standup"));
    assert_eq!(home.ask("door shut"), ["The door is shut."]);
    // A given id is replaced in its place.
    home.write(Some("door"), "The door is open.", "2026-03-01T12:05:00Z");
    assert_eq!(
        (home.ask("door"), home.ask("shut")),
        (vec!["The door is open.".to_owned()], vec![])
    );
    home.correct(&gate, "The gate is green.");
    let journal = home.read("2026-03-01.md");
    assert!(
        journal.find("green") < journal.find("open") && !journal.contains("Paint"),
        "{journal}"
    );
    assert_eq!(home.forget(&gate), ForgetEffect::Hard);
    assert_eq!(home.forget(&gate), ForgetEffect::NotFound);
    assert!(!home.read("2026-03-01.md").contains("green"));
    // The last entry takes the file along.
    assert_eq!(home.forget("door"), ForgetEffect::Hard);
    assert_eq!(home.files(), ["2026-03-02.md"]);
}

#[test]
fn what_memsearch_and_people_wrote_is_memory_too() {
    let mut home = Home::new();
    let journal = "\n## Session 09:00\n\n### 09:00\n<!-- session:s1 turn:t1 transcript:/t.jsonl \
                   -->\n- Chose SQLite over Postgres\n\n\
                   ### 09:10\n- Ada likes tea\n\n";
    fs::write(home.file("2026-02-01.md"), journal).unwrap();
    fs::write(home.file("notes.md"), "# Keys\nUnder the mat.\n").unwrap();
    fs::write(home.file(".hidden.md"), "# Keys\nHidden.\n").unwrap();
    fs::write(home.file("odd.md"), b"\xff\xfe").unwrap();
    assert_eq!(home.ask("which database, Postgres?"), ["- Chose SQLite over Postgres"]);
    assert_eq!(home.ask("mat"), ["# Keys\nUnder the mat."]);
    let all = home.provider.list_records(list(None, 10)).unwrap().items;
    assert_eq!(all.len(), 3, "{all:?}");
    let chose = all.iter().find(|item| item.text.contains("SQLite")).unwrap();
    assert_eq!(chose.created_at.as_deref(), Some("2026-02-01T09:00:00Z"));
    let anchor = json!({"memsearch": {"session": "s1", "turn": "t1", "transcript": "/t.jsonl"}});
    assert_eq!(chose.metadata.as_deref(), Some(anchor.to_string().as_str()));
    // A correction keeps the id, and the entries beside it.
    home.correct(&chose.id, "Chose Postgres after all");
    assert_eq!(home.get(&chose.id).unwrap().text, "Chose Postgres after all");
    assert!(home.read("2026-02-01.md").ends_with("### 09:10\n- Ada likes tea\n\n"));
    let tea = all.iter().find(|item| item.text.contains("tea")).unwrap();
    assert_eq!(home.forget(&tea.id), ForgetEffect::Hard);
    assert!(!home.read("2026-02-01.md").contains("09:10"));
    // An edit by hand is seen at once.
    let edited = home.read("2026-02-01.md").replace("after all", "in the end,\nand ## no less");
    fs::write(home.file("2026-02-01.md"), edited).unwrap();
    assert_eq!(home.get(&chose.id).unwrap().text, "Chose Postgres in the end,\nand ## no less");
    // A copy is the same record, and forgotten with it.
    fs::copy(home.file("2026-02-01.md"), home.file("copy.md")).unwrap();
    assert_eq!(home.ask("Postgres").len(), 1);
    assert_eq!(home.forget(&chose.id), ForgetEffect::Hard);
    assert_eq!(
        (home.ask("Postgres").len(), home.files()),
        (0, [".hidden.md", "notes.md", "odd.md"].map(str::to_owned).to_vec())
    );
}

#[test]
fn nothing_is_written_twice_and_agents_are_apart() {
    let mut home = Home::new();
    let first = home.provider.capture(capture("op", "The gate is red.")).unwrap().records;
    assert_eq!(home.provider.capture(capture("op", "The gate is red.")).unwrap().records, first);
    testing::lose_storage();
    home.provider = reopen().unwrap();
    let hook = HookContext {
        hook_kind: HookKind::ManualCapture,
        triggered_at: "2026-03-01T12:00:00Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    };
    let again = CaptureRequest { hook: Some(hook), ..capture("op", "The gate is red.") };
    assert_eq!(home.provider.capture(again).unwrap().records, first, "it is found in the file");
    assert_eq!(home.ask("gate").len(), 1);
    let other = Scope { agent_id: Some("bob".to_owned()), ..scope() };
    let asked = QueryRequest { scope: other.clone(), ..query("gate") };
    assert!(home.provider.query(asked).unwrap().snippets.is_empty());
    assert!(home.provider.get_record(first[0].clone(), other.clone()).unwrap().snippet.is_none());
    let refused = home.provider.forget(forget(first, other)).unwrap().outcomes.remove(0).effect;
    assert_eq!(refused, ForgetEffect::NotFound);
}

#[test]
fn a_file_that_cannot_be_written_is_told() {
    let mut home = Home::new();
    fs::create_dir(home.file(".2026-03-01.new")).unwrap();
    let record = RecordWrite {
        text: "x".to_owned(),
        created_at: Some("2026-03-01T12:00:00Z".to_owned()),
        ..RecordWrite::default()
    };
    let request = || UpsertRequest { records: vec![record.clone()], ..upsert("op", &[]) };
    assert!(matches!(home.provider.upsert_records(request()), Err(Error::Internal(_))));
    fs::remove_dir(home.file(".2026-03-01.new")).unwrap();
    assert_eq!(home.provider.upsert_records(request()).unwrap().records.len(), 1);
    assert_eq!(home.ask("x"), ["x"]);
    // What is not UTF-8 is not replaced.
    fs::write(home.file("2026-03-01.md"), b"\xff").unwrap();
    let other = UpsertRequest { operation_id: "op-2".to_owned(), ..request() };
    assert!(matches!(home.provider.upsert_records(other), Err(Error::Internal(_))));
    assert_eq!(fs::read(home.file("2026-03-01.md")).unwrap(), b"\xff");
}

#[test]
fn an_entry_that_expired_is_in_no_answer_and_leaves_its_file() {
    let mut home = Home::new();
    let write = |id: &str, expires: &str| RecordWrite {
        id: Some(id.to_owned()),
        text: format!("The {id} is open"),
        created_at: Some("2026-03-01T12:00:00Z".to_owned()),
        expires_at: Some(expires.to_owned()),
        ..RecordWrite::default()
    };
    let records =
        vec![write("gate", "2998-01-01T00:00:00Z"), write("door", "2999-01-01T00:00:00Z")];
    home.provider.upsert_records(UpsertRequest { records, ..upsert("op", &[]) }).unwrap();
    assert_eq!(home.ask("open").len(), 2);
    let later = home.read("2026-03-01.md").replace("2998-", "2026-");
    fs::write(home.file("2026-03-01.md"), later).unwrap();
    assert_eq!(home.ask("open"), ["The door is open"]);
    assert!(home.get("gate").is_none());
    assert_eq!(home.provider.list_records(list(None, 10)).unwrap().items.len(), 1);
    home.write(None, "Another day.", "2026-03-02T08:00:00Z");
    let journal = home.read("2026-03-01.md");
    assert!(!journal.contains("gate") && journal.contains("The door is open"), "{journal}");
}
