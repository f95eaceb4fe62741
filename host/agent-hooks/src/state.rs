//! The directory in which hooks keep their own files: the log, when tool calls began, and which
//! hosts do not answer.
//!
//! A hook that cannot write there goes on without it: nothing here may stop a session.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::json;
use super::settings::env_path;

const LOG: &str = "agent-hooks.log";
/// A longer log is renamed to `agent-hooks.log.1`, and a new one begins. In bytes.
const MAX_LOG_BYTES: u64 = 256 << 10;
/// How long no hook asks a host that did not answer in time.
const CIRCUIT_OPEN: Duration = Duration::from_secs(5);
/// A tool call that began longer ago has no end that will be reported.
const MAX_TOOL_AGE: Duration = Duration::from_secs(24 * 3600);

/// The longest note of a tool call that is read, in bytes.
const MAX_NOTE_BYTES: u64 = 16 << 10;

/// A tool call that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenCall {
    /// The agent tool, such as `codex`.
    pub(super) agent_tool: String,
    pub(super) session: String,
    /// The tool that the agent calls.
    pub(super) tool: String,
    /// The id of the call.
    pub(super) id: String,
}

/// The directory of the hooks' own files.
#[derive(Debug, Clone)]
pub(super) struct State {
    root: PathBuf,
}

impl State {
    /// The directory named by `MEMHOST_AGENT_HOOKS_STATE`, or `memhost/agent-hooks` in the user's
    /// state directory.
    pub(super) fn open() -> Self {
        let root = env_path("MEMHOST_AGENT_HOOKS_STATE")
            .or_else(|| env_path("XDG_STATE_HOME").map(|base| base.join("memhost/agent-hooks")))
            .or_else(|| env_path("HOME").map(|home| home.join(".local/state/memhost/agent-hooks")))
            .unwrap_or_else(|| std::env::temp_dir().join("memhost-agent-hooks"));
        Self { root }
    }

    #[cfg(test)]
    pub(super) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// A directory in it that only this user can read. It is created where it is missing, and made
    /// so where it is there.
    pub(super) fn directory(&self, name: &str) -> std::io::Result<PathBuf> {
        let path = self.root.join(name);
        // Flushed, or what is spooled there could be gone after a power failure.
        memhost_files::durable::create_directory(&path, 0o700)?;
        // The root may be a link that a person made; nothing below it is one.
        let mut below = self.root.clone();
        for part in Path::new(name) {
            below.push(part);
            if !fs::symlink_metadata(&below)?.is_dir() {
                let message = format!("{} is a link and no directory", below.display());
                return Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, message));
            }
        }
        let found = fs::metadata(&self.root)?;
        // The directory for temporary files is everybody's: another user may have made one of this
        // name there.
        if found.uid() != rustix::process::geteuid().as_raw() {
            let message = format!("{} belongs to another user", self.root.display());
            return Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, message));
        }
        if found.mode() & 0o077 != 0 {
            fs::set_permissions(&self.root, fs::Permissions::from_mode(0o700))?;
        }
        Ok(path)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The path of the log, whether or not there is one.
    pub(super) fn log_path(&self) -> PathBuf {
        self.root.join(LOG)
    }

    /// Adds a problem to the log, which no model reads. Callers put no token and no prompt into the
    /// message.
    pub(super) fn log(&self, message: &str) {
        if self.directory("").is_err() {
            return;
        }
        let path = self.log_path();
        if fs::metadata(&path).is_ok_and(|found| found.len() > MAX_LOG_BYTES) {
            let _ = fs::rename(&path, self.root.join(format!("{LOG}.1")));
        }
        if let Ok(mut file) = open_private(&path, false) {
            // A host's answer may be in it.
            let line =
                format!("{} {}\n", jiff::Timestamp::now(), message.replace(char::is_control, " "));
            let _ = file.write_all(line.as_bytes());
        }
    }

    /// Notes that a tool call begins now.
    pub(super) fn note_tool_start(&self, name: &str, call: &OpenCall) {
        if let Ok(directory) = self.directory("tools") {
            let _ = open_private(&directory.join(name), true)
                .and_then(|mut file| file.write_all(&serde_json::to_vec(call)?));
        }
    }

    /// The tool calls of a session that have begun, and whose end no hook reported.
    pub(super) fn open_tool_calls(&self, agent_tool: &str, session: &str) -> Vec<OpenCall> {
        let entries = fs::read_dir(self.root.join("tools")).into_iter().flatten().flatten();
        let calls = entries.filter_map(|entry| {
            let mut bytes = Vec::new();
            let file = open_regular(&entry.path()).ok()?;
            file.take(MAX_NOTE_BYTES).read_to_end(&mut bytes).ok()?;
            json::parse::<OpenCall>(&bytes).ok()
        });
        calls.filter(|call| call.agent_tool == agent_tool && call.session == session).collect()
    }

    /// How long ago a tool call began, in milliseconds, if that was noted. The note is removed.
    pub(super) fn take_tool_duration_ms(&self, id: &str) -> Option<u64> {
        let path = self.root.join("tools").join(id);
        let began = fs::metadata(&path).and_then(|found| found.modified()).ok()?;
        let _ = fs::remove_file(&path);
        let duration = SystemTime::now().duration_since(began).unwrap_or_default();
        u64::try_from(duration.as_millis()).ok()
    }

    /// Removes the notes of tool calls whose end nobody reported.
    pub(super) fn remove_old_tool_notes(&self) {
        remove_older(&self.root.join("tools"), MAX_TOOL_AGE, |_| true);
    }

    /// Whether a host did not answer in time a moment ago. Nobody waits for it again until the
    /// circuit closes.
    pub(super) fn is_circuit_open(&self, url: &str) -> bool {
        fs::metadata(self.circuit_path(url))
            .is_ok_and(|found| age(&found).is_some_and(|age| age < CIRCUIT_OPEN))
    }

    /// Notes that a host does not answer in time.
    pub(super) fn open_circuit(&self, url: &str) {
        if self.directory("").is_ok() {
            let _ = open_private(&self.circuit_path(url), true);
        }
    }

    /// Notes that a host answers again.
    pub(super) fn close_circuit(&self, url: &str) {
        let _ = fs::remove_file(self.circuit_path(url));
    }

    fn circuit_path(&self, url: &str) -> PathBuf {
        self.root.join(format!("circuit-open-{}", short_hash(&[url])))
    }
}

fn age(found: &fs::Metadata) -> Option<Duration> {
    found.modified().ok()?.elapsed().ok()
}

/// Removes files of a directory that are older, and whose name is chosen.
pub(super) fn remove_older(directory: &Path, max_age: Duration, choose: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_old =
            entry.metadata().is_ok_and(|found| age(&found).is_some_and(|age| age > max_age));
        if is_old && choose(&entry.file_name().to_string_lossy()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Opens a file that only this user can read: emptied, or to add to it. No link is followed, and no
/// pipe is waited for.
pub(super) fn open_private(path: &Path, empty: bool) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).append(!empty).truncate(empty).mode(0o600);
    only_regular(options, path)
}

/// Opens a file to read it. No link is followed, and no pipe or device is waited for.
pub(super) fn open_regular(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    only_regular(options, path)
}

fn only_regular(mut options: OpenOptions, path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => {
            Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "is not a regular file"))
        }
    }
}

/// A hash of 128 bits of these texts, in hexadecimal.
pub(super) fn short_hash(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_age(path: &Path, age: Duration) {
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(SystemTime::now() - age)
            .unwrap();
    }

    #[test]
    fn a_circuit_closes_by_itself() {
        let directory = tempfile::tempdir().unwrap();
        let state = State { root: directory.path().to_owned() };
        assert!(!state.is_circuit_open("http://a"));
        state.open_circuit("http://a");
        assert!(state.is_circuit_open("http://a") && !state.is_circuit_open("http://b"));
        set_age(&state.circuit_path("http://a"), CIRCUIT_OPEN);
        assert!(!state.is_circuit_open("http://a"));
        state.open_circuit("http://a");
        state.close_circuit("http://a");
        assert!(!state.is_circuit_open("http://a"));
    }

    #[test]
    fn a_tool_call_lasts_from_its_note() {
        let directory = tempfile::tempdir().unwrap();
        let state = State { root: directory.path().to_owned() };
        assert_eq!(state.take_tool_duration_ms("a"), None);
        for id in ["a", "b", "c"] {
            let call = OpenCall {
                agent_tool: "codex".to_owned(),
                session: "s".to_owned(),
                tool: "Bash".to_owned(),
                id: id.to_owned(),
            };
            state.note_tool_start(id, &call);
        }
        set_age(&directory.path().join("tools/a"), Duration::from_secs(2));
        assert_eq!(state.open_tool_calls("codex", "s").len(), 3);
        assert!(state.open_tool_calls("codex", "t").is_empty());
        assert!(state.open_tool_calls("claude", "s").is_empty());
        assert!((2_000..60_000).contains(&state.take_tool_duration_ms("a").unwrap()));
        assert_eq!(state.take_tool_duration_ms("a"), None, "it is asked once");
        set_age(&directory.path().join("tools/b"), MAX_TOOL_AGE + Duration::from_secs(1));
        state.remove_old_tool_notes();
        assert_eq!(state.take_tool_duration_ms("b"), None);
        assert!(state.take_tool_duration_ms("c").is_some());
    }

    #[test]
    fn a_long_log_begins_anew() {
        let directory = tempfile::tempdir().unwrap();
        let state = State { root: directory.path().to_owned() };
        state.log("one\ntwo");
        assert!(fs::read_to_string(state.log_path()).unwrap().ends_with(" one two\n"));
        fs::write(state.log_path(), vec![b'x'; 257 << 10]).unwrap();
        state.log("three");
        assert!(fs::read_to_string(state.log_path()).unwrap().ends_with(" three\n"));
        assert!(directory.path().join("agent-hooks.log.1").exists());
    }
}
