//! Builds the built-in provider for `wasm32-wasip2` and leaves it where `plugins/builtin.rs` embeds it from, and makes
//! the list of the files that `memhost plugin new` writes: the SDK and the contract as this host has them.
//!
//! The one thing that a machine with only rustup may lack is the target's standard library. It is installed here, so
//! that the first `cargo run` just works; where that is not possible the one command to type is printed.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-wasip2";
const PACKAGE: &str = "memhost-local-markdown";
/// What an author's project is made of.
const KIT: [&str; 14] = [
    "wit",
    "sdk/src",
    "sdk/examples",
    "sdk/Cargo.toml",
    "sdk/README.md",
    "sdk/template/src",
    "sdk/template/tests",
    "sdk/template/project",
    "sdk/template/Cargo.toml",
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
];

fn main() {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let workspace = manifest.parent().map_or_else(|| fail("the workspace is not found"), Path::to_owned);
    for watched in KIT.iter().chain(&["plugins/local-markdown/src", "plugins/local-markdown/Cargo.toml"]) {
        println!("cargo::rerun-if-changed={}", workspace.join(watched).display());
    }
    embed_kit(&workspace, &out);
    ensure_target();
    // A directory of its own: the outer cargo holds the lock of its build directory while this runs.
    let target_dir = out.ancestors().nth(4).unwrap_or(&out).join("guests");
    let status = Command::new(variable("CARGO"))
        .current_dir(&workspace)
        .args(["build", "--quiet", "--locked", "--profile", "guest", "--target", TARGET, "--package", PACKAGE])
        .arg("--target-dir")
        .arg(&target_dir)
        // What the outer build is compiled with is not meant for the guest.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("CARGO_BUILD_TARGET")
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("building {PACKAGE} for {TARGET} ended with {status}")),
        Err(error) => fail(&format!("cargo could not be started: {error}")),
    }
    let made = target_dir.join(TARGET).join("guest").join("memhost_local_markdown.wasm");
    if let Err(error) = std::fs::copy(&made, out.join("local-markdown.wasm")) {
        fail(&format!("{} could not be copied: {error}", made.display()));
    }
}

/// Writes the kit's files as one table, each under its path in this repository.
fn embed_kit(workspace: &Path, out: &Path) {
    let mut files = Vec::new();
    KIT.iter().for_each(|name| collect(&workspace.join(name), &mut files));
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(workspace).unwrap_or(file);
        table.push_str(&format!("    ({name:?}, include_str!({file:?})),\n"));
    }
    table.push(']');
    if let Err(error) = std::fs::write(out.join("kit.rs"), table) {
        fail(&format!("the list of the SDK's files could not be written: {error}"));
    }
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| collect(&entry.path(), files)),
        Err(_) if path.is_file() => files.push(path.to_owned()),
        Err(error) => fail(&format!("{} cannot be read: {error}", path.display())),
    }
}

fn ensure_target() {
    if has_target() {
        return;
    }
    println!("cargo::warning=installing the Rust target {TARGET}, once, with `rustup target add {TARGET}`");
    let added = Command::new("rustup").args(["target", "add", TARGET]).output();
    if !has_target() {
        let said = added.map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned());
        let said = said.unwrap_or_else(|error| error.to_string());
        fail(&format!(
            "the Rust target {TARGET} is missing and could not be installed ({said}); type: rustup target add {TARGET}"
        ));
    }
}

fn has_target() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo did not set {name}")))
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1);
}
