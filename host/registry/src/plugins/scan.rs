//! Follows the files of the plugins directory: at once where the system reports changes, else every
//! few seconds. What is new and complete is admitted, beside everything else.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use notify::event::AccessKind;
use notify::{EventKind, RecursiveMode, Watcher};
use tokio::sync::mpsc;

use crate::plugins::error::PluginError;
use crate::plugins::files::{self, Fingerprint, SETTLE};
use crate::plugins::progress::{AbortOnDrop, SeenFile, Stage};
use crate::plugins::registry::Plugins;
use crate::plugins::trust::Signed;
use memhost_sandbox::Component;
use memhost_types::PluginOutcome;

/// Copying a file causes many events, which this joins.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// How often the directory is read without an event: network file systems report none.
const PERIOD: Duration = Duration::from_secs(5);

impl Plugins {
    /// Keeps the registry current with the plugins directory, until the registry is dropped.
    pub fn watch(self: &Arc<Self>) {
        let (told, mut telling) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading the directory causes such events: they would never end.
            let is_change = event.map_or(true, |event| {
                !matches!(event.kind, EventKind::Access(AccessKind::Open(_)))
            });
            if is_change {
                // One that waits is enough.
                let _ = told.try_send(());
            }
        })
        .and_then(|mut watcher| {
            for directory in &self.directories {
                watcher.watch(directory, RecursiveMode::NonRecursive)?;
            }
            Ok(watcher)
        });
        let watcher = match watcher {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                let seconds = PERIOD.as_secs();
                tracing::warn!(%error, "the plugins directory is read every {seconds} s only");
                None
            }
        };
        let plugins = Arc::downgrade(self);
        memhost_executor::spawn(async move {
            let _watcher = watcher;
            let mut wait = PERIOD;
            loop {
                tokio::select! {
                    told = telling.recv() => match told {
                        Some(()) => tokio::time::sleep(DEBOUNCE).await,
                        // There is no watcher.
                        None => tokio::time::sleep(wait).await,
                    },
                    () = tokio::time::sleep(wait) => {}
                }
                let Some(plugins) = plugins.upgrade() else { return };
                wait = if plugins.scan().await { PERIOD } else { SETTLE };
            }
        });
    }

    /// Begins to admit the files that are in the directory at the start. Calls of their providers
    /// are told to wait until then.
    pub async fn begin(self: &Arc<Self>) {
        self.scan_directory(true).await;
        let progress = Arc::clone(&self.progress);
        memhost_executor::spawn(async move {
            progress.idle().await;
            progress.set_ready();
        });
    }

    /// Whether every file that is being admitted takes long.
    pub fn has_only_slow(&self) -> bool {
        self.progress.has_only_slow()
    }

    /// Resolves when no file is being admitted but those that take long.
    pub async fn wait_for_fast(&self) {
        self.progress.wait_for_fast().await;
    }

    /// Whether no file is being admitted.
    pub fn is_idle(&self) -> bool {
        self.progress.is_idle()
    }

    /// Resolves when no file is being admitted.
    pub async fn idle(&self) {
        self.progress.idle().await;
        self.progress.set_ready();
    }

    /// Reads the directory now, and begins to admit what is new. Answers false where a file is
    /// being written and must be looked at again soon.
    pub async fn scan(self: &Arc<Self>) -> bool {
        self.scan_directory(false).await
    }

    async fn scan_directory(self: &Arc<Self>, is_first: bool) -> bool {
        let directories = self.directories.clone();
        let mut seen = self.files.lock().await;
        let list = move || {
            let all = directories.iter().map(|directory| files::list(directory));
            all.collect::<Result<Vec<_>, _>>()
        };
        let listed = match memhost_executor::spawn_blocking(list).await {
            Ok(Ok(listed)) => listed.concat(),
            Ok(Err(error)) => {
                // Builds stay where the directory cannot be read for a moment.
                tracing::warn!(%error, "the plugins directory cannot be read");
                return true;
            }
            Err(_) => return true,
        };
        let names: HashSet<&PathBuf> = listed.iter().map(|(path, _)| path).collect();
        let gone: Vec<PathBuf> =
            seen.keys().filter(|path| !names.contains(path)).cloned().collect();
        for path in gone {
            seen.remove(&path);
            self.forget_file(&path, None);
            self.publish(&path, PluginOutcome::Gone);
        }
        let mut all_settled = true;
        for (path, fingerprint) in listed {
            let known = seen.get(&path).filter(|known| known.fingerprint == fingerprint);
            let stage = match known.map(|known| &known.stage) {
                Some(Stage::Admitting { .. } | Stage::Done) => continue,
                // Unchanged for a while: it is complete.
                Some(Stage::Settling(since)) if since.elapsed() >= SETTLE => {
                    self.begin_file(path.clone(), fingerprint)
                }
                Some(Stage::Settling(_)) => {
                    all_settled = false;
                    continue;
                }
                None if is_first => self.begin_file(path.clone(), fingerprint),
                None => {
                    all_settled = false;
                    // The reason was about the file as it was.
                    self.refused.write().remove(&path);
                    Stage::Settling(Instant::now())
                }
            };
            seen.insert(path, SeenFile { fingerprint, stage });
        }
        all_settled
    }

    /// Admits a file in a task of its own.
    fn begin_file(self: &Arc<Self>, path: PathBuf, fingerprint: Fingerprint) -> Stage {
        let (plugins, admissions) = (Arc::downgrade(self), self.admissions.clone());
        let in_progress = self.progress.begin(&path);
        let task = memhost_executor::spawn(async move {
            let admitted = admissions.file(&path, fingerprint.modified(), &in_progress).await;
            if let Some(plugins) = plugins.upgrade() {
                plugins.looked_at(path, fingerprint, admitted).await;
            }
            drop(in_progress);
        });
        Stage::Admitting { _task: AbortOnDrop(task.abort_handle()) }
    }

    async fn looked_at(
        &self,
        path: PathBuf,
        fingerprint: Fingerprint,
        admitted: Result<(Component, Signed), PluginError>,
    ) {
        let mut seen = self.files.lock().await;
        // Otherwise it was changed or removed meanwhile.
        let Some(file) = seen.get_mut(&path).filter(|file| file.fingerprint == fingerprint) else {
            return;
        };
        file.stage = match admitted {
            Ok((component, signed)) => {
                self.register(path, fingerprint, component, signed);
                Stage::Done
            }
            Err(PluginError::BeingWritten { .. }) => Stage::Settling(Instant::now()),
            Err(error) => {
                self.refuse(path, &error);
                Stage::Done
            }
        };
    }
}
