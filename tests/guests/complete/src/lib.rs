//! `complete` is the guest `reference`, under the same provider key, with `migration` too, so it exports every optional
//! interface. `tests/compat` holds a frozen build of it for each version of the contract.

use well_behaved::Reference;

memhost_sdk::export!(Reference);
memhost_sdk::export_correction!(Reference);
memhost_sdk::export_profile!(Reference);
memhost_sdk::export_extraction!(Reference);
memhost_sdk::export_explain!(Reference);
memhost_sdk::export_browse!(Reference);
memhost_sdk::export_review!(Reference);
memhost_sdk::export_transfer!(Reference);
memhost_sdk::export_migration!(Reference);
memhost_sdk::export_health!(Reference);
memhost_sdk::export_erasure!(Reference);
