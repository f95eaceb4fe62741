//! `reference` follows the contract: it stores records in `storage`, and exports the optional interfaces
//! `correction`, `profile`, `explain`, `browse`, `extraction`, `review`, `transfer`, `health` and `erasure`, which the host
//! must find. Its code is in `well-behaved`.

use well_behaved::Reference;

memhost_sdk::export!(Reference);
memhost_sdk::export_correction!(Reference);
memhost_sdk::export_profile!(Reference);
memhost_sdk::export_explain!(Reference);
memhost_sdk::export_browse!(Reference);
memhost_sdk::export_extraction!(Reference);
memhost_sdk::export_review!(Reference);
memhost_sdk::export_transfer!(Reference);
memhost_sdk::export_health!(Reference);
memhost_sdk::export_erasure!(Reference);
