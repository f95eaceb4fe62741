//! Which project a directory belongs to. The id is the same on every machine, so that the memory of
//! a project is found.

use std::fs;
use std::path::{Path, PathBuf};

/// The longest id, in bytes.
const MAX_ID: usize = 128;
/// The longest file of Git that is read, in bytes.
const MAX_FILE: u64 = 64 << 10;

/// The project of a session's directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Project {
    /// The remote `origin` of the repository as `host:owner:name`, or the name of its root, or that
    /// of the directory.
    pub(super) id: String,
    /// The branch, if there is one.
    pub(super) branch: Option<String>,
}

impl Project {
    /// Searches from a directory upwards for a Git repository.
    pub(super) fn of(directory: &Path) -> Self {
        let found =
            directory.ancestors().find_map(|root| git_directory(root).map(|git| (root, git)));
        let Some((root, git)) = found else { return Self { id: name(directory), branch: None } };
        let common =
            read(&git.join("commondir")).map_or_else(|| git.clone(), |path| git.join(path.trim()));
        let remote = read(&common.join("config"))
            .and_then(|config| origin(&config))
            .and_then(|url| remote_id(&url));
        let branch = read(&git.join("HEAD")).and_then(|head| {
            let branch = head.trim().strip_prefix("ref: refs/heads/")?.to_owned();
            Some(branch)
        });
        Self { id: remote.unwrap_or_else(|| name(root)), branch }
    }
}

/// The `.git` directory. In a worktree or a submodule `.git` is a file that names it.
fn git_directory(root: &Path) -> Option<PathBuf> {
    let path = root.join(".git");
    let kind = fs::metadata(&path).ok()?;
    if kind.is_dir() {
        return Some(path);
    }
    let text = read(&path)?;
    Some(root.join(text.trim().strip_prefix("gitdir:")?.trim()))
}

fn read(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > MAX_FILE { None } else { fs::read_to_string(path).ok() }
}

fn origin(config: &str) -> Option<String> {
    let mut is_origin = false;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            is_origin = line == "[remote \"origin\"]";
        } else if is_origin
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "url"
        {
            return Some(value.trim().to_owned());
        }
    }
    None
}

/// `https://user:secret@host/owner/name.git`, `git@host:owner/name` and
/// `ssh://git@host:22/owner/name` have one id.
fn remote_id(url: &str) -> Option<String> {
    let (authority, path) = match url.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.split_once('/')?,
        None => url.split_once(':')?,
    };
    let host = authority.rsplit('@').next()?.split(':').next()?.to_lowercase();
    let path = path.trim_matches('/').trim_end_matches(".git");
    (!host.is_empty() && !path.is_empty())
        .then(|| clean(&format!("{host}:{}", path.replace('/', ":"))))
}

fn name(directory: &Path) -> String {
    clean(&directory.file_name().map(|name| name.to_string_lossy()).unwrap_or_default())
}

/// A text as an id that the host accepts: without path separators and control characters, not too
/// long, not empty.
pub(super) fn clean(text: &str) -> String {
    let replaced: String = text
        .chars()
        .map(|c| if c.is_control() || c == '/' || c == '\\' { '_' } else { c })
        .collect();
    let trimmed = replaced.trim();
    let mut end = trimmed.len().min(MAX_ID);
    while !trimmed.is_char_boundary(end) {
        end -= 1;
    }
    match trimmed[..end].trim_end() {
        "" | "." | ".." => "unnamed".to_owned(),
        id => id.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repository_has_one_id_however_it_is_reached() {
        for url in [
            "git@GitHub.com:acme/widgets.git",
            "https://github.com/acme/widgets",
            "https://me:hunter2@github.com/acme/widgets.git",
            "ssh://git@github.com:22/acme/widgets.git",
        ] {
            assert_eq!(remote_id(url).as_deref(), Some("github.com:acme:widgets"), "{url}");
        }
        assert_eq!(remote_id("file:///srv/git/x.git"), None);
        assert_eq!(remote_id("/srv/git/x.git"), None);
    }

    #[test]
    fn a_directory_has_the_id_of_its_repository_or_its_own_name() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("widgets");
        let deep = root.join("src/deep");
        fs::create_dir_all(&deep).unwrap();
        assert_eq!(Project::of(&deep).id, "deep");
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/fix/leak\n").unwrap();
        assert_eq!(
            Project::of(&deep),
            Project { id: "widgets".to_owned(), branch: Some("fix/leak".to_owned()) }
        );
        let config =
            "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@example.com:acme/w.git\n";
        fs::write(root.join(".git/config"), config).unwrap();
        assert_eq!(Project::of(&deep).id, "example.com:acme:w");
        // A worktree in another place is the same project.
        let tree = base.path().join("tree");
        let of_tree = root.join(".git/worktrees/tree");
        fs::create_dir_all(&of_tree).unwrap();
        fs::create_dir(&tree).unwrap();
        fs::write(of_tree.join("commondir"), "../..\n").unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", of_tree.display())).unwrap();
        assert_eq!(Project::of(&tree).id, "example.com:acme:w");
    }

    #[test]
    fn ids_are_accepted_by_the_host() {
        for (text, id) in [("a/b\\c\n", "a_b_c_"), ("", "unnamed"), ("..", "unnamed"), (" x ", "x")]
        {
            assert_eq!(clean(text), id);
        }
        assert!(clean(&"ä".repeat(200)).len() <= MAX_ID);
    }
}
