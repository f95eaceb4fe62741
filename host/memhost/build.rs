//! Has the linker fold functions with the same code into one, which makes the binary 3 % smaller:
//! most of them are the same generic function for types that look alike in memory.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    // Rust links for this target with its own linker, which can do it. Who names another one may
    // have one that cannot.
    let is_ours = ["RUSTC_LINKER", "CARGO_ENCODED_RUSTFLAGS"]
        .iter()
        .all(|name| env::var(name).unwrap_or_default().is_empty());
    let is_target = is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64");
    if is_ours && is_target && is("PROFILE", "release") {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
