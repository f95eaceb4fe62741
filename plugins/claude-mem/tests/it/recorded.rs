//! The provider against what the real worker answered. `just vendors-record` starts that worker and
//! runs this test with `MEMHOST_RECORD_CLAUDE_MEM`, which sends the requests there and writes the
//! recording anew.

use std::time::Duration;

use memhost_claude_mem::ClaudeMem;
use memhost_sdk::testing::recorded::Recording;
use memhost_sdk::testing::{capture, forget, list, query, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Browse, Correction, Extraction, Health, Provider};
use serde_json::json;

use super::open;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded/worker.jsonl");
const ADDRESS: &str = "MEMHOST_RECORD_CLAUDE_MEM";

/// Asks until the job has ended.
fn ended(mem: &mut ClaudeMem, id: &str) -> JobResult {
    loop {
        if std::env::var_os(ADDRESS).is_some() {
            std::thread::sleep(Duration::from_millis(200));
        }
        let found = mem.get_job(id.to_owned()).unwrap().unwrap();
        if found.job.status != JobStatus::Running {
            return found;
        }
    }
}

fn residue(operation_id: &str, text: &str) -> CaptureRequest {
    let hook = HookContext {
        hook_kind: HookKind::PostRunCapture,
        triggered_at: "2026-11-23T12:00:00Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    };
    CaptureRequest {
        mode: CaptureMode::CaptureResidue,
        hook: Some(hook),
        ..capture(operation_id, text)
    }
}

/// What the provider does with an empty project, and what must come out.
fn work_with(mem: &mut ClaudeMem) {
    assert!(mem.check_health().unwrap().summary.starts_with("claude-mem 13.25"));
    assert!(mem.list_records(list(None, 2)).unwrap().items.is_empty());

    let green = mem.capture(capture("op-1", "The gate is green.")).unwrap().records.remove(0);
    assert_eq!(
        mem.capture(capture("op-1", "The gate is green.")).unwrap().records,
        std::slice::from_ref(&green)
    );
    let write = |text: &str| UpsertRequest {
        records: vec![RecordWrite {
            id: Some("Fact 1".to_owned()),
            text: text.to_owned(),
            metadata: Some(r#"{"topic":"door","n":1.50}"#.to_owned()),
            expires_at: Some("2030-01-01T12:00:00Z".to_owned()),
            ..RecordWrite::default()
        }],
        ..upsert(text, &[])
    };
    assert_eq!(mem.upsert_records(write("  The door is red.\n")).unwrap().records, ["Fact 1"]);
    assert_eq!(mem.upsert_records(write("  The door is blue.\n")).unwrap().records, ["Fact 1"]);

    let said = "user: I like green tea. I like oolong tea.\n\nassistant: There is nothing better.";
    let job = mem.capture(residue("op-2", said)).unwrap().jobs.remove(0);
    assert_eq!(mem.capture(residue("op-2", said)).unwrap().jobs, std::slice::from_ref(&job));
    let learnt = ended(mem, &job.provider_job_id);
    assert_eq!((learnt.job.status, learnt.records.len()), (JobStatus::Succeeded, 2), "{learnt:?}");
    let nothing = mem
        .capture(residue("op-3", "There is nothing to say."))
        .unwrap()
        .jobs
        .remove(0)
        .provider_job_id;
    let nothing = ended(mem, &nothing).job;
    assert_eq!((nothing.status, nothing.record_count), (JobStatus::Succeeded, Some(0)));

    let hits = mem.query(query("which colour is the gate?")).unwrap().snippets;
    assert_eq!(
        (hits[0].id.as_str(), hits[0].text.as_str()),
        (green.as_str(), "The gate is green.")
    );
    assert!(hits.iter().all(|hit| hit.score == Score::None));
    let filter = |json: &str| QueryRequest {
        metadata_filter: Some(json.to_owned()),
        ..query("door gate tea")
    };
    let found = mem.query(filter(r#"{"topic":"door"}"#)).unwrap().snippets;
    assert_eq!((found.len(), found[0].text.as_str()), (1, "  The door is blue.\n"));
    assert_eq!(found[0].metadata.as_deref(), Some(r#"{"topic":"door","n":1.50}"#));
    let other = Scope { agent_id: Some("other".to_owned()), ..Scope::company("company") };
    assert!(
        mem.query(QueryRequest { scope: other, ..query("gate tea") }).unwrap().snippets.is_empty()
    );
    assert!(mem.query(query("\"quoted\" AND (nothing OR *")).unwrap().snippets.is_empty());

    let first = mem.list_records(list(None, 2)).unwrap();
    let Continuation::Next(cursor) = first.continuation else { panic!("there are four") };
    let second = mem.list_records(list(Some(cursor), 10)).unwrap();
    assert_eq!(
        (first.items.len(), second.items.len(), second.continuation),
        (2, 2, Continuation::End)
    );
    let children = |mem: &mut ClaudeMem, path: &str| {
        let page = mem.list_children(path.to_owned(), scope(), None, 10).unwrap();
        page.nodes.into_iter().map(|node| node.label).collect::<Vec<_>>()
    };
    assert_eq!(children(mem, "").len(), 4);
    assert_eq!(children(mem, &green).len(), 3, "{:?}", children(mem, &green));
    assert!(mem.list_children("99999".to_owned(), scope(), None, 10).is_err());

    let patch = Patch::Replacement(RecordWrite {
        text: "The gate is yellow.".to_owned(),
        ..RecordWrite::default()
    });
    let request = CorrectRequest {
        operation_id: "op-4".to_owned(),
        id: green.clone(),
        scope: scope(),
        patch,
    };
    assert_eq!(mem.correct(request).unwrap().record_id, green);
    assert_eq!(
        mem.get_record(green.clone(), scope()).unwrap().snippet.unwrap().text,
        "The gate is yellow."
    );

    let gone = ["99999", "nobody"].map(str::to_owned);
    assert!(gone.iter().all(|id| mem.get_record(id.clone(), scope()).unwrap().snippet.is_none()));
    let mut ids = vec![green.clone(), "Fact 1".to_owned(), gone[0].clone(), green];
    ids.extend(learnt.records);
    let outcomes = mem.forget(forget(ids, scope())).unwrap().outcomes;
    let effects: Vec<_> = outcomes.into_iter().map(|outcome| outcome.effect).collect();
    let (hard, none, kept) =
        (ForgetEffect::Hard, ForgetEffect::NotFound, ForgetEffect::HistoryKept);
    assert_eq!(effects, [hard, hard, none, none, kept, kept]);
    assert!(mem.list_records(list(None, 2)).unwrap().items.is_empty());
}

#[test]
fn the_worker_answers_as_expected() {
    let mut mem = open(json!({}));
    let recording = Recording::serve(FILE, "claude-mem 13.25.3", ADDRESS, &[], &[]);
    work_with(&mut mem);
    recording.end();
}
