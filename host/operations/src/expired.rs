//! Has providers forget what has expired. The host shows it to nobody from its time on; it keeps
//! the row until the provider has forgotten the record, so that it can still be found for that.

use crate::Operations;
use async_recursion::async_recursion as boxed;
use memhost_access::Caller;
use memhost_tenancy::ServiceError;
use memhost_types::{
    Binding, ForgetEffect, ForgetRequest, OperationErrorCode, RecordHandle, RecordId, Scope,
};

/// Records of one request.
const AT_ONCE: usize = 200;
/// Requests to one binding at a time.
const MOST: usize = 50;

impl Operations {
    /// Has the providers of all companies forget what has expired. What a provider cannot forget
    /// now stays hidden, and is tried again at a later time. It ends early where `goes_on` says so.
    #[boxed]
    pub async fn forget_expired(&self, goes_on: &(dyn Fn() -> bool + Send + Sync)) {
        for company in self.bindings.companies() {
            for binding in self.bindings.list(&company).into_iter().filter(|one| one.enabled) {
                self.forget_expired_at(&binding, goes_on).await;
            }
        }
    }

    /// The same for one binding.
    #[boxed]
    pub async fn forget_expired_at(
        &self,
        binding: &Binding,
        goes_on: &(dyn Fn() -> bool + Send + Sync),
    ) {
        if let Err(error) = self.forget_expired_of(binding, goes_on).await {
            tracing::warn!(%error, company = %binding.company_id, binding = %binding.key, "the \
                provider did not forget records that have expired; they are shown to nobody");
        }
    }

    async fn forget_expired_of(
        &self,
        binding: &Binding,
        goes_on: &(dyn Fn() -> bool + Send + Sync),
    ) -> Result<(), ServiceError> {
        for _ in 0..MOST {
            let now = self.clock.now();
            let due = self.records.expired(binding, now, AT_ONCE).await?;
            if due.is_empty() || !goes_on() {
                break;
            }
            let handle = |record: &RecordId| RecordHandle {
                provider_key: binding.provider_key.clone(),
                provider_record_id: record.clone(),
            };
            let request = ForgetRequest {
                binding_key: Some(binding.key.clone()),
                scope: Scope::company(binding.company_id.clone()),
                handles: due.iter().map(|due| handle(&due.record)).collect(),
            };
            let outcomes = match self.forget(&Caller::worker(), request).await {
                Ok(answer) => answer.outcomes,
                Err(ServiceError::Operation { error, .. })
                    if error.code == OperationErrorCode::Unsupported =>
                {
                    Vec::new()
                }
                Err(error) => return Err(error),
            };
            let is_gone = |record: &RecordId| {
                outcomes.iter().any(|outcome| {
                    outcome.handle.provider_record_id == *record
                        && matches!(outcome.effect, ForgetEffect::Hard | ForgetEffect::NotFound)
                })
            };
            self.records.asked_to_forget(binding, due, now, is_gone).await?;
        }
        Ok(())
    }
}
