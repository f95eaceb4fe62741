//! What a build asks for at a binding, and what of it is granted.

use crate::plugins::Plugin;
use memhost_types::{Binding, Grants, JsonObject, PermissionRequest};

/// What a build asks for at a binding with this configuration.
pub(crate) fn asked_by(plugin: &Plugin, config: &JsonObject) -> Vec<PermissionRequest> {
    plugin
        .component
        .description()
        .permissions
        .iter()
        .map(|request| request.resolved(config))
        .collect()
}

/// The grants that the build asks for and the binding has.
pub(crate) fn effective(binding: &Binding, plugin: &Plugin) -> Grants {
    binding.grants.effective(&asked_by(plugin, &binding.config))
}
