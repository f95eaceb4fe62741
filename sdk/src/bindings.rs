//! Generated from `wit/`: the required interface and the host's imports. Authors use
//! [`crate::types`] and the traits; only the export macros name this module.

#![allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic
)]
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
