//! The interface `profile`: a summary of what is known about a scope.

use crate::answer::Answer;
use crate::contract::profile as wire;
use crate::convert;
use crate::error::Failure;
use crate::instances::{Instances, call};
use crate::normalize::{Checked, text_size, usages};
use memhost_types::{Scope, Usage, limits};

/// The answer of `get-profile`.
#[derive(Debug)]
#[allow(missing_docs, reason = "the contract's names")]
pub struct ProfileAnswer {
    pub summary: Option<String>,
    pub usage: Vec<Usage>,
}

impl Instances {
    /// A summary of what is known about a scope.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says.
    pub async fn profile(&self, scope: &Scope) -> Result<Answer<ProfileAnswer>, Failure> {
        let scope = convert::scope(scope);
        call!(self, wire.call_get_profile(&scope), |_, answer| summary(answer)).await
    }
}

fn summary(answer: wire::ProfileResponse) -> Checked<ProfileAnswer> {
    if let Some(summary) = &answer.summary {
        text_size("summary", summary, limits::MAX_SUMMARY_BYTES)?;
    }
    Ok(ProfileAnswer { summary: answer.summary, usage: usages(answer.usage)? })
}
