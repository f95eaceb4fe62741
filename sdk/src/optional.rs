//! One trait for each optional interface. Implement it and write its export line; without the line the component does
//! not have the interface.

mod browse;
mod correction;
mod explain;
mod extraction;
mod migration;
mod profile;
mod review;
mod transfer;

pub use browse::Browse;
pub use correction::Correction;
pub use explain::Explain;
pub use extraction::Extraction;
pub use migration::Migration;
pub use profile::Profile;
pub use review::Review;
pub use transfer::Transfer;
