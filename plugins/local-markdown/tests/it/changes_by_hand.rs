//! The directory is the person's too.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use memhost_sdk::{Provider, testing};
use serde_json::json;

use super::Home;

#[test]
fn an_edit_a_new_file_and_a_deletion_are_noticed() {
    let mut home = Home::new();
    home.keep(&["about zebras", "about lions"]);
    let file = home.file_with("zebras");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("zebras", "whales, large ones"))
        .unwrap();
    assert!(home.ask("zebras").is_empty());
    assert_eq!(home.ask("whale"), ["about whales, large ones"]);
    fs::write(home.path().join("note.md"), "A note about eagles.").unwrap();
    fs::create_dir_all(home.path().join("mine/deep")).unwrap();
    fs::write(
        home.path().join("mine/deep/other.md"),
        "---\nid: mine\ntags: [birds]\n---\nFalcons.",
    )
    .unwrap();
    assert_eq!(home.ask("eagle"), ["A note about eagles."]);
    assert_eq!(home.ask("bird"), ["Falcons."]);
    assert_eq!(home.get("mine").unwrap().text, "Falcons.");
    assert_eq!(home.get("file:note.md").unwrap().text, "A note about eagles.");
    fs::remove_file(home.file_with("lions")).unwrap();
    fs::remove_dir_all(home.path().join("mine")).unwrap();
    assert_eq!((home.ask("lions"), home.ask("falcons")), (vec![], vec![]));
    assert!(home.get("mine").is_none());
}

/// Replaces a word in the file that has it, in place, as some editors do.
fn edit(home: &Home, word: &str, new: &str) {
    let file = home.file_with(word);
    fs::write(&file, fs::read_to_string(&file).unwrap().replace(word, new)).unwrap();
}

#[test]
fn a_query_touches_no_file_that_was_seen_lately_and_shows_every_write_at_once() {
    let mut home = Home::with(&json!({"checkMs": 60_000}));
    home.put("a", "animal zebras");
    home.put("b", "animal lions");
    assert_eq!(home.ask("animal zebras"), ["animal zebras", "animal lions"]);
    // Only a query that reads the file could show this.
    edit(&home, "animal zebras", "animal whales");
    assert_eq!(home.ask("zebras"), ["animal zebras"]);
    fs::remove_file(home.file_with("animal whales")).unwrap();
    assert_eq!(home.ask("zebras"), ["animal zebras"]);
    home.put("b", "animal eagles");
    assert_eq!(home.ask("animal eagles")[0], "animal eagles");
    assert!(home.ask("lions").is_empty());
    home.provider.forget(testing::forget(vec!["b".to_owned()], testing::scope())).unwrap();
    assert!(home.ask("eagles").is_empty());
    assert!(!home.ask("animal").iter().any(|text| text.contains("eagles")));
    // One record asked for is read.
    assert!(home.get("a").is_none());
    assert!(home.ask("zebras").is_empty());
}

#[test]
fn changes_are_seen_within_the_time_that_is_configured() {
    let mut home = Home::with(&json!({"checkMs": 60}));
    let texts: Vec<String> = (0..300).map(|n| format!("record number{n} of many")).collect();
    home.provider
        .upsert_records(testing::upsert(
            "op",
            &texts.iter().map(String::as_str).collect::<Vec<_>>(),
        ))
        .unwrap();
    for n in [7, 8] {
        assert_eq!(home.ask(&format!("number{n}")).len(), 1);
    }
    edit(&home, "number7 ", "zebra ");
    fs::remove_file(home.file_with("number8 ")).unwrap();
    fs::write(home.path().join("note.md"), "A note about eagles.").unwrap();
    std::thread::sleep(Duration::from_millis(70));
    // The first call after a pause has checked everything.
    assert_eq!(home.ask("zebra"), ["record zebra of many"]);
    assert!(home.ask("number7").is_empty() && home.ask("number8").is_empty());
    assert_eq!(home.ask("eagles"), ["A note about eagles."]);
}

#[test]
fn changes_are_seen_while_calls_come_one_after_the_other() {
    let mut home = Home::with(&json!({"checkMs": 60}));
    let texts: Vec<String> = (0..300).map(|n| format!("record number{n} of many")).collect();
    home.provider
        .upsert_records(testing::upsert(
            "op",
            &texts.iter().map(String::as_str).collect::<Vec<_>>(),
        ))
        .unwrap();
    edit(&home, "number7 ", "zebra ");
    let start = Instant::now();
    while home.ask("zebra").is_empty() {
        assert!(start.elapsed() < Duration::from_secs(2), "the change is not found");
    }
}

#[test]
fn an_id_outlives_edits_and_moves() {
    let mut home = Home::new();
    let id = home.keep(&["about zebras"]).remove(0);
    fs::create_dir(home.path().join("animals")).unwrap();
    fs::rename(home.file_with("zebras"), home.path().join("animals/zebra.md")).unwrap();
    assert_eq!(home.get(&id).unwrap().text, "about zebras");
    testing::lose_storage();
    home.restart();
    assert_eq!(home.get(&id).unwrap().text, "about zebras");
    home.put(&id, "about quaggas");
    assert!(
        fs::read_to_string(home.path().join("animals/zebra.md"))
            .unwrap()
            .ends_with("\nabout quaggas")
    );
}

#[test]
fn a_copy_is_a_record_of_its_own() {
    let mut home = Home::new();
    let id = home.keep(&["about zebras"]).remove(0);
    let copy = fs::read_to_string(home.file_with("zebras")).unwrap().replace("zebras", "horses");
    fs::write(home.path().join("0-copy.md"), copy).unwrap();
    assert_eq!(home.get("file:0-copy.md").unwrap().text, "about horses");
    assert_eq!(home.get(&id).unwrap().text, "about zebras");
    testing::lose_storage();
    home.restart();
    assert_eq!(home.get(&id).unwrap().text, "about zebras");
    assert_eq!(home.get("file:0-copy.md").unwrap().text, "about horses");
}

#[test]
fn hidden_files_and_other_formats_are_ignored() {
    let mut home = Home::new();
    fs::create_dir(home.path().join(".git")).unwrap();
    fs::write(home.path().join(".git/notes.md"), "hidden zebras").unwrap();
    fs::write(home.path().join(".draft.md"), "hidden zebras").unwrap();
    fs::write(home.path().join("picture.png"), "zebras").unwrap();
    fs::write(home.path().join("latin1.md"), b"zebras caf\xe9").unwrap();
    home.restart();
    assert!(home.ask("zebras").is_empty());
    assert!(home.path().join(".git/notes.md").exists() && home.path().join("latin1.md").exists());
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.md"), "outside zebras").unwrap();
    let mut home = Home::new();
    std::os::unix::fs::symlink(outside.path(), home.path().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.md"), home.path().join("link.md"))
        .unwrap();
    assert!(home.ask("zebras").is_empty());
}

#[test]
fn fields_that_a_person_added_are_kept() {
    let mut home = Home::new();
    home.put("id", "about zebras");
    let file = home.file_with("zebras");
    let content = fs::read_to_string(&file).unwrap();
    fs::write(&file, content.replacen("---\n", "---\nmood: happy\n", 1)).unwrap();
    home.put("id", "about lions");
    assert!(!file.exists(), "a name has the first words of its text");
    assert!(fs::read_to_string(home.file_with("lions")).unwrap().contains("\nmood: happy\n"));
}

#[test]
fn in_a_large_directory_hits_show_the_present_file() {
    let mut home = Home::new();
    for batch in 0..3 {
        let texts: Vec<String> =
            (0..1_000).map(|n| format!("record number{batch}x{n} of many")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        home.provider.upsert_records(testing::upsert(&format!("op{batch}"), &texts)).unwrap();
    }
    assert!(
        home.files()
            .iter()
            .all(|file| fs::read_dir(file.parent().unwrap()).unwrap().count() <= 2_001)
    );
    let edited = home.file_with("number1x500 ");
    fs::write(&edited, fs::read_to_string(&edited).unwrap().replace("number1x500", "zebra"))
        .unwrap();
    assert!(home.ask("number1x500").is_empty());
    assert_eq!(home.ask("zebra"), ["record zebra of many"]);
    fs::remove_file(home.file_with("number2x7 ")).unwrap();
    assert!(home.ask("number2x7").is_empty());
    // One that no question leads to is found by looking around.
    let unseen = home.file_with("number0x900 ");
    fs::write(&unseen, fs::read_to_string(&unseen).unwrap().replace("number0x900", "giraffe"))
        .unwrap();
    let found = (0..400).any(|_| !home.ask("giraffe").is_empty());
    assert!(found);
}

#[test]
fn changes_within_the_clocks_resolution_are_found() {
    let mut home = Home::new();
    home.put("a", "first");
    let folder = home.files()[0].parent().unwrap().to_owned();
    let before = fs::metadata(&folder).unwrap().modified().unwrap();
    fs::write(folder.join("hand.md"), "about zebras").unwrap();
    fs::File::open(&folder).unwrap().set_modified(before).unwrap();
    assert_eq!(home.ask("zebras"), ["about zebras"]);
    assert!(before + Duration::from_secs(60) > SystemTime::now());
}
