//! Captures that claude-mem extracts from.

use memhost_claude_mem::ClaudeMem;
use memhost_sdk::testing::http::sent;
use memhost_sdk::testing::{capture, forget, list, query, scope};
use memhost_sdk::types::*;
use memhost_sdk::{Extraction, Provider};
use serde_json::json;

use super::{open, server};

fn residue(operation_id: &str, text: &str) -> CaptureRequest {
    CaptureRequest { mode: CaptureMode::CaptureResidue, ..capture(operation_id, text) }
}

#[test]
fn a_capture_is_observed_as_a_job() {
    let server = server::start();
    let mut mem = open(json!({}));
    let hook = HookContext {
        hook_kind: HookKind::PostRunCapture,
        triggered_at: "2026-03-01T12:00:00.5Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    };
    let request = CaptureRequest { hook: Some(hook), ..residue("Op", "I like green tea.") };
    let job = mem.capture(request.clone()).unwrap().jobs.remove(0);
    assert_eq!((job.provider_job_id.as_str(), job.status), ("memhost-_4fp", JobStatus::Running));
    assert_eq!(mem.capture(request).unwrap().jobs, std::slice::from_ref(&job));
    assert_eq!((server.borrow().uses.len(), server.borrow().sessions.len()), (1, 1));
    let imported =
        sent().into_iter().find(|sent| sent.path == "/api/import").unwrap().body["sessions"][0]
            .clone();
    assert_eq!(imported["started_at_epoch"], 1_772_366_400_500_u64);
    assert_eq!(
        mem.get_job(job.provider_job_id.clone()).unwrap().unwrap().job.status,
        JobStatus::Running
    );
    server.borrow_mut().observe();
    let done = mem.get_job(job.provider_job_id.clone()).unwrap().unwrap();
    assert_eq!(
        (done.job.status, done.records.as_slice()),
        (JobStatus::Succeeded, &["1".to_owned()][..])
    );
    assert_eq!(mem.get_job(job.provider_job_id).unwrap().unwrap(), done);
    let found = mem.query(query("green tea")).unwrap().snippets.remove(0);
    assert_eq!((found.id.as_str(), found.scope), ("1", Some(scope())));
    assert_eq!(found.text, "It was said\n\nI like green tea.\n\n- a fact");
    let outcomes = mem.forget(forget(vec![found.id], scope())).unwrap().outcomes;
    assert_eq!(
        outcomes[0].effect,
        ForgetEffect::HistoryKept,
        "the list of tool uses has what was said"
    );
}

#[test]
fn a_job_names_what_was_made_of_it_also_after_many_others() {
    let server = server::start();
    let mut mem = open(json!({}));
    let id = mem.capture(residue("op", "I like tea.")).unwrap().jobs.remove(0).provider_job_id;
    server.borrow_mut().observe();
    for _ in 0..200 {
        server.borrow_mut().put("memhost-company", &json!({"narrative": "other"}));
    }
    assert_eq!(mem.get_job(id).unwrap().unwrap().records, ["1"]);
    // It was deleted before anybody asked.
    let id = mem.capture(residue("op-2", "I like coffee.")).unwrap().jobs.remove(0).provider_job_id;
    server.borrow_mut().observe();
    server.borrow_mut().observations.remove(&202);
    assert!(mem.get_job(id).unwrap().unwrap().records.is_empty());
}

#[test]
fn what_is_extracted_stays_in_its_partition() {
    let server = server::start();
    let mut mem = open(json!({}));
    let of = |name: &str| Scope { agent_id: Some(name.to_owned()), ..Scope::company("company") };
    mem.capture(CaptureRequest { scope: of("a"), ..residue("op", "I like tea.") }).unwrap();
    server.borrow_mut().observe();
    let count = |mem: &mut ClaudeMem, scope: Scope| {
        let found = mem
            .query(QueryRequest { scope: scope.clone(), ..query("tea") })
            .unwrap()
            .snippets
            .len();
        (found, mem.list_records(ListRequest { scope, ..list(None, 10) }).unwrap().items.len())
    };
    assert_eq!((count(&mut mem, of("a")), count(&mut mem, of("b"))), ((1, 1), (0, 0)));
    assert_eq!(count(&mut mem, Scope::company("company")), (1, 1));
}

#[test]
fn a_job_ends_without_records_fails_or_is_not_known_any_more() {
    let server = server::start();
    let mut mem = open(json!({}));
    let begin = |mem: &mut ClaudeMem, op: &str, text: &str| {
        mem.capture(residue(op, text)).unwrap().jobs.remove(0).provider_job_id
    };
    let ended = |mem: &mut ClaudeMem, id: &str| mem.get_job(id.to_owned()).unwrap().unwrap();
    let id = begin(&mut mem, "op-1", "There is nothing better.");
    server.borrow_mut().observe();
    let none = ended(&mut mem, &id);
    assert_eq!((none.job.status, none.job.record_count), (JobStatus::Succeeded, Some(0)));
    let id = begin(&mut mem, "op-2", "I like tea.");
    assert!(matches!(mem.cancel_job(id.clone()), Err(Error::Unsupported(_))));
    server.borrow_mut().processing =
        json!({"isProcessing": false, "queueDepth": 0, "parkedSessions": 1});
    assert_eq!(ended(&mut mem, &id).job.status, JobStatus::Failed);
    assert!(matches!(mem.retry_job(id), Err(Error::Unsupported(_))));
    let id = begin(&mut mem, "op-3", "I like tea.");
    server.borrow_mut().uses.pop();
    assert_eq!(ended(&mut mem, &id).job.status, JobStatus::Failed);
    assert_eq!(mem.list_jobs(scope(), None, 10).unwrap().jobs.len(), 3);
    assert!(mem.get_job("nobody".to_owned()).unwrap().is_none());
}

#[test]
fn what_was_recalled_is_left_out() {
    let server = server::start();
    let mut mem = open(json!({}));
    let recalled = "<memhost-recall>I like old tea.</memhost-recall>";
    mem.capture(residue("op", &format!("{recalled}I like tea."))).unwrap();
    assert!(mem.capture(residue("op-2", recalled)).unwrap().jobs.is_empty());
    assert_eq!(
        (server.borrow().uses.len(), &server.borrow().uses[0]["said"]),
        (1, &json!("I like tea."))
    );
    assert_eq!(
        open(json!({"infer": "never"})).capture(residue("op", "one")).unwrap().records.len(),
        1
    );
    assert_eq!(
        open(json!({"infer": "always"})).capture(capture("op", "one")).unwrap().jobs.len(),
        1
    );
}
