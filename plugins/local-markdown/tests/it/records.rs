//! What is written comes back, whatever it is.

use memhost_sdk::types::*;
use memhost_sdk::{Provider, testing};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Home, everything};

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_text_and_metadata_round_trip(
        records in prop::collection::vec(
            (
                any::<String>(), any::<Option<String>>(),
                prop::collection::btree_map(any::<String>(), json_value(), 0..4),
            ),
            1..4,
        ),
    ) {
        let mut home = Home::new();
        let writes = records.iter().map(
            |(text, summary, metadata)| RecordWrite {
                text: text.clone(), summary: summary.clone(),
                metadata: Some(json!(metadata).to_string()), ..RecordWrite::default()
            }
        );
        let ids = home.write("op", writes.collect(), testing::scope());
        testing::lose_storage();
        home.restart();
        for (id, (text, summary, metadata)) in ids.iter().zip(records) {
            let found = home.get(id).unwrap();
            prop_assert_eq!(found.text, text);
            prop_assert_eq!(found.summary, summary);
            prop_assert_eq!(
                serde_json::from_str::<Value>(&found.metadata.unwrap()).unwrap(), json!(metadata),
            );
        }
    }

    #[test]
    fn any_id_gets_its_own_file_inside_the_directory(
        ids in prop::collection::btree_set("\\PC{1,100}|[./\\\\]{1,9}|(\\.\\./){1,4}x", 1..6)
    ) {
        let mut home = Home::new();
        for id in &ids {
            home.put(id, &format!("text of {id}"));
        }
        home.restart();
        for id in &ids {
            prop_assert_eq!(home.get(id).unwrap().text, format!("text of {id}"));
        }
        prop_assert_eq!(home.files().len(), ids.len());
    }
}

#[test]
fn difficult_texts_come_back_byte_for_byte() {
    let big = "0123456789abcde ".repeat(65_536);
    assert_eq!(big.len(), 1 << 20);
    for text in [
        "",
        "\n",
        "a\n\n\n",
        "---\n",
        "---\nid: x\n---\ny",
        "a\r\nb\r\n",
        "\u{feff}bom",
        "\u{0}",
        "標識 👩‍👩‍👧",
        &big,
    ] {
        let mut home = Home::new();
        home.put("id", text);
        home.restart();
        assert_eq!(home.get("id").unwrap().text, text);
    }
}

#[test]
fn an_id_never_leaves_the_directory() {
    let mut home = Home::new();
    let parent = home.path().parent().unwrap().to_owned();
    let name = format!("{}-outside", home.path().file_name().unwrap().to_str().unwrap());
    home.put(&format!("../{name}"), "stay");
    home.put(&format!("/{}/{name}.md", parent.display()), "here");
    home.put(&"é/".repeat(170), "long");
    assert_eq!(home.files().len(), 3);
    assert!(!parent.join(&name).exists() && !parent.join(format!("{name}.md")).exists());
}

#[test]
fn provenance_comes_back_and_the_file_can_be_read() {
    let mut home = Home::new();
    let source = SourceRef {
        kind: SourceKind::IssueComment,
        issue_id: Some("PAP-7".to_owned()),
        comment_id: Some("c9".to_owned()),
        ..testing::source()
    };
    let hook = HookContext {
        hook_kind: HookKind::IssueCommentCapture,
        triggered_at: "2026-03-01T12:00:00Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    };
    let request = CaptureRequest {
        source: source.clone(),
        hook: Some(hook),
        metadata: Some(r#"{"speaker":"Ana"}"#.to_owned()),
        ..testing::capture("op-1", "The launch moved to Friday.\n")
    };
    let id = home.provider.capture(request).unwrap().records.remove(0);
    assert_eq!(home.get(&id).unwrap().source, Some(source));
    let file = home.files().remove(0);
    let relative = file.strip_prefix(home.path()).unwrap().to_str().unwrap().to_owned();
    assert!(relative.starts_with("2026/03/2026-03-01-the-launch-moved-to-friday-"), "{relative}");
    let content = std::fs::read_to_string(file).unwrap();
    let expected = format!("---\nid: \"{id}\"\n");
    assert!(
        content.starts_with(&expected) && content.ends_with("\n---\nThe launch moved to Friday.\n"),
        "{content}"
    );
    assert!(content.contains("\noccurredAt: \"2026-03-01T12:00:00Z\"\n"), "{content}");
    assert!(content.contains("\nmetadata: {\"speaker\":\"Ana\"}\n"), "{content}");
}

#[test]
fn an_operation_makes_one_record() {
    let mut home = Home::new();
    let first = home.provider.capture(testing::capture("op", "once")).unwrap().records;
    assert_eq!(home.provider.capture(testing::capture("op", "once")).unwrap().records, first);
    let event = |operation: &str| {
        let hook = HookContext {
            hook_kind: HookKind::ManualCapture,
            triggered_at: "2026-03-01T12:00:00Z".to_owned(),
            actor_agent_id: None,
            heartbeat_run_id: None,
        };
        CaptureRequest { hook: Some(hook), ..testing::capture(operation, "event") }
    };
    let captured = home.provider.capture(event("a")).unwrap().records;
    home.restart();
    assert_eq!(home.provider.capture(event("a")).unwrap().records, captured);
    assert_ne!(
        home.provider.capture(event("c")).unwrap().records,
        captured,
        "another event, with an equal hook"
    );
    // What was written over it meanwhile stays.
    let over = RecordWrite {
        id: Some(captured[0].clone()),
        text: "over".into(),
        ..RecordWrite::default()
    };
    home.write("over", vec![over], testing::scope());
    assert_eq!(home.provider.capture(event("a")).unwrap().records, captured);
    assert_eq!(home.get(&captured[0]).unwrap().text, "over");
    let upserted =
        home.provider.upsert_records(testing::upsert("up", &["x", "y"])).unwrap().records;
    assert_eq!(
        home.provider.upsert_records(testing::upsert("up", &["x", "y"])).unwrap().records,
        upserted
    );
    assert_eq!(home.files().len(), 5);
}

#[test]
fn an_id_chosen_by_a_caller_does_not_hide_an_operation() {
    let mut home = Home::new();
    home.put("op", "mine");
    let id = home.provider.capture(testing::capture("op", "captured")).unwrap().records.remove(0);
    assert_ne!(id, "op");
    assert_eq!(home.get("op").unwrap().text, "mine");
    assert_eq!(home.get(&id).unwrap().text, "captured");
}

#[test]
fn an_upsert_replaces_and_keeps_the_time_of_creation() {
    let mut home = Home::new();
    home.put("id", "before");
    let before = home.get("id").unwrap();
    home.put("id", "afterwards");
    let after = home.get("id").unwrap();
    assert_eq!((after.text.as_str(), &after.created_at), ("afterwards", &before.created_at));
    assert!(after.updated_at > before.updated_at);
    assert_eq!(home.files().len(), 1);
    assert!(home.ask("before").is_empty());
    let twice = |text: &str| RecordWrite {
        id: Some("x".into()),
        text: text.into(),
        ..RecordWrite::default()
    };
    assert_eq!(home.write("op", vec![twice("one"), twice("two")], testing::scope()), ["x", "x"]);
    assert_eq!(home.get("x").unwrap().text, "two");
}

#[test]
fn many_records_are_written_or_none() {
    let mut home = Home::new();
    home.put("a", "old");
    // The folder of the month cannot take files any more.
    let folder = home.files()[0].parent().unwrap().to_owned();
    let aside = home.path().join("aside");
    std::fs::rename(&folder, &aside).unwrap();
    std::fs::write(&folder, "in the way").unwrap();
    let write = |id: &str| RecordWrite {
        id: Some(id.into()),
        text: "new".into(),
        ..RecordWrite::default()
    };
    let request =
        UpsertRequest { records: vec![write("a"), write("b")], ..testing::upsert("op", &[]) };
    assert!(home.provider.upsert_records(request).is_err());
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    home.restart();
    assert_eq!(home.get("a").unwrap().text, "old");
    assert!(home.get("b").is_none());
    assert!(everything(home.path()).len() == 1, "{:?}", everything(home.path()));
}

#[test]
fn objects_are_rendered_and_residue_is_stored_unchanged() {
    let mut home = Home::new();
    let payload = |text: Option<&str>, object: Option<&str>| SourcePayload {
        text: text.map(str::to_owned),
        object: object.map(str::to_owned),
        ..SourcePayload::default()
    };
    let object = CaptureRequest {
        payload: payload(None, Some(r#"{"goal":"ship"}"#)),
        ..testing::capture("o", "")
    };
    home.provider.capture(object).unwrap();
    assert_eq!(home.ask("goal"), ["```json\n{\n  \"goal\": \"ship\"\n}\n```\n"]);
    let residue = |operation: &str, text: &str| CaptureRequest {
        mode: CaptureMode::CaptureResidue,
        ..testing::capture(operation, text)
    };
    let long = "a line of a transcript\n".repeat(500);
    let id = home.provider.capture(residue("r", &long)).unwrap().records.remove(0);
    assert_eq!(home.get(&id).unwrap().text, long);
    assert!(home.provider.capture(residue("blank", " \n")).unwrap().records.is_empty());
}

#[test]
fn a_correction_replaces_in_place() {
    use memhost_sdk::Correction;
    let mut home = Home::new();
    home.put("id", "The deadline is Monday");
    let patch = |patch| CorrectRequest {
        operation_id: "op".into(),
        id: "id".into(),
        scope: testing::scope(),
        patch,
    };
    let write = RecordWrite { text: "The deadline is Friday".into(), ..RecordWrite::default() };
    home.provider.correct(patch(Patch::Replacement(write))).unwrap();
    assert_eq!(home.ask("deadline"), ["The deadline is Friday"]);
    let refused = home.provider.correct(patch(Patch::Instruction("make it Sunday".into())));
    assert!(matches!(refused, Err(Error::Unsupported(_))));
}
