//! An OpenViking that is limited, fails, is slow, cuts connections, answers nonsense or names other
//! files: what is written is there once, and what is not there is not told as written.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use memhost_sdk::testing::capture;
use memhost_sdk::testing::faults::{Fault, Stand, everywhere, faulty, hold};
use memhost_sdk::testing::http::{Answer, Sent, serve};
use memhost_sdk::types::*;
use memhost_sdk::{Extraction, Provider};
use serde_json::json;

use super::open;
use super::server::State;

impl Stand for State {
    fn answer(&mut self, sent: &Sent) -> Answer {
        Self::answer(self, sent)
    }

    fn texts(&self) -> Vec<String> {
        Self::texts(self).into_iter().map(str::to_owned).collect()
    }

    fn other_ids(answer: &str) -> String {
        answer.replace("/memhost/", "/elsewhere/").replace("task-", "other-")
    }
}

#[test]
fn records_hold() {
    hold::<State, _>(|| open(json!({})), ForgetEffect::Hard);
}

#[test]
fn a_session_is_committed_once_though_its_task_cannot_be_seen() {
    let server = Rc::new(RefCell::new(State::default()));
    let is_limited = Rc::new(Cell::new(true));
    let (inner, limited) = (Rc::clone(&server), Rc::clone(&is_limited));
    serve(move |sent| {
        let is_refused = limited.get() && sent.path.ends_with("/tasks");
        Ok(if is_refused { Answer::json(429, json!({})) } else { inner.borrow_mut().answer(sent) })
    });
    let mut viking = open(json!({"infer": "always"}));
    assert!(matches!(viking.capture(capture("op", "I like tea.")), Err(Error::RateLimited(_))));
    is_limited.set(false);
    assert_eq!(viking.capture(capture("op", "I like tea.")).unwrap().jobs.len(), 1);
    assert_eq!(server.borrow().tasks.len(), 1);
}

#[test]
fn a_session_is_committed_once_with_each_message_once() {
    everywhere(|number, fault| {
        let (server, requests) = faulty::<State>(number, fault);
        let mut viking = open(json!({"infer": "always"}));
        let turn = |n| Turn {
            role: "user".to_owned(),
            name: None,
            text: format!("I like tea {n}."),
            at: None,
        };
        let payload =
            || SourcePayload { turns: (0..130).map(turn).collect(), ..SourcePayload::default() };
        let request = || CaptureRequest { payload: payload(), ..capture("op", "") };
        let first = viking.capture(request());
        let sent = requests.stop();
        let again = viking.capture(request()).unwrap();
        let server = server.borrow();
        assert_eq!(
            (server.tasks.len(), again.jobs.len()),
            (1, 1),
            "{fault:?} at {number}: {first:?}"
        );
        assert_eq!(
            server.tasks[0]["said"].as_array().unwrap().len(),
            130,
            "{fault:?} at {number}: {first:?}"
        );
        sent
    });
}

#[test]
fn the_end_of_a_job_is_told_once_it_is_known() {
    everywhere(|number, fault| {
        let (server, requests) = faulty::<State>(number, fault);
        requests.stop();
        let mut viking = open(json!({"infer": "always"}));
        let id =
            viking.capture(capture("op", "I like tea.")).unwrap().jobs.remove(0).provider_job_id;
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
