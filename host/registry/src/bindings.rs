//! Bindings and their targets: which provider answers for whom. Reads are served from memory; a
//! change is durable before it takes effect.

mod change;
mod grants;
mod registry;
#[cfg(test)]
mod tests;

pub use grants::{check_asked, check_grants, configured, ungranted};
pub use registry::{
    Bindings, NewBinding, Resolution, ResolutionStep, StoredTarget, Why, binding_key,
};
