//! What is asked: by a build of a binding, and of a provider about the system behind it.

use std::sync::Arc;

use super::{Serving, ServingBindings};
use crate::plugins::Plugin;
use memhost_sandbox::OptionalInterface;
use memhost_types::{Binding, Grants, JsonObject, PermissionRequest};

impl ServingBindings {
    /// Has the background work ask a provider how the system behind it is, where the provider can say it.
    pub(crate) fn ask_health_soon(&self, serving: &Serving) {
        if serving.plugin.component.exports(OptionalInterface::Health) {
            self.asks_health.lock().push(Arc::clone(&serving.binding));
        }
    }

    /// The bindings to ask, once.
    pub(crate) fn take_health_to_ask(&self) -> Vec<Arc<Binding>> {
        std::mem::take(&mut *self.asks_health.lock())
    }
}

/// What a build asks for at a binding with this configuration.
pub(crate) fn asked_by(plugin: &Plugin, config: &JsonObject) -> Vec<PermissionRequest> {
    plugin.component.description().permissions.iter().map(|request| request.resolved(config)).collect()
}

/// The grants that the build asks for and the binding has.
pub(crate) fn effective(binding: &Binding, plugin: &Plugin) -> Grants {
    binding.grants.effective(&asked_by(plugin, &binding.config))
}
