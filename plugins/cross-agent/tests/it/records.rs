//! Writing, changing, forgetting.

use memhost_cross_agent::CrossAgent;
use memhost_sdk::types::*;
use memhost_sdk::{Correction, Extraction, Provider, storage, testing};
use serde_json::{Value, json};

use crate::{ids, open, project, put, with};

fn hook() -> HookContext {
    HookContext {
        hook_kind: HookKind::PostRunCapture,
        triggered_at: "2026-03-01T12:00:00Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    }
}

#[test]
fn a_repeated_capture_is_one_item() {
    let mut provider = open();
    let request = |operation: &str| CaptureRequest {
        hook: Some(hook()),
        ..testing::capture(operation, "gate")
    };
    let first = provider.capture(request("op-1")).unwrap().records;
    assert_eq!(provider.capture(request("op-1")).unwrap().records, first);
    assert_ne!(
        provider.capture(request("op-2")).unwrap().records,
        first,
        "another event, with an equal hook"
    );
    assert_eq!(provider.capture(testing::capture("op-1", "gate")).unwrap().records, first);
    provider.forget(testing::forget(first, testing::scope())).unwrap();
    let again = provider.capture(request("op-1")).unwrap().records;
    assert_eq!(
        provider.get_record(again[0].clone(), testing::scope()).unwrap().snippet.unwrap().text,
        "gate"
    );
}

#[test]
fn residue_is_marked_and_empty_residue_is_ignored() {
    let mut provider = open();
    let residue = |text: &str, metadata: Value| CaptureRequest {
        mode: CaptureMode::CaptureResidue,
        metadata: Some(metadata.to_string()),
        ..testing::capture("op", text)
    };
    assert!(provider.capture(residue(" ", json!({}))).unwrap().records.is_empty());
    let id = provider
        .capture(residue("User: x", json!({"agentKind": "codex", "confidence": 0.9})))
        .unwrap()
        .records;
    let kept = provider.get_record(id[0].clone(), testing::scope()).unwrap().snippet.unwrap();
    let metadata: Value = serde_json::from_str(&kept.metadata.unwrap()).unwrap();
    let wanted = json!({
        "agentKind": "codex", "type": "task_context", "source": "inferred", "confidence": 0.9,
    });
    assert_eq!(metadata, wanted);
}

#[test]
fn a_private_item_takes_no_statement_from_the_others() {
    let mut provider = open();
    let mut say = |operation: &str, agent: Option<&str>| {
        let scope = Scope { agent_id: agent.map(str::to_owned), ..project("p") };
        let turn = Turn {
            role: "user".to_owned(),
            name: None,
            text: "We chose SQLite over Postgres.".to_owned(),
            at: None,
        };
        let request = testing::capture(operation, "");
        let payload = SourcePayload { turns: vec![turn], ..request.payload };
        let mode = CaptureMode::CaptureResidue;
        provider.capture(CaptureRequest { scope, payload, mode, ..request }).unwrap().records.len()
    };
    assert_eq!(say("op-1", Some("ada")), 1);
    assert_eq!(say("op-2", Some("ada")), 0, "she knows it");
    assert_eq!(say("op-3", Some("bob")), 1);
    assert_eq!(say("op-4", None), 1, "the project does not");
    assert_eq!(say("op-5", Some("cleo")), 0, "now it does");
}

#[test]
fn a_forgotten_item_leaves_nothing_in_storage() {
    let mut provider = open();
    testing::embed_with("letters", 2, |_| vec![1.0, 0.0]);
    let request =
        CaptureRequest { hook: Some(hook()), ..testing::capture("op", "a rare word: xylophone") };
    let id = provider.capture(request).unwrap().records.remove(0);
    put(&mut provider, &testing::scope(), "other", "a common word", &json!({}));
    for job in provider.list_jobs(testing::scope(), None, 10).unwrap().jobs {
        provider.run_job(job.provider_job_id).unwrap();
    }
    let keys = || {
        let all = storage::scan(Vec::new())
            .map(|entry| String::from_utf8_lossy(&entry.unwrap().0).into_owned());
        all.filter(|key| !key.starts_with(['j', 'm'])).collect::<Vec<_>>()
    };
    let bytes = || storage::scan(b"p".to_vec()).map(|entry| entry.unwrap().1.len()).sum::<usize>();
    let (before, page) = (keys(), bytes());
    assert!(before.len() >= 4, "{before:?}");
    let outcomes = provider
        .forget(testing::forget(vec![id.clone(), id.clone()], testing::scope()))
        .unwrap()
        .outcomes;
    assert_eq!(
        [outcomes[0].effect, outcomes[1].effect],
        [ForgetEffect::Hard, ForgetEffect::NotFound]
    );
    assert!(!keys().iter().any(|key| key.contains(&id)), "{:?}", keys());
    assert!(bytes() < page, "its terms are gone, too");
    assert!(
        !ids(&mut provider, &testing::scope(), "xylophone").contains(&id),
        "by its meaning neither"
    );
}

#[test]
fn a_write_under_an_id_replaces_and_a_correction_keeps() {
    let mut provider = open();
    put(
        &mut provider,
        &project("p"),
        "a",
        "the code is 17",
        &json!({"tags": ["door"], "type": "fact"}),
    );
    let created =
        provider.get_record("a".into(), project("p")).unwrap().snippet.unwrap().created_at;
    put(&mut provider, &project("p"), "a", "the code is 18", &json!({}));
    let now = provider.get_record("a".into(), project("p")).unwrap().snippet.unwrap();
    assert_eq!((now.text.as_str(), now.created_at), ("the code is 18", created));
    assert!(ids(&mut provider, &project("p"), "door").is_empty(), "its tags went with it");
    assert!(ids(&mut provider, &project("p"), "17").is_empty());
    let patch = RecordWrite { text: "the code is 19".into(), ..RecordWrite::default() };
    let correct = |id: &str, patch| CorrectRequest {
        operation_id: "op".into(),
        id: id.into(),
        scope: project("p"),
        patch,
    };
    provider.correct(correct("a", Patch::Replacement(patch.clone()))).unwrap();
    assert_eq!(ids(&mut provider, &project("p"), "19"), ["a"]);
    let missing = provider.correct(correct("b", Patch::Replacement(patch)));
    assert!(matches!(missing, Err(Error::NotFound(_))));
    let told = provider.correct(correct("a", Patch::Instruction("later".into())));
    assert!(matches!(told, Err(Error::Unsupported(_))));
}

#[test]
fn a_list_is_complete_while_items_change() {
    let mut provider = open();
    for number in 0..25 {
        put(
            &mut provider,
            &project("p"),
            &format!("id-{number:02}"),
            "text",
            &json!({"even": number % 2 == 0}),
        );
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let request = ListRequest { scope: project("p"), ..testing::list(cursor, 4) };
        let page = provider.list_records(request).unwrap();
        seen.extend(page.items.into_iter().map(|item| item.id));
        put(&mut provider, &project("p"), "id-00", "changed", &json!({}));
        put(&mut provider, &project("p"), "id-24", "changed", &json!({}));
        match page.continuation {
            Continuation::Next(next) => cursor = Some(next),
            _ => break,
        }
    }
    assert_eq!(seen, (0..25).map(|number| format!("id-{number:02}")).collect::<Vec<_>>());
    let odd = ListRequest {
        scope: project("p"),
        metadata_filter: Some(json!({"even": false}).to_string()),
        ..testing::list(None, 100)
    };
    assert_eq!(provider.list_records(odd).unwrap().items.len(), 12);
}

/// So many items in so many pages that one batch does not do: everything holds, before and after a
/// restart.
#[test]
fn a_change_of_many_pages_is_complete() {
    let mut provider = open();
    let many = |word: &str, range: std::ops::Range<usize>| {
        let mut request = testing::upsert("op", &[]);
        request.scope = project("p");
        request.records = range
            .map(|n| RecordWrite {
                id: Some(format!("i{n}")),
                text: format!("{word} w{n}"),
                ..RecordWrite::default()
            })
            .collect();
        request
    };
    for start in (0..10_000).step_by(1_000) {
        provider.upsert_records(many("early", start..start + 1_000)).unwrap();
    }
    let mut scattered = many("late", 0..1_000);
    for (n, record) in scattered.records.iter_mut().enumerate() {
        record.id = Some(format!("i{}", n * 10));
    }
    provider.upsert_records(scattered).unwrap();
    for round in 0..2 {
        assert_eq!(ids(&mut provider, &project("p"), "late").len(), 10, "{round}");
        assert_eq!(ids(&mut provider, &project("p"), "w9999"), ["i9999"], "{round}");
        assert!(!ids(&mut provider, &project("p"), "w50").contains(&"i50".to_owned()), "{round}");
        provider = testing::reopen().unwrap();
    }
}

/// A crash between the items and their pages leaves a list of ids, and the next open does the rest.
#[test]
fn an_interrupted_change_is_completed() {
    let mut provider = open();
    put(&mut provider, &project("p"), "kept", "gate one", &json!({}));
    put(&mut provider, &project("p"), "gone", "gate two", &json!({}));
    put(&mut provider, &project("p"), "changed", "gate three", &json!({}));
    let mut batch = storage::Batch::new();
    let changed = storage::get(b"i\0changed").unwrap().unwrap();
    let changed = String::from_utf8(changed).unwrap().replace("gate three", "door four");
    batch.put_raw(b"i\0changed".to_vec(), changed.into_bytes());
    batch.delete_raw(b"i\0gone".to_vec());
    batch.put_raw(b"d".to_vec(), json!(["changed", "gone"]).to_string().into_bytes());
    batch.apply().unwrap();
    let mut provider: CrossAgent = testing::reopen().unwrap();
    assert_eq!(ids(&mut provider, &project("p"), "gate"), ["kept"]);
    assert_eq!(ids(&mut provider, &project("p"), "door"), ["changed"]);
    assert!(storage::get("d").unwrap().is_none());
    let request = ListRequest { scope: project("p"), ..testing::list(None, 10) };
    assert_eq!(provider.list_records(request).unwrap().items.len(), 2);
}

#[test]
fn writes_of_another_instance_are_visible() {
    let mut first = open();
    put(&mut first, &project("p"), "a", "gate one", &json!({}));
    let mut second: CrossAgent = testing::reopen().unwrap();
    put(&mut second, &project("p"), "b", "gate two", &json!({}));
    assert_eq!(ids(&mut first, &project("p"), "two"), ["b"]);
    first.forget(testing::forget(vec!["b".into()], project("p"))).unwrap();
    assert!(ids(&mut second, &project("p"), "two").is_empty());
}

#[test]
fn a_wrong_configuration_is_named() {
    for (config, pointer) in [
        (json!({"language": "klingon"}), "/language"),
        (json!({"halfLifeDays": 0}), "/halfLifeDays"),
        (json!({"weights": {"recency": 1.5}}), "/weights/recency"),
        (json!({"weights": {"confidence": -1}}), "/weights/confidence"),
        (json!({"weights": {"words": 0}}), "/weights/words"),
        (json!({"weights": {"age": 1}}), "/weights/age"),
    ] {
        let errors =
            memhost_sdk::check_config::<CrossAgent>(&config.to_string()).map(drop).unwrap_err();
        assert_eq!(errors[0].pointer, pointer, "{errors:?}");
    }
    with(&json!({"language": "none", "halfLifeDays": 7, "weights": {"meaning": 2}}));
    let schema: Value =
        serde_json::from_str(&CrossAgent::describe().config_schema.unwrap()).unwrap();
    assert_eq!(schema["properties"]["halfLifeDays"]["default"], 30.0);
}
