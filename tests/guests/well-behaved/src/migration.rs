//! The interface `migration`. Only `complete` exports it.

use memhost_sdk::Migration;
use memhost_sdk::storage::Collection;
use memhost_sdk::types::*;

use crate::Reference;

impl Migration for Reference {
    /// All versions have the same stored form. The version before is recorded.
    fn migrate(&mut self, from_version: &str) -> Result<(), Error> {
        Ok(Collection::new("migrated").put("from", &from_version.to_owned())?)
    }
}
