//! What a component exports of the contract: `provider` always, each optional interface where it is there.

use wasmtime::component::InstancePre;
use wasmtime::{Result, Store};

use super::OptionalInterface;
use crate::bindings::browse::{BrowseProvider, BrowseProviderIndices};
use crate::bindings::correction::{CorrectionProvider, CorrectionProviderIndices};
use crate::bindings::explain::{ExplainProvider, ExplainProviderIndices};
use crate::bindings::extraction::{ExtractionProvider, ExtractionProviderIndices};
use crate::bindings::migration::{MigrationProvider, MigrationProviderIndices};
use crate::bindings::profile::{ProfileProvider, ProfileProviderIndices};
use crate::bindings::provider::{MemoryProvider, MemoryProviderIndices};
use crate::bindings::review::{ReviewProvider, ReviewProviderIndices};
use crate::bindings::transfer::{TransferProvider, TransferProviderIndices};
use crate::imports::State;

macro_rules! exports {
    ($($field:ident: $interface:ident, $world:ident, $indices:ident;)*) => {
        /// Where a component has what it exports, looked up once for all its instances.
        pub(super) struct Indices {
            provider: MemoryProviderIndices,
            $($field: Option<$indices>,)*
        }

        /// What an instance exports of the contract.
        pub(crate) struct Exports {
            pub(crate) provider: MemoryProvider,
            $(pub(crate) $field: Option<$world>,)*
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
