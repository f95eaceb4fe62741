//! The example of embedding: it is short, runs, and finds what it captured; and the list of what
//! the crate exports.

#![allow(clippy::unwrap_used, reason = "a test fails where something is not as it expects")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

#[test]
fn the_example_captures_and_finds() {
    // Cargo builds the examples of a package with its tests, beside their directory.
    let test = std::env::current_exe().unwrap();
    let example = test.parent().and_then(Path::parent).unwrap().join("examples/embed");
    let directory = tempfile::tempdir().unwrap();
    let found = Command::new(&example).arg(directory.path().join("memory")).output();
    let found = found.unwrap_or_else(|error| panic!("{}: {error}", example.display()));
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    assert_eq!(String::from_utf8(found.stdout).unwrap(), "Deploys are frozen on Fridays\n");
    let source = include_str!("../examples/embed.rs");
    assert!(source.lines().count() <= 60);
}

/// A host, and its parts: the crate of each, and the type.
const PARTS: [(&str, &str); 7] = [
    ("background", "Background"),
    ("control", "Control"),
    ("core", "Monitor"),
    ("core", "Service"),
    ("operations", "Operations"),
    ("tenancy", "Tenancy"),
    ("transfer", "Transfer"),
];

/// Every name that the crate exports, and every public method of the host. A change of it is a
/// change for embedders: `UPDATE_API=1 cargo test -p memhost --test embed` writes the list, and the
/// changelog says why.
#[test]
fn the_public_api_is_what_the_list_says() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = BTreeSet::new();
    exported(include_str!("../src/lib.rs"), "memhost", &mut names);
    exported(
        &std::fs::read_to_string(directory.join("../types/src/lib.rs")).unwrap(),
        "types",
        &mut names,
    );
    for (name, part) in PARTS {
        methods(&directory.join("..").join(name).join("src"), part, &mut names);
    }
    let found = names.into_iter().collect::<Vec<_>>().join("\n") + "\n";
    let list = directory.join("tests/public-api.txt");
    if std::env::var_os("UPDATE_API").is_some() {
        std::fs::write(&list, &found).unwrap();
    }
    let known = std::fs::read_to_string(&list).unwrap();
    let new: Vec<&str> =
        found.lines().filter(|line| !known.lines().any(|old| old == *line)).collect();
    let gone: Vec<&str> =
        known.lines().filter(|line| !found.lines().any(|new| new == *line)).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "new: {new:#?}\ngone: {gone:#?}\nUPDATE_API=1 writes the list"
    );
}

/// The names behind `pub use`, with modules of the same file.
fn exported(text: &str, of: &str, names: &mut BTreeSet<String>) {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join(" ");
    for part in code.split("pub use ").skip(1) {
        let part = part.split(';').next().unwrap();
        let (path, list) = part.split_once('{').unwrap_or(("", part));
        let _ = path;
        for name in list
            .trim_end_matches(['}', ' '])
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            let name = name.rsplit(" as ").next().unwrap().rsplit("::").next().unwrap();
            names.insert(format!("{of}::{name}"));
        }
    }
}

/// The public methods of a part, with their signatures.
fn methods(directory: &Path, part: &str, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            methods(&path, part, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for block in text.split(&format!("\nimpl {part} {{")).skip(1) {
                let block = block.split("\n}").next().unwrap();
                for (start, _) in block.match_indices("\n    pub ") {
                    let signature = block[start + 5..].split(" {\n").next().unwrap();
                    if signature.starts_with("pub fn") || signature.starts_with("pub async fn") {
                        let flat = signature.split_whitespace().collect::<Vec<_>>().join(" ");
                        names.insert(format!(
                            "{part}::{}",
                            flat.replace("( ", "(").replace(", )", ")")
                        ));
                    }
                }
            }
        }
    }
}
