//! The provider that needs no configuration, embedded as the component that the build script made
//! of `plugins/local-markdown`. It goes through the same admission and sandbox as any other.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

/// Its provider key.
pub const LOCAL_MARKDOWN_KEY: &str = "local-markdown";

/// Packed, because it is a third of the size then.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/local-markdown.wasm.deflate"));

/// The component, of about 2 MB. Unpacking it takes some 10 ms.
///
/// # Errors
/// If this binary is damaged.
pub fn local_markdown() -> std::io::Result<Vec<u8>> {
    let mut component = Vec::with_capacity(2 << 20);
    DeflateDecoder::new(PACKED).read_to_end(&mut component)?;
    Ok(component)
}
