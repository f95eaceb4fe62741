//! Who calls, and what that one may do. Tokens are kept as digests; reads are served from memory, a change is durable
//! before it is seen.

mod caller;
pub(crate) mod control;
mod error;
mod rules;
mod tokens;

pub use caller::{Act, Caller, Denied};
pub use control::Authentication;
pub use error::AccessError;
pub use tokens::{CreateToken, Known, Tokens};
