//! Captures that OpenViking extracts from.

use memhost_openviking::OpenViking;
use memhost_sdk::testing::{self, capture, query, scope};
use memhost_sdk::types::*;
use memhost_sdk::{Extraction, Provider};
use serde_json::json;

use super::{open, server};

fn residue(operation_id: &str, text: &str) -> CaptureRequest {
    CaptureRequest { mode: CaptureMode::CaptureResidue, ..capture(operation_id, text) }
}

fn status(viking: &mut OpenViking, id: &str) -> JobStatus {
    viking.get_job(id.to_owned()).unwrap().unwrap().job.status
}

#[test]
fn a_session_is_extracted_from_as_a_job() {
    let server = server::start();
    let mut viking = open(json!({}));
    let job = viking.capture(residue("Op", "I like green tea.")).unwrap().jobs.remove(0);
    assert_eq!((job.provider_job_id.as_str(), job.status), ("memhost-_4fp", JobStatus::Running));
    let again = viking.capture(residue("Op", "I like green tea.")).unwrap();
    assert_eq!(
        (again.jobs[0].provider_job_id.as_str(), server.borrow().tasks.len()),
        ("memhost-_4fp", 1)
    );
    assert_eq!(status(&mut viking, "memhost-_4fp"), JobStatus::Running);
    server.borrow_mut().extract(0);
    let done = viking.get_job(job.provider_job_id.clone()).unwrap().unwrap();
    assert_eq!(
        (done.job.status, done.job.record_count, done.records.len()),
        (JobStatus::Succeeded, Some(1), 1)
    );
    let tokens =
        (done.usage[0].input_tokens, done.usage[0].output_tokens, done.usage[0].embedding_tokens);
    assert_eq!(tokens, (Some(7), Some(3), Some(5)));
    assert!(server.borrow().sessions.is_empty(), "what was said is removed");
    assert_eq!(
        viking.get_job(job.provider_job_id).unwrap().unwrap(),
        done,
        "an end does not change"
    );
    let found = viking.query(query("tea")).unwrap().snippets.remove(0);
    assert_eq!((found.id, found.scope), (done.records[0].clone(), Some(scope())));
    let listed = viking.list_jobs(scope(), None, 10).unwrap().jobs;
    assert_eq!((listed.len(), listed[0].provider_job_id.as_str()), (1, "memhost-_4fp"));
    assert!(viking.list_jobs(Scope::company("other"), None, 10).unwrap().jobs.is_empty());
}

#[test]
fn what_is_extracted_stays_in_its_partition() {
    let server = server::start();
    let mut viking = open(json!({}));
    let of = |name: &str| Scope { agent_id: Some(name.to_owned()), ..Scope::company("company") };
    viking.capture(CaptureRequest { scope: of("a"), ..residue("op", "I like tea.") }).unwrap();
    server.borrow_mut().extract(0);
    let count = |viking: &mut OpenViking, scope: Scope| {
        let found = viking
            .query(QueryRequest { scope: scope.clone(), ..query("tea") })
            .unwrap()
            .snippets
            .len();
        (
            found,
            viking
                .list_records(ListRequest { scope, ..testing::list(None, 10) })
                .unwrap()
                .items
                .len(),
        )
    };
    assert_eq!((count(&mut viking, of("a")), count(&mut viking, of("b"))), ((1, 1), (0, 0)));
    assert_eq!(count(&mut viking, Scope::company("company")), (1, 1));
    assert_eq!(count(&mut viking, Scope::company("other")), (0, 0));
    let long = CaptureRequest { scope: of(&"a".repeat(200)), ..residue("op-2", "I like tea.") };
    assert!(matches!(viking.capture(long), Err(Error::Unsupported(_))));
}

#[test]
fn turns_are_messages_and_what_was_recalled_is_left_out() {
    let server = server::start();
    let mut viking = open(json!({}));
    let turn =
        |role: &str, text: String| Turn { role: role.to_owned(), name: None, text, at: None };
    let recalled = "<memhost-recall>I like old tea.</memhost-recall>";
    let turns = (0..130).map(|n| turn("user", format!("I like tea {n}."))).chain([
        turn("assistant", format!("{recalled}There is nothing better.")),
        turn("user", recalled.to_owned()),
    ]);
    let payload = SourcePayload { turns: turns.collect(), ..SourcePayload::default() };
    viking.capture(CaptureRequest { payload, ..residue("op", "") }).unwrap();
    let said = server.borrow().tasks[0]["said"].clone();
    assert_eq!(
        (said.as_array().unwrap().len(), &said[130]["content"]),
        (131, &json!("There is nothing better."))
    );
    assert_eq!((&said[129]["role"], &said[130]["role"]), (&json!("user"), &json!("assistant")));
    assert!(viking.capture(residue("op-2", recalled)).unwrap().jobs.is_empty());
    assert_eq!(server.borrow().tasks.len(), 1);
}

#[test]
fn a_job_fails_is_cancelled_or_is_not_known_any_more() {
    let server = server::start();
    let mut viking = open(json!({}));
    let ids: Vec<_> = ["op-0", "op-1", "op-2"]
        .map(|op| {
            viking.capture(residue(op, "I like tea.")).unwrap().jobs.remove(0).provider_job_id
        })
        .to_vec();
    server.borrow_mut().tasks[0]["status"] = json!("failed");
    server.borrow_mut().tasks[0]["error"] = json!("no model");
    let failed = viking.get_job(ids[0].clone()).unwrap().unwrap().job;
    assert_eq!(
        (failed.status, failed.error.as_deref(), failed.is_retryable),
        (JobStatus::Failed, Some("no model"), false)
    );
    assert!(matches!(viking.retry_job(ids[0].clone()), Err(Error::Unsupported(_))));
    assert_eq!(viking.cancel_job(ids[0].clone()).unwrap().status, JobStatus::Failed);

    assert_eq!(
        viking.cancel_job(ids[1].clone()).unwrap().status,
        JobStatus::Running,
        "OpenViking is still at it"
    );
    server.borrow_mut().tasks[1]["status"] = json!("cancelled");
    assert_eq!(status(&mut viking, &ids[1]), JobStatus::Cancelled);

    server.borrow_mut().tasks.pop();
    assert_eq!(status(&mut viking, &ids[2]), JobStatus::Failed);
    assert!(viking.get_job("nobody".to_owned()).unwrap().is_none());
    assert!(matches!(viking.run_job("nobody".to_owned()), Err(Error::NotFound(_))));
    assert!(server.borrow().sessions.is_empty());
}

#[test]
fn what_is_extracted_from_can_be_chosen() {
    let server = server::start();
    assert_eq!(
        open(json!({"infer": "never"})).capture(residue("op", "one")).unwrap().records.len(),
        1
    );
    assert_eq!(
        open(json!({"infer": "always"})).capture(capture("op", "one")).unwrap().jobs.len(),
        1
    );
    assert_eq!(server.borrow().tasks.len(), 1);
}
