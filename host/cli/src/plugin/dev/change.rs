//! Notices changes of an author's project. The output of builds and hidden files do not count.

use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::event::EventKind;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::{CliError, Result};

/// Saving a file is many events, and saving all of them many more.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Changes of a project.
pub(super) struct Changes {
    _watcher: RecommendedWatcher,
    told: mpsc::Receiver<()>,
    /// The time of the last change that [`Changes::next`] has not reported yet.
    unreported: Option<Instant>,
}

impl Changes {
    /// Watches a project; `artifact` is the output of the author's build command.
    pub(super) fn of(project: &Path, artifact: Option<&Path>) -> Result<Self> {
        let (tell, told) = mpsc::channel(1);
        let (root, artifact) = (project.to_owned(), artifact.map(Path::to_owned));
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let is_news = event.map_or(true, |event| {
                !matches!(event.kind, EventKind::Access(_))
                    && event.paths.iter().any(|path| matters(&root, path, artifact.as_deref()))
            });
            if is_news {
                // One waiting message stands for all changes.
                let _ = tell.try_send(());
            }
        });
        let wrong = |error: notify::Error| {
            CliError::host(format!("{} cannot be watched: {error}", project.display()))
        };
        let mut watcher = watcher.map_err(wrong)?;
        // Not the project as a whole: a build writes thousands of files into one of its
        // directories.
        watcher.watch(project, RecursiveMode::NonRecursive).map_err(wrong)?;
        for entry in std::fs::read_dir(project)?.flatten() {
            let path = entry.path();
            if path.is_dir() && matters(project, &path, None) {
                watcher.watch(&path, RecursiveMode::Recursive).map_err(wrong)?;
            }
        }
        Ok(Self { _watcher: watcher, told, unreported: None })
    }

    /// Resolves after the next change, when the project has been unchanged for a moment. A caller
    /// may drop the future and call again: a change is not lost.
    pub(super) async fn next(&mut self) {
        loop {
            let told = match self.unreported {
                Some(at) => tokio::time::timeout_at(at + DEBOUNCE, self.told.recv()).await,
                None => Ok(self.told.recv().await),
            };
            match told {
                Ok(Some(())) => self.unreported = Some(Instant::now()),
                // The watcher has ended. It does not while `self` exists.
                Ok(None) => return std::future::pending().await,
                Err(_) => return self.unreported = None,
            }
        }
    }
}

/// Whether a path is something that an author writes.
fn matters(project: &Path, path: &Path, artifact: Option<&Path>) -> bool {
    let inside: PathBuf = path.strip_prefix(project).unwrap_or(path).to_owned();
    let first =
        inside.components().next().map(|first| first.as_os_str().to_string_lossy().into_owned());
    let is_made = matches!(first.as_deref(), Some("target" | "node_modules" | "Cargo.lock"));
    let is_hidden =
        inside.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'));
    !is_made && !is_hidden && first.is_some() && artifact != Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_build_writes_is_no_change() {
        let (project, artifact) = (Path::new("/p"), Path::new("/p/out.wasm"));
        let counts = |path: &str| matters(project, &project.join(path), Some(artifact));
        for path in ["src/lib.rs", "Cargo.toml", "wit/a.wit", "src/target/a.rs"] {
            assert!(counts(path), "{path}");
        }
        for path in
            ["target/release/a", ".git/index", "src/.lib.rs.swp", "Cargo.lock", "out.wasm", ""]
        {
            assert!(!counts(path), "{path}");
        }
    }

    #[tokio::test]
    async fn a_change_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path().canonicalize().unwrap();
        std::fs::create_dir(project.join("src")).unwrap();
        std::fs::create_dir(project.join("target")).unwrap();
        let mut changes = Changes::of(&project, None).unwrap();
        std::fs::write(project.join("target/a"), "made").unwrap();
        std::fs::write(project.join("src/a.rs"), "one").unwrap();
        std::fs::write(project.join("src/b.rs"), "two").unwrap();
        changes.next().await;
        assert!(changes.told.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_change_survives_a_caller_that_stops_waiting() {
        let (tell, told) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(|_| {}).unwrap();
        let mut changes = Changes { _watcher: watcher, told, unreported: None };
        tell.try_send(()).unwrap();
        // As in the command's loop, when an event of the host arrives before the project has been
        // unchanged long enough.
        assert!(tokio::time::timeout(Duration::ZERO, changes.next()).await.is_err());
        assert!(tokio::time::timeout(Duration::from_secs(20), changes.next()).await.is_ok());
    }
}
