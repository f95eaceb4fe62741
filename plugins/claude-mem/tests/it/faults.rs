//! A claude-mem that is limited, fails, is slow, cuts connections, answers nonsense or names other observations: what is
//! written is there once, and what is not there is not told as written.

use std::rc::Rc;

use memhost_claude_mem::ClaudeMem;
use memhost_sdk::testing::faults::{Fault, Requests, everywhere, serve};
use memhost_sdk::testing::{capture, forget, list, query, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Correction, Extraction, Provider};
use serde_json::json;

use super::open;
use super::server::Server;

/// A server of which the request `number` has a fault.
fn faulty(number: usize, fault: Fault) -> (Server, Requests) {
    let server = Server::default();
    let inner = Rc::clone(&server);
    let other_ids = |body: &str| body.replace("\"id\":", "\"id\":9");
    (server, serve(move |sent| inner.borrow_mut().answer(sent), number, fault, other_ids))
}

fn sorted(server: &Server) -> Vec<String> {
    let mut texts: Vec<_> = server.borrow().texts().into_iter().map(str::to_owned).collect();
    texts.sort();
    texts
}

fn listed(mem: &mut ClaudeMem) -> Vec<String> {
    let mut texts: Vec<_> = mem.list_records(list(None, 10)).unwrap().items.into_iter().map(|item| item.text).collect();
    texts.sort();
    texts
}

#[test]
fn a_capture_is_written_once() {
    everywhere(|number, fault| {
        let (server, requests) = faulty(number, fault);
        let mut mem = open(json!({}));
        let first = mem.capture(capture("op", "one"));
        let sent = requests.stop();
        if let Ok(first) = &first {
            assert_eq!((sorted(&server), &first.records), (vec!["one".to_owned()], &vec!["1".to_owned()]));
        }
        let again = mem.capture(capture("op", "one")).unwrap();
        assert_eq!(server.borrow().texts(), ["one"], "{fault:?} at {number}: {first:?}");
        assert_eq!(again.records, ["1"], "{fault:?} at {number}");
        sent
    });
}

#[test]
fn a_capture_is_observed_once() {
    everywhere(|number, fault| {
        let (server, requests) = faulty(number, fault);
        let mut mem = open(json!({"infer": "always"}));
        let first = mem.capture(capture("op", "one"));
        let sent = requests.stop();
        let again = mem.capture(capture("op", "one")).unwrap();
        assert_eq!((server.borrow().uses.len(), again.jobs.len()), (1, 1), "{fault:?} at {number}: {first:?}");
        server.borrow_mut().observe();
        assert_eq!(mem.get_job(again.jobs[0].provider_job_id.clone()).unwrap().unwrap().records, ["1"]);
        sent
    });
}

#[test]
fn every_record_of_an_upsert_is_written_once() {
    everywhere(|number, fault| {
        let (server, requests) = faulty(number, fault);
        let mut mem = open(json!({}));
        let given = RecordWrite { id: Some("given".to_owned()), text: "three".to_owned(), ..RecordWrite::default() };
        let request = || {
            let mut request = upsert("op", &["one", "two"]);
            request.records.push(given.clone());
            request
        };
        let first = mem.upsert_records(request());
        let sent = requests.stop();
        if first.is_ok() {
            assert_eq!(sorted(&server), ["one", "three", "two"], "{fault:?} at {number}: told as written");
        }
        for id in mem.upsert_records(request()).unwrap().records {
            assert!(mem.get_record(id, scope()).unwrap().snippet.is_some(), "{fault:?} at {number}");
        }
        assert_eq!(sorted(&server), ["one", "three", "two"], "{fault:?} at {number}: {first:?}");
        sent
    });
}

#[test]
fn a_record_is_always_there_while_another_takes_its_place() {
    for id in [None, Some("given".to_owned())] {
        everywhere(|number, fault| {
            let (server, requests) = faulty(number, fault);
            requests.stop();
            let mut mem = open(json!({}));
            let record = |text: &str| RecordWrite { id: id.clone(), text: text.to_owned(), ..RecordWrite::default() };
            let write = UpsertRequest { records: vec![record("one")], ..upsert("op", &[]) };
            let id = mem.upsert_records(write).unwrap().records.remove(0);
            requests.start();
            let correct = |mem: &mut ClaudeMem, text: &str| {
                let patch = Patch::Replacement(RecordWrite { text: text.to_owned(), ..RecordWrite::default() });
                mem.correct(CorrectRequest { operation_id: text.to_owned(), id: id.clone(), scope: scope(), patch })
            };
            let first = correct(&mut mem, "two");
            let sent = requests.stop();
            let now = listed(&mut mem);
            if first.is_ok() {
                assert_eq!(
                    (&now, sorted(&server)),
                    (&vec!["two".to_owned()], vec!["two".to_owned()]),
                    "{fault:?} at {number}"
                );
            }
            assert!(now == ["one"] || now == ["two"], "{fault:?} at {number}: {first:?}: {now:?}");
            let got = mem.get_record(id.clone(), scope()).unwrap().snippet.unwrap().text;
            assert_eq!(now, [got], "{fault:?} at {number}");
            correct(&mut mem, "two").unwrap();
            assert_eq!(
                (listed(&mut mem), sorted(&server)),
                (vec!["two".to_owned()], vec!["two".to_owned()]),
                "{fault:?} at {number}"
            );
            let outcomes = mem.forget(forget(vec![id.clone()], scope())).unwrap().outcomes;
            assert_eq!((outcomes[0].effect, sorted(&server).len()), (ForgetEffect::Hard, 0));
            sent
        });
    }
}

#[test]
fn a_record_is_told_as_forgotten_only_if_it_is_gone() {
    everywhere(|number, fault| {
        let (server, requests) = faulty(number, fault);
        requests.stop();
        let mut mem = open(json!({}));
        let id = mem.capture(capture("op", "one")).unwrap().records.remove(0);
        requests.start();
        let first = mem.forget(forget(vec![id.clone()], scope()));
        let sent = requests.stop();
        if let Ok(first) = &first {
            assert_eq!(first.outcomes[0].effect, ForgetEffect::Hard, "{fault:?} at {number}");
            assert!(server.borrow().observations.is_empty(), "{fault:?} at {number}");
        }
        mem.forget(forget(vec![id], scope())).unwrap();
        assert!(server.borrow().observations.is_empty(), "{fault:?} at {number}: {first:?}");
        sent
    });
}

#[test]
fn a_query_answers_or_fails_and_changes_nothing() {
    everywhere(|number, fault| {
        let (server, requests) = faulty(number, fault);
        requests.stop();
        let mut mem = open(json!({}));
        mem.capture(capture("op", "one")).unwrap();
        requests.start();
        match mem.query(query("which one")) {
            Ok(found) => assert_eq!(found.snippets[0].text, "one", "{fault:?}"),
            Err(error) => assert!(matches!(fault, Fault::Nonsense | Fault::OtherShape), "{fault:?}: {error:?}"),
        }
        assert_eq!(server.borrow().texts(), ["one"]);
        requests.stop()
    });
}
