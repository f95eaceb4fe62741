//! Generated from `wit/`: the host's side of the contract. One module a world; types are shared.

#![allow(missing_docs, unsafe_code, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value)]

pub(super) mod provider {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "memory-provider",
        imports: { "paperclip:memory/embeddings.embed": async | trappable, default: trappable },
        exports: { default: async },
    });
}

pub(super) mod correction {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "correction-provider",
        imports: { default: trappable },
        exports: { default: async },
        with: { "paperclip:memory/types": super::provider::paperclip::memory::types },
    });
}

pub(super) mod migration {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "migration-provider",
        imports: { default: trappable },
        exports: { default: async },
        with: { "paperclip:memory/types": super::provider::paperclip::memory::types },
    });
}

pub(super) mod explain {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "explain-provider",
        imports: { default: trappable },
        exports: { default: async },
        with: { "paperclip:memory/types": super::provider::paperclip::memory::types },
    });
}

pub(super) mod browse {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "browse-provider",
        imports: { default: trappable },
        exports: { default: async },
        with: { "paperclip:memory/types": super::provider::paperclip::memory::types },
    });
}

pub(super) mod extraction {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "extraction-provider",
        imports: { default: trappable },
        exports: { default: async },
        with: { "paperclip:memory/types": super::provider::paperclip::memory::types },
    });
}
