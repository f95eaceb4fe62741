//! `memhost bridge memsearch` and `memhost bridge memori`: on journals as memsearch's plugins write
//! them, and on a database that the real library made. `just vendors` has memsearch and Memori
//! themselves.

use std::fs;
use std::path::Path;

use memhost_tests::repository;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::bridge::Place;

async fn fine(place: &Place, arguments: &[&str]) -> Value {
    let (code, said) = place.run(arguments).await;
    assert_eq!(code, 0, "{said}");
    serde_json::from_str(&said).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn journals(place: &Place) -> std::path::PathBuf {
    let directory = place.file("memory");
    fs::create_dir_all(directory.join("deep/.hidden")).unwrap();
    let day = "\n## Session 12:00\n\n### 12:00\n<!-- session:s1 turn:t1 transcript:/t.jsonl -->\n- \
               Chose SQLite over Postgres\n\n\
               ### 12:10\n- Ada likes tea\n\n";
    fs::write(directory.join("2026-03-01.md"), day).unwrap();
    fs::write(directory.join("deep/notes.markdown"), "# Keys\nUnder the mat.\n").unwrap();
    fs::write(directory.join("deep/.hidden/x.md"), "# Hidden\nx\n").unwrap();
    fs::write(directory.join("picture.png"), "no").unwrap();
    directory
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn journals_are_imported_once_and_exported_and_imported_elsewhere() {
    let place = Place::new().await;
    let (memory, out) = (journals(&place), place.file("out"));
    let import = ["memsearch", "import", text(&memory), "--project", "widgets"];
    let report = fine(&place, &import).await;
    assert_eq!(
        report,
        json!({
            "files": 2, "entries": 3, "imported": 3, "unchanged": 0, "private": 0, "apart": 0,
            "leftOut": [],
        })
    );
    let first = place.records("widgets").await;
    let chose =
        first.iter().find(|record| record["text"] == "- Chose SQLite over Postgres").unwrap();
    for (name, value) in [
        ("sessionId", "s1"),
        ("createdAt", "2026-03-01T12:00:00Z"),
        ("externalRef", "memsearch:2026-03-01.md"),
    ] {
        assert_eq!(chose["metadata"][name], value, "{name}");
    }
    assert_eq!(fine(&place, &import).await["unchanged"], 3);
    assert_eq!(place.records("widgets").await, first, "nothing was even touched");
    // An edited entry is another record, as in memsearch.
    let day = memory.join("2026-03-01.md");
    fs::write(&day, fs::read_to_string(&day).unwrap().replace("likes tea", "likes green tea"))
        .unwrap();
    assert_eq!(fine(&place, &import).await["imported"], 1);
    let own = json!({
        "scope": {"companyId": "acme", "projectId": "widgets", "sessionKey": "s9"},
        "records": [{
            "id": "own", "text": "### 10:00\nOwn words\n\n# with headings",
            "summary": "own --> words", "metadata": {"projectId": "widgets", "n": 1.5},
        }],
    });
    place.api.post("/runtime/v1/companies/acme/records", &own).await.fine();
    let report = fine(&place, &["memsearch", "export", text(&out), "--project", "widgets"]).await;
    assert_eq!(report["records"], 5);
    let exported = fs::read_to_string(out.join("2026-03-01.md")).unwrap();
    assert!(
        exported
            .contains("### 12:00\n<!-- session:s1 turn:t1 transcript:/t.jsonl -->\n<!-- memhost "),
        "{exported}"
    );
    assert!(
        exported.contains("-->\n- Chose SQLite over Postgres\n\n") && !exported.contains("acme"),
        "{exported}"
    );
    let (code, said) = place.run(&["memsearch", "export", text(&out)]).await;
    assert!(code == 2 && said.contains("name a new directory"), "{said}");
    // An export restores its own records, and makes others of them in another project.
    let back = fine(&place, &["memsearch", "import", text(&out), "--project", "widgets"]).await;
    assert_eq!((&back["entries"], &back["unchanged"]), (&json!(5), &json!(5)), "{back}");
    let report = fine(&place, &["memsearch", "import", text(&out), "--project", "elsewhere"]).await;
    assert_eq!(report["imported"], 5, "{report}");
    let moved = place.records("elsewhere").await;
    let own = moved.iter().find(|record| record["summary"] == "own --> words").unwrap();
    assert_eq!(own["text"], "### 10:00\nOwn words\n\n# with headings");
    assert_eq!(
        (&own["metadata"]["projectId"], &own["metadata"]["n"]),
        (&json!("elsewhere"), &json!(1.5))
    );
    assert_ne!(own["handle"]["providerRecordId"], "own");
}

/// Somebody else's file names records of this host by their ids, which are no secrets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_replaces_no_record_that_it_only_names() {
    let place = Place::new().await;
    let own = json!({"scope": {"companyId": "acme", "projectId": "widgets"},
        "records": [{"id": "gate", "text": "The gate code is 17",
            "metadata": {"projectId": "widgets"}}]});
    place.api.post("/runtime/v1/companies/acme/records", &own).await.fine();
    let file = place.file("2026-03-01.md");
    let note = json!({
        "id": "gate",
        "tag": {
            "createdAt": "2026-03-01T12:00:00Z",
            "metadata": json!({"projectId": "widgets"}).to_string(),
        },
    });
    let entry =
        |text: &str| format!("### 12:00\n<!-- memhost {} {note} -->\n{text}\n\n", text.len());
    fs::write(&file, entry("The gate code is 99") + &entry("There is no gate")).unwrap();
    let import = ["memsearch", "import", text(&file), "--project", "widgets"];
    let report = fine(&place, &import).await;
    assert_eq!((&report["imported"], &report["apart"]), (&json!(2), &json!(2)), "{report}");
    let gate = |records: &Vec<Value>| {
        records
            .iter()
            .find(|record| record["handle"]["providerRecordId"] == "gate")
            .unwrap()["text"]
            .clone()
    };
    let first = place.records("widgets").await;
    assert_eq!((gate(&first), first.len()), (json!("The gate code is 17"), 3));
    let again = fine(&place, &import).await;
    assert_eq!((&again["imported"], &again["unchanged"]), (&json!(0), &json!(2)), "{again}");
    assert_eq!(place.records("widgets").await, first, "a second import writes nothing");
    fs::write(&file, entry("The gate code is 99")).unwrap();
    fine(&place, &["memsearch", "import", text(&file), "--project", "widgets", "--replace"]).await;
    assert_eq!(gate(&place.records("widgets").await), "The gate code is 99");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_journal_is_named_and_a_failed_export_leaves_nothing() {
    let place = Place::new().await;
    let (none, empty, broken) = (place.file("none"), place.file("empty"), place.file("broken.md"));
    fs::create_dir(&empty).unwrap();
    fs::write(&broken, b"### 12:00\n\xff").unwrap();
    for (file, says) in
        [(&none, "No such file"), (&empty, "no Markdown files"), (&broken, "valid UTF-8")]
    {
        let (code, said) = place.run(&["memsearch", "import", text(file)]).await;
        assert!(code == 2 && said.contains(says) && said.contains(text(file)), "{said}");
    }
    let before = fs::read_dir(place.file("")).unwrap().count();
    let (code, said) =
        place.run(&["memsearch", "export", text(&none), "--company", "nobody"]).await;
    assert!(code == 3 && !none.exists(), "{code}: {said}");
    assert_eq!(fs::read_dir(place.file("")).unwrap().count(), before, "a draft is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_that_is_odd_keeps_no_other_one_out() {
    let place = Place::new().await;
    let memory = journals(&place);
    let long = "long ".repeat(300_000);
    let day = format!("# 2026-03-02\n\n### 08:00\n{long}\n\n### 08:30\nafter the long one\n");
    fs::write(memory.join("2026-03-02.md"), day).unwrap();
    fs::write(memory.join("2026-03-03.md"), b"### 12:00\ncaf\xe9\n").unwrap();
    let marked = "\u{feff}# 2026-03-04\n\n### 10:00\n\n<!-- session:s9 turn:t -->\n- marked\n";
    fs::write(memory.join("2026-03-04.md"), marked).unwrap();
    let import = ["memsearch", "import", text(&memory), "--project", "widgets"];
    let report = fine(&place, &import).await;
    assert_eq!((&report["imported"], &report["entries"]), (&json!(5), &json!(6)), "{report}");
    let left_out = report["leftOut"].as_array().unwrap();
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    for (number, says) in
        [(0, "2026-03-02.md, the entry at line 3: the text is"), (1, "2026-03-03.md")]
    {
        assert!(left_out[number].as_str().unwrap().starts_with(says), "{left_out:?}");
    }
    let records = place.records("widgets").await;
    let marked = records.iter().find(|record| record["text"] == "- marked").unwrap();
    assert_eq!(marked["metadata"]["sessionId"], "s9");
    assert!(records.iter().any(|record| record["text"] == "after the long one"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_memori_is_imported_once() {
    let place = Place::new().await;
    let file = place.file("memori.db");
    let sql = fs::read_to_string(repository().join("tests/vendors/memori/database.sql")).unwrap();
    // A dump names tables before it makes them.
    Connection::open(&file)
        .unwrap()
        .execute_batch(&format!("PRAGMA foreign_keys = OFF;\n{sql}"))
        .unwrap();
    let import = ["memori", "import", text(&file), "--project", "shop"];
    let report = fine(&place, &import).await;
    assert_eq!(
        report,
        json!({"rows": 6, "imported": 6, "unchanged": 0, "messages": 2, "leftOut": []})
    );
    let first = place.records("shop").await;
    let mut texts: Vec<_> = first.iter().map(|record| record["text"].as_str().unwrap()).collect();
    texts.sort_unstable();
    let expected = [
        "Ada drinks green tea",
        "Ada lives in Bern",
        "Ada told what she drinks and where she lives.",
        // A relation; the one that is a fact, too, is there once.
        "Ada works with Bob",
        "Answers in German",
        "Bob prefers mail — not calls",
    ];
    assert_eq!(texts, expected);
    let of = |text: &str| first.iter().find(|record| record["text"] == text).unwrap();
    let tea = of("Ada drinks green tea");
    assert!(tea["scope"]["subjectId"].as_str().unwrap().starts_with("user-ada-"), "{tea}");
    assert_eq!(
        (&tea["metadata"]["memori"]["num_times"], &tea["metadata"]["type"]),
        (&json!(2), &json!("fact"))
    );
    let summary = &of("Ada told what she drinks and where she lives.")["metadata"];
    assert_eq!(
        (&summary["type"], &summary["agentKind"]),
        (&json!("task_context"), &json!("shop-agent"))
    );
    assert_eq!(summary["sessionId"], "7a0c3c5e-2f57-4b0c-9d6e-4f9f2a7d1c11");
    assert_eq!(of("Answers in German")["scope"].get("subjectId"), None);
    // A user's facts are that user's.
    let scope = json!({"companyId": "acme", "projectId": "shop", "subjectId": "bob"});
    let asked = json!({"scope": scope, "query": "tea or mail?", "topK": 10});
    let found = place.api.post("/runtime/v1/companies/acme/query", &asked).await.fine();
    let found: Vec<_> = found["snippets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["text"].as_str().unwrap())
        .collect();
    assert!(
        found.contains(&"Bob prefers mail — not calls") && !found.contains(&"Ada drinks green tea"),
        "{found:?}"
    );
    // Memori counts on, and the record stays; what it learns is added.
    let store = Connection::open(&file).unwrap();
    store
        .execute_batch(
            "UPDATE memori_entity_fact SET num_times = 3, date_last_time = '2026-12-01 00:00:00' \
             WHERE id = 1;
             INSERT INTO memori_entity_fact SELECT 9, 'u-9', entity_id, 'Bob has a cat', \
             content_embedding, 1,
               date_last_time, 'x', date_created, NULL FROM memori_entity_fact WHERE id = 4;",
        )
        .unwrap();
    drop(store);
    let again = fine(&place, &import).await;
    assert_eq!((&again["imported"], &again["unchanged"]), (&json!(1), &json!(6)), "{again}");
    // One row that no host takes, and one behind it.
    Connection::open(&file)
        .unwrap()
        .execute_batch(
            "INSERT INTO memori_entity_fact SELECT 10, 'u-10', entity_id, \
             printf('%.1200000c', 'x'), content_embedding, 1, date_last_time, 'y', date_created, \
             NULL FROM memori_entity_fact WHERE id = 4;
             INSERT INTO memori_entity_fact SELECT 11, 'u-11', entity_id, 'Bob has a dog', \
             content_embedding, 1, date_last_time, 'z', date_created, NULL
             FROM memori_entity_fact WHERE id = 4;",
        )
        .unwrap();
    let again = fine(&place, &import).await;
    assert_eq!((&again["imported"], &again["unchanged"]), (&json!(1), &json!(7)), "{again}");
    let left_out = again["leftOut"][0].as_str().unwrap();
    assert!(left_out.starts_with("memori_entity_fact 10: the text is"), "{again}");
    let other = place.file("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    for (file, says) in
        [(&place.file("none.db"), "does not exist"), (&other, "no table `memori_entity_fact`")]
    {
        let (code, said) = place.run(&["memori", "import", text(file)]).await;
        assert!(code == 2 && said.contains(says) && said.contains(text(file)), "{said}");
    }
}
