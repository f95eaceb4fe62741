//! Generated from `wit/`: the host's side of the contract. One module a world; types are shared.

#![allow(missing_docs, unsafe_code, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value)]

pub(super) mod provider {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "memory-provider",
        imports: { "paperclip:memory/embeddings.embed": async | trappable, default: trappable },
        exports: { default: async },
    });
}

macro_rules! optional_world {
    ($module:ident, $world:literal) => {
        pub(super) mod $module {
            wasmtime::component::bindgen!({
                path: "../../wit",
                world: $world,
                imports: { default: trappable },
                exports: { default: async },
                with: { "paperclip:memory/types": super::provider::paperclip::memory::types },
            });
        }
    };
}

optional_world!(correction, "correction-provider");
optional_world!(profile, "profile-provider");
optional_world!(extraction, "extraction-provider");
optional_world!(explain, "explain-provider");
optional_world!(browse, "browse-provider");
optional_world!(review, "review-provider");
optional_world!(transfer, "transfer-provider");
optional_world!(migration, "migration-provider");
