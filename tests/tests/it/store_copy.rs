//! Memory moves from a data directory into PostgreSQL and back: `memhost store copy`, as an
//! operator types it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use memhost_postgres::testing;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cluster::{Host, TOKEN, capture, listening, program, query, send, with};

/// What a company has, as the API says it.
const LISTS: [&str; 8] = [
    "bindings",
    "tokens",
    "secrets",
    "activity",
    "operations",
    "jobs",
    "finance-events",
    "budgets",
];

fn database() -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(testing::database())
}

fn embedded(data_dir: &Path) -> Command {
    let mut command = program();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data_dir);
    command.env("MEMHOST_OPERATOR_TOKEN", TOKEN);
    command
}

/// A host on the database, with the keys of a data directory.
fn on(database: &str, data_dir: &Path, keys: &Path) -> Command {
    let mut command = embedded(data_dir);
    command.env("MEMHOST_STORE", database);
    command.arg("--host-key-file").arg(keys.join("host.key"));
    command.arg("--vault-key-file").arg(keys.join("vault.key"));
    command
}

/// The same, with the directory into which providers' files were copied.
fn with_files(database: &str, data_dir: &Path, keys: &Path, files: &Path) -> Command {
    let mut command = on(database, data_dir, keys);
    command.arg("--shared-dir").arg(files);
    command
}

fn stop(mut host: Host) {
    host.signal(Signal::TERM);
    assert!(host.child.wait().unwrap().success());
}

fn copying(database: &str, arguments: &[(&str, &Path)]) -> Command {
    let mut command = program();
    command.env("MEMHOST_STORE", database).args(["store", "copy"]);
    for (flag, value) in arguments {
        command.arg(flag).arg(value);
    }
    command
}

fn said(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn fine(at: &Host, path: &str, body: Option<&Value>) -> Value {
    let (status, answer) = send(&at.url, path, body, None).expect("no answer");
    assert!((200..300).contains(&status), "{path}: {status} {answer}");
    answer
}

/// Everything that a company has, but for what counts on while hosts run.
fn everything(at: &Host, company: &str) -> Vec<Value> {
    let list = |name: &str| {
        let limit = if matches!(name, "operations" | "jobs") { "?limit=200" } else { "" };
        let mut listed = fine(at, &format!("/control/v1/companies/{company}/{name}{limit}"), None);
        for item in listed["items"].as_array_mut().unwrap() {
            // What a binding uses at the moment.
            item.as_object_mut().unwrap().remove("usage");
        }
        listed["items"].clone()
    };
    LISTS.iter().map(|name| list(name)).collect()
}

fn captured(text: &str, company: &str) -> Value {
    let mut body = capture(text);
    body["scope"]["companyId"] = json!(company);
    body["source"]["companyId"] = json!(company);
    body
}

fn finds(at: &Host, company: &str, word: &str) -> usize {
    let mut body = query(word);
    body["scope"]["companyId"] = json!(company);
    with(&fine(at, &format!("/runtime/v1/companies/{company}/query"), Some(&body)), word)
}

/// Fills two companies with some of everything.
fn fill(at: &Host) {
    for company in ["acme", "beta"] {
        for number in 0..20 {
            let text = format!("The letters of day {number} are in the north archive of {company}");
            let path = format!("/runtime/v1/companies/{company}/capture");
            fine(at, &path, Some(&captured(&text, company)));
        }
        let of = |rest: &str| format!("/control/v1/companies/{company}/{rest}");
        fine(at, &of("tokens"), Some(&json!({"name": "reader", "role": "auditor"})));
        fine(
            at,
            &of("finance-events"),
            Some(&json!({
                "eventKind": "fee", "biller": "b", "amountCents": 500, "currency": "USD",
                "description": "a disk", "occurredAt": "2026-11-20T00:00:00Z",
            })),
        );
        finds(at, company, "letters");
    }
    fine(at, "/control/v1/tokens", Some(&json!({"name": "second", "role": "operator"})));
}

#[test]
fn memory_moves_into_a_database_and_back() {
    let Some(database) = database() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (old, new, back) = (path("old"), path("shared"), path("back"));
    let host = listening(embedded(&old));
    fill(&host);
    let before = ["acme", "beta"].map(|company| everything(&host, company));
    let operators = fine(&host, "/control/v1/tokens", None)["items"].clone();

    // Not while a host runs.
    let running = copying(&database, &[("--from", &old), ("--files", &new)]).output().unwrap();
    assert!(!running.status.success() && said(&running).contains("in use"), "{}", said(&running));
    stop(host);

    // Not without the files of providers.
    // Nor into a directory that has some, or with the key of another host.
    let taken = path("taken");
    std::fs::create_dir_all(taken.join("memory/acme/other")).unwrap();
    std::fs::write(taken.join("memory/acme/other/forgotten.md"), "A forgotten text").unwrap();
    let taken = copying(&database, &[("--from", &old), ("--files", &taken)]).output().unwrap();
    assert!(
        !taken.status.success() && said(&taken).contains("has some already"),
        "{}",
        said(&taken)
    );
    // Nor into the directory that is copied, whether what is named is there or not.
    for inside in [old.clone(), old.join("not-there"), old.join("memory/acme")] {
        let inside = copying(&database, &[("--from", &old), ("--files", &inside)]).output();
        let inside = inside.unwrap();
        assert!(!inside.status.success() && said(&inside).contains("outside of the data"));
    }
    let wrong_key = path("wrong.key");
    std::fs::write(&wrong_key, [7; 32]).unwrap();
    let wrong = [("--from", &*old), ("--files", &*new), ("--host-key-file", &*wrong_key)];
    let wrong = copying(&database, &wrong).output().unwrap();
    assert!(!wrong.status.success() && said(&wrong).contains("not that of the data directory"));
    let without = copying(&database, &[("--from", &old)]).output().unwrap();
    assert!(!without.status.success() && said(&without).contains("--files"), "{}", said(&without));
    let copied = copying(&database, &[("--from", &old), ("--files", &new)]).output().unwrap();
    assert!(copied.status.success(), "{}", said(&copied));
    assert!(said(&copied).contains("copied and compared 2 companies"), "{}", said(&copied));

    // A host without the directory would not find what providers have in it.
    let mut alone = on(&database, &path("host"), &old);
    let refused = alone.stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    assert!(said(&refused).contains("--shared-dir"), "{}", said(&refused));
    let host = listening(with_files(&database, &path("host"), &old, &new));
    for (company, before) in ["acme", "beta"].iter().zip(&before) {
        for (name, (now, before)) in LISTS.iter().zip(everything(&host, company).iter().zip(before))
        {
            assert_eq!(now, before, "{name} of {company}");
        }
    }
    assert_eq!(fine(&host, "/control/v1/tokens", None)["items"], operators);
    for company in ["acme", "beta"] {
        assert_eq!(finds(&host, company, "letters"), 20);
        let more = captured("The letters of the last day are here", company);
        fine(&host, &format!("/runtime/v1/companies/{company}/capture"), Some(&more));
    }
    // A database with memory is not filled again, and none that a host uses is read.
    let busy = copying(&database, &[("--from", &old), ("--files", &new)]).output().unwrap();
    assert!(!busy.status.success() && said(&busy).contains("stop all hosts"), "{}", said(&busy));
    stop(host);
    let full = copying(&database, &[("--from", &old), ("--files", &new)]).output().unwrap();
    assert!(!full.status.success() && said(&full).contains("already"), "{}", said(&full));

    let (host_key, vault_key) = (old.join("host.key"), old.join("vault.key"));
    let keys = [("--host-key-file", &*host_key), ("--vault-key-file", &*vault_key)];
    let no_files = [&[("--to", &*back)][..], &keys].concat();
    let no_files = copying(&database, &no_files).output().unwrap();
    assert!(said(&no_files).contains("--without-files"), "{}", said(&no_files));
    let (other, empty) = (path("other"), path("empty"));
    std::fs::create_dir(&other).unwrap();
    let wrong = [&[("--to", &*empty), ("--files", &*other)][..], &keys].concat();
    let wrong = copying(&database, &wrong).output().unwrap();
    assert!(!wrong.status.success() && said(&wrong).contains("no directory `memory`"));
    std::fs::create_dir(other.join("memory")).unwrap();
    let wrong = [&[("--to", &*empty), ("--files", &*other)][..], &keys].concat();
    let wrong = copying(&database, &wrong).output().unwrap();
    assert!(!wrong.status.success() && said(&wrong).contains("shared directory"));
    let no_keys = copying(&database, &[("--to", &back), ("--files", &new)]).output().unwrap();
    assert!(said(&no_keys).contains("--host-key-file"), "{}", said(&no_keys));
    let arguments = [&[("--to", &*back), ("--files", &*new)][..], &keys].concat();
    let copied = copying(&database, &arguments).output().unwrap();
    assert!(copied.status.success(), "{}", said(&copied));
    let host = listening(embedded(&back));
    for company in ["acme", "beta"] {
        assert_eq!(finds(&host, company, "letters"), 21);
    }
    assert_eq!(fine(&host, "/control/v1/tokens", None)["items"], operators);
    stop(host);
    let mut verify = program();
    let verified = verify.args(["store", "verify", "--data-dir"]).arg(&back).output().unwrap();
    assert!(said(&verified).contains("no problems found"), "{}", said(&verified));
}

#[test]
fn a_copy_that_was_cut_off_is_used_by_nobody_and_goes_on() {
    let Some(database) = database() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (directory.path().join("old"), directory.path().join("new"));
    let host = listening(embedded(&old));
    let companies: Vec<String> = (0..12).map(|number| format!("company-{number:02}")).collect();
    for company in &companies {
        let path = format!("/runtime/v1/companies/{company}/capture");
        fine(&host, &path, Some(&captured("The letters are in the archive", company)));
    }
    stop(host);
    // A copy of the directory has the same keys.
    let other = directory.path().join("other");
    let mut duplicate = Command::new("cp");
    assert!(duplicate.arg("-r").arg(&old).arg(&other).status().unwrap().success());
    let mut copy = copying(&database, &[("--from", &old), ("--files", &new)]);
    let mut child = copy.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        lines.next().unwrap().unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Nor does a copy of another store go on there.
    let mut another = copying(&database, &[("--from", &other), ("--files", &new)]);
    let another = another.output().unwrap();
    assert!(!another.status.success() && said(&another).contains("a part of a copy of the store"));
    let mut starting = with_files(&database, &directory.path().join("host"), &old, &new);
    let refused = starting.stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    assert!(!refused.status.success() && said(&refused).contains("a part of a copy"));
    // Nor is it a source.
    let keys = [old.join("host.key"), old.join("vault.key")];
    let back = directory.path().join("back");
    let half = [
        ("--to", &*back),
        ("--files", &*new),
        ("--host-key-file", &*keys[0]),
        ("--vault-key-file", &*keys[1]),
    ];
    std::fs::create_dir_all(new.join("memory")).unwrap();
    let half = copying(&database, &half).output().unwrap();
    assert!(!half.status.success() && said(&half).contains("itself a part"), "{}", said(&half));
    // The source was used meanwhile.
    let host = listening(embedded(&old));
    let more = captured("The letters of the second day are here", "company-00");
    fine(&host, "/runtime/v1/companies/company-00/capture", Some(&more));
    stop(host);
    let copied = copying(&database, &[("--from", &old), ("--files", &new)]).output().unwrap();
    assert!(copied.status.success(), "{}", said(&copied));
    assert!(said(&copied).contains("company-01: copied before"), "{}", said(&copied));
    assert!(said(&copied).contains("company-00: it has changed since"), "{}", said(&copied));
    assert!(said(&copied).contains("copied and compared 12 companies"), "{}", said(&copied));
    let host = listening(with_files(&database, &directory.path().join("host"), &old, &new));
    for company in &companies {
        let expected = if company == "company-00" { 2 } else { 1 };
        assert_eq!(finds(&host, company, "letters"), expected, "{company}");
    }
}
