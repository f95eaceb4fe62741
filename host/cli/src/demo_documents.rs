//! The material of the demo: the sections of this repository's documents, and its commits.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A section of a document.
pub(super) struct Section {
    /// `README.md#install`.
    pub(super) key: String,
    pub(super) text: String,
}

/// A commit.
pub(super) struct Commit {
    pub(super) hash: String,
    pub(super) at: String,
    pub(super) text: String,
}

/// The documents in this binary, for a demo outside of a checkout.
const EMBEDDED: [(&str, &str); 5] = [
    ("README.md", include_str!("../../../README.md")),
    ("ARCHITECTURE.md", include_str!("../../../ARCHITECTURE.md")),
    ("wit/types.wit", include_str!("../../../wit/types.wit")),
    ("wit/host.wit", include_str!("../../../wit/host.wit")),
    ("wit/provider.wit", include_str!("../../../wit/provider.wit")),
];

/// The checkout around the current directory, if there is one.
pub(super) fn checkout() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors()
        .find(|path| path.join("wit/provider.wit").is_file() && path.join("host").is_dir())
        .map(Path::to_owned)
}

/// Every section of the documents.
pub(super) fn sections(checkout: Option<&Path>) -> Vec<Section> {
    let Some(root) = checkout else {
        return EMBEDDED.iter().flat_map(|(name, text)| split(name, text)).collect();
    };
    let folders = ["", "wit", "sdk", "plugins/local-markdown", "tests", "tests/guests"];
    let mut files = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "md" || extension == "wit") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
        .iter()
        .filter_map(|path| {
            let name = path.strip_prefix(root).ok()?.to_str()?.to_owned();
            Some(split(&name, &std::fs::read_to_string(path).ok()?))
        })
        .flatten()
        .collect()
}

/// By Markdown heading, or by blank line before a comment in WIT.
fn split(name: &str, text: &str) -> Vec<Section> {
    let is_wit = name.ends_with(".wit");
    let mut sections: Vec<(String, String)> = vec![(String::new(), String::new())];
    let (mut in_code, mut was_blank) = (false, true);
    for line in text.lines() {
        in_code ^= line.starts_with("```");
        let begins = if is_wit {
            was_blank && line.trim_start().starts_with("///")
        } else {
            !in_code && line.starts_with('#')
        };
        if begins {
            let title = if is_wit { format!("{}", sections.len()) } else { slug(line) };
            sections.push((title, String::new()));
        }
        if let Some((_, body)) = sections.last_mut() {
            body.push_str(line);
            body.push('\n');
        }
        was_blank = line.trim().is_empty();
    }
    sections
        .into_iter()
        .filter(|(_, body)| !body.trim().is_empty())
        .map(|(title, text)| Section {
            key: if title.is_empty() { name.to_owned() } else { format!("{name}#{title}") },
            text,
        })
        .collect()
}

fn slug(heading: &str) -> String {
    let words: Vec<String> = heading
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("-")
}

/// The latest commits; none without git or a history.
pub(super) fn commits(checkout: Option<&Path>) -> Vec<Commit> {
    let Some(root) = checkout else { return Vec::new() };
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["log", "-n", "200", "--format=%h%x1f%cI%x1f%B%x1e"])
        .output();
    let Ok(output) = output else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split('\u{1e}')
        .filter_map(|entry| {
            let mut parts = entry.trim().splitn(3, '\u{1f}');
            let (hash, at, text) = (parts.next()?, parts.next()?, parts.next()?);
            Some(Commit { hash: hash.to_owned(), at: at.to_owned(), text: text.trim().to_owned() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_split_at_headings_but_not_in_code() {
        let found =
            split("a.md", "intro\n# One Two\ntext\n```\n# no heading\n```\n## Three\nend\n");
        let keys: Vec<&str> = found.iter().map(|section| section.key.as_str()).collect();
        assert_eq!(keys, ["a.md", "a.md#one-two", "a.md#three"]);
        assert!(found[1].text.contains("# no heading"));
    }
}
