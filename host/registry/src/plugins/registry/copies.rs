//! Builds whose files are gone, from their copies. Each is admitted once, for all that ask for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::plugins::error::PluginError;
use crate::plugins::registry::scan::AbortOnDrop;
use crate::plugins::registry::{Plugin, PluginSource, Plugins};
use crate::plugins::trust::Signed;
use memhost_types::Digest;

/// How long a call waits for a copy. Loading one that was compiled before takes milliseconds.
const WAIT: Duration = Duration::from_secs(3);

/// The copies that are being admitted.
#[derive(Default)]
pub(super) struct Copies(Mutex<HashMap<Digest, Loading>>);

struct Loading {
    outcome: watch::Receiver<Option<Result<Plugin, String>>>,
    _task: AbortOnDrop,
}

impl Plugins {
    /// One build, from the copies if its file is gone.
    ///
    /// # Errors
    /// Where there is no such build, its copy is not admitted, or is being compiled.
    pub async fn build(self: &Arc<Self>, digest: Digest) -> Result<Plugin, PluginError> {
        let known =
            self.admitted.read().values().flatten().find(|build| build.digest() == digest).cloned();
        if let Some(build) = known {
            return Ok(build);
        }
        let mut outcome = {
            let mut loading = self.copies.0.lock();
            loading.entry(digest).or_insert_with(|| self.load(digest)).outcome.clone()
        };
        let found = tokio::time::timeout(WAIT, outcome.wait_for(Option::is_some)).await;
        let Ok(found) = found else { return Err(PluginError::Admitting { digest }) };
        match found.as_deref() {
            Ok(Some(Ok(plugin))) => Ok(plugin.clone()),
            Ok(Some(Err(reason))) => Err(PluginError::Copy { digest, reason: reason.clone() }),
            _ => Err(PluginError::Admitting { digest }),
        }
    }

    fn load(self: &Arc<Self>, digest: Digest) -> Loading {
        let (plugins, admissions) = (Arc::downgrade(self), self.admissions.clone());
        let (done, outcome) = watch::channel(None);
        let task = memhost_executor::spawn(async move {
            let admitted = admissions.copy(digest).await;
            let Some(plugins) = plugins.upgrade() else { return };
            let loaded = admitted.map_err(|error| error.to_string()).map(|component| {
                let plugin = Plugin {
                    source: PluginSource::Kept,
                    component,
                    signed: Signed::No,
                    written: (0, 0),
                };
                plugins.insert(plugin.clone());
                plugin
            });
            done.send_replace(Some(loaded));
            // From here on it is known, or tried again.
            plugins.copies.0.lock().remove(&digest);
        });
        Loading { outcome, _task: AbortOnDrop(task.abort_handle()) }
    }
}
