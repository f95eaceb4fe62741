//! `complete` does nothing wrong: it is `keeper`, by that provider key, with every optional interface that there is.
//! `tests/compat` holds a frozen build of it for each version of the contract.

use well_behaved::Keeper;

memhost_sdk::export!(Keeper);
memhost_sdk::export_correction!(Keeper);
memhost_sdk::export_profile!(Keeper);
memhost_sdk::export_extraction!(Keeper);
memhost_sdk::export_explain!(Keeper);
memhost_sdk::export_browse!(Keeper);
memhost_sdk::export_review!(Keeper);
memhost_sdk::export_transfer!(Keeper);
memhost_sdk::export_migration!(Keeper);
