//! Components whose compiling was stopped, by digest, in the data directory. They are not compiled
//! again at every start: each would take as long as before.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::plugins::error::PluginError;
use memhost_sandbox::{CompileLimits, Compiler};
use memhost_types::Digest;

/// What such a file ends with. It is beside the copies of components.
const EXTENSION: &str = "refused";
/// The most that is read of one.
const MAX_BYTES: u64 = 64 << 10;

/// Where they are remembered.
#[derive(Debug, Clone)]
pub(crate) struct Remembered(PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stopped {
    reason: String,
    /// When the component's file was written last: a second and a part of it in nanoseconds.
    written: (i64, i64),
    millis: u64,
    cpu_seconds: u64,
    memory_bytes: u64,
}

impl Remembered {
    /// In this directory, which exists.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    fn path(&self, digest: Digest) -> PathBuf {
        self.0.join(format!("{}.{EXTENSION}", digest.to_string().replace(':', "-")))
    }

    /// Refuses a component that was stopped before, unless a limit is higher now or its file was
    /// written since.
    pub(crate) fn check(
        &self,
        digest: Digest,
        written: (i64, i64),
        compiler: &Compiler,
    ) -> Result<(), PluginError> {
        use std::io::Read as _;
        // What cannot be read is not known, and the component is tried again.
        let Ok(file) = std::fs::File::open(self.path(digest)) else { return Ok(()) };
        let mut text = String::new();
        if file.take(MAX_BYTES).read_to_string(&mut text).is_err() {
            return Ok(());
        }
        let Ok(stopped) = serde_json::from_str::<Stopped>(&text) else { return Ok(()) };
        let before = CompileLimits {
            time: Duration::from_millis(stopped.millis),
            cpu_seconds: stopped.cpu_seconds,
            memory_bytes: stopped.memory_bytes,
        };
        let has_more =
            matches!(compiler, Compiler::Process(process) if process.limits.exceeds(&before));
        match has_more || written > stopped.written {
            true => Ok(()),
            false => Err(PluginError::Remembered { reason: stopped.reason }),
        }
    }

    /// Remembers that compiling was stopped.
    pub(crate) fn remember(
        &self,
        digest: Digest,
        written: (i64, i64),
        limits: CompileLimits,
        reason: String,
    ) -> Result<(), PluginError> {
        let path = self.path(digest);
        let stopped = Stopped {
            reason,
            written,
            millis: u64::try_from(limits.time.as_millis()).unwrap_or(u64::MAX),
            cpu_seconds: limits.cpu_seconds,
            memory_bytes: limits.memory_bytes,
        };
        let text = serde_json::to_vec(&stopped)
            .map_err(|error| PluginError::io("writing", &path, &error))?;
        memhost_files::durable::write(&path, &text, 0o600)
            .map_err(|error| PluginError::io("writing", &path, &error))
    }

    /// It was admitted after all.
    pub(crate) fn forget(&self, digest: Digest) {
        // Most were never remembered.
        let _ = std::fs::remove_file(self.path(digest));
    }
}
