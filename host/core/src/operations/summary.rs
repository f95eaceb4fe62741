//! The summary that a provider makes of a scope, for the start of a run.

use crate::operations::runner::Answered;
use memhost_sandbox::OptionalInterface;
use memhost_types::{Intent, QueryRequest};

impl Answered<'_> {
    /// Asks for the summary where the query is for the start of a run, as a part of that operation. The answer to the
    /// query is valid without it: an error is only logged.
    pub(crate) async fn summary(&mut self, request: &QueryRequest) -> Option<String> {
        let serving = self.serving;
        if request.intent != Intent::AgentPreamble || !serving.plugin.component.exports(OptionalInterface::Profile) {
            return None;
        }
        match serving.instances.profile(&request.scope).await {
            Ok(profile) => {
                self.ending.add_usage(profile.value.usage);
                self.ending.add_usage(profile.metered);
                self.ending.add_call(profile.log, profile.provider_us);
                profile.value.summary
            }
            Err(failure) => {
                self.ending.add_usage(failure.metered);
                self.ending.add_call(failure.log, failure.provider_us);
                tracing::warn!(error = %failure.error, binding = %serving.binding.key, "a query has no summary");
                None
            }
        }
    }
}
