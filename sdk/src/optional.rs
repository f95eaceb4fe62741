//! One trait for each optional interface. Implement it and write its export line; without the line
//! the component does not have the interface.
//!
//! Each interface has a world of its own in `wit/`. Its world is written into the component only
//! where its export macro is called, so a component exports exactly what its author wrote a line
//! for.

/// What an optional interface has beside its trait: the generated code of its world, its types, its
/// export macro, and its row in the guide: what the interface is for, and what the host does with
/// it.
macro_rules! interface {
    (
        ($dollar:tt) $module:ident, $trait:ident, { $($type:ident),* },
        world $world:literal, $world_macro_name:literal, $world_macro:ident,
        export $export:ident,
        about $about:literal, host $host:literal
    ) => {
        /// The interface's row in the guide.
        #[cfg(test)]
        pub(crate) const ROW: &str = concat!(
            "| [`", stringify!($trait), "`](src/optional/", stringify!($module), ".rs) | `",
            stringify!($export), "!` | ",
            $about, " | ", $host, " |"
        );

        #[doc(hidden)]
        #[allow(
            missing_docs, unsafe_code, unreachable_pub, unused_qualifications, clippy::all,
            clippy::pedantic,
        )]
        #[allow(clippy::unwrap_used, clippy::expect_used, reason = "generated")]
        pub mod bindings {
            wit_bindgen::generate!({
                path: "../wit",
                world: $world,
                pub_export_macro: true,
                export_macro_name: $world_macro_name,
                additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
                with: {
                    "paperclip:memory/types@0.1.0":
                        crate::bindings::provider::paperclip::memory::types,
                },
            });
        }

        /// The types that only this interface has.
        pub mod types {
            #[allow(unused_imports, reason = "an interface may have no types of its own")]
            pub use super::bindings::exports::paperclip::memory::$module::{$($type),*};
        }

        #[doc = concat!(
            "Makes the component export the interface `", stringify!($module),
            "`. The type implements [`",
            stringify!($trait), "`]."
        )]
        #[macro_export]
        macro_rules! $export {
            ($dollar provider:ty) => {
                $crate::__export_world!(
                    $dollar provider, optional::$module::bindings, $world_macro
                );
            };
        }
    };
}

pub mod browse;
pub mod correction;
pub mod erasure;
pub mod explain;
pub mod extraction;
pub mod health;
pub mod migration;
pub mod profile;
pub mod review;
pub mod transfer;

macro_rules! interfaces {
    ($($module:ident::$trait:ident),+ $(,)?) => {
        /// The trait of each interface.
        pub mod traits {
            $(pub use super::$module::$trait;)+
        }

        #[cfg(test)]
        const ROWS: &[&str] = &[$($module::ROW),+];

        /// The types of all interfaces.
        pub mod types {
            $(#[allow(
                unused_imports, unreachable_pub,
                reason = "an interface may have no types of its own",
            )]
              pub use super::$module::types::*;)+
        }
    };
}

interfaces! {
    correction::Correction,
    extraction::Extraction,
    explain::Explain,
    browse::Browse,
    migration::Migration,
    profile::Profile,
    review::Review,
    transfer::Transfer,
    health::Health,
    erasure::Erasure,
}

#[cfg(test)]
mod tests {
    /// `UPDATE_DOCS=1` writes the rows into the guide.
    #[test]
    fn the_guide_has_every_interface() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
        let guide = std::fs::read_to_string(page).unwrap();
        let rows = |text: &str| -> Vec<String> {
            text.lines()
                .filter(|line| line.contains("](src/optional/"))
                .map(str::to_owned)
                .collect()
        };
        let there = rows(&guide);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(page, guide.replace(&there.join("\n"), &super::ROWS.join("\n")))
                .unwrap();
            return;
        }
        assert_eq!(there, super::ROWS, "UPDATE_DOCS=1 writes the rows into {page}");
    }
}
