//! Makes the object file with the function `grow_table`, because stable Rust has no instruction
//! `table.grow`.

use std::path::PathBuf;

/// A relocatable WebAssembly module: `(func (export "grow_table") (param i32) (result i32) ...)` on
/// table 0, which is the linked module's table of functions.
const OBJECT: &[u8] = b"\0asm\x01\0\0\0\
    \x01\x06\x01\x60\x01\x7f\x01\x7f\
    \x03\x02\x01\0\
    \x0a\x0b\x01\x09\0\xd0\x70\x20\0\xfc\x0f\0\x0b\
    \0\x1a\x07linking\x02\x08\x0f\x01\0\0\0\x0agrow_table";

fn main() -> std::io::Result<()> {
    let path = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("grow_table.o");
    std::fs::write(&path, OBJECT)?;
    println!("cargo::rustc-link-arg={}", path.display());
    println!("cargo::rustc-link-arg=--growable-table");
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
