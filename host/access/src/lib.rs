//! Callers and their permissions. Tokens are stored as digests, in a table that this crate owns.
//! Reads are served from memory, and a change is durable before it takes effect.
//!
//! Every decision is a function of a [`Caller`]: it needs no engine, no directory and, but for
//! [`Tokens`], no store.

mod attached;
mod caller;
mod denied;
mod provenance;
mod requests;
mod rules;
mod tokens;
mod write_policy;

pub use attached::{Attached, Section};
pub use caller::{ACT_AS_HEADERS, ActAs, ActingError, Caller};
pub use denied::Denied;
pub use memhost_types::Act;
pub use requests::{CreateToken, RotateToken};
pub use rules::roles;
pub use tokens::{AccessError, Known, Tokens, is_made_here};
pub use write_policy::{Access, Guard, WritePolicy};

#[cfg(test)]
mod testing;
