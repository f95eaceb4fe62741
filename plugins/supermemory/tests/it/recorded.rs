//! The provider against the stand-in for supermemory. `just vendors-record` starts it, runs this
//! test with `MEMHOST_RECORD_SUPERMEMORY`, and lets supermemory's SDK check each exchange.

use memhost_sdk::testing::recorded::Recording;
use memhost_sdk::testing::{self, capture, forget, list, query, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Correction, Erasure, Extraction, Health, Profile, Provider};

use super::open;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded/stand-in.jsonl");
const OF: &str = "the stand-in for supermemory, checked with its SDK 4.25.4";

fn residue(id: &str, agent: &str, text: &str) -> CaptureRequest {
    let scope = Scope { agent_id: Some(agent.to_owned()), ..scope() };
    CaptureRequest { mode: CaptureMode::CaptureResidue, scope, ..capture(id, text) }
}

fn other() -> Scope {
    Scope { agent_id: Some("other".to_owned()), ..scope() }
}

#[test]
fn supermemory_answers_as_expected() {
    let mut provider = open(serde_json::json!({"threshold": 0.2}));
    let bearer = [("authorization", "Bearer memhost-vendors-key")];
    let recording = Recording::serve(FILE, OF, "MEMHOST_RECORD_SUPERMEMORY", &bearer, &[]);
    let company = Scope::company("company");
    let erase =
        |id: &str| ForgetScopeRequest { operation_id: id.to_owned(), scope: company.clone() };
    provider.forget_scope(erase("op-0")).unwrap();
    assert!(provider.check_health().unwrap().summary.contains("documents"));

    // A capture is one memory, whoever repeats it.
    let green = provider.capture(capture("op-1", "The gate is green.")).unwrap().records.remove(0);
    assert_eq!(
        provider.capture(capture("op-1", "The gate is green.")).unwrap().records,
        [green.as_str()]
    );
    testing::lose_storage();
    let hook = HookContext {
        hook_kind: HookKind::ManualCapture,
        triggered_at: "2026-01-01T00:00:00Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    };
    let again = CaptureRequest { hook: Some(hook), ..capture("op-1", "The gate is green.") };
    assert_eq!(provider.capture(again).unwrap().records, [green.as_str()]);

    // A given id that exists gets another version.
    let write = |text: &str| UpsertRequest {
        records: vec![RecordWrite {
            id: Some("fact-1".to_owned()),
            text: text.to_owned(),
            metadata: Some(r#"{"topic":"door","n":1.50}"#.to_owned()),
            expires_at: Some("2040-01-01T12:00:00Z".to_owned()),
            ..RecordWrite::default()
        }],
        ..upsert(text, &[])
    };
    assert_eq!(provider.upsert_records(write("The door is red.")).unwrap().records, ["fact-1"]);
    assert_eq!(provider.upsert_records(write("The door is blue.")).unwrap().records, ["fact-1"]);
    let hits = provider.query(query("which colour is the gate?")).unwrap().snippets;
    assert_eq!(
        (hits[0].id.as_str(), hits[0].text.as_str()),
        (green.as_str(), "The gate is green.")
    );
    assert!(matches!(hits[0].score, Score::Similarity(score) if score > 0.3));
    let filter =
        |json: &str| QueryRequest { metadata_filter: Some(json.to_owned()), ..query("door gate") };
    let found = provider.query(filter(r#"{"topic":"door"}"#)).unwrap().snippets;
    assert_eq!(
        (found.len(), found[0].text.as_str(), found[0].id.as_str()),
        (1, "The door is blue.", "fact-1")
    );
    assert_eq!(found[0].metadata.as_deref(), Some(r#"{"topic":"door","n":1.50}"#));
    assert_eq!(found[0].expires_at.as_deref(), Some("2040-01-01T12:00:00Z"));
    assert!(provider.query(filter(r#"{"topic":"gate"}"#)).unwrap().snippets.is_empty());
    assert!(
        provider
            .query(QueryRequest { scope: other(), ..query("gate") })
            .unwrap()
            .snippets
            .is_empty()
    );

    let patch = Patch::Replacement(RecordWrite {
        text: "The gate is yellow.".to_owned(),
        ..RecordWrite::default()
    });
    let correct = CorrectRequest {
        operation_id: "op-3".to_owned(),
        id: green.clone(),
        scope: scope(),
        patch,
    };
    assert_eq!(provider.correct(correct).unwrap().record_id, green);
    assert_eq!(
        provider.get_record(green.clone(), scope()).unwrap().snippet.unwrap().text,
        "The gate is yellow."
    );

    // A document goes through its states, and its memories are of the agent that it came from.
    let text = "I like tea. <memhost-recall>The sea is wide.</memhost-recall>I like ships.";
    let job = provider.capture(residue("op-4", "agent", text)).unwrap().jobs.remove(0);
    let id = job.provider_job_id;
    assert_eq!(job.status, JobStatus::Running);
    assert_eq!(
        provider.capture(residue("op-4", "agent", text)).unwrap().jobs[0].provider_job_id,
        id
    );
    let mut done = provider.get_job(id.clone()).unwrap().unwrap();
    assert_eq!(done.job.status, JobStatus::Running);
    while done.job.status == JobStatus::Running {
        done = provider.get_job(id.clone()).unwrap().unwrap();
    }
    assert_eq!(
        (done.job.status, done.job.record_count, done.records.len()),
        (JobStatus::Succeeded, Some(2), 2)
    );
    let made = provider.get_record(done.records[0].clone(), scope()).unwrap().snippet.unwrap();
    assert_eq!(
        (made.id, made.scope.unwrap().agent_id.as_deref()),
        (done.records[0].clone(), Some("agent"))
    );
    assert!(
        provider
            .query(QueryRequest { scope: other(), ..query("what do I like?") })
            .unwrap()
            .snippets
            .is_empty()
    );
    assert_eq!(provider.query(query("what do I like?")).unwrap().snippets.len(), 2);
    let bad =
        provider.capture(residue("op-5", "agent", "This is impossible.")).unwrap().jobs.remove(0);
    let failed = provider.run_job(bad.provider_job_id).unwrap().job;
    assert_eq!((failed.status, failed.is_retryable), (JobStatus::Failed, false));
    assert_eq!(provider.list_jobs(scope(), None, 10).unwrap().jobs.len(), 2);

    // A memory that supermemory made has another id after it was corrected, and is found by the
    // first one.
    let (made, patch) = (
        done.records[0].clone(),
        RecordWrite { text: "I love ships.".to_owned(), ..Default::default() },
    );
    let patch = Patch::Replacement(patch);
    let correct =
        CorrectRequest { operation_id: "op-6".to_owned(), id: made.clone(), scope: scope(), patch };
    assert_eq!(provider.correct(correct).unwrap().record_id, made);
    assert_eq!(
        provider.get_record(made.clone(), scope()).unwrap().snippet.unwrap().text,
        "I love ships."
    );
    assert_eq!(provider.query(query("love ships")).unwrap().snippets[0].id, made);

    let profile = provider.get_profile(scope()).unwrap().summary.unwrap();
    assert!(profile.contains("- The gate is yellow.\n"), "{profile}");
    assert_eq!(provider.get_profile(other()).unwrap().summary, None);

    let first = provider.list_records(list(None, 3)).unwrap();
    let Continuation::Next(cursor) = first.continuation else { panic!("there are four") };
    assert_eq!(provider.list_records(list(Some(cursor), 3)).unwrap().items.len(), 1);
    let ids = vec![green, "fact-1".to_owned(), "nobody".to_owned(), made];
    let outcomes = provider.forget(forget(ids, scope())).unwrap().outcomes;
    let effects: Vec<_> = outcomes.into_iter().map(|outcome| outcome.effect).collect();
    let (soft, none) = (ForgetEffect::Soft, ForgetEffect::NotFound);
    assert_eq!(effects, [soft, soft, none, soft]);
    assert_eq!(provider.upsert_records(write("The door is new.")).unwrap().records, ["fact-1"]);
    assert_eq!(provider.forget_scope(erase("op-7")).unwrap().extent, Extent::Soft);
    assert!(provider.list_records(list(None, 3)).unwrap().items.is_empty());
    recording.end();
}
