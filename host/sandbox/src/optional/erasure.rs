//! The interface `erasure`: forgetting everything in a scope at once.

use crate::answer::Answer;
use crate::contract::erasure as wire;
use crate::convert;
use crate::error::Failure;
use crate::instances::{Instances, call};
use crate::normalize::usages;
use memhost_types::{ForgetEffect, OperationId, Scope, Usage};

/// The answer of `forget-scope`.
#[derive(Debug)]
pub struct ErasureAnswer {
    /// How far the records were forgotten, the least of them.
    pub effect: ForgetEffect,
    /// How many there were, where the provider knows it.
    pub count: Option<u64>,
    /// Its usage.
    pub usage: Vec<Usage>,
}

impl Instances {
    /// Forgets every record of a scope.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says.
    pub async fn forget_scope(
        &self, id: OperationId, scope: &Scope,
    ) -> Result<Answer<ErasureAnswer>, Failure> {
        let request = wire::ForgetScopeRequest {
            operation_id: id.to_string(), scope: convert::scope(scope)
        };
        let check = |answer: wire::ForgetScopeResponse| {
            let effect = match answer.extent {
                wire::Extent::Hard => ForgetEffect::Hard,
                wire::Extent::Soft => ForgetEffect::Soft,
                wire::Extent::HistoryKept => ForgetEffect::HistoryKept,
            };
            Ok(ErasureAnswer { effect, count: answer.count, usage: usages(answer.usage)? })
        };
        call!(self, wire.call_forget_scope(&request), |_, answer| check(answer)).await
    }
}
