//! Builds the guests of `tests/guests`, a workspace of their own, and the providers of `plugins`,
//! and tells the tests where they are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-wasip2";

/// The providers that the host does not embed. `memhost-NAME` is in `plugins/NAME`.
const PROVIDERS: &[&str] = &[
    "memhost-agentcore",
    "memhost-claude-mem",
    "memhost-cross-agent",
    "memhost-facts",
    "memhost-mem0",
    "memhost-memos",
    "memhost-memsearch",
    "memhost-openviking",
    "memhost-supermemory",
    "memhost-taxonomy",
];

fn main() {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let workspace = manifest.parent().unwrap_or(Path::new("/")).to_owned();
    let guests = manifest.join("guests");
    watch(&guests);
    for watched in [
        "wit",
        "sdk/src",
        "sdk/Cargo.toml",
        "host/journal/src",
        "host/pii/src",
        "host/tokens/src",
        "host/words/src",
        "plugins/extract",
    ] {
        watch(&workspace.join(watched));
    }
    for provider in PROVIDERS {
        watch(&workspace.join("plugins").join(provider.trim_start_matches("memhost-")));
    }
    // Beside the host's own guest build, outside the build directory whose lock the outer cargo
    // holds.
    let out = PathBuf::from(variable("OUT_DIR"));
    let beside = |name: &str| out.ancestors().nth(4).unwrap_or(&out).join(name);
    let made = build(&guests, &beside("test-guests"), &[]);
    println!("cargo::rustc-env=GUESTS={}", made.display());
    // The host's build of its own provider, so that the SDK is compiled once.
    let packages: Vec<&str> =
        PROVIDERS.iter().flat_map(|provider| ["--package", provider]).collect();
    let made = build(&workspace, &beside("guests"), &packages);
    println!("cargo::rustc-env=PROVIDERS={}", made.display());
    println!("cargo::rustc-env=CACHE={}", beside("test-cache").display());
    println!("cargo::rustc-env=REPOSITORY={}", workspace.display());
}

/// Builds a workspace, or some packages of it, and answers where the components are.
fn build(workspace: &Path, target_dir: &Path, packages: &[&str]) -> PathBuf {
    let status = Command::new(variable("CARGO"))
        .current_dir(workspace)
        .args(["build", "--quiet", "--locked", "--profile", "guest", "--target", TARGET])
        .args(packages)
        .arg("--target-dir")
        .arg(target_dir)
        // What the outer build is compiled with is not meant for guests.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("CARGO_BUILD_TARGET")
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!(
            "building the guests in {} ended with {status}; is the target there? rustup target add \
             {TARGET}",
            workspace.display()
        )),
        Err(error) => fail(&format!("cargo could not be started: {error}")),
    }
    target_dir.join(TARGET).join("guest")
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo did not set {name}")))
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1);
}
