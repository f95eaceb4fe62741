//! Where the granted directory is.

use std::path::PathBuf;

/// The binding's private directory: `/data` in the sandbox, the test kit's directory in a native test. It exists only
/// where the permission `directory` was granted; without the grant every access fails.
pub fn directory() -> PathBuf {
    #[cfg(target_family = "wasm")]
    return PathBuf::from("/data");
    #[cfg(not(target_family = "wasm"))]
    return crate::testing::current_directory();
}
