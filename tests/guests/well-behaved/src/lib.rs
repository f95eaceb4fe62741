//! A provider that keeps every rule of the contract, and a wrapper for guests that break exactly
//! one.
//!
//! A hostile guest implements [`Guest`], overrides the call in which it misbehaves and writes
//! `well_behaved::export!(TheType);`. For every other call it has [`Reference`]'s.

mod guest;
mod holding;
mod job;
mod migration;
mod optional;
mod record;
mod reference;

pub use guest::{Guest, Wrapped, answer, describe};
pub use memhost_sdk as sdk;
pub use reference::Reference;

/// Makes the component export a [`Guest`].
#[macro_export]
macro_rules! export {
    ($guest:ty) => {
        $crate::sdk::export!($crate::Wrapped<$guest>);
    };
}
