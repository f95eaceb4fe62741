//! The provider that needs no configuration, embedded as the component that the build script made of
//! `plugins/local-markdown`. It goes through the same admission and sandbox as any other.

/// Its provider key.
pub const LOCAL_MARKDOWN_KEY: &str = "local-markdown";

/// The component.
pub const LOCAL_MARKDOWN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/local-markdown.wasm"));
