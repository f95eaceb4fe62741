//! The contract as wasmtime generates it from `wit/`, and the table of its optional interfaces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wasmtime::component::{Instance, InstancePre};
use wasmtime::{AsContextMut, Result};

use crate::optional;

#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic
)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::needless_pass_by_value,
    reason = "generated"
)]
mod required {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "memory-provider",
        imports: {
            "paperclip:memory/embeddings.embed": async | trappable,
            "paperclip:memory/storage": async | trappable,
            default: trappable,
        },
        exports: { default: async },
    });
}

pub(crate) use required::MemoryProvider;
pub(crate) use required::exports::paperclip::memory::provider;
#[allow(unreachable_pub, reason = "the generated modules re-export it")]
pub use required::paperclip::memory::types;
pub(crate) use required::paperclip::memory::{binding, call, embeddings, meter, storage};

/// The package whose interfaces make the contract.
pub(crate) const PACKAGE: &str = "paperclip:memory";

/// An interface that a component exports, with its functions.
pub(crate) trait Exported {
    /// The interface's name in `wit/`.
    const NAME: &'static str;

    /// None where the component does not export it.
    fn of(exports: &Exports) -> Option<&Self>;
}

impl Exported for provider::Guest {
    const NAME: &'static str = "provider";

    fn of(exports: &Exports) -> Option<&Self> {
        Some(&exports.provider)
    }
}

/// The code that the contract generates for each row of [`optional::table`].
macro_rules! optional_interfaces {
    ($($variant:ident, $module:ident, $name:literal, $world:literal, { $($answer:ident),* };)+) => {
        $(
            pub(crate) mod $module {
                #[allow(
                    missing_docs, unsafe_code, unreachable_pub, unused_qualifications,
                    clippy::all, clippy::pedantic,
                )]
                #[allow(
                    clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value,
                    reason = "generated",
                )]
                mod generated {
                    wasmtime::component::bindgen!({
                        path: "../../wit",
                        world: $world,
                        imports: { default: trappable },
                        exports: { default: async },
                        with: { "paperclip:memory/types": crate::contract::types },
                    });
                }

                pub(crate) use generated::exports::paperclip::memory::$module::*;

                impl super::Exported for Guest {
                    const NAME: &'static str = $name;

                    fn of(exports: &super::Exports) -> Option<&Self> {
                        exports.$module.as_ref()
                    }
                }
            }
        )+

        /// The optional interfaces of the contract.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
            JsonSchema,
        )]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs, reason = "`wit/optional.wit` says what each is")]
        pub enum OptionalInterface {
            $($variant,)+
        }

        impl OptionalInterface {
            /// Every optional interface.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The interface's name in `wit/`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }

        /// Where a component has what it exports, looked up once for all its instances.
        pub(crate) struct ExportIndices {
            provider: provider::GuestIndices,
            $($module: Option<$module::GuestIndices>,)+
        }

        /// The exports of an instance.
        pub(crate) struct Exports {
            provider: provider::Guest,
            $($module: Option<$module::Guest>,)+
        }

        impl ExportIndices {
            /// Fails where an interface is exported by name, but not as the contract defines it.
            pub(crate) fn find<T>(
                pre: &InstancePre<T>, exported: &[OptionalInterface],
            ) -> Result<Self> {
                Ok(Self {
                    provider: provider::GuestIndices::new(pre)?,
                    $($module: match exported.contains(&OptionalInterface::$variant) {
                        true => Some($module::GuestIndices::new(pre)?),
                        false => None,
                    },)+
                })
            }

            pub(crate) fn load(
                &self, mut store: impl AsContextMut, instance: &Instance,
            ) -> Result<Exports> {
                Ok(Exports {
                    provider: self.provider.load(&mut store, instance)?,
                    $(
                        $module: self.$module
                            .as_ref()
                            .map(|found| found.load(&mut store, instance))
                            .transpose()?,
                    )+
                })
            }
        }
    };
}

optional::table!(optional_interfaces);
