//! Generated from `wit/`. Authors use [`crate::types`] and the traits; only the export macros name this module.
//!
//! Each optional interface is generated from a world of its own, and its world is written into the component only
//! where its export macro is called: so a component exports exactly what its author wrote a line for.

#![allow(missing_docs, unsafe_code, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub mod provider {
    wit_bindgen::generate!({
        path: "../wit",
        world: "memory-provider",
        pub_export_macro: true,
        export_macro_name: "export_memory_provider",
        additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
        generate_all,
    });
}

macro_rules! optional_world {
    ($module:ident, $world:literal, $export:literal) => {
        pub mod $module {
            wit_bindgen::generate!({
                path: "../wit",
                world: $world,
                pub_export_macro: true,
                export_macro_name: $export,
                additional_derives: [PartialEq, serde::Serialize, serde::Deserialize],
                with: { "paperclip:memory/types@0.1.0": crate::bindings::provider::paperclip::memory::types },
            });
        }
    };
}

optional_world!(correction, "correction-provider", "export_correction_provider");
optional_world!(profile, "profile-provider", "export_profile_provider");
optional_world!(extraction, "extraction-provider", "export_extraction_provider");
optional_world!(explain, "explain-provider", "export_explain_provider");
optional_world!(browse, "browse-provider", "export_browse_provider");
optional_world!(review, "review-provider", "export_review_provider");
optional_world!(transfer, "transfer-provider", "export_transfer_provider");
optional_world!(migration, "migration-provider", "export_migration_provider");
