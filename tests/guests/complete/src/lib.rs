//! `complete` is the guest `reference`, under the same provider key, with `migration` too, so it
//! exports every optional interface. `tests/compat` holds a frozen build of it for each version of
//! the contract.

use well_behaved::Reference;

memhost_sdk::export!(Reference);
well_behaved::export_optional!();
memhost_sdk::export_migration!(Reference);
