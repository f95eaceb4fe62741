//! Files as they come from other folders, editors and archives.

use std::cell::RefCell;
use std::fs;

use memhost_sdk::types::{CorrectRequest, Error, Patch, RecordWrite, Snippet};
use memhost_sdk::{Correction, Provider, is_record_id, log, testing};
use serde_json::json;

use super::Home;

thread_local! {
    static SAID: RefCell<Vec<String>> = RefCell::default();
}

struct Collect;

impl log::Log for Collect {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        SAID.with_borrow_mut(|said| said.push(record.args().to_string()));
    }

    fn flush(&self) {}
}

/// How often the log of this test has a text.
fn said(what: &str) -> usize {
    SAID.with_borrow(|said| said.iter().filter(|line| line.contains(what)).count())
}

fn home() -> Home {
    static COLLECT: Collect = Collect;
    let _ = log::set_logger(&COLLECT);
    log::set_max_level(log::LevelFilter::Warn);
    Home::new()
}

fn all(home: &mut Home) -> Vec<Snippet> {
    home.provider.list_records(testing::list(None, 1_000)).unwrap().items
}

fn correct(home: &mut Home, id: &str, write: RecordWrite) -> Result<(), Error> {
    let request = CorrectRequest {
        operation_id: "correct".to_owned(),
        scope: testing::scope(),
        id: id.to_owned(),
        patch: Patch::Replacement(write),
    };
    home.provider.correct(request).map(drop)
}

fn record(text: &str) -> RecordWrite {
    RecordWrite { text: text.to_owned(), ..RecordWrite::default() }
}

#[test]
fn a_file_of_another_company_is_a_record_without_its_source() {
    let mut home = home();
    let [id] = home.keep(&["walrus of ours"]).try_into().unwrap();
    let file = home.file_with("walrus of ours");
    let content = fs::read_to_string(&file).unwrap();
    let company = testing::scope().company_id;
    assert!(content.contains(&format!("\"companyId\":\"{company}\"")), "{content}");
    let theirs = content
        .replace(&format!("\"companyId\":\"{company}\""), "\"companyId\":\"another\"")
        .replace(&id, "moved")
        .replace("of ours", "of theirs");
    fs::write(home.path().join("moved.md"), theirs).unwrap();
    for _ in 0..3 {
        assert_eq!(home.ask("walrus").len(), 2);
        assert_eq!(all(&mut home).len(), 2);
    }
    assert_eq!(home.get("moved").unwrap().source, None);
    assert_eq!(home.get(&id).unwrap().source, Some(testing::source()));
    assert_eq!(said("moved.md has a source of another company"), 1);
}

#[test]
fn an_odd_file_makes_no_answer_that_the_host_refuses() {
    let mut home = home();
    home.keep(&["walrus, plain"]);
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let large = json!({"a": "x".repeat(300_000)});
    let front = [
        ("id", "\"a\\nb\"".to_owned()),
        ("id", "x".repeat(600)),
        ("id", "[1]".to_owned()),
        ("summary", "é".repeat(50_000)),
        ("summary", "{a: 1}".to_owned()),
        ("metadata", format!("{{a: {deep}}}")),
        ("metadata", large.to_string()),
        ("metadata", "{a: .nan, b: .inf, c: 1e999, d: 99999999999999999999999}".to_owned()),
        ("metadata", "text".to_owned()),
        ("createdAt", "soon".to_owned()),
        ("createdAt", "2026-02-31".to_owned()),
        ("updatedAt", "{}".to_owned()),
        ("expiresAt", "-1".to_owned()),
        ("source", format!("{{kind: issue, issueId: {}}}", "x".repeat(600))),
        ("source", "{kind: 7, companyId: [1]}".to_owned()),
        ("scope", "[agentId]".to_owned()),
    ];
    for (number, (name, value)) in front.iter().enumerate() {
        let content = format!("---\n{name}: {value}\n---\nwalrus {number}\n");
        fs::write(home.path().join(format!("odd-{number}.md")), content).unwrap();
    }
    let long = format!("walrus {}", "long text ".repeat(300_000));
    fs::write(home.path().join("long.md"), long).unwrap();
    fs::write(home.path().join("a\nbreak.md"), "walrus with a break").unwrap();
    fs::write(home.path().join("latin.md"), b"walrus caf\xe9").unwrap();
    let mut listed = Vec::new();
    for _ in 0..3 {
        listed = all(&mut home);
        assert_eq!(home.ask("walrus").len(), 10, "as many as were asked for");
    }
    assert_eq!(listed.len(), front.len() + 3);
    for mut snippet in listed {
        assert!(is_record_id(&snippet.id), "{:?}", snippet.id);
        assert_eq!(snippet.fit(&testing::scope().company_id), [""; 0], "{}", snippet.id);
    }
    for (file, what) in [
        ("odd-0.md", "an id"),
        ("odd-3.md", "summary"),
        ("odd-5.md", "metadata"),
        ("odd-9.md", "createdAt"),
        ("odd-13.md", "source"),
        ("long.md", "1 MiB"),
        ("latin.md", "UTF-8"),
    ] {
        assert_eq!(said(&format!("{file} ")), 1, "{file}");
        let found = SAID.with_borrow(|said| said.iter().any(|one| one.contains(what)));
        assert!(found, "{what}");
    }
}

#[test]
fn a_correction_keeps_front_matter_that_cannot_be_read() {
    let mut home = home();
    let file = home.path().join("hand.md");
    let above = "---\ntitle: Frozen days\ntags: [deploy]\ntitle: Frozen days\n---\n";
    fs::write(&file, format!("{above}Deploys are frozen on Fridays.\n")).unwrap();
    assert_eq!(home.ask("deploys frozen").len(), 1);
    assert_eq!(said("hand.md has front matter"), 1);
    let other = RecordWrite {
        metadata: Some(json!({"a": 1}).to_string()),
        ..record("Deploys are frozen on Mondays.")
    };
    let Err(Error::InvalidRequest(refused)) = correct(&mut home, "file:hand.md", other) else {
        panic!("a correction that cannot be kept was taken")
    };
    assert!(
        refused.message.contains("hand.md") && refused.message.contains("line 4"),
        "{refused:?}"
    );
    correct(&mut home, "file:hand.md", record("Deploys are frozen on Mondays.")).unwrap();
    let content = fs::read_to_string(&file).unwrap();
    assert_eq!(content, format!("{above}Deploys are frozen on Mondays."));
    assert_eq!(home.ask("Mondays"), std::slice::from_ref(&content));
    let write = RecordWrite { id: Some("file:hand.md".to_owned()), ..record("All new") };
    let request =
        memhost_sdk::types::UpsertRequest { records: vec![write], ..testing::upsert("again", &[]) };
    assert!(home.provider.upsert_records(request).is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), content);
    // A repaired file is a record like others.
    fs::write(&file, content.replacen("title: Frozen days\n", "", 1)).unwrap();
    assert_eq!(home.ask("Mondays"), ["Deploys are frozen on Mondays."]);
    correct(&mut home, "file:hand.md", record("Nothing is frozen.")).unwrap();
    let content = fs::read_to_string(&file).unwrap();
    assert!(content.contains("\ntags: [deploy]\n"), "{content}");
}

#[test]
fn a_correction_changes_no_line_that_a_person_wrote_and_it_does_not_concern() {
    let mut home = home();
    let file = home.path().join("hand.md");
    let front = "# of the team\ntitle:   'Frozen days'  # not the roadmap\ntags:\n  - deploy\n\
                 \x20 # and\n  - release\nid: frozen\nsummary: >\n  on\n  Fridays\n# the end\n\
                 owner: ana\n";
    fs::write(&file, format!("---\n{front}---\nDeploys are frozen on Fridays.")).unwrap();
    assert_eq!(home.get("frozen").unwrap().summary.as_deref(), Some("on Fridays\n"));
    let summary = Some("on Mondays".to_owned());
    let write = RecordWrite { summary, ..record("Deploys are frozen on Mondays.") };
    correct(&mut home, "frozen", write).unwrap();
    let content = fs::read_to_string(&file).unwrap();
    let kept = front.replace("summary: >\n  on\n  Fridays\n", "summary: \"on Mondays\"\n");
    assert!(content.starts_with(&format!("---\n{kept}updatedAt: ")), "{content}");
    assert!(content.ends_with("---\nDeploys are frozen on Mondays."), "{content}");
    home.put("frozen", "Nothing is frozen.");
    let content = fs::read_to_string(&file).unwrap();
    assert!(content.contains("# not the roadmap\n") && !content.contains("summary"), "{content}");
}

#[test]
fn a_file_or_folder_that_may_not_be_read_hides_no_other() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut home = home();
    home.keep(&["walrus, plain"]);
    let (file, folder) = (home.path().join("closed.md"), home.path().join("closed"));
    fs::write(&file, "walrus, closed").unwrap();
    fs::create_dir(&folder).unwrap();
    for place in [&file, &folder] {
        fs::set_permissions(place, fs::Permissions::from_mode(0o0)).unwrap();
    }
    // Root may read everything.
    if fs::read(&file).is_err() {
        assert_eq!(home.ask("walrus"), ["walrus, plain"]);
        assert_eq!((said("closed.md is left out"), said("closed is left out")), (1, 1));
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
}
