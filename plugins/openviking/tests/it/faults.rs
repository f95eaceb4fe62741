//! An OpenViking that is limited, fails, is slow, cuts connections, answers nonsense or names other files: what is written
//! is there once, and what is not there is not told as written.

use std::rc::Rc;

use memhost_sdk::testing::faults::{Fault, Requests, everywhere, serve};
use memhost_sdk::testing::{capture, forget, query, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Correction, Extraction, Provider};
use serde_json::json;

use super::open;
use super::server::Server;

/// A server of which the request `number` has a fault.
fn faulty(number: usize, fault: Fault) -> (Server, Requests) {
    let server = Server::default();
    let inner = Rc::clone(&server);
    let other_ids = |body: &str| body.replace("/memhost/", "/elsewhere/").replace("task-", "other-");
    (server, serve(move |sent| inner.borrow_mut().answer(sent), number, fault, other_ids))
}

#[test]
fn a_capture_is_written_once() {
    everywhere(|number, fault| {
        let (server, requests) = faulty(number, fault);
        let mut viking = open(json!({}));
        let first = viking.capture(capture("op", "one"));
        let sent = requests.stop();
        if first.is_ok() {
            assert_eq!(server.borrow().texts(), ["one"], "{fault:?} at {number}: told as written");
        }
        let again = viking.capture(capture("op", "one")).unwrap();
        assert_eq!(server.borrow().texts(), ["one"], "{fault:?} at {number}: {first:?}");
        assert_eq!(again.records, ["memories/memhost/op.md"]);
        sent
    });
}

#[test]
fn a_session_is_committed_once_with_each_message_once() {
    everywhere(|number, fault| {
        let (server, requests) = faulty(number, fault);
        let mut viking = open(json!({"infer": "always"}));
        let turn = |n| Turn { role: "user".to_owned(), name: None, text: format!("I like tea {n}."), at: None };
        let payload = || SourcePayload { turns: (0..130).map(turn).collect(), ..SourcePayload::default() };
        let request = || CaptureRequest { payload: payload(), ..capture("op", "") };
        let first = viking.capture(request());
        let sent = requests.stop();
        let again = viking.capture(request()).unwrap();
        let server = server.borrow();
        assert_eq!((server.tasks.len(), again.jobs.len()), (1, 1), "{fault:?} at {number}: {first:?}");
        assert_eq!(server.tasks[0]["said"].as_array().unwrap().len(), 130, "{fault:?} at {number}: {first:?}");
        sent
    });
}

#[test]
fn the_end_of_a_job_is_told_once_it_is_known() {
    everywhere(|number, fault| {
        let (server, requests) = faulty(number, fault);
        requests.stop();
        let mut viking = open(json!({"infer": "always"}));
        let id = viking.capture(capture("op", "I like tea.")).unwrap().jobs.remove(0).provider_job_id;
        server.borrow_mut().extract(0);
        requests.start();
        drop(viking.get_job(id.clone()));
        let sent = requests.stop();
        let done = viking.get_job(id).unwrap().unwrap();
        let is_other = fault == Fault::OtherIds && done.records.is_empty();
        assert!(done.records.len() == 1 || is_other, "{fault:?} at {number}: {done:?}");
        sent
    });
}

#[test]
fn every_record_of_an_upsert_is_written_once() {
    everywhere(|number, fault| {
        let (server, requests) = faulty(number, fault);
        let mut viking = open(json!({}));
        let given = RecordWrite { id: Some("given".to_owned()), text: "three".to_owned(), ..RecordWrite::default() };
        let request = || {
            let mut request = upsert("op", &["one", "two"]);
            request.records.push(given.clone());
            request
        };
        let texts = || {
            let mut texts: Vec<_> = server.borrow().texts().into_iter().map(str::to_owned).collect();
            texts.sort();
            texts
        };
        let first = viking.upsert_records(request());
        let sent = requests.stop();
        if first.is_ok() {
            assert_eq!(texts(), ["one", "three", "two"], "{fault:?} at {number}: told as written");
        }
        for id in viking.upsert_records(request()).unwrap().records {
            assert!(viking.get_record(id, scope()).unwrap().snippet.is_some(), "{fault:?} at {number}");
        }
        assert_eq!(texts(), ["one", "three", "two"], "{fault:?} at {number}: {first:?}");
        sent
    });
}

#[test]
fn a_correction_is_told_as_done_only_if_it_is() {
    everywhere(|number, fault| {
        let (server, requests) = faulty(number, fault);
        requests.stop();
        let mut viking = open(json!({}));
        let id = viking.capture(capture("op", "one")).unwrap().records.remove(0);
        requests.start();
        let patch = Patch::Replacement(RecordWrite { text: "two".to_owned(), ..RecordWrite::default() });
        let request = CorrectRequest { operation_id: "op-2".to_owned(), id, scope: scope(), patch };
        let first = viking.correct(request.clone());
        let sent = requests.stop();
        if first.is_ok() {
            assert_eq!(server.borrow().texts(), ["two"], "{fault:?} at {number}");
        }
        viking.correct(request).unwrap();
        assert_eq!(server.borrow().texts(), ["two"]);
        sent
    });
}

#[test]
fn a_record_is_told_as_forgotten_only_if_it_is_gone() {
    everywhere(|number, fault| {
        let (server, requests) = faulty(number, fault);
        requests.stop();
        let mut viking = open(json!({}));
        let id = viking.capture(capture("op", "one")).unwrap().records.remove(0);
        requests.start();
        let first = viking.forget(forget(vec![id.clone()], scope()));
        let sent = requests.stop();
        if let Ok(first) = &first {
            assert_eq!(first.outcomes[0].effect, ForgetEffect::Hard, "{fault:?} at {number}");
            assert!(server.borrow().files.is_empty(), "{fault:?} at {number}");
        }
        viking.forget(forget(vec![id], scope())).unwrap();
        assert!(server.borrow().files.is_empty(), "{fault:?} at {number}: {first:?}");
        sent
    });
}

#[test]
fn a_query_answers_or_fails_and_changes_nothing() {
    everywhere(|number, fault| {
        let (server, requests) = faulty(number, fault);
        requests.stop();
        let mut viking = open(json!({}));
        viking.capture(capture("op", "one")).unwrap();
        requests.start();
        match viking.query(query("one")) {
            Ok(found) => assert_eq!(found.snippets[0].text, "one", "{fault:?}"),
            Err(error) => assert!(matches!(fault, Fault::Nonsense | Fault::OtherShape), "{fault:?}: {error:?}"),
        }
        assert_eq!(server.borrow().texts(), ["one"]);
        requests.stop()
    });
}
