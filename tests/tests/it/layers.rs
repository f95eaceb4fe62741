//! The rooms: who may name whom. A text scan, so that it sees every build configuration.

use std::fs;
use std::path::{Path, PathBuf};

use memhost_tests::repository;

/// From the top down. Rooms of one row do not know each other. A call goes to a lower row only.
const ROWS: &[&[&str]] = &[
    &["main"],
    &["cli"],
    &["server"],
    &["api", "compat", "mcp", "ui", "eval", "check"],
    &["edge"],
    &["service"],
    &["accounting", "hooks", "jobs", "review"],
    &["access", "bindings", "plugins"],
    &["embeddings", "sandbox", "store"],
    &["contract"],
];

/// The rooms that speak HTTP.
const SURFACES: &[&str] = &["server", "api", "compat", "mcp", "ui", "edge"];

/// Crates that these rooms alone may name.
const OWNED: &[(&str, &[&str])] = &[
    ("wasmtime", &["sandbox"]),
    ("wasmtime_wasi", &["sandbox"]),
    ("wasmtime_wasi_http", &["sandbox"]),
    ("hyper", &["sandbox"]),
    ("rustls", &["sandbox"]),
    ("prometheus_client", &["service"]),
    ("jsonschema", &["service"]),
    ("bpe_openai", &["hooks"]),
    ("regex", &["review"]),
    ("sled", &["store"]),
    ("ndarray", &["embeddings"]),
    ("safetensors", &["embeddings"]),
    ("zip", &["embeddings"]),
    ("axum", SURFACES),
    ("aide", &["server", "api", "edge"]),
    ("maud", &["ui"]),
    ("rmcp", &["mcp"]),
    ("clap", &["cli"]),
    ("toml", &["cli"]),
];

fn row(room: &str) -> usize {
    ROWS.iter()
        .position(|row| row.contains(&room))
        .unwrap_or_else(|| panic!("the room `{room}` has no row; give it one"))
}

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The lines of a file that are code, without comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn room(root: &Path, path: &Path) -> String {
    let first = path.strip_prefix(root).unwrap().components().next().unwrap();
    first.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned()
}

#[test]
fn calls_go_down() {
    let root = repository().join("host/src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut wrong = Vec::new();
    for path in &files {
        let own = room(&root, path);
        if own == "lib" {
            continue;
        }
        let code = code(path);
        let named = code.split("crate::").skip(1).chain(code.split("memhost::").skip(1));
        for rest in named {
            let other: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            // A macro or item at the crate's root is nobody's room.
            if other.is_empty() || other == own || !ROWS.iter().flat_map(|row| row.iter()).any(|room| *room == other) {
                continue;
            }
            if row(&other) <= row(&own) {
                wrong.push(format!("{} names `{other}`", path.display()));
            }
        }
        for (name, owners) in OWNED {
            let uses = code.contains(&format!("{name}::")) || code.contains(&format!("use {name};"));
            // A room's own module may bear a crate's name: `self::sled`.
            let own_module = code.contains(&format!("self::{name}::")) || code.contains(&format!("super::{name}::"));
            if uses && !own_module && !owners.contains(&own.as_str()) {
                wrong.push(format!("{} names the crate `{name}`, which belongs to {owners:?}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "upward or sideways arrows:\n{}", wrong.join("\n"));
    assert!(files.len() > 30, "the scan found only {} files", files.len());
}

#[test]
fn files_say_what_they_are_and_stay_small() {
    let mut files = Vec::new();
    for place in ["host", "sdk/src", "plugins", "tests"] {
        sources(&repository().join(place), &mut files);
    }
    let mut wrong = Vec::new();
    for path in files.iter().filter(|path| !path.components().any(|part| part.as_os_str() == "target")) {
        let text = fs::read_to_string(path).unwrap();
        if !text.starts_with("//!") {
            wrong.push(format!("{} does not begin with what it is for", path.display()));
        }
        if text.lines().count() > 600 {
            wrong.push(format!("{} has {} lines; split it", path.display(), text.lines().count()));
        }
        if path.file_name().is_some_and(|name| name == "mod.rs") {
            wrong.push(format!("{}: name the room's file after the room", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn plugins_do_not_know_the_host() {
    let mut manifests = Vec::new();
    for entry in fs::read_dir(repository().join("plugins")).unwrap() {
        manifests.push(entry.unwrap().path().join("Cargo.toml"));
    }
    for manifest in manifests.iter().filter(|manifest| manifest.exists()) {
        let text = fs::read_to_string(manifest).unwrap();
        let knows = text.lines().any(|line| line.starts_with("memhost.") || line.starts_with("memhost ="));
        assert!(!knows, "{} depends on the host", manifest.display());
    }
    assert!(!manifests.is_empty());
}
