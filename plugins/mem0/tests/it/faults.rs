//! A mem0 that is limited, fails, is slow, cuts connections, answers nonsense or names other ids:
//! what is written is there once, and what is not there is not told as written.

use memhost_sdk::Provider;
use memhost_sdk::testing::capture;
use memhost_sdk::testing::faults::{Stand, everywhere, faulty, hold};
use memhost_sdk::testing::http::{Answer, Sent, serve};
use memhost_sdk::types::*;
use serde_json::json;

use super::open;
use super::server::State;

impl Stand for State {
    fn answer(&mut self, sent: &Sent) -> Answer {
        // An empty server remembers no text that was forgotten; this one does.
        self.keeps_history = true;
        Self::answer(self, sent)
    }

    fn texts(&self) -> Vec<String> {
        Self::texts(self).into_iter().map(str::to_owned).collect()
    }

    fn other_ids(answer: &str) -> String {
        answer.replace("00000000-0000-4000-8000", "ffffffff-0000-4000-8000")
    }
}

#[test]
fn records_hold() {
    for api in ["self-hosted", "hosted"] {
        hold::<State, _>(|| open(api, json!({})), ForgetEffect::HistoryKept);
    }
}

#[test]
fn extraction_is_asked_for_once() {
    for api in ["self-hosted", "hosted"] {
        everywhere(|number, fault| {
            let (server, requests) = faulty::<State>(number, fault);
            let mut mem0 = open(api, json!({}));
            let request =
                || CaptureRequest { mode: CaptureMode::CaptureResidue, ..capture("op", "one") };
            drop(mem0.capture(request()));
            let sent = requests.stop();
            let again = mem0.capture(request()).unwrap();
            let server = server.borrow();
            assert_eq!(
                server.memories.len() + server.events.len(),
                1,
                "{api}: {fault:?} at {number}"
            );
            assert_eq!(again.records.len() + again.jobs.len(), 1);
            sent
        });
    }
}

#[test]
fn errors_say_what_to_do() {
    for (status, said) in
        [(401, "Unauthorized"), (429, "RateLimited"), (500, "Unavailable"), (400, "InvalidRequest")]
    {
        serve(move |_| Ok(Answer::json(status, json!({"detail": "No."}))));
        let error = open("self-hosted", json!({})).capture(capture("op", "one")).unwrap_err();
        assert!(
            format!("{error:?}").contains(said) && format!("{error:?}").contains("No."),
            "{error:?}"
        );
    }
}
