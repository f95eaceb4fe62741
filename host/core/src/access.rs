//! The calls about callers and tokens: authorization, then a call of the crate `access`, which has
//! the rules and the tokens, then the entry in the activity log.

pub(crate) mod control;
mod fact_owners;

pub use control::Authentication;
pub use fact_owners::{DriveFacts, FactOwners};
pub(crate) use fact_owners::{KeptFacts, Owner, says_drive};
pub use memhost_access::{
    ACT_AS_HEADERS, AccessError, Act, ActAs, ActingError, Caller, CreateToken, Denied, Known,
    RotateToken, Tokens, is_mcp, roles,
};
