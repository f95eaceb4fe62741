//! The interface `migration`. Only `complete` exports it.

use memhost_sdk::Migration;
use memhost_sdk::storage::Collection;
use memhost_sdk::types::*;

use crate::Reference;

impl Migration for Reference {
    /// Nothing has another form in another version; what came before is written down.
    fn migrate(&mut self, from_version: &str) -> Result<(), Error> {
        Ok(Collection::new("migrated").put("from", &from_version.to_owned())?)
    }
}
