//! Out and in.

use memhost_sdk::types::*;
use memhost_sdk::{Provider, Transfer, storage, testing};
use serde_json::{Value, json};

use crate::{ids, open, project, put};

fn export(provider: &mut memhost_cross_agent::CrossAgent, scope: &Scope) -> Vec<String> {
    let (mut chunks, mut cursor) = (Vec::new(), None);
    loop {
        let chunk = provider.export_records(scope.clone(), cursor).unwrap();
        assert!(
            chunk.lines.len() <= 1 << 20 && (chunk.lines.is_empty() || chunk.lines.ends_with('\n'))
        );
        chunks.push(chunk.lines);
        match chunk.next_cursor {
            Some(next) => cursor = Some(next),
            None => return chunks,
        }
    }
}

fn items() -> Vec<(Vec<u8>, Vec<u8>)> {
    storage::scan(b"i\0".to_vec()).map(Result::unwrap).collect()
}

#[test]
fn an_export_is_lossless_and_an_import_idempotent() {
    let mut provider = open();
    let company = Scope::company("company");
    let odd = json!({
        "confidence": 0.1, "tags": ["ä\n\u{0}"], "deep": {"n": [1.5e300, null]}, "type": "decision",
    });
    put(&mut provider, &project("p"), "odd/ id", "line one\r\nline two \u{2028}", &odd);
    let capture = CaptureRequest {
        payload: SourcePayload {
            text: Some("captured".into()),
            mime_type: Some("text/plain".into()),
            object: Some(json!({"a": 1}).to_string()),
            ..SourcePayload::default()
        },
        source: SourceRef { external_ref: Some("x:1".into()), ..testing::source() },
        ..testing::capture("op", "")
    };
    let id = provider.capture(capture).unwrap().records.remove(0);
    for number in 0..1_500 {
        put(
            &mut provider,
            &project("q"),
            &format!("n{number:04}"),
            &"word ".repeat(200),
            &json!({"n": number}),
        );
    }
    let (chunks, before) = (export(&mut provider, &company), items());
    assert!(chunks.len() > 1);
    let got = provider.get_record(id.clone(), testing::scope()).unwrap().snippet;
    let mut empty = open();
    let mut imported = 0;
    for chunk in &chunks {
        imported +=
            empty.import_records(testing::import(company.clone(), chunk.clone())).unwrap().imported;
    }
    assert_eq!((imported, items()), (1_502, before.clone()));
    for chunk in &chunks {
        let again = empty.import_records(testing::import(company.clone(), chunk.clone())).unwrap();
        assert_eq!(again.imported, 0);
    }
    assert_eq!(items(), before);
    assert_eq!(empty.get_record(id, testing::scope()).unwrap().snippet, got);
    assert_eq!(export(&mut empty, &company), chunks);
    assert_eq!(ids(&mut empty, &project("p"), "line two"), ["odd/ id"]);
    // Only what a project sees, where the scope says so: its own, and what belongs to no project.
    assert_eq!(export(&mut empty, &project("p")).concat().lines().count(), 2);
}

#[test]
fn one_bad_line_refuses_the_whole_import() {
    let mut provider = open();
    let good = json!({
        "id": "a", "content": "x", "createdAt": "2026-01-01T00:00:00Z",
        "updatedAt": "2026-01-01T00:00:00Z", "scope": {"agentId": "agent"},
    });
    let with = |name: &str, value: Value| {
        let mut line = good.clone();
        line["id"] = json!("b");
        line[name] = value;
        line.to_string()
    };
    let cases = [
        ("no json".to_owned(), "lines.1"),
        (with("id", json!("")), "lines.1"),
        (with("createdAt", json!("yesterday")), "lines.1"),
        (with("metadata", json!({"confidence": 2})), "lines.1.confidence"),
        (with("scope", json!({"agentId": "bob"})), "lines.1"),
        (with("colour", json!("red")), "lines.1"),
    ];
    for (bad, field) in cases {
        let error = provider
            .import_records(testing::import(testing::scope(), format!("{good}\n{bad}\n")))
            .unwrap_err();
        let Error::InvalidRequest(at) = error else { panic!("{error:?}") };
        assert_eq!(at.field.as_deref(), Some(field), "{at:?}");
    }
    assert!(items().is_empty());
    for (scope, unchanged) in [(testing::scope(), 0), (Scope::company("company"), 1)] {
        assert_eq!(
            provider.import_records(testing::import(scope, format!("{good}\n"))).unwrap().unchanged,
            unchanged
        );
    }
}
