//! What every operation's file names.

pub(crate) use std::sync::Arc;

pub(crate) use crate::Service;
pub(crate) use crate::access::{Caller, Denied};
pub(crate) use crate::error::ServiceError;
pub(crate) use crate::operations::runner::{Answered, Step, Writes, asks_with};
pub(crate) use memhost_oplog::operation::{Completion, Ended, Ending, Opened};
pub(crate) use memhost_records::Ownership;
pub(crate) use memhost_registry::versions::Serving;
pub(crate) use memhost_sandbox::{Answer, Failure};
pub(crate) use memhost_types::{OperationId, OperationKind, Refusal};
