//! Packs the files that `memhost plugin new` writes: the templates, the examples in other
//! languages, the SDK and the contract.

use std::env;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// The sources of an author's project.
const SOURCES: [&str; 32] = [
    "wit",
    "host/words/src",
    "host/words/Cargo.toml",
    "sdk/src",
    "sdk/examples",
    "sdk/Cargo.toml",
    "sdk/README.md",
    "sdk/template/src",
    "sdk/template/tests",
    "sdk/template/project",
    "sdk/template/Cargo.toml",
    "sdk/template-http/src",
    "sdk/template-http/tests",
    "sdk/template-http/project",
    "sdk/template-http/Cargo.toml",
    "plugins/examples/c",
    "plugins/examples/python/README.md",
    "plugins/examples/python/build.sh",
    "plugins/examples/python/notes.py",
    "plugins/examples/python/requirements.txt",
    "plugins/examples/javascript/README.md",
    "plugins/examples/javascript/build.mjs",
    "plugins/examples/javascript/build.sh",
    "plugins/examples/javascript/fetch.js",
    "plugins/examples/javascript/notes.js",
    "plugins/examples/javascript/package-lock.json",
    "plugins/examples/javascript/package.json",
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
];

fn main() {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let workspace = manifest
        .ancestors()
        .nth(2)
        .map_or_else(|| fail("the workspace is not found"), Path::to_owned);
    for watched in SOURCES {
        println!("cargo::rerun-if-changed={}", workspace.join(watched).display());
    }
    embed_template(&workspace, &out);
}

/// Packs the files, each with its path in this repository, its length in bytes, and its text.
fn embed_template(workspace: &Path, out: &Path) {
    let mut files = Vec::new();
    SOURCES.iter().for_each(|name| collect(&workspace.join(name), &mut files));
    files.sort();
    let packed = File::create(out.join("template.deflate")).and_then(|packed| {
        let mut packer = DeflateEncoder::new(packed, Compression::best());
        for file in &files {
            let (name, text) = (file.strip_prefix(workspace).unwrap_or(file), std::fs::read(file)?);
            write!(packer, "{}\n{}\n", name.display(), text.len())?;
            packer.write_all(&text)?;
        }
        packer.finish().map(drop)
    });
    if let Err(error) = packed {
        fail(&format!("the SDK's files could not be packed: {error}"));
    }
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| collect(&entry.path(), files)),
        Err(_) if path.is_file() => files.push(path.to_owned()),
        Err(error) => fail(&format!("{} cannot be read: {error}", path.display())),
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo did not set {name}")))
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1);
}
