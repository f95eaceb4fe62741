//! The summary that a provider makes of a scope, for the start of a run.

use std::sync::Arc;

use crate::Service;
use crate::versions::serving::Serving;
use memhost_sandbox::{Answer, OptionalInterface, QueryAnswer};
use memhost_types::{Intent, QueryRequest};

impl Service {
    /// Asks for the summary where the query is for the start of a run and its answer brought none, as a part of that
    /// operation. Without it the answer is as good as before: an error is told to the operator, and to nobody else.
    pub(crate) async fn add_summary(
        &self,
        serving: &Arc<Serving>,
        request: &QueryRequest,
        answer: &mut Answer<QueryAnswer>,
    ) {
        let has_profile = serving.plugin.component.exports(OptionalInterface::Profile);
        if request.intent != Intent::AgentPreamble || answer.value.profile_summary.is_some() || !has_profile {
            return;
        }
        match serving.instances.profile(&request.scope).await {
            Ok(profile) => {
                answer.value.profile_summary = profile.value.summary;
                answer.value.usage.extend(profile.value.usage.into_iter().chain(profile.embedded));
                answer.log.extend(profile.log);
                answer.provider_us += profile.provider_us;
            }
            Err(failure) => {
                answer.value.usage.extend(failure.embedded);
                answer.log.extend(failure.log);
                answer.provider_us += failure.provider_us;
                tracing::warn!(error = %failure.error, binding = %serving.binding.key, "a query goes without a summary");
            }
        }
    }
}
