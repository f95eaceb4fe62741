//! `reference` follows the contract: it stores records in `storage`, and exports the optional
//! interfaces `correction`, `profile`, `explain`, `browse`, `extraction`, `review`, `transfer`,
//! `health` and `erasure`, which the host must find. Its code is in `well-behaved`.

use well_behaved::Reference;

memhost_sdk::export!(Reference);
well_behaved::export_optional!();
