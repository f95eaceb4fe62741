//! `keeper` does nothing wrong: it keeps records as the contract says, and exports the optional interfaces
//! `correction`, `profile`, `explain`, `browse`, `extraction`, `review` and `transfer`, which the host must find. Everything
//! is in `well-behaved`.

use well_behaved::Keeper;

memhost_sdk::export!(Keeper);
memhost_sdk::export_correction!(Keeper);
memhost_sdk::export_profile!(Keeper);
memhost_sdk::export_explain!(Keeper);
memhost_sdk::export_browse!(Keeper);
memhost_sdk::export_extraction!(Keeper);
memhost_sdk::export_review!(Keeper);
memhost_sdk::export_transfer!(Keeper);
