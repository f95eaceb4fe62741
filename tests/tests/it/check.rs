//! The conformance suite: good providers keep every rule, and for every rule a guest breaks it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use memhost_conformance::{
    CheckOptions, Finding, Mode, Outcome, Report, Rule, Selection, Source, Status, Suite, handbook,
    rules,
};
use memhost_sandbox::Compiler;
use memhost_tests::{cache_dir, compiled_dir, guest_file, is_whole, marked, repository};
use serde_json::{Value, json};

/// Rules that are tested without a configuration, so that a mark in the guest's bytes says which
/// one it breaks.
const BY_MARK: [&str; 11] = [
    "DSC-01", "DSC-02", "DSC-03", "DSC-04", "DSC-05", "DSC-06", "DSC-07", "DSC-08", "DSC-09",
    "CFG-01", "CFG-02",
];
/// The same for rules that compare the provider's behaviour with its description.
const BY_WORD: &str = "CAP-05";
/// Rules that other guests break.
const BY_OTHERS: [(&str, &str); 2] = [("ADM-01", "exports-nothing"), ("ADM-02", "needs-more")];
/// A provider that breaks the rule on the left necessarily breaks those on the right.
const DEPENDENTS: &[(&str, &[&str])] = &[
    ("CAP-01", &["CAP-06", "CAP-09", "CAP-10", "CAP-11"]),
    ("CAP-02", &["CAP-10", "EXT-06", "RST-03"]),
    ("CAP-04", &["CAP-11"]),
    ("CAP-08", &["CAP-11"]),
    ("UPS-01", &["LST-04", "QRY-04", "UPS-10"]),
    ("UPS-02", &["UPS-04"]),
    ("UPS-07", &["LST-04", "QRY-04"]),
    ("UPS-08", &["UPS-10"]),
    ("QRY-01", &["FGT-06", "MIG-01", "MIG-02", "PAR-06", "RST-01", "RST-02", "XPL-01"]),
    (
        "QRY-02",
        &["COR-03", "ERA-01", "FGT-02", "PAR-01", "PAR-02", "PAR-03", "QRY-10", "REV-01", "REV-08"],
    ),
    ("QRY-03", &["ERR-01", "ERR-02"]),
    (
        "QRY-05",
        &[
            "ERR-01", "ERR-02", "FGT-06", "GET-03", "MIG-01", "MIG-02", "PAR-06", "PRF-01",
            "QRY-01", "QRY-03", "QRY-04", "QRY-06", "QRY-07", "QRY-08", "QRY-09", "QRY-10",
            "REV-07", "RST-01", "RST-02", "XPL-01",
        ],
    ),
    ("QRY-06", &["XPL-01"]),
    ("QRY-08", &["REV-01"]),
    (
        "QRY-09",
        &[
            "FGT-06", "MIG-01", "MIG-02", "PAR-06", "QRY-01", "QRY-04", "REV-07", "RST-01",
            "RST-02", "XPL-01",
        ],
    ),
    ("PAR-04", &["TRF-11"]),
    ("LST-01", &["LST-02"]),
    ("LST-03", &["LST-01", "LST-02"]),
    ("GET-01", &["COR-04", "ERA-01", "FGT-02", "PAR-05", "REV-08", "REV-10", "REV-12", "REV-13"]),
    (
        "GET-02",
        &[
            "BRW-04", "CAP-01", "CAP-04", "CAP-06", "CAP-09", "CAP-11", "COR-01", "COR-06",
            "EXT-03", "FGT-05", "FGT-06", "GET-03", "PAR-06", "PRF-01", "QRY-09", "REV-07",
            "REV-09", "REV-12", "RST-01", "UPS-01", "UPS-02", "UPS-03", "UPS-06", "UPS-07",
            "UPS-08", "UPS-10",
        ],
    ),
    (
        "GET-03",
        &[
            "BRW-04", "CAP-01", "CAP-04", "CAP-06", "CAP-09", "CAP-11", "COR-01", "COR-06",
            "EXT-03", "FGT-05", "FGT-06", "GET-02", "PAR-06", "PRF-01", "QRY-09", "REV-07",
            "REV-09", "REV-12", "RST-01", "UPS-01", "UPS-02", "UPS-03", "UPS-06", "UPS-07",
            "UPS-08", "UPS-10",
        ],
    ),
    ("FGT-02", &["RST-02"]),
    ("FGT-04", &["FGT-01", "FGT-03", "FGT-05"]),
    ("FGT-06", &["LST-02"]),
    ("RST-01", &["MIG-01", "MIG-02", "REV-11", "RST-02", "RST-03", "TRF-03"]),
    ("RST-02", &["MIG-01", "MIG-02", "PAR-06", "QRY-01"]),
    ("COR-01", &["COR-03", "COR-05", "COR-06"]),
    ("COR-03", &["COR-02", "COR-05", "COR-06"]),
    ("COR-05", &["COR-06"]),
    ("EXT-01", &["EXT-04", "EXT-05", "EXT-09"]),
    ("EXT-03", &["EXT-07", "EXT-09"]),
    ("XPL-02", &["XPL-01", "XPL-03"]),
    ("BRW-06", &["BRW-01", "BRW-03", "BRW-04", "BRW-05"]),
    ("REV-03", &["REV-04"]),
    ("REV-08", &["REV-13"]),
    ("REV-13", &["REV-14"]),
    ("TRF-01", &["TRF-07", "TRF-08"]),
    (
        "TRF-02",
        &["TRF-01", "TRF-03", "TRF-05", "TRF-06", "TRF-07", "TRF-08", "TRF-09", "TRF-10", "TRF-11"],
    ),
    ("MIG-01", &["MIG-02"]),
    (
        "HLT-02",
        &["CAP-10", "ERA-01", "EXT-04", "LST-01", "MIG-01", "MIG-02", "PRF-02", "TRF-11", "UPS-04"],
    ),
];

fn only(rule: &str) -> Selection {
    Selection { mode: Mode::Thorough, rules: vec![rule.to_owned()] }
}

fn all(mode: Mode) -> Selection {
    Selection { mode, rules: Vec::new() }
}

fn breaking(rule: &str) -> CheckOptions {
    CheckOptions {
        config: json!({ "break": rule }).as_object().unwrap().clone(),
        ..CheckOptions::default()
    }
}

async fn checked(source: Source, options: &CheckOptions, selection: &Selection) -> Report {
    let suite = Suite::open(&source, Some(compiled_dir()), Compiler::InProcess).await.unwrap();
    let report = suite.check(options, selection).await.unwrap();
    suite.close().await;
    report
}

/// The guest with a mark, checked.
async fn checked_with_mark(rule: &str, selection: &Selection) -> Report {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("wrong.wasm");
    std::fs::write(&file, marked(rule).unwrap()).unwrap();
    checked(Source::File(file), &CheckOptions::default(), selection).await
}

/// Broken rules with what was seen.
fn broken(report: &Report) -> Vec<(&'static str, &str)> {
    let is_broken = |finding: &&Finding| matches!(finding.outcome, Outcome::Failed { .. });
    report
        .findings
        .iter()
        .filter(is_broken)
        .map(|finding| (finding.rule.id, what(finding)))
        .collect()
}

fn what(finding: &Finding) -> &str {
    match &finding.outcome {
        Outcome::Failed { saw } => saw,
        Outcome::Skipped { why } => why,
        Outcome::Passed => "",
    }
}

/// Rules that could not be tried, with the reason.
fn skipped(report: &Report) -> Vec<(&'static str, &str)> {
    let is_skipped = |finding: &&Finding| matches!(finding.outcome, Outcome::Skipped { .. });
    report
        .findings
        .iter()
        .filter(is_skipped)
        .map(|finding| (finding.rule.id, what(finding)))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guest_wrong_without_a_mark_keeps_every_rule() {
    let report =
        checked(Source::File(guest_file("wrong")), &CheckOptions::default(), &all(Mode::Thorough))
            .await;
    assert!(broken(&report).is_empty(), "{:?}", broken(&report));
    assert!(skipped(&report).is_empty(), "rules that no guest tests: {:?}", skipped(&report));
    assert_eq!((report.status, report.counts().passed), (Status::Passed, rules().count()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_built_in_provider_keeps_every_rule() {
    let report = checked(Source::Builtin, &CheckOptions::default(), &all(Mode::Thorough)).await;
    assert!(broken(&report).is_empty(), "{:?}", broken(&report));
    assert_eq!(report.status, Status::Passed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_of_the_sdk_keeps_every_rule() {
    let report =
        checked(Source::File(guest_file("notes")), &CheckOptions::default(), &all(Mode::Thorough))
            .await;
    assert!(broken(&report).is_empty(), "{:?}", broken(&report));
    assert_eq!(report.status, Status::Passed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reference_guest_keeps_every_rule() {
    let report =
        checked(Source::File(guest_file("reference")), &CheckOptions::default(), &all(Mode::Quick))
            .await;
    assert!(broken(&report).is_empty(), "{:?}", broken(&report));
    assert_eq!(report.status, Status::Passed);
}

/// Whether the guest `wrong` breaks a quick rule because its configuration says so.
fn is_broken_by_configuration(rule: &Rule) -> bool {
    rule.mode == Mode::Quick
        && !BY_MARK.contains(&rule.id)
        && rule.id != BY_WORD
        && !BY_OTHERS.iter().any(|(id, _)| *id == rule.id)
}

/// A rule that no guest breaks may test nothing. [`who_breaks_one_rule_breaks_no_other`] breaks the
/// rest of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rule_has_a_guest_that_breaks_it() {
    let suite =
        Suite::open(&Source::File(guest_file("wrong")), Some(compiled_dir()), Compiler::InProcess)
            .await
            .unwrap();
    let mut unbroken = Vec::new();
    for rule in rules().filter(|rule| !is_broken_by_configuration(rule)) {
        let other = BY_OTHERS.iter().find(|(id, _)| *id == rule.id);
        let report = match other {
            Some((_, guest)) => {
                checked(Source::File(guest_file(guest)), &CheckOptions::default(), &only(rule.id))
                    .await
            }
            None if rule.id == BY_WORD || BY_MARK.contains(&rule.id) => {
                checked_with_mark(rule.id, &only(rule.id)).await
            }
            None => suite.check(&breaking(rule.id), &only(rule.id)).await.unwrap(),
        };
        if report.status != Status::Failed {
            unbroken.push(format!("{}: {:?}", rule.id, report.findings));
        }
    }
    suite.close().await;
    assert!(unbroken.is_empty(), "no guest breaks these rules:\n{}", unbroken.join("\n"));
}

/// The rules that are tested on a guest that breaks one: those of its group, and those that are
/// known to break with it. The whole form tests all of them, which takes a minute. Use it for a new
/// or changed rule.
fn beside(rule: &Rule, dependents: &[&str]) -> Selection {
    let is_beside = |other: &&Rule| {
        other.mode == Mode::Quick
            && (other.id[..3] == rule.id[..3] || dependents.contains(&other.id))
    };
    match is_whole() {
        true => all(Mode::Quick),
        false => Selection {
            mode: Mode::Quick,
            rules: rules().filter(is_beside).map(|rule| rule.id.to_owned()).collect(),
        },
    }
}

/// Otherwise an author would look for the fault in the wrong place. The short form tests every
/// third rule.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_breaks_one_rule_breaks_no_other() {
    let mut wrong = Vec::new();
    let rules = rules().filter(|rule| is_broken_by_configuration(rule));
    let rules: Vec<_> = rules.step_by(if is_whole() { 1 } else { 3 }).collect();
    // Each rule has a binding, and a company has at most 1,000.
    for some in rules.chunks(6) {
        let suite = Suite::open(
            &Source::File(guest_file("wrong")),
            Some(compiled_dir()),
            Compiler::InProcess,
        )
        .await
        .unwrap();
        for rule in some {
            let dependents =
                DEPENDENTS.iter().find(|(id, _)| *id == rule.id).map_or(&[][..], |(_, all)| all);
            let report = suite.check(&breaking(rule.id), &beside(rule, dependents)).await.unwrap();
            let found: BTreeSet<&str> = broken(&report).into_iter().map(|(id, _)| id).collect();
            let expected: BTreeSet<&str> = dependents.iter().copied().chain([rule.id]).collect();
            if found != expected {
                let others: Vec<_> = found.iter().filter(|id| **id != rule.id).collect();
                wrong.push(format!("(\"{}\", &{others:?}),", rule.id));
            }
        }
        suite.close().await;
    }
    assert!(wrong.is_empty(), "other rules than expected are broken:\n{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_stores_nothing_does_not_pass() {
    let report =
        checked(Source::File(guest_file("stamped")), &CheckOptions::default(), &only("UPS-01"))
            .await;
    assert_eq!(report.status, Status::Inconclusive, "{report:?}");
    let denied = CheckOptions { deny: vec!["storage".to_owned()], ..CheckOptions::default() };
    let report = checked(Source::File(guest_file("wrong")), &denied, &only("QRY-01")).await;
    assert_ne!(report.status, Status::Passed, "nothing was stored: {report:?}");
}

/// The words of a file of the contract, without comment marks.
fn plain(file: &str) -> String {
    let text = std::fs::read_to_string(repository().join(file)).unwrap();
    let lines = text.lines().map(|line| line.trim().trim_start_matches('/'));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_rule_is_a_sentence_of_the_contract() {
    let mut ids = BTreeSet::new();
    for rule in rules() {
        assert!(ids.insert(rule.id), "{} is there twice", rule.id);
        let (group, number) = rule.id.split_once('-').unwrap();
        assert!(
            group.len() == 3 && number.len() == 2 && number.parse::<u8>().is_ok(),
            "{}",
            rule.id
        );
        assert!(
            plain(rule.contract.file).contains(rule.contract.text),
            "{}: {:?}",
            rule.id,
            rule.contract
        );
        let item = rule.contract.item.rsplit('.').next().unwrap();
        assert!(
            plain(rule.contract.file).contains(item),
            "{}: no {item} in {}",
            rule.id,
            rule.contract.file
        );
    }
    assert!(ids.len() > 60, "only {}", ids.len());
}

/// Documents and help name rules that exist.
#[test]
fn every_rule_that_is_named_exists() {
    let known: Vec<&str> = rules().map(|rule| rule.id).collect();
    let documents = [
        "README.md",
        "sdk/README.md",
        "host/docs/cli.md",
        "host/docs/conformance.md",
        "tests/guests/README.md",
        "host/cli/src/snapshots/memhost_cli__tests__help_is_as_it_was.snap",
    ];
    let mut named = 0;
    for document in documents {
        let text = std::fs::read_to_string(repository().join(document)).unwrap();
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
            let is_id = word.split_once('-').is_some_and(|(group, number)| {
                group.len() == 3
                    && number.len() == 2
                    && group.bytes().all(|byte| byte.is_ascii_uppercase())
                    && number.bytes().all(|byte| byte.is_ascii_digit())
            });
            if is_id {
                assert!(
                    known.contains(&word),
                    "{document} names the rule {word}, which does not exist"
                );
                named += 1;
            }
        }
    }
    assert!(named > 60, "only {named} rules are named");
}

/// `UPDATE_DOCS=1` writes the page anew.
#[test]
fn the_page_of_rules_is_that_of_the_suite() {
    let page = repository().join("host/docs/conformance.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&page, handbook()).unwrap();
    }
    let there = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        there == handbook(),
        "{} is not what the suite says; UPDATE_DOCS=1 writes it anew",
        page.display()
    );
}

fn memhost(arguments: &[&str], at: &Path) -> Output {
    let program = env!("CARGO_BIN_EXE_memhost-cli");
    Command::new(program)
        .args(arguments)
        .current_dir(at)
        .env("NO_COLOR", "1")
        .env("MEMHOST_CACHE_DIR", cache_dir())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_command_reports_broken_rules_with_their_sentences() {
    let at = tempfile::tempdir().unwrap();
    let guest: PathBuf = guest_file("wrong");
    let file = guest.to_str().unwrap();
    let rules = ["--rule", "CAP-02,GET-01", "--rule", "BRW-02"];
    let run = |more: &[&str]| {
        memhost(&[&["plugin", "check", file][..], &rules[..], more].concat(), at.path())
    };
    let green = run(&["--junit", "right.xml", "--badge", "badge.json"]);
    assert_eq!(green.status.code(), Some(0), "{green:?}");
    assert!(text(&green.stdout).contains("CAP-02  ok"), "{green:?}");
    let badge: Value =
        serde_json::from_slice(&std::fs::read(at.path().join("badge.json")).unwrap()).unwrap();
    assert_eq!((&badge["schemaVersion"], &badge["color"]), (&json!(1), &json!("brightgreen")));

    let red = run(&[
        "--config",
        r#"{"break":"CAP-02"}"#,
        "--junit",
        "wrong.xml",
        "--badge",
        "badge.json",
    ]);
    assert_eq!(red.status.code(), Some(1), "{red:?}");
    let shown = text(&red.stdout);
    assert!(shown.contains("CAP-02  FAIL  ") && shown.contains("GET-01  ok"), "{shown}");
    assert!(
        shown.contains("actual    1 records after the first delivery, 3 after the third"),
        "{shown}"
    );
    assert!(shown.contains("wit/provider.wit, `capture`: the same `operation-id`"), "{shown}");
    assert!(shown.contains("![wrong 0.1.0](https://img.shields.io/badge/"), "{shown}");
    assert!(text(&red.stderr).contains("1 of 3 rules failed"), "{red:?}");
    let junit = std::fs::read_to_string(at.path().join("wrong.xml")).unwrap();
    for count in ["tests=\"3\"", "failures=\"1\"", "skipped=\"0\"", "errors=\"0\""] {
        assert_eq!(
            junit.matches(count).count(),
            2,
            "{count}, of the run and of its suite: {junit}"
        );
    }
    assert!(junit.contains("<failure message=\"1 records after"), "{junit}");
    let badge: Value =
        serde_json::from_slice(&std::fs::read(at.path().join("badge.json")).unwrap()).unwrap();
    assert_eq!((&badge["message"], &badge["color"]), (&json!("1 of 3 broken"), &json!("red")));

    let json = run(&["-o", "json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["status"], "passed");
    assert_eq!(json["counts"], json!({ "passed": 3, "failed": 0, "skipped": 0 }));
    let names: BTreeSet<&str> =
        json["rules"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        names,
        BTreeSet::from(["contract", "expects", "id", "mode", "ms", "outcome", "title", "unless"])
    );
    assert_eq!(text(&run(&["-o", "jsonl"]).stdout).lines().count(), 3);
}

#[test]
fn the_command_distinguishes_wrong_usage_from_broken_rules() {
    let at = tempfile::tempdir().unwrap();
    let guest = guest_file("wrong");
    let file = guest.to_str().unwrap();
    for (arguments, said) in [
        (vec![file, "--rule", "CAP-99"], "there is no rule `CAP-99`"),
        (vec![file, "--config", r#"{"strange":1}"#], "/strange: is not known"),
        (vec![file, "--config", "[]"], "--config"),
        (vec!["no-such.wasm"], "no-such.wasm"),
        (vec![file, "--allow-network", "--secret-env", "NO_SUCH_SECRET"], "NO_SUCH_SECRET"),
    ] {
        let done = memhost(&[&["plugin", "check"][..], &arguments[..]].concat(), at.path());
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        assert!(text(&done.stderr).contains(said), "{done:?}");
    }
    // A file that is not a component breaks a rule. It is not a usage error.
    std::fs::write(at.path().join("text.wasm"), "no component").unwrap();
    let done = memhost(&["plugin", "check", "text.wasm"], at.path());
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let shown = text(&done.stdout);
    assert!(
        shown.contains("ADM-01  FAIL  ") && !shown.contains("skip  "),
        "the rest says nothing new: {shown}"
    );
    assert!(shown.contains("rules need a component that the host admits"), "{shown}");
    let listed = memhost(&["plugin", "check", "--list-rules"], at.path());
    assert_eq!(text(&listed.stdout).trim(), handbook().trim());
}
