//! Which bindings take an event. A binding's policy names the kinds of hook that it takes; a new
//! kind needs nothing but a binding that names it.

use std::sync::Arc;

use memhost_registry::BindingError;
use memhost_registry::bindings::Bindings;
use memhost_types::{Binding, HookEvent, SubscribedWhen};

/// The bindings that take an event; the one that its scope resolves to is first. A binding that the
/// event names takes the event even without a subscription.
///
/// # Errors
/// Where the event names a binding that does not exist.
pub(crate) fn subscribers(
    bindings: &Bindings,
    event: &HookEvent,
) -> Result<Vec<Arc<Binding>>, BindingError> {
    let company = &event.scope.company_id;
    let active = match bindings.resolve(
        company,
        event.scope.agent_id.as_ref(),
        event.binding_key.as_ref(),
    ) {
        Ok(resolution) => Some(resolution.binding),
        Err(error) if event.binding_key.is_some() => return Err(error),
        Err(BindingError::Store(error)) => return Err(error.into()),
        // There is no default: bindings that subscribe to every event still get it.
        Err(_) => None,
    };
    if event.binding_key.is_some() {
        return Ok(active.into_iter().collect());
    }
    let is_active =
        |binding: &Binding| active.as_ref().is_some_and(|active| active.id == binding.id);
    let takes = |binding: &&Arc<Binding>| match binding.policy.takes(&event.hook_kind) {
        Some(SubscribedWhen::Always) => true,
        Some(SubscribedWhen::Active) => is_active(binding),
        None => false,
    };
    let mut all: Vec<Arc<Binding>> = bindings
        .list(company)
        .iter()
        .filter(|binding| binding.enabled)
        .filter(takes)
        .cloned()
        .collect();
    all.sort_by_key(|binding| !is_active(binding));
    Ok(all)
}
