//! The contract through the real host, with the built-in provider and with the guest `reference`,
//! which keeps its records in `storage`.

use std::collections::BTreeSet;

use memhost_core::{ServiceError, UpdateBinding};
use memhost_tests::{
    TestHost, agent_scope, at, caller, capture, forget, get, list, parse, query, scope, upsert,
};
use memhost_types::{
    BindingLimits, BindingPolicy, CorrectRequest, CorrectionPatch, ForgetEffect, JsonObject,
    OperationErrorCode, OperationKind, RecordHandle, RecordWrite, ScoreKind, Sharing, SourceKind,
    SourceRef, UpsertRequest,
};

/// Runs a test against each provider.
macro_rules! for_each_provider {
    ($($name:ident),+ $(,)?) => {
        mod local_markdown {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(super::ready("local-markdown").await, "local-markdown").await;
            })+
        }
        mod reference {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(super::ready("reference").await, "reference").await;
            })+
        }
    };
}

for_each_provider!(
    a_record_comes_back_as_it_was_written,
    companies_and_agents_are_isolated,
    a_list_is_complete_while_others_write,
    writing_under_an_id_replaces,
    equal_hooks_are_two_captures,
    a_forgotten_record_is_gone,
    unknown_handles_are_not_an_error,
    metadata_filters_hold,
    unusual_texts_come_back_unchanged,
    a_restart_loses_nothing,
    scores_are_ordered,
    several_records_are_written_or_none,
);

async fn ready(provider: &str) -> TestHost {
    let host = TestHost::new(&["reference"]).await.unwrap();
    for company in ["acme", "zeta"] {
        host.bind(company, provider, BindingLimits::default()).await.unwrap();
    }
    host
}

#[allow(clippy::needless_pass_by_value, reason = "so that a test can write json!({}) in place")]
fn object(json: serde_json::Value) -> JsonObject {
    json.as_object().unwrap().clone()
}

fn one(text: &str, id: Option<&str>) -> UpsertRequest {
    let record = RecordWrite { id: id.map(parse), text: text.to_owned(), ..RecordWrite::default() };
    UpsertRequest { records: vec![record], ..upsert("acme", &[]) }
}

async fn a_record_comes_back_as_it_was_written(host: TestHost, provider: &str) {
    let source = SourceRef {
        issue_id: Some("issue-1".to_owned()),
        document_key: Some("plan/overview.md".to_owned()),
        ..SourceRef::new(SourceKind::IssueDocument, parse("acme"))
    };
    let metadata =
        object(serde_json::json!({"a": {"b": [1, 2.5, null, "x"]}, "tags": ["one", "two"]}));
    let request = UpsertRequest {
        source: Some(source.clone()),
        records: vec![RecordWrite {
            text: "# Heading\n\n---\nquarterly numbers\r\n".to_owned(),
            summary: Some("numbers: the summary".to_owned()),
            metadata: Some(metadata.clone()),
            ..RecordWrite::default()
        }],
        ..upsert("acme", &[])
    };
    let written = host.service().operations().upsert(&caller(), request).await.unwrap();
    assert_eq!(written.records[0].provider_key.as_str(), provider);
    let found = host
        .service()
        .operations()
        .get(&caller(), get("acme", &written.records[0]))
        .await
        .unwrap()
        .record
        .unwrap();
    assert_eq!(found.text, "# Heading\n\n---\nquarterly numbers\r\n");
    assert_eq!(found.summary.as_deref(), Some("numbers: the summary"));
    assert_eq!(found.metadata, Some(metadata));
    assert_eq!(
        found.source,
        Some(SourceRef { asserted_by: Some("operator".to_owned()), ..source })
    );
    let hit = &host.query("acme", "quarterly numbers").await.unwrap()[0];
    assert_eq!(hit.handle, written.records[0]);
}

async fn companies_and_agents_are_isolated(host: TestHost, provider: &str) {
    // What an agent writes is the company's, unless the binding keeps it apart.
    let mut noted = upsert("acme", &["a lesson for everybody"]);
    noted.scope = agent_scope("acme", "ada");
    let noted =
        host.service().operations().upsert(&caller(), noted).await.unwrap().records[0].clone();
    let mut common = get("acme", &noted);
    common.scope = agent_scope("acme", "bob");
    assert!(host.service().operations().get(&caller(), common).await.unwrap().record.is_some());
    host.service().operations().forget(&caller(), forget("acme", &[noted])).await.unwrap();
    let policy = BindingPolicy { sharing: Sharing::PerAgent, ..BindingPolicy::default() };
    let change = UpdateBinding { policy: Some(policy), ..UpdateBinding::default() };
    host.service()
        .control()
        .update_binding(&caller(), &parse("acme"), &parse(provider), change)
        .await
        .unwrap();
    let shared = host.write("acme", "acme wide parking rules").await.unwrap();
    let mut private = upsert("acme", &["ada's parking secret"]);
    private.scope = agent_scope("acme", "ada");
    let private =
        host.service().operations().upsert(&caller(), private).await.unwrap().records[0].clone();
    let texts = |scope: memhost_types::Scope| {
        let service = host.service();
        async move {
            let mut request = query("acme", "parking");
            request.scope = scope;
            let found = service.operations().query(&caller(), request).await.unwrap().snippets;
            found.into_iter().map(|snippet| snippet.text).collect::<BTreeSet<_>>()
        }
    };
    assert_eq!(texts(agent_scope("acme", "ada")).await.len(), 2);
    assert_eq!(
        texts(agent_scope("acme", "bob")).await,
        BTreeSet::from(["acme wide parking rules".to_owned()])
    );
    assert_eq!(host.query("zeta", "parking").await.unwrap().len(), 0);
    // Not by handle either, for the other agent and for the other company.
    let mut foreign = get("acme", &private);
    foreign.scope = agent_scope("acme", "bob");
    assert!(host.service().operations().get(&caller(), foreign).await.unwrap().record.is_none());
    assert!(
        host.service()
            .operations()
            .get(&caller(), get("zeta", &shared))
            .await
            .unwrap()
            .record
            .is_none()
    );
    let mut foreign = forget("acme", std::slice::from_ref(&private));
    foreign.scope = agent_scope("acme", "bob");
    let outcome = host.service().operations().forget(&caller(), foreign).await.unwrap();
    assert_eq!(outcome.outcomes[0].effect, ForgetEffect::NotFound);
    let outcome = host
        .service()
        .operations()
        .forget(&caller(), forget("zeta", std::slice::from_ref(&shared)))
        .await
        .unwrap();
    assert_eq!(outcome.outcomes[0].effect, ForgetEffect::NotFound);
    assert!(
        host.service()
            .operations()
            .get(&caller(), get("acme", &shared))
            .await
            .unwrap()
            .record
            .is_some()
    );
    let mut listed = list("acme", 100, None);
    listed.scope = agent_scope("acme", "bob");
    assert_eq!(host.service().operations().list(&caller(), listed).await.unwrap().items.len(), 1);
}

async fn a_list_is_complete_while_others_write(host: TestHost, _: &str) {
    let texts: Vec<String> = (0..30).map(|n| format!("standing record number {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let standing = host
        .service()
        .operations()
        .upsert(&caller(), upsert("acme", &texts))
        .await
        .unwrap()
        .records;
    let (mut seen, mut cursor, mut page) = (Vec::new(), None, 0);
    loop {
        let answer =
            host.service().operations().list(&caller(), list("acme", 7, cursor)).await.unwrap();
        seen.extend(answer.items.into_iter().map(|item| item.handle));
        // Between two pages a record is added, one is removed and one is changed.
        let passing = host.write("acme", &format!("passing {page}")).await.unwrap();
        host.service().operations().forget(&caller(), forget("acme", &[passing])).await.unwrap();
        host.service()
            .operations()
            .upsert(&caller(), one("changed", Some(standing[0].provider_record_id.as_str())))
            .await
            .unwrap();
        page += 1;
        match answer.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
        assert!(page < 20, "the list does not end");
    }
    for handle in &standing {
        assert_eq!(seen.iter().filter(|found| *found == handle).count(), 1, "{handle:?}");
    }
}

async fn writing_under_an_id_replaces(host: TestHost, _: &str) {
    for odd in ["plain", "with space/and slash", "../../escape", "ünïcödé-標識"] {
        let first = host
            .service()
            .operations()
            .upsert(&caller(), one("first text", Some(odd)))
            .await
            .unwrap();
        let second = host
            .service()
            .operations()
            .upsert(&caller(), one("second text", Some(odd)))
            .await
            .unwrap();
        assert_eq!(first.records, second.records);
        assert_eq!(first.records[0].provider_record_id.as_str(), odd);
        let found = host
            .service()
            .operations()
            .get(&caller(), get("acme", &first.records[0]))
            .await
            .unwrap()
            .record
            .unwrap();
        assert_eq!(found.text, "second text");
    }
    let all =
        host.service().operations().list(&caller(), list("acme", 100, None)).await.unwrap().items;
    assert_eq!(all.len(), 4);
    assert!(host.query("acme", "first").await.unwrap().is_empty());
}

async fn equal_hooks_are_two_captures(host: TestHost, _: &str) {
    let request = || {
        let mut request = capture("acme", "the run found a leak");
        request.hook = Some(memhost_types::HookContext {
            hook_kind: memhost_types::HookKind::PostRunCapture,
            hook_id: "hook-1".to_owned(),
            triggered_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            actor_agent_id: None,
            heartbeat_run_id: Some("run-1".to_owned()),
            asserted_by: None,
        });
        request
    };
    let first = host.service().operations().capture(&caller(), request()).await.unwrap();
    let second = host.service().operations().capture(&caller(), request()).await.unwrap();
    // They are two operations; `hooks` has the deliveries of one event.
    assert_ne!(first.records, second.records);
    assert_eq!(
        host.service()
            .operations()
            .list(&caller(), list("acme", 10, None))
            .await
            .unwrap()
            .items
            .len(),
        2
    );
}

async fn a_forgotten_record_is_gone(host: TestHost, _: &str) {
    let needle = "xylophonequarantine";
    let handle = host.write("acme", &format!("the word is {needle}")).await.unwrap();
    assert_eq!(host.query("acme", needle).await.unwrap().len(), 1);
    let outcome = host
        .service()
        .operations()
        .forget(&caller(), forget("acme", std::slice::from_ref(&handle)))
        .await
        .unwrap();
    assert_eq!(outcome.outcomes[0].effect, ForgetEffect::Hard);
    assert!(host.query("acme", needle).await.unwrap().is_empty());
    assert!(
        host.service()
            .operations()
            .get(&caller(), get("acme", &handle))
            .await
            .unwrap()
            .record
            .is_none()
    );
    assert!(
        host.service()
            .operations()
            .list(&caller(), list("acme", 10, None))
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let again =
        host.service().operations().forget(&caller(), forget("acme", &[handle])).await.unwrap();
    assert_eq!(again.outcomes[0].effect, ForgetEffect::NotFound);
    // The provider's files contain nothing of it. (The store is a log whose old pages are
    // overwritten later.)
    let memory = host.data_dir().join("memory");
    assert!(!memory.exists() || !holds(&memory, needle.as_bytes()), "a file still holds the text");
}

fn holds(directory: &std::path::Path, needle: &[u8]) -> bool {
    std::fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holds(&path, needle)
        } else {
            std::fs::read(&path).unwrap().windows(needle.len()).any(|window| window == needle)
        }
    })
}

async fn unknown_handles_are_not_an_error(host: TestHost, provider: &str) {
    let handle =
        RecordHandle { provider_key: parse(provider), provider_record_id: parse("no-such-record") };
    assert!(
        host.service()
            .operations()
            .get(&caller(), get("acme", &handle))
            .await
            .unwrap()
            .record
            .is_none()
    );
    let outcome =
        host.service().operations().forget(&caller(), forget("acme", &[handle])).await.unwrap();
    assert_eq!(outcome.outcomes[0].effect, ForgetEffect::NotFound);
    // A handle of another provider is a mistake of the caller.
    let foreign = RecordHandle { provider_key: parse("mem0"), provider_record_id: parse("x") };
    let error =
        host.service().operations().get(&caller(), get("acme", &foreign)).await.unwrap_err();
    let ServiceError::Operation { error, .. } = error else { panic!("{error}") };
    assert_eq!(
        (error.code, error.field.as_deref()),
        (OperationErrorCode::InvalidRequest, Some("handle"))
    );
}

async fn metadata_filters_hold(host: TestHost, _: &str) {
    for (text, team) in [("alpha meeting", "red"), ("beta meeting", "blue")] {
        let mut request = one(text, None);
        request.records[0].metadata = Some(object(serde_json::json!({"team": team, "n": 1})));
        host.service().operations().upsert(&caller(), request).await.unwrap();
    }
    let mut request = query("acme", "meeting");
    request.metadata_filter = Some(object(serde_json::json!({"team": "blue", "n": 1})));
    let found = host.service().operations().query(&caller(), request).await.unwrap().snippets;
    assert_eq!(
        found.iter().map(|snippet| snippet.text.as_str()).collect::<Vec<_>>(),
        ["beta meeting"]
    );
    let mut request = list("acme", 10, None);
    request.metadata_filter = Some(object(serde_json::json!({"team": "red"})));
    assert_eq!(
        host.service().operations().list(&caller(), request).await.unwrap().items[0].text,
        "alpha meeting"
    );
}

async fn unusual_texts_come_back_unchanged(host: TestHost, _: &str) {
    let mebibyte = "lorem ipsum dolor sit amet ".repeat(38_837)[..1 << 20].to_owned();
    let texts = [
        " a ",
        "---\ntitle: no front matter\n---\n",
        "emoji 🦀 und Umlaute äöü",
        "تجربة",
        "a\u{0}b",
        &mebibyte,
    ];
    for text in texts {
        let handle = host.write("acme", text).await.unwrap();
        let found = host
            .service()
            .operations()
            .get(&caller(), get("acme", &handle))
            .await
            .unwrap()
            .record
            .unwrap();
        assert!(found.text == text, "{:?} came back as {:?}", clip(text), clip(&found.text));
    }
    assert_eq!(host.query("acme", "Umlaute").await.unwrap()[0].text, "emoji 🦀 und Umlaute äöü");
    let over = format!("{mebibyte}x");
    let ServiceError::Operation { error, .. } = host.write("acme", &over).await.unwrap_err() else {
        panic!()
    };
    assert_eq!(error.field.as_deref(), Some("records.0.text"));
    for empty in ["", " "] {
        let ServiceError::Operation { error, .. } = host.write("acme", empty).await.unwrap_err()
        else {
            panic!()
        };
        assert_eq!(error.field.as_deref(), Some("records.0.text"), "{empty:?}");
    }
}

fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}

async fn a_restart_loses_nothing(mut host: TestHost, _: &str) {
    let handle = host.write("acme", "the archive opens at nine").await.unwrap();
    host.stop().await;
    host.start().await.unwrap();
    assert_eq!(host.query("acme", "archive opens").await.unwrap()[0].handle, handle);
    let operations = host.operations("acme").await.unwrap();
    assert_eq!(
        operations.iter().filter(|operation| operation.kind != OperationKind::Health).count(),
        2
    );
}

async fn scores_are_ordered(host: TestHost, _: &str) {
    for text in
        ["budget", "budget review of the budget", "a long note about many things and one budget"]
    {
        host.write("acme", text).await.unwrap();
    }
    let found = host.query("acme", "budget review").await.unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(found[0].text, "budget review of the budget");
    let scores: Vec<f64> = found.iter().filter_map(|snippet| snippet.score).collect();
    assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]), "{scores:?}");
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
    let kinds: BTreeSet<Option<bool>> = found
        .iter()
        .map(|snippet| snippet.score_kind.map(|kind| kind == ScoreKind::Rank))
        .collect();
    assert_eq!(kinds.len(), 1, "one result has one kind of score");
}

async fn several_records_are_written_or_none(host: TestHost, _: &str) {
    let mut request = upsert("acme", &["fine one", "fine two"]);
    request.records[1].text = "x".repeat((1 << 20) + 1);
    host.service().operations().upsert(&caller(), request).await.unwrap_err();
    assert!(
        host.service()
            .operations()
            .list(&caller(), list("acme", 10, None))
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let written = host
        .service()
        .operations()
        .upsert(&caller(), upsert("acme", &["fine one", "fine two"]))
        .await
        .unwrap();
    assert_eq!(written.records.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_correction_needs_a_provider_that_corrects() {
    let host = TestHost::new(&["reference", "echo"]).await.unwrap();
    host.bind("acme", "reference", BindingLimits::default()).await.unwrap();
    host.bind_as("acme", "plain", "echo", BindingLimits::default()).await.unwrap();
    let mut write = upsert("acme", &["the demo is on monday"]);
    write.binding_key = at("reference");
    let handle =
        host.service().operations().upsert(&caller(), write).await.unwrap().records[0].clone();
    let record =
        RecordWrite { text: "the demo is on tuesday".to_owned(), ..RecordWrite::default() };
    let mut request = CorrectRequest {
        binding_key: at("reference"),
        scope: scope("acme"),
        handle: handle.clone(),
        patch: CorrectionPatch { instruction: None, record: Some(record) },
    };
    let corrected = host.service().operations().correct(&caller(), request.clone()).await.unwrap();
    let mut wanted = get("acme", &corrected.record);
    wanted.binding_key = at("reference");
    let found = host.service().operations().get(&caller(), wanted).await.unwrap().record.unwrap();
    assert_eq!(found.text, "the demo is on tuesday");
    request.binding_key = at("plain");
    request.handle.provider_key = parse("echo");
    let ServiceError::Operation { error, .. } =
        host.service().operations().correct(&caller(), request).await.unwrap_err()
    else {
        panic!()
    };
    assert_eq!(error.code, OperationErrorCode::Unsupported);
}
