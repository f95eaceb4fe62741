//! Callers and their rights. Tokens are stored as digests. Reads are served from memory; a change is durable before it
//! takes effect.

mod caller;
pub(crate) mod control;
mod error;
mod rules;
mod tokens;

pub use caller::Caller;
pub(crate) use caller::Denied;
pub use control::Authentication;
pub use error::AccessError;
pub use rules::Act;
pub use tokens::{CreateToken, Known, Tokens};
