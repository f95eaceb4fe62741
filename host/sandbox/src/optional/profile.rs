//! The interface `profile`: a summary of what is known about a scope.

use crate::answer::Answer;
use crate::contract::profile as wire;
use crate::convert;
use crate::error::Failure;
use crate::instances::{Instances, call};
use crate::normalize::{Checked, Normalize, usages};
use memhost_types::{Scope, Usage};

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
        call!(self, wire.call_get_profile(&scope), summary).await
    }
}

fn summary(normalize: &Normalize, answer: wire::ProfileResponse) -> Checked<ProfileAnswer> {
    let summary = normalize.summary("the profile", answer.summary);
    Ok(ProfileAnswer { summary, usage: usages(answer.usage)? })
}
