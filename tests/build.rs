//! Builds the guests of `tests/guests`, a workspace of their own, and tells the tests where they are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let guests = manifest.join("guests");
    println!("cargo::rerun-if-changed={}", guests.display());
    for watched in ["../wit", "../sdk/src"] {
        println!("cargo::rerun-if-changed={}", manifest.join(watched).display());
    }
    // Beside the host's own guest build, outside the build directory whose lock the outer cargo holds.
    let target_dir = out.ancestors().nth(4).unwrap_or(&out).join("test-guests");
    let status = Command::new(variable("CARGO"))
        .current_dir(&guests)
        .args(["build", "--quiet", "--locked", "--profile", "guest", "--target", "wasm32-wasip2"])
        .arg("--target-dir")
        .arg(&target_dir)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTC_WRAPPER")
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!(
            "building the guests ended with {status}; is the target there? rustup target add wasm32-wasip2"
        )),
        Err(error) => fail(&format!("cargo could not be started: {error}")),
    }
    println!("cargo::rustc-env=GUESTS={}", target_dir.join("wasm32-wasip2").join("guest").display());
    println!("cargo::rustc-env=REPOSITORY={}", manifest.parent().unwrap_or(Path::new("/")).display());
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo did not set {name}")))
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1);
}
