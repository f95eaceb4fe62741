//! The shape of lines and sentences: columns, patterns that no reader should stumble over, links,
//! and the paths that recipes name.

use std::fs;
use std::path::{Path, PathBuf};

use memhost_tests::repository;

/// Directories that are built, fetched, frozen or data.
const OUTSIDE: &[&str] = &[
    "target",
    "node_modules",
    ".git",
    "tests/compat",
    "tests/recall",
    "plugins/extract",
    "plugins/local-markdown/tests/it/quality",
];

/// Tables of words and patterns, JSON that has to stay on one line, and texts as a terminal shows
/// them.
const LONG_LINES: &[&str] = &[
    "host/agent-hooks/src/transcript.rs",
    "host/pii/src/",
    "host/sandbox/src/egress/scrub/tests.rs",
    "host/types/src/words.rs",
    "tests/benches/",
    "tests/tests/it/authors.rs",
    "tests/tests/it/contract_frozen.rs",
    "tests/tests/it/wrong_inputs.rs",
];

/// Every file with one of these endings, as a path in the repository, with its text.
fn files(endings: &[&str]) -> Vec<(String, String)> {
    fn walk(root: &Path, directory: &Path, endings: &[&str], into: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let last = path.file_name().unwrap().to_str().unwrap();
            if OUTSIDE.contains(&name.as_str()) || OUTSIDE[..3].contains(&last) {
                continue;
            }
            if path.is_dir() {
                walk(root, &path, endings, into);
            } else if endings.iter().any(|ending| last.ends_with(ending)) {
                into.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let (root, mut found) = (repository(), Vec::new());
    walk(root, root, endings, &mut found);
    assert!(found.len() > 10, "the repository was not found");
    found
}

/// The prose of a line: a line of a document, or the comment of a line of code.
fn prose<'a>(name: &str, line: &'a str) -> Option<&'a str> {
    if name.ends_with(".md") {
        return Some(line.trim());
    }
    let (before, comment) = line.split_once("//")?;
    (before.is_empty() || before.ends_with(' '))
        .then(|| comment.trim_start_matches(['/', '!']).trim())
}

#[test]
fn lines_of_code_have_at_most_100_columns() {
    let mut found = Vec::new();
    for (name, text) in files(&[".rs"]) {
        if LONG_LINES.iter().any(|exempt| name.starts_with(exempt)) {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > 100 {
                found.push(format!("{name}:{}: {columns} columns", at + 1));
            }
        }
    }
    assert!(found.is_empty(), "break these lines:\n{}", found.join("\n"));
}

#[test]
fn sentences_begin_with_their_subject() {
    // Quoted word for word from the contract, whose text is frozen.
    let quoted = ["wit/", "host/docs/conformance.md"];
    let mut found = Vec::new();
    for (name, text) in files(&[".rs", ".md", ".wit"]) {
        if quoted.iter().any(|exempt| name.starts_with(exempt)) {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            let Some(prose) = prose(&name, line) else { continue };
            // Written so that this file does not contain the patterns.
            let opens = prose.starts_with("Of ")
                || [". ", ": ", "? ", "| ", "- "]
                    .iter()
                    .any(|end| prose.contains(&format!("{end}Of ")));
            if opens {
                found.push(format!("{name}:{}: begins with \"Of\": {prose}", at + 1));
            }
            if prose.contains(concat!("; ", "none: ")) {
                found.push(format!("{name}:{}: write \"`None`: …\": {prose}", at + 1));
            }
            if prose.contains(concat!("is not known", " here")) {
                found.push(format!("{name}:{}: say who does not know it: {prose}", at + 1));
            }
        }
    }
    assert!(found.is_empty(), "write these in plain English:\n{}", found.join("\n"));
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut found = Vec::new();
    for (name, text) in files(&[".md"]) {
        let directory = repository().join(&name).parent().unwrap().to_path_buf();
        for link in text.split("](").skip(1) {
            let target = link.split([')', ' ', '#']).next().unwrap();
            let is_elsewhere = target.is_empty()
                || target.contains(':')
                || target.starts_with('/')
                || target.contains(['{', '\\', '`']);
            if !is_elsewhere && !directory.join(target).exists() {
                found.push(format!("{name}: {target}"));
            }
        }
    }
    assert!(found.is_empty(), "these links lead nowhere:\n{}", found.join("\n"));
}

#[test]
fn the_paths_of_recipes_exist() {
    let text = fs::read_to_string(repository().join("CONTRIBUTING.md")).unwrap();
    let recipes: Vec<&str> = text
        .split("<!-- recipe:")
        .skip(1)
        .map(|recipe| recipe.split_once("<!-- /recipe -->").expect("a recipe has an end").0)
        .collect();
    assert!(recipes.len() > 10, "{} recipes", recipes.len());
    let mut found = Vec::new();
    for recipe in recipes {
        let name = recipe.split(' ').next().unwrap();
        for path in recipe.split('`').skip(1).step_by(2) {
            let is_path = ["host/", "sdk/", "plugins/", "wit/", "tests/"]
                .iter()
                .any(|start| path.starts_with(start));
            // A word in capitals is chosen by whoever follows the recipe.
            let has_a_choice = ["NAME", "NOUN", "GROUP"].iter().any(|word| path.contains(word));
            if is_path && !has_a_choice && !repository().join(PathBuf::from(path)).exists() {
                found.push(format!("{name}: {path}"));
            }
        }
        for wanted in ["Tests:", "Documents:"] {
            if !recipe.contains(wanted) {
                found.push(format!("{name}: has no step that begins with \"{wanted}\""));
            }
        }
    }
    assert!(found.is_empty(), "recipes that are out of date:\n{}", found.join("\n"));
}
