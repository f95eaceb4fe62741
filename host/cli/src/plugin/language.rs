//! The files of an author's project in another language than Rust: our example in that language,
//! and the contract.

use std::collections::BTreeMap;

use clap::ValueEnum;

use super::template::files;

/// The language of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Language {
    Rust,
    Python,
    Javascript,
    C,
}

impl Language {
    /// Its folder in `plugins/examples`; none for Rust.
    fn folder(self) -> Option<&'static str> {
        match self {
            Self::Rust => None,
            Self::Python => Some("python"),
            Self::Javascript => Some("javascript"),
            Self::C => Some("c"),
        }
    }
}

/// The complete files of a project, by path; none for Rust.
///
/// # Errors
/// Where the embedded files are invalid, which a test excludes.
pub(super) fn project(
    name: &str,
    language: Language,
) -> Result<Option<BTreeMap<String, String>>, String> {
    let Some(folder) = language.folder() else { return Ok(None) };
    // The names and places that an example has in our repository, and those in a project.
    let (example, package) = (format!("notes-{folder}"), format!("memhost-example-{folder}"));
    let names = [
        ("../../../target/examples", "target"),
        ("../../../target", "target"),
        ("target/examples", "target"),
        ("../../../wit", "vendor/wit"),
        (&example, name),
        (&package, name),
    ];
    let named = |text: &str| {
        names.iter().fold(text.to_owned(), |text, (ours, theirs)| text.replace(ours, theirs))
    };
    let directory = format!("plugins/examples/{folder}/");
    let mut project = BTreeMap::from([(
        ".gitignore".to_owned(),
        "/target\n/node_modules\n/__pycache__\n".to_owned(),
    )]);
    for (path, text) in files()? {
        if let Some(own) = path.strip_prefix(&directory) {
            project.insert(own.to_owned(), named(&text));
        } else if path.starts_with("wit/") || path.starts_with("LICENSE-") {
            project.insert(format!("vendor/{path}"), text);
        }
    }
    Ok(Some(project))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_our_repository_is_left_in_a_project() {
        for (language, source) in [
            (Language::Python, "notes.py"),
            (Language::Javascript, "notes.js"),
            (Language::C, "notes.c"),
        ] {
            let project = project("red-thread", language).unwrap().unwrap();
            let contract =
                ["vendor/wit/provider.wit", "vendor/wit/deps/http.wit", "vendor/LICENSE-MIT"];
            for path in [source, "build.sh", "README.md", ".gitignore"].into_iter().chain(contract)
            {
                assert!(
                    project.contains_key(path),
                    "{language:?}: {path} is missing of {:?}",
                    project.keys()
                );
            }
            for (path, text) in project.iter().filter(|(path, _)| !path.starts_with("vendor/")) {
                for ours in ["../", "target/examples", "notes-", "memhost-example", "plugins/"] {
                    assert!(
                        !text.contains(ours) || path == "package-lock.json",
                        "{language:?}: {path} has {ours}"
                    );
                }
            }
            assert!(project[source].contains("red-thread"), "the key of the provider");
            assert!(project["build.sh"].contains("$target/red-thread.wasm"));
            assert!(
                project
                    .iter()
                    .any(|(path, text)| path.starts_with("build.") && text.contains("vendor/wit"))
            );
            assert!(
                project["README.md"].contains("red-thread")
                    && project["README.md"].contains("plugin check")
            );
        }
        let javascript = project("red-thread", Language::Javascript).unwrap().unwrap();
        assert!(javascript["fetch.js"].contains("'red-thread-fetch'"), "the second example");
        assert_eq!(project("red-thread", Language::Rust).unwrap(), None);
    }
}
