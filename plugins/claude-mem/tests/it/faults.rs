//! A claude-mem that is limited, fails, is slow, cuts connections, answers nonsense or names other
//! observations: what is written is there once, and what is not there is not told as written.

use memhost_sdk::testing::capture;
use memhost_sdk::testing::faults::{Stand, everywhere, faulty, hold};
use memhost_sdk::testing::http::{Answer, Sent};
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
        answer.replace("\"id\":", "\"id\":9")
    }
}

#[test]
fn records_hold() {
    hold::<State, _>(|| open(json!({})), ForgetEffect::Hard);
}

#[test]
fn a_capture_is_observed_once() {
    everywhere(|number, fault| {
        let (server, requests) = faulty::<State>(number, fault);
        let mut mem = open(json!({"infer": "always"}));
        let first = mem.capture(capture("op", "one"));
        let sent = requests.stop();
        let again = mem.capture(capture("op", "one")).unwrap();
        assert_eq!(
            (server.borrow().uses.len(), again.jobs.len()),
            (1, 1),
            "{fault:?} at {number}: {first:?}"
        );
        server.borrow_mut().observe();
        assert_eq!(
            mem.get_job(again.jobs[0].provider_job_id.clone()).unwrap().unwrap().records,
            ["1"]
        );
        sent
    });
}
