//! Builds the built-in provider for `wasm32-wasip2` and leaves it where the crate embeds it from.
//!
//! The one thing that a machine with only rustup may lack is the target's standard library. It is
//! installed here, so that the first `cargo run` just works; where that is not possible the one
//! command to type is printed.

use std::env;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::DeflateEncoder;

const TARGET: &str = "wasm32-wasip2";
const PACKAGE: &str = "memhost-local-markdown";

fn main() {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let workspace = manifest
        .ancestors()
        .nth(2)
        .map_or_else(|| fail("the workspace is not found"), Path::to_owned);
    for watched in [
        "wit",
        "sdk/src",
        "sdk/Cargo.toml",
        "host/words/src",
        "plugins/local-markdown/src",
        "plugins/local-markdown/Cargo.toml",
    ] {
        println!("cargo::rerun-if-changed={}", workspace.join(watched).display());
    }
    ensure_target();
    // A directory of its own: the outer cargo holds the lock of its build directory while this
    // runs.
    let target_dir = out.ancestors().nth(4).unwrap_or(&out).join("guests");
    let status = Command::new(variable("CARGO"))
        .current_dir(&workspace)
        .args([
            "build",
            "--quiet",
            "--locked",
            "--profile",
            "guest",
            "--target",
            TARGET,
            "--package",
            PACKAGE,
        ])
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
    if let Err(error) = pack(&made, &out.join("local-markdown.wasm.deflate")) {
        fail(&format!("{} could not be packed: {error}", made.display()));
    }
}

fn pack(made: &Path, packed: &Path) -> std::io::Result<()> {
    let mut packer = DeflateEncoder::new(File::create(packed)?, Compression::best());
    std::io::copy(&mut File::open(made)?, &mut packer)?;
    packer.finish().map(drop)
}

fn ensure_target() {
    if has_target() {
        return;
    }
    say(&format!("installing the Rust target {TARGET} with `rustup target add {TARGET}`"));
    let added = Command::new("rustup").args(["target", "add", TARGET]).output();
    if !has_target() {
        let said = added.map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned());
        let said = said.unwrap_or_else(|error| error.to_string());
        fail(&format!(
            "the Rust target {TARGET} is missing and could not be installed ({said}); type: rustup \
             target add {TARGET}"
        ));
    }
}

/// Tells the person at the terminal, once. Cargo would show a warning again at every later command.
fn say(what: &str) {
    if let Ok(mut terminal) = File::options().write(true).open("/dev/tty") {
        let _ = writeln!(terminal, "memhost: {what}");
    }
}

fn has_target() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output =
        Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo did not set {name}")))
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1);
}
