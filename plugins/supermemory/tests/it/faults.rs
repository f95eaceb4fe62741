//! A supermemory that is limited, fails, is slow, cuts connections, answers nonsense or names other
//! memories: what is written is there once, and what is not there is not told as written.

use memhost_sdk::testing::capture;
use memhost_sdk::testing::faults::{everywhere, faulty, hold};
use memhost_sdk::types::*;
use memhost_sdk::{Extraction, Provider};
use serde_json::json;

use super::open;
use super::server::State;

#[test]
fn records_hold() {
    hold::<State, _>(|| open(json!({})), ForgetEffect::Soft);
}

#[test]
fn a_capture_is_one_document() {
    everywhere(|number, fault| {
        let (service, requests) = faulty::<State>(number, fault);
        let mut provider = open(json!({"extract": "always"}));
        let first = provider.capture(capture("op", "I like tea."));
        let sent = requests.stop();
        let again = provider.capture(capture("op", "I like tea.")).unwrap();
        assert_eq!(
            (service.borrow().documents.len(), again.jobs.len()),
            (1, 1),
            "{fault:?} at {number}: {first:?}"
        );
        service.borrow_mut().extract();
        let done = provider.get_job(again.jobs[0].provider_job_id.clone()).unwrap().unwrap();
        assert_eq!(
            (done.job.status, done.records.len()),
            (JobStatus::Succeeded, 1),
            "{fault:?} at {number}"
        );
        sent
    });
}
