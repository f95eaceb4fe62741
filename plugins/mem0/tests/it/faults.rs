//! A mem0 that is limited, fails, is slow, cuts connections, answers nonsense or names other ids: what is written is there
//! once, and what is not there is not told as written.

use std::cell::Cell;
use std::rc::Rc;

use memhost_sdk::http::{Failure, Phase};
use memhost_sdk::testing::http::Answer;
use memhost_sdk::testing::{capture, forget, query, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Correction, Provider};
use serde_json::json;

use super::open;
use super::server::{self, Server};

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Limited,
    /// Before or after the server did it.
    Fails(bool),
    Slow(bool),
    CutBefore,
    CutInBody,
    Nonsense,
    OtherShape,
    OtherId,
}

const ALL: [Fault; 10] = [
    Fault::Limited,
    Fault::Fails(false),
    Fault::Fails(true),
    Fault::Slow(false),
    Fault::Slow(true),
    Fault::CutBefore,
    Fault::CutInBody,
    Fault::Nonsense,
    Fault::OtherShape,
    Fault::OtherId,
];

impl Fault {
    fn happen(self, answer: &mut dyn FnMut() -> Answer) -> Result<Answer, Failure> {
        let broken = |phase, why: &str| Err(Failure::MaybeSent(phase, why.to_owned()));
        let text = |text: &str| Ok(Answer { status: 200, headers: Vec::new(), body: text.as_bytes().to_vec() });
        match self {
            Self::Limited => Ok(Answer::json(429, json!({"detail": "Rate limit"}))),
            Self::Fails(done) => {
                if done {
                    answer();
                }
                Ok(Answer::json(500, json!({"detail": "Upstream provider error."})))
            }
            Self::Slow(done) => {
                if done {
                    answer();
                }
                broken(Phase::Response, "took longer than 24000 ms")
            }
            Self::CutBefore => Err(Failure::NotSent("connection refused".to_owned())),
            Self::CutInBody => {
                answer();
                broken(Phase::Body, "the connection was cut")
            }
            Self::Nonsense => {
                answer();
                text("<html>502</html>")
            }
            Self::OtherShape => {
                answer();
                text(r#"{"status":"ok"}"#)
            }
            Self::OtherId => {
                let answer = answer();
                let changed = String::from_utf8(answer.body)
                    .unwrap()
                    .replace("00000000-0000-4000-8000", "ffffffff-0000-4000-8000");
                Ok(Answer { body: changed.into_bytes(), ..answer })
            }
        }
    }
}

/// A server of which the request `number`, from 0, has a fault; and how many requests there were.
fn faulty(number: usize, fault: Fault) -> (Server, Rc<Cell<usize>>) {
    let count = Rc::new(Cell::new(0));
    let counted = Rc::clone(&count);
    let server = server::start_behind(move |_, answer| {
        let now = counted.replace(counted.get() + 1);
        if now == number { fault.happen(answer) } else { Ok(answer()) }
    });
    (server, count)
}

/// A number of no request: from then on all is well.
const AFTER: usize = 1_000;

/// Each fault at each request of a call, until a call has no request of that number.
fn everywhere(api: &str, mut call: impl FnMut(&str, usize, Fault) -> usize) {
    for fault in ALL {
        let mut number = 0;
        while call(api, number, fault) > number {
            number += 1;
        }
        assert!(number > 0);
    }
}

#[test]
fn a_capture_is_written_once() {
    for api in ["self-hosted", "hosted"] {
        everywhere(api, |api, number, fault| {
            let (server, count) = faulty(number, fault);
            let mut mem0 = open(api, json!({}));
            let first = mem0.capture(capture("op", "one"));
            let requests = count.replace(AFTER);
            if let Ok(first) = &first {
                assert_eq!(server.borrow().texts(), ["one"], "{fault:?} at {number}: told as written");
                assert_eq!(json!(first.records), json!([server.borrow().memories[0]["id"]]), "{fault:?} at {number}");
            }
            let again = mem0.capture(capture("op", "one")).unwrap();
            assert_eq!(server.borrow().texts(), ["one"], "{fault:?} at {number}: {first:?}");
            assert_eq!(json!(again.records), json!([server.borrow().memories[0]["id"]]));
            requests
        });
    }
}

#[test]
fn extraction_is_asked_for_once() {
    for api in ["self-hosted", "hosted"] {
        everywhere(api, |api, number, fault| {
            let (server, count) = faulty(number, fault);
            let mut mem0 = open(api, json!({}));
            let request = || CaptureRequest { mode: CaptureMode::CaptureResidue, ..capture("op", "one") };
            drop(mem0.capture(request()));
            let requests = count.replace(AFTER);
            let again = mem0.capture(request()).unwrap();
            let server = server.borrow();
            assert_eq!(server.memories.len() + server.events.len(), 1, "{api}: {fault:?} at {number}");
            assert_eq!(again.records.len() + again.jobs.len(), 1);
            requests
        });
    }
}

#[test]
fn every_record_of_an_upsert_is_written_once() {
    everywhere("self-hosted", |api, number, fault| {
        let (server, count) = faulty(number, fault);
        let mut mem0 = open(api, json!({}));
        let given = RecordWrite { id: Some("given".to_owned()), text: "three".to_owned(), ..RecordWrite::default() };
        let request = || {
            let mut request = upsert("op", &["one", "two"]);
            request.records.push(given.clone());
            request
        };
        let first = mem0.upsert_records(request());
        let requests = count.replace(AFTER);
        if first.is_ok() {
            assert_eq!(server.borrow().texts(), ["one", "two", "three"], "{fault:?} at {number}: told as written");
        }
        let again = mem0.upsert_records(request()).unwrap();
        assert_eq!(server.borrow().texts(), ["one", "two", "three"], "{fault:?} at {number}: {first:?}");
        for id in again.records {
            assert!(mem0.get_record(id, scope()).unwrap().snippet.is_some(), "{fault:?} at {number}");
        }
        requests
    });
}

#[test]
fn a_correction_is_told_as_done_only_if_it_is() {
    everywhere("self-hosted", |api, number, fault| {
        let base = 2;
        let (server, count) = faulty(number + base, fault);
        let mut mem0 = open(api, json!({}));
        let id = mem0.capture(capture("op", "one")).unwrap().records.remove(0);
        assert_eq!(count.get(), base);
        let patch = Patch::Replacement(RecordWrite { text: "two".to_owned(), ..RecordWrite::default() });
        let request = CorrectRequest { operation_id: "op-2".to_owned(), id, scope: scope(), patch };
        let first = mem0.correct(request.clone());
        let requests = count.replace(AFTER) - base;
        if first.is_ok() {
            assert_eq!(server.borrow().texts(), ["two"], "{fault:?} at {number}");
        }
        mem0.correct(request).unwrap();
        assert_eq!(server.borrow().texts(), ["two"]);
        requests
    });
}

#[test]
fn a_memory_is_told_as_forgotten_only_if_it_is_gone() {
    everywhere("self-hosted", |api, number, fault| {
        let base = 2;
        let (server, count) = faulty(number + base, fault);
        let mut mem0 = open(api, json!({}));
        let id = mem0.capture(capture("op", "one")).unwrap().records.remove(0);
        let first = mem0.forget(forget(vec![id.clone()], scope()));
        let requests = count.replace(AFTER) - base;
        if let Ok(first) = &first {
            assert_eq!(first.outcomes[0].effect, ForgetEffect::HistoryKept, "{fault:?} at {number}");
            assert!(server.borrow().memories.is_empty(), "{fault:?} at {number}");
        }
        mem0.forget(forget(vec![id], scope())).unwrap();
        assert!(server.borrow().memories.is_empty(), "{fault:?} at {number}");
        requests
    });
}

#[test]
fn a_query_answers_or_fails_and_changes_nothing() {
    for fault in ALL {
        let (server, _) = faulty(2, fault);
        let mut mem0 = open("self-hosted", json!({}));
        mem0.capture(capture("op", "one")).unwrap();
        match mem0.query(query("one")) {
            Ok(found) => assert_eq!(found.snippets[0].text, "one", "{fault:?}"),
            Err(error) => assert!(matches!(fault, Fault::Nonsense | Fault::OtherShape), "{fault:?}: {error:?}"),
        }
        assert_eq!(server.borrow().texts(), ["one"]);
    }
}

#[test]
fn errors_say_what_to_do() {
    for (status, said) in [(401, "Unauthorized"), (429, "RateLimited"), (500, "Unavailable"), (400, "InvalidRequest")] {
        server::start_behind(move |_, _| Ok(Answer::json(status, json!({"detail": "No."}))));
        let error = open("self-hosted", json!({})).capture(capture("op", "one")).unwrap_err();
        assert!(format!("{error:?}").contains(said) && format!("{error:?}").contains("No."), "{error:?}");
    }
}
