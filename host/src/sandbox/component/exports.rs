//! What a component exports of the contract: `provider` always, each optional interface where it is there.

use wasmtime::component::InstancePre;
use wasmtime::{Result, Store};

use super::OptionalInterface;
use crate::sandbox::bindings::browse::{BrowseProvider, BrowseProviderIndices};
use crate::sandbox::bindings::correction::{CorrectionProvider, CorrectionProviderIndices};
use crate::sandbox::bindings::explain::{ExplainProvider, ExplainProviderIndices};
use crate::sandbox::bindings::extraction::{ExtractionProvider, ExtractionProviderIndices};
use crate::sandbox::bindings::migration::{MigrationProvider, MigrationProviderIndices};
use crate::sandbox::bindings::profile::{ProfileProvider, ProfileProviderIndices};
use crate::sandbox::bindings::provider::{MemoryProvider, MemoryProviderIndices};
use crate::sandbox::bindings::review::{ReviewProvider, ReviewProviderIndices};
use crate::sandbox::bindings::transfer::{TransferProvider, TransferProviderIndices};
use crate::sandbox::imports::State;

macro_rules! exports {
    ($($field:ident: $interface:ident, $world:ident, $indices:ident;)*) => {
        /// Where a component has what it exports, looked up once for all its instances.
        pub(super) struct Indices {
            provider: MemoryProviderIndices,
            $($field: Option<$indices>,)*
        }

        /// What an instance exports of the contract.
        pub(in crate::sandbox) struct Exports {
            pub(in crate::sandbox) provider: MemoryProvider,
            $(pub(in crate::sandbox) $field: Option<$world>,)*
        }

        impl Indices {
            /// Fails where an interface is there by name and not as the contract has it.
            pub(super) fn find(pre: &InstancePre<State>, exported: &[OptionalInterface]) -> Result<Self> {
                Ok(Self {
                    provider: MemoryProviderIndices::new(pre)?,
                    $($field: match exported.contains(&OptionalInterface::$interface) {
                        true => Some($indices::new(pre)?),
                        false => None,
                    },)*
                })
            }

            pub(super) fn load(&self, store: &mut Store<State>, instance: &wasmtime::component::Instance) -> Result<Exports> {
                Ok(Exports {
                    provider: self.provider.load(&mut *store, instance)?,
                    $($field: self.$field.as_ref().map(|indices| indices.load(&mut *store, instance)).transpose()?,)*
                })
            }
        }
    };
}

exports! {
    correction: Correction, CorrectionProvider, CorrectionProviderIndices;
    profile: Profile, ProfileProvider, ProfileProviderIndices;
    extraction: Extraction, ExtractionProvider, ExtractionProviderIndices;
    explain: Explain, ExplainProvider, ExplainProviderIndices;
    browse: Browse, BrowseProvider, BrowseProviderIndices;
    review: Review, ReviewProvider, ReviewProviderIndices;
    transfer: Transfer, TransferProvider, TransferProviderIndices;
    migration: Migration, MigrationProvider, MigrationProviderIndices;
}
