//! The adapter's own directory: its log, when tools began, and whether the host was found to hang. Whatever goes wrong
//! here is nobody's problem: an adapter that cannot write is quiet and goes on.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The log is begun anew where it is larger, and the one before is kept as `agent-hooks.log.1`.
const MAX_LOG_BYTES: u64 = 256 << 10;
/// How long a host that did not answer is left alone.
const REST: Duration = Duration::from_secs(5);
/// A tool that began longer ago will not be told of any more.
const MAX_TOOL_AGE: Duration = Duration::from_secs(24 * 3600);

/// Where the adapter keeps what is its own.
#[derive(Debug, Clone)]
pub(super) struct State {
    root: PathBuf,
}

impl State {
    /// The directory of `MEMHOST_AGENT_HOOKS_STATE`, or `memhost/agent-hooks` in the user's state directory.
    pub(super) fn open() -> Self {
        let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = of("MEMHOST_AGENT_HOOKS_STATE")
            .or_else(|| of("XDG_STATE_HOME").map(|base| base.join("memhost/agent-hooks")))
            .or_else(|| of("HOME").map(|home| home.join(".local/state/memhost/agent-hooks")))
            .unwrap_or_else(|| std::env::temp_dir().join("memhost-agent-hooks"));
        Self { root }
    }

    /// A directory of this name in it, for nobody else to read; made where it is missing.
    pub(super) fn directory(&self, name: &str) -> std::io::Result<PathBuf> {
        let path = self.root.join(name);
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Where it is.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes a complaint where the model does not read it. Callers put no token and no prompt in it.
    pub(super) fn log(&self, message: &str) {
        let Ok(directory) = self.directory("") else { return };
        let path = directory.join("agent-hooks.log");
        if fs::metadata(&path).is_ok_and(|found| found.len() > MAX_LOG_BYTES) {
            let _ = fs::rename(&path, directory.join("agent-hooks.log.1"));
        }
        if let Ok(mut file) = private(&path, false) {
            let line = format!("{} {}\n", jiff::Timestamp::now(), message.replace('\n', " "));
            let _ = file.write_all(line.as_bytes());
        }
    }

    /// Notes that a tool began.
    pub(super) fn tool_began(&self, id: &str) {
        if let Ok(directory) = self.directory("tools") {
            let _ = private(&directory.join(id), true);
        }
    }

    /// How long ago a tool began, in milliseconds, if that was noted. Asked once: the note is taken away.
    pub(super) fn tool_took(&self, id: &str) -> Option<u64> {
        let path = self.root.join("tools").join(id);
        let began = fs::metadata(&path).and_then(|found| found.modified()).ok()?;
        let _ = fs::remove_file(&path);
        let took = SystemTime::now().duration_since(began).unwrap_or_default();
        u64::try_from(took.as_millis()).ok()
    }

    /// Throws away the notes of tools whose end nobody told.
    pub(super) fn sweep(&self) {
        for entry in fs::read_dir(self.root.join("tools")).into_iter().flatten().flatten() {
            let age = entry.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age > MAX_TOOL_AGE) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Whether a host was found a moment ago not to answer: nobody waits for it again right away.
    pub(super) fn rests(&self, host: &str) -> bool {
        let noted = fs::metadata(self.root.join(rest_file(host))).and_then(|found| found.modified());
        noted.ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age < REST)
    }

    /// Notes that a host does not answer, or that it does.
    pub(super) fn set_rest(&self, host: &str, hangs: bool) {
        let path = self.root.join(rest_file(host));
        if hangs {
            if self.directory("").is_ok() {
                let _ = private(&path, true);
            }
        } else {
            let _ = fs::remove_file(path);
        }
    }
}

fn rest_file(host: &str) -> String {
    format!("silent-{}", short_hash(&[host]))
}

/// Opens a file that nobody else may read: emptied, or to be added to.
pub(super) fn private(path: &Path, empty: bool) -> std::io::Result<File> {
    OpenOptions::new().create(true).write(true).append(!empty).truncate(empty).mode(0o600).open(path)
}

/// 128 bits that stand for these parts, in hexadecimal.
pub(super) fn short_hash(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}
