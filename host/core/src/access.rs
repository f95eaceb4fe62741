//! Callers and their rights. Tokens are stored as digests. Reads are served from memory; a change
//! is durable before it takes effect.

mod caller;
pub(crate) mod control;
mod denied;
mod error;
mod fact_owners;
mod provenance;
mod requests;
mod rules;
mod tokens;

pub use caller::is_mcp;
pub use caller::{ACT_AS_HEADERS, ActAs, ActingError, Caller};
pub use control::Authentication;
pub use denied::Denied;
pub use error::AccessError;
pub use fact_owners::{DriveFacts, FactOwners};
pub(crate) use fact_owners::{KeptFacts, Owner, says_drive};
pub use memhost_types::Act;
pub use requests::{CreateToken, RotateToken};
pub use rules::roles;
pub use tokens::{Known, Tokens};
