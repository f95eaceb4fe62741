//! What is stored is a cache of the files, and a forgotten record is in neither.

use std::fs;

use memhost_local_markdown::LocalMarkdown;
use memhost_sdk::storage::{self, Batch};
use memhost_sdk::types::*;
use memhost_sdk::{Provider, testing};
use serde_json::json;

use super::{Home, everything};

fn stored() -> Vec<(Vec<u8>, Vec<u8>)> {
    storage::scan("").map(|entry| entry.unwrap()).collect()
}

fn store(key: &[u8], value: Option<Vec<u8>>) {
    let mut batch = Batch::new();
    match value {
        Some(value) => batch.put_raw(key.to_vec(), value),
        None => batch.delete_raw(key.to_vec()),
    }
    batch.apply().unwrap();
}

fn filled() -> Home {
    let mut home = Home::new();
    let texts: Vec<String> = (0..200).map(|n| format!("record number{n} of many")).collect();
    home.provider
        .upsert_records(testing::upsert(
            "op",
            &texts.iter().map(String::as_str).collect::<Vec<_>>(),
        ))
        .unwrap();
    // So that no folder counts as just changed.
    std::thread::sleep(std::time::Duration::from_millis(80));
    home.ask("number1");
    home
}

#[test]
fn a_restart_does_not_read_the_files() {
    let mut home = filled();
    let file = home.file_with("number7 ");
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    // A change that no state of a file shows: whoever notices it has read the file.
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("number7 ", "zebra77 ")).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(before).unwrap();
    home.restart();
    assert!(home.ask("zebra77").is_empty());
    assert_eq!(home.ask("number7"), ["record zebra77 of many"], "a hit is as its file is");
    testing::lose_storage();
    home.restart();
    assert_eq!(home.ask("zebra77"), ["record zebra77 of many"]);
}

#[test]
fn changes_while_the_host_was_down_are_found() {
    let mut home = filled();
    fs::write(home.path().join("new.md"), "about zebras").unwrap();
    fs::remove_file(home.file_with("number8 ")).unwrap();
    let edited = home.file_with("number9 ");
    fs::write(&edited, fs::read_to_string(&edited).unwrap().replace("number9", "lionlike"))
        .unwrap();
    home.restart();
    assert_eq!(home.ask("zebras"), ["about zebras"]);
    assert!(home.ask("number8").is_empty() && home.ask("number9").is_empty());
    assert_eq!(home.ask("lionlike"), ["record lionlike of many"]);
}

#[test]
fn a_damaged_index_is_rebuilt() {
    let mut home = filled();
    let entries = stored();
    assert!(entries.len() >= 5, "head, pages and folders: {}", entries.len());
    for (key, value) in &entries {
        let mut flipped = value.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x55;
        for damage in
            [None, Some(Vec::new()), Some(value[..value.len() / 2].to_vec()), Some(flipped)]
        {
            store(key, damage);
            home.restart();
            for n in [0, 63, 64, 128, 199] {
                assert_eq!(
                    home.ask(&format!("number{n}")),
                    [format!("record number{n} of many")],
                    "{key:?}"
                );
            }
        }
    }
    testing::lose_storage();
    home.restart();
    assert_eq!(home.ask("number150"), ["record number150 of many"]);
    assert!(stored().len() >= entries.len(), "it is stored again");
}

#[test]
fn another_language_rebuilds_the_index() {
    let mut home = Home::new();
    home.keep(&["die Häuser am See"]);
    assert!(home.ask("haus").is_empty());
    let kept = stored();
    let directory = home.path().to_owned();
    home.provider =
        testing::open_in(&directory, json!({"durable": false, "language": "german"})).unwrap();
    kept.into_iter().for_each(|(key, value)| store(&key, Some(value)));
    home.restart();
    assert_eq!(home.ask("haus"), ["die Häuser am See"]);
}

#[test]
fn forgetting_leaves_nothing() {
    let mut home = Home::new();
    let secret = ["Xylophonist", "Quetzalcoatl", "ZANZIBAR", "swordfish-rodeo", "Mnemosyne"];
    let metadata = json!({"speaker": secret[1], "deep": {"in": [secret[3]]}}).to_string();
    let write = RecordWrite {
        id: Some("id".to_owned()),
        text: format!("{} met {} here", secret[0], secret[2]),
        summary: Some(secret[4].to_owned()),
        metadata: Some(metadata),
        ..RecordWrite::default()
    };
    home.put("other", "nothing special");
    home.write("op", vec![write.clone()], testing::scope());
    // Replaced by hand and by call: no trace of either must stay.
    let file = home.file_with("ZANZIBAR");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("met", "saw")).unwrap();
    home.ask("xylophonist");
    home.write("op2", vec![write], testing::scope());
    assert_eq!(home.ask("swordfish").len(), 1);
    let forgotten = home
        .provider
        .forget(testing::forget(vec!["id".into(), "id".into(), "none".into()], testing::scope()))
        .unwrap();
    let effects: Vec<ForgetEffect> =
        forgotten.outcomes.iter().map(|outcome| outcome.effect).collect();
    assert_eq!(effects, [ForgetEffect::Hard, ForgetEffect::NotFound, ForgetEffect::NotFound]);
    for restart in [false, true] {
        if restart {
            home.restart();
        }
        for word in secret {
            assert!(home.ask(word).is_empty(), "{word}");
            let word = word.to_lowercase();
            let part = &word[..6];
            let holds = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_lowercase().contains(part);
            assert!(
                !stored().iter().any(|(key, value)| holds(key) || holds(value)),
                "{part} in storage"
            );
            for file in everything(home.path()) {
                assert!(
                    !holds(file.to_str().unwrap().as_bytes()) && !holds(&fs::read(&file).unwrap()),
                    "{file:?}"
                );
            }
        }
    }
    assert!(home.get("id").is_none());
    assert_eq!(home.files().len(), 1);
}

#[test]
fn forgetting_leaves_no_trace_in_storage() {
    let mut home = filled();
    let without_stamps =
        || stored().into_iter().filter(|(key, _)| key.starts_with(b"page/")).collect::<Vec<_>>();
    let before = without_stamps();
    home.put("id", "several new words");
    assert_ne!(without_stamps(), before);
    home.provider.forget(testing::forget(vec!["id".to_owned()], testing::scope())).unwrap();
    assert_eq!(without_stamps(), before, "not even a hash of a word stays");
}

#[test]
fn a_directory_with_foreign_files_is_read_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("vault/daily")).unwrap();
    fs::write(
        directory.path().join("vault/daily/monday.md"),
        "---\ntitle: Zebra day\n---\n# Monday\n",
    )
    .unwrap();
    let mut provider: LocalMarkdown = testing::open_in(directory.path(), json!({})).unwrap();
    let found = provider.query(testing::query("zebras")).unwrap().snippets;
    assert_eq!(found[0].id, "file:vault/daily/monday.md");
    assert_eq!(found[0].text, "# Monday\n");
}

#[test]
fn a_time_written_by_hand_does_not_set_the_clock() {
    let mut home = Home::new();
    fs::write(home.path().join("far.md"), "---\ncreatedAt: 9000-01-01T00:00:00Z\n---\nx").unwrap();
    home.restart();
    home.put("id", "text");
    assert!(home.get("id").unwrap().created_at.unwrap().as_str() < "3000");
}
