//! Which bindings' providers are to be asked about the systems behind them.

use std::sync::Arc;

use super::{Serving, ServingBindings};
use memhost_sandbox::OptionalInterface;
use memhost_types::Binding;

impl ServingBindings {
    /// Has the background work ask a provider how the system behind it is, where the provider can
    /// say it.
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
