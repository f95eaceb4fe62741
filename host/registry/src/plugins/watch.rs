//! Watches the plugins directory: at once where the system reports changes, else every few seconds.

use std::sync::Arc;
use std::time::Duration;

use notify::event::AccessKind;
use notify::{EventKind, RecursiveMode, Watcher};
use tokio::sync::mpsc;

use crate::plugins::files::SETTLE;
use crate::plugins::registry::Plugins;

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
            watcher.watch(&self.directory, RecursiveMode::NonRecursive)?;
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
}
