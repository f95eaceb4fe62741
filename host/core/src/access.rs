//! The calls about callers and tokens: authorization, then a call of the crate `access`, which has
//! the rules and the tokens, then the entry in the activity log.

pub(crate) mod control;

pub use control::Authentication;
pub use memhost_access::{
    ACT_AS_HEADERS, Access, AccessError, Act, ActAs, ActingError, Caller, CreateToken, Denied,
    Known, RotateToken, Section, Tokens, WritePolicy, is_mcp, roles,
};
pub(crate) use memhost_access::{Attached, Guard};
