//! How much the host keeps of each company, and the quota at which new data of that company is
//! refused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Tenancy;
use crate::error::ServiceError;
use memhost_access::Caller;
use memhost_store::{DiskLevel, Held, StoreError};
use memhost_types::{CompanyId, OperationKind, Role};

/// What the host itself keeps of a company: operations, deliveries, events, reviews, jobs and other
/// rows. The providers' storage and directories are not in it: see the usage of the bindings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompanyUsage {
    /// Bytes, keys included. On the disk it is more.
    pub held_bytes: u64,
    /// The bytes at which new data is refused; at a quarter more, reads are refused, too, and at
    /// twice as many, deletions. Absent: there is no quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

impl From<Held> for CompanyUsage {
    fn from(held: Held) -> Self {
        Self { held_bytes: held.bytes, max_bytes: Some(held.quota).filter(|quota| *quota > 0) }
    }
}

impl Tenancy {
    /// How much the host keeps of a company.
    ///
    /// # Errors
    /// Where the store is closed.
    pub fn company_usage(&self, company: &CompanyId) -> Result<CompanyUsage, ServiceError> {
        Ok(self.store.held(company)?.into())
    }

    /// Refuses what a company has no room for. What ends something goes on: forgetting and
    /// decisions about what waits, up to twice the quota, because each leaves a record; the
    /// operator's and the host's own work, such as deliveries that were accepted before, without an
    /// end. There is no record of the refusal: it would need room, too. Answers the bytes that the
    /// company may have beside those that it has.
    ///
    /// # Errors
    /// Where there is no room, or the store is closed.
    pub fn check_quota(
        &self,
        caller: &Caller,
        kind: OperationKind,
        company: &CompanyId,
    ) -> Result<u64, StoreError> {
        let held = self.store.held(company)?;
        let ends_something = matches!(kind, OperationKind::Forget | OperationKind::Review);
        let has_room = match held.level() {
            DiskLevel::Plenty => true,
            _ if caller.is_host() => true,
            _ if ends_something => caller.role() == Role::Operator || !held.ends_deletions(),
            DiskLevel::Low => !kind.is_write(),
            DiskLevel::Spent => false,
        };
        if has_room { Ok(held.room()) } else { Err(self.full(held)) }
    }

    /// Refuses a change of a company's settings where the company has so much that even that must
    /// end. The operator's goes on.
    ///
    /// # Errors
    /// Where it has so much, or what it has cannot be read.
    pub fn check_settings(&self, caller: &Caller, company: &CompanyId) -> Result<(), StoreError> {
        let held = self.store.held(company)?;
        match held.ends_settings() && caller.role() != Role::Operator {
            true => Err(self.full(held)),
            false => Ok(()),
        }
    }

    /// Refuses a new idempotency key of a company that has no room even for reads: what is asked
    /// for may go on without one.
    ///
    /// # Errors
    /// Where there is no room, or the store is closed.
    pub fn check_key(&self, caller: &Caller, company: &CompanyId) -> Result<(), StoreError> {
        let held = self.store.held(company)?;
        match held.level() == DiskLevel::Spent && caller.role() != Role::Operator {
            true => Err(self.full(held)),
            false => Ok(()),
        }
    }

    fn full(&self, held: Held) -> StoreError {
        self.oplog.metrics.limit_hit("companyMaxBytes");
        StoreError::CompanyFull { held: held.bytes, quota: held.quota }
    }
}
