//! The interface `health`: whether the system behind a provider can be reached and lets it in.

use crate::answer::Answer;
use crate::contract::health as wire;
use crate::error::Failure;
use crate::instances::{Instances, call};
use memhost_types::cut_message;

impl Instances {
    /// What the provider finds, in one sentence.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says.
    pub async fn check_health(&self) -> Result<Answer<String>, Failure> {
        call!(
            self, wire.call_check_health(), |_, answer: wire::Report| Ok(
                cut_message(answer.summary)
            ),
        ).await
    }
}
