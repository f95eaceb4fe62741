//! The interface `migration`: bringing forward what another version stored.

use crate::contract::migration as wire;
use crate::error::Failure;
use crate::instances::{Instances, call};

impl Instances {
    /// Brings what another version stored into the form that this version reads. Meant for
    /// instances whose storage keeps its writes back.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says.
    pub async fn migrate(&self, from_version: &str) -> Result<(), Failure> {
        let migrated = call!(self, wire.call_migrate(from_version), |_, ()| Ok(()));
        migrated.await.map(drop)
    }
}
