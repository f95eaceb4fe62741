//! Which project a directory belongs to. The id of a repository with a remote is the same on every
//! machine, so that the memory of a project is found. Others are told apart by their path: two
//! directories of one name are two projects.

use std::fs;
use std::path::{Path, PathBuf};

/// The longest id, in bytes.
const MAX_ID: usize = 128;
/// How many digits of the hash of a path an id has.
const DIGITS: usize = 12;
/// The longest file of Git that is read, in bytes.
const MAX_FILE: u64 = 64 << 10;

/// The project of a session's directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Project {
    /// The remote `origin` of the repository as `host:owner:name` in small letters, or the name of
    /// its main directory, or that of the directory, with a hash of its path.
    pub(super) id: String,
    /// How a person calls it.
    pub(super) name: String,
    /// The branch, if there is one.
    pub(super) branch: Option<String>,
}

impl Project {
    /// Searches from a directory upwards for a Git repository.
    pub(super) fn of(directory: &Path) -> Self {
        let found =
            directory.ancestors().find_map(|root| git_directory(root).map(|git| (root, git)));
        let Some((root, git)) = found else { return Self::local(directory, None) };
        let common =
            read(&git.join("commondir")).map_or_else(|| git.clone(), |path| git.join(path.trim()));
        let remote = read(&common.join("config"))
            .and_then(|config| origin(&config))
            .and_then(|url| remote_id(&url));
        let branch = read(&git.join("HEAD")).and_then(|head| {
            let branch = head.trim().strip_prefix("ref: refs/heads/")?.to_owned();
            Some(branch)
        });
        match remote {
            Some(id) => Self { name: last_part(&id), id, branch },
            None => Self::local(&main_directory(root, &git, &common), branch),
        }
    }

    /// A project that is known on this machine only.
    fn local(directory: &Path, branch: Option<String>) -> Self {
        let path = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let name = clean(&name);
        let hash = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
        let mut end = name.len().min(MAX_ID - DIGITS - 1);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        Self { id: format!("{}-{}", &name[..end], &hash[..DIGITS]), name, branch }
    }

    /// The project that a person named, at this place.
    pub(super) fn named(id: &str, directory: &Path) -> Self {
        Self { id: id.to_owned(), name: last_part(id), branch: Self::of(directory).branch }
    }
}

fn last_part(id: &str) -> String {
    id.rsplit(':').next().unwrap_or_default().to_owned()
}

/// The directory that all worktrees of a repository have in common. That of a bare repository is
/// the repository itself. A submodule has one of its own.
fn main_directory(root: &Path, git: &Path, common: &Path) -> PathBuf {
    if git == common {
        return root.to_owned();
    }
    let common = fs::canonicalize(common).unwrap_or_else(|_| common.to_owned());
    match common.parent() {
        Some(parent) if common.file_name().is_some_and(|name| name == ".git") => parent.to_owned(),
        _ => common,
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
/// `ssh://git@host:22/Owner/Name` have one id. The hosts of repositories make no difference between
/// large and small letters.
fn remote_id(url: &str) -> Option<String> {
    let (authority, path) = match url.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.split_once('/')?,
        None => url.split_once(':')?,
    };
    let host = authority.rsplit('@').next()?.split(':').next()?.to_lowercase();
    let path = path.trim_matches('/').to_lowercase();
    let path = path.strip_suffix(".git").unwrap_or(&path).trim_end_matches('/');
    (!host.is_empty() && !path.is_empty())
        .then(|| clean(&format!("{host}:{}", path.replace('/', ":"))))
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
            "https://github.com/Acme/Widgets/",
            "https://GITHUB.com/ACME/widgets.GIT",
        ] {
            assert_eq!(remote_id(url).as_deref(), Some("github.com:acme:widgets"), "{url}");
        }
        assert_eq!(remote_id("file:///srv/git/x.git"), None);
        assert_eq!(remote_id("/srv/git/x.git"), None);
    }

    #[test]
    fn a_directory_has_the_id_of_its_repository_or_its_own() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("widgets");
        let deep = root.join("src/deep");
        fs::create_dir_all(&deep).unwrap();
        let id = |path: &Path| Project::of(path).id;
        assert!(id(&deep).starts_with("deep-") && Project::of(&deep).name == "deep");
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/fix/leak\n").unwrap();
        let found = Project::of(&deep);
        assert_eq!(found.branch.as_deref(), Some("fix/leak"));
        assert!(found.id.starts_with("widgets-") && found.id == id(&root), "{found:?}");
        // A worktree in another place is the same project, with a remote and without one.
        let tree = base.path().join("tree");
        let of_tree = root.join(".git/worktrees/tree");
        fs::create_dir_all(&of_tree).unwrap();
        fs::create_dir(&tree).unwrap();
        fs::write(of_tree.join("commondir"), "../..\n").unwrap();
        fs::write(of_tree.join("HEAD"), "ref: refs/heads/tree\n").unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", of_tree.display())).unwrap();
        assert_eq!(id(&tree), found.id);
        assert_eq!(Project::of(&tree).branch.as_deref(), Some("tree"));
        let config =
            "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@example.com:Acme/w.git\n";
        fs::write(root.join(".git/config"), config).unwrap();
        assert_eq!(
            (id(&deep), id(&tree)),
            ("example.com:acme:w".into(), "example.com:acme:w".into())
        );
        assert_eq!(Project::of(&deep).name, "w");
        assert_eq!(Project::named("apollo", &deep).branch.as_deref(), Some("fix/leak"));
    }

    #[test]
    fn unrelated_directories_of_one_name_are_two_projects() {
        let base = tempfile::tempdir().unwrap();
        let [one, other] = ["one/app", "other/app"].map(|path| base.path().join(path));
        for path in [&one, &other] {
            fs::create_dir_all(path).unwrap();
        }
        assert_ne!(Project::of(&one).id, Project::of(&other).id);
        for path in [&one, &other] {
            fs::create_dir(path.join(".git")).unwrap();
        }
        assert_ne!(Project::of(&one).id, Project::of(&other).id);
        // A link to a directory leads to the same project.
        let link = base.path().join("link");
        std::os::unix::fs::symlink(&one, &link).unwrap();
        assert_eq!(Project::of(&one).id, Project::of(&link).id);
        // Worktrees of a repository without a directory for people are one project.
        let bare = base.path().join("lib.git");
        for name in ["a", "b"] {
            let of_tree = bare.join("worktrees").join(name);
            fs::create_dir_all(&of_tree).unwrap();
            fs::write(of_tree.join("commondir"), "../..\n").unwrap();
            let tree = base.path().join(name);
            fs::create_dir(&tree).unwrap();
            fs::write(tree.join(".git"), format!("gitdir: {}\n", of_tree.display())).unwrap();
        }
        let [a, b] = ["a", "b"].map(|name| Project::of(&base.path().join(name)).id);
        assert_eq!(a, b);
        assert!(a.starts_with("lib.git-"), "{a}");
        let long = base.path().join("x".repeat(200));
        fs::create_dir(&long).unwrap();
        assert!(Project::of(&long).id.len() <= MAX_ID);
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
