//! The granted directory.

use std::path::PathBuf;

/// The binding's private directory: `/data` in the sandbox, a test's own directory in a native
/// test. It exists only if the permission `directory` was granted; without the grant every access
/// fails.
pub fn directory() -> PathBuf {
    #[cfg(target_family = "wasm")]
    return PathBuf::from("/data");
    #[cfg(not(target_family = "wasm"))]
    return crate::testing::current_directory();
}
