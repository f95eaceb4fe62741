//! The imports that every operation's file has.

pub(crate) use std::sync::Arc;

pub(crate) use crate::Operations;
pub(crate) use crate::runner::{Answered, Step, Writes, asks_with};
pub(crate) use memhost_access::{Caller, Denied};
pub(crate) use memhost_oplog::operation::{Completion, Ended, Ending, Opened};
pub(crate) use memhost_records::Ownership;
pub(crate) use memhost_registry::versions::Serving;
pub(crate) use memhost_sandbox::{Answer, Failure};
pub(crate) use memhost_tenancy::ServiceError;
pub(crate) use memhost_types::{OperationId, OperationKind, Refusal};
