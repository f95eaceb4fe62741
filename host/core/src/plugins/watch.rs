//! Noticing what happens in the plugins directory: at once where the system tells us, after seconds where it does not.

use std::sync::Arc;
use std::time::Duration;

use notify::event::AccessKind;
use notify::{EventKind, RecursiveMode, Watcher};
use tokio::sync::mpsc;

use crate::plugins::files::SETTLE;
use crate::plugins::registry::Plugins;

/// Copying a file is many events.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// How often the directory is looked at without being told to: network file systems tell nothing.
const PERIOD: Duration = Duration::from_secs(5);

impl Plugins {
    /// Keeps the registry as the plugins directory is, until the registry is dropped.
    pub fn watch(self: &Arc<Self>) {
        let (told, mut telling) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Somebody has opened something, such as this host when it looked: that is no news and would go on for ever.
            let is_news = event.map_or(true, |event| !matches!(event.kind, EventKind::Access(AccessKind::Open(_))));
            if is_news {
                // One that waits is as good as many.
                let _ = told.try_send(());
            }
        })
        .and_then(|mut watcher| {
            watcher.watch(self.directory(), RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        let watcher = match watcher {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                let seconds = PERIOD.as_secs();
                tracing::warn!(%error, "the plugins directory is looked at every {seconds} s only");
                None
            }
        };
        let plugins = Arc::downgrade(self);
        tokio::spawn(async move {
            let _watcher = watcher;
            let mut wait = PERIOD;
            loop {
                tokio::select! {
                    told = telling.recv() => match told {
                        Some(()) => tokio::time::sleep(DEBOUNCE).await,
                        // There is no watcher to tell anything.
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
