//! Jobs: the events of the hosted API, in which its model extracts.

use std::time::SystemTime;

use memhost_sdk::jobs::Job;
use memhost_sdk::remote::{Elsewhere, Work};
use memhost_sdk::types::Error;

use crate::provider::Mem0;

impl Elsewhere for Mem0 {
    fn ask(&self, job: &mut Job<Work>) -> Result<(), Error> {
        let now = SystemTime::now();
        match self.records.service.event(&job.id)? {
            None => job.fail("mem0 does not know the event", now),
            Some(event) => match event.status.as_str() {
                "SUCCEEDED" => {
                    job.records = event.ids();
                    job.succeed(now);
                }
                "FAILED" => job.fail(event.error.unwrap_or_else(|| "mem0 gives no reason".to_owned()), now),
                _ => job.go_on(now),
            },
        }
        Ok(())
    }
}
