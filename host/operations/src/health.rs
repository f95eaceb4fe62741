//! Health: whether the system behind a provider can be reached and lets it in.

use crate::prelude::*;
use crate::runner::Target;
use async_recursion::async_recursion as boxed;
use memhost_registry::plugins::{Build as _, Plugin};
use memhost_registry::versions::HealthFound;
use memhost_sandbox::OptionalInterface;
use memhost_types::{Binding, BindingKey, FieldError, Scope};

impl Operations {
    /// Asks a binding's provider how the system behind it is. None: it cannot say it, or lacks a
    /// permission that it needs, or nothing could be asked.
    #[boxed]
    pub async fn ask_health(&self, binding: &Arc<Binding>) -> Option<HealthFound> {
        let can_say = |build: &Plugin| build.component.exports(OptionalInterface::Health);
        if !self.plugins.builds(&binding.provider_key).iter().any(can_say) {
            return None;
        }
        let serving = self.serving.get(binding).await.ok()?;
        if !serving.plugin.component.exports(OptionalInterface::Health) || !binding.enabled {
            return None;
        }
        let asked = serving.plugin.requests(&binding.config);
        if binding.grants.missing(&asked).next().is_some() {
            return None;
        }
        let at = self.clock.now();
        let mut step =
            Health { scope: Scope::company(binding.company_id.clone()), key: binding.key.clone() };
        let (summary, error) = match self.operate(&Caller::worker(), &mut step).await {
            Ok(summary) => (Some(summary), None),
            Err(ServiceError::Operation { error, .. }) => (None, Some(error)),
            Err(error) => {
                tracing::warn!(%error, binding = %binding.key, "the provider's health could not be \
                    asked");
                return None;
            }
        };
        let found = HealthFound { at, summary, error };
        *serving.health.lock() = Some(found.clone());
        Some(found)
    }

    /// Asks for the bindings whose circuits have just opened.
    pub fn ask_open_circuits(self: &Arc<Self>) {
        for binding in self.serving.take_health_to_ask() {
            let service = Arc::clone(self);
            memhost_executor::spawn(async move {
                service.ask_health(&binding).await;
            });
        }
    }
}

struct Health {
    scope: Scope,
    key: BindingKey,
}

impl Step for Health {
    const KIND: OperationKind = OperationKind::Health;
    type Answer = String;
    type Response = String;

    fn target(&mut self) -> Target<'_> {
        (&mut self.scope, Some(&self.key))
    }

    fn check_fields(&self) -> Result<(), FieldError> {
        self.scope.check()
    }

    async fn call(&self, serving: &Serving, _: OperationId) -> Result<Answer<String>, Failure> {
        serving.instances.check_health().await
    }

    fn completion(&self, _: &String) -> Completion {
        Completion::default()
    }

    async fn finish(&mut self, _: &mut Answered<'_>, answer: String) -> Result<String, Refusal> {
        Ok(answer)
    }
}
