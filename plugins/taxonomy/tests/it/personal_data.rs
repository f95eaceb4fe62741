//! Nothing that is answered holds raw personal data, whichever way it came in.

use memhost_sdk::types::*;
use memhost_sdk::{Correction, Explain, Profile, Provider, testing};
use memhost_taxonomy::pii_level;
use proptest::prelude::*;
use serde_json::json;

use super::{Home, metadata, texts};

#[test]
fn raw_data_waits_or_is_redacted_as_configured() {
    let mut home = Home::new();
    home.learn("I prefer mail to jerry@mit.edu.");
    assert!(home.list().is_empty());
    assert_eq!(texts(home.pending()), ["I prefer mail to jerry@mit.edu."]);
    let mut redacting = Home::with(json!({"pii": "redact"}));
    redacting.learn("I prefer mail to jerry@mit.edu.");
    assert!(redacting.pending().is_empty());
    let item = redacting.list().remove(0);
    assert_eq!(
        (item.text.as_str(), &metadata(&item)["piiRisk"]),
        ("I prefer mail to [EMAIL].", &json!(1))
    );
    assert_eq!(metadata(&item)["evidence"], "I prefer mail to [EMAIL].");
}

#[test]
fn a_password_waits() {
    let mut home = Home::new();
    for text in
        ["Remember that my password is hunter2.", "password: hunter2", "my password is hunter2"]
    {
        assert_eq!(pii_level(text), 2, "{text}");
        home.put(text, json!({})).unwrap();
    }
    assert_eq!((home.list().len(), home.pending().len()), (0, 3));
    assert_eq!(pii_level("his email address is on file"), 1);
    for text in ["the password policy is strict", "reset password flow"] {
        assert!(pii_level(text) < 2, "{text}");
    }
}

#[test]
fn evidence_is_redacted() {
    let mut home = Home::new();
    let id = home.learn("I prefer concise answers, and my mail is jerry@mit.edu.").remove(0);
    let item = home.get(&id).unwrap();
    assert_eq!(metadata(&item)["evidence"], "I prefer concise answers, and my mail is [EMAIL].");
    assert_eq!(metadata(&item)["piiRisk"], 1);
}

#[test]
fn metadata_and_summary_are_checked_too() {
    let mut home = Home::with(json!({"workflow": "strict"}));
    home.put("harmless", json!({"owner": {"mail": "ann@example.org"}})).unwrap();
    home.put("harmless", json!({"password": "abc12345"})).unwrap();
    home.put("harmless", json!({"tags": ["ann@example.org"]})).unwrap();
    assert!(home.list().is_empty());
    for item in home.pending() {
        let approved = home.decide(&item.id, Decision::Approve).unwrap().unwrap();
        assert!(pii_level(approved.metadata.as_deref().unwrap()) < 2, "{approved:?}");
    }
}

#[test]
fn a_correction_with_raw_data_waits() {
    let mut home = Home::new();
    let id = home.put("Ann has an address", json!({})).unwrap();
    let write = RecordWrite { text: "Ann: ann@example.org".into(), ..RecordWrite::default() };
    let patch = Patch::Replacement(write);
    let request =
        CorrectRequest { operation_id: "c".into(), id: id.clone(), scope: testing::scope(), patch };
    home.provider.correct(request).unwrap();
    assert!(home.get(&id).is_none());
    assert_eq!(home.pending().len(), 1);
}

#[test]
fn what_was_redacted_before_is_level_1_and_approved() {
    let mut home = Home::new();
    for (number, mark) in ["[REDACTED_EMAIL]", "[REDACTED_PHONE]", "<REDACTED_NAME>", "[EMAIL]"]
        .into_iter()
        .enumerate()
    {
        assert_eq!(pii_level(mark), 1, "{mark}");
        for text in [
            format!("My e-mail address is {mark}."),
            format!("Write to {mark}, not to me"),
            mark.to_owned(),
        ] {
            assert_eq!(pii_level(&text), 1, "{text}");
            home.put_as(&format!("{number} {text}"), None, &text, json!({})).unwrap();
        }
    }
    assert!(home.pending().is_empty());
    assert!(home.list().iter().all(|item| metadata(item)["piiRisk"] == 1), "{:?}", home.list());
}

#[test]
fn a_persons_approval_is_the_last_word_unless_the_workflow_is_strict() {
    for (workflow, text) in [("document", "Ann: ann@example.org"), ("strict", "Ann: [EMAIL]")] {
        let mut home = Home::with(json!({"workflow": workflow}));
        let id = home.put("Ann: ann@example.org", json!({})).unwrap();
        assert!(home.list().is_empty(), "it waits");
        home.decide(&id, Decision::Approve).unwrap();
        home.restart();
        assert_eq!(home.get(&id).unwrap().text, text, "{workflow}");
    }
}

/// Everything that any call answers outside of review.
fn answered(home: &mut Home) -> Vec<String> {
    let mut snippets = home.list();
    let ids: Vec<String> = snippets.iter().map(|item| item.id.clone()).collect();
    snippets.extend(ids.iter().filter_map(|id| home.get(id)));
    for (query, intent) in
        [("", Intent::AgentPreamble), ("prefer always note example deadline", Intent::Answer)]
    {
        let request = QueryRequest { intent, top_k: 1_000, ..testing::query(query) };
        snippets.extend(home.provider.query(request.clone()).unwrap().snippets);
        assert!(pii_level(&home.provider.explain_query(request).unwrap().query) < 2);
    }
    let mut all: Vec<String> =
        home.provider.get_profile(testing::scope()).unwrap().summary.into_iter().collect();
    for snippet in snippets {
        all.extend([Some(snippet.text), snippet.summary, snippet.metadata].into_iter().flatten());
    }
    all
}

fn raw() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{2,8}\\.[a-z]{2,8}@[a-z]{3,8}\\.(com|org|de)",
        "\\+49 [1-9][0-9]{2} [0-9]{7}",
        "AKIA[0-9A-Z]{16}",
        Just("4111 1111 1111 1111".to_owned()),
        Just("DE89 3704 0044 0532 0130 00".to_owned()),
        "[1-8][0-9]{2}-[1-9][0-9]-[1-9][0-9]{3}"
            .prop_filter("assigned", |ssn| !ssn.starts_with("666")),
    ]
}

fn sentence() -> impl Strategy<Value = String> {
    let begin = prop_oneof![
        Just("I prefer"),
        Just("Always write to"),
        Just("Note:"),
        Just("My name is"),
        Just("TODO: call"),
        Just("We chose"),
        Just("The deadline of this is"),
        Just("I suspect it is"),
        Just("Keywords:"),
        Just("Hello"),
    ];
    (begin, prop_oneof![raw(), "[a-z]{3,9}"], "[ -~]{0,30}")
        .prop_map(|(begin, middle, end)| format!("{begin} {middle} {end}."))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_answer_contains_raw_data(
        captured in prop::collection::vec(sentence(), 1..5),
        written in sentence(),
        value in raw(),
        decided in prop::collection::vec(0..3_u8, 8),
        edit in sentence(),
        redact: bool,
    ) {
        let mut home = Home::with(
            json!({"workflow": "strict", "pii": if redact { "redact" } else { "pending" }})
        );
        home.learn(&captured.join(" "));
        home.put(
            &written, json!({"kind": "fact", "deep": [{"value": value}], "tags": [value]}),
        ).unwrap();
        let record = RecordWrite {
            text: written.clone(), summary: Some(value.clone()), ..RecordWrite::default()
        };
        home.provider
            .upsert_records(UpsertRequest { records: vec![record], ..testing::upsert("s", &[]) })
            .unwrap();
        home.provider.capture(testing::capture("c", &written)).ok();
        for round in 0..2 {
            for text in answered(&mut home) {
                prop_assert!(pii_level(&text) < 2, "round {}: {}", round, text);
                prop_assert!(!text.contains(&value), "round {}: {}", round, text);
            }
            for (item, how) in home.pending().into_iter().zip(&decided) {
                let edited = RecordWrite { text: edit.clone(), ..RecordWrite::default() };
                let decision = match how {
                    0 => Decision::Approve,
                    1 => Decision::Reject,
                    _ => Decision::Edit(edited),
                };
                // A refusal leaves it waiting.
                let _ = home.decide(&item.id, decision);
            }
        }
    }

    #[test]
    fn any_text_can_be_captured_and_a_repeated_job_adds_nothing(text in "\\PC{0,300}") {
        let mut home = Home::new();
        let request = home.residue(&text);
        let answer = home.provider.capture(request).unwrap();
        if let Some(job) = answer.jobs.first() {
            let records = home.run(&job.provider_job_id);
            let all = (home.list(), home.pending());
            prop_assert_eq!(home.run(&job.provider_job_id), records);
            prop_assert_eq!((home.list(), home.pending()), all);
        }
    }
}
