//! What the data directory has of components, by digest. The copy of an admitted component goes on
//! serving bindings after its file was removed from the plugins directory. A component whose
//! compiling was stopped is not compiled again at every start: it would take as long as before.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::plugins::error::PluginError;
use crate::plugins::files;
use memhost_sandbox::{CompileLimits, Compiler};
use memhost_types::Digest;

/// The most that is read of the reason for which compiling was stopped, with its limits.
const MAX_STOPPED_BYTES: u64 = 64 << 10;

/// Why compiling a component was stopped, as it is stored.
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

/// The directory of components.
#[derive(Debug, Clone)]
pub struct ComponentsDir(PathBuf);

impl ComponentsDir {
    /// Opens a directory, which is made with mode 0700 where it is missing.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn open(directory: PathBuf) -> Result<Self, PluginError> {
        memhost_files::durable::create_directory(&directory, 0o700)
            .map_err(|error| PluginError::io("making", &directory, &error))?;
        Ok(Self(directory))
    }

    fn path(&self, digest: Digest, extension: &str) -> PathBuf {
        self.0.join(format!("{}.{extension}", digest.to_string().replace(':', "-")))
    }

    /// The digests of all copies.
    ///
    /// # Errors
    /// Where the directory cannot be read.
    pub fn digests(&self) -> Result<BTreeSet<Digest>, PluginError> {
        let all = files::list(&self.0)?;
        let digest = |path: &PathBuf| {
            path.file_stem()?.to_str()?.replacen('-', ":", 1).parse::<Digest>().ok()
        };
        Ok(all.iter().filter_map(|(path, _)| digest(path)).collect())
    }

    /// Where the copy of a build is.
    pub fn copy(&self, digest: Digest) -> PathBuf {
        self.path(digest, "wasm")
    }

    /// Where the reason is for which compiling was stopped.
    fn stopped(&self, digest: Digest) -> PathBuf {
        self.path(digest, "refused")
    }

    /// Keeps a copy, if there is none.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn keep(&self, digest: Digest, bytes: &[u8]) -> Result<(), PluginError> {
        let path = self.copy(digest);
        if path.exists() {
            return Ok(());
        }
        memhost_files::durable::write(&path, bytes, 0o600)
            .map_err(|error| PluginError::io("writing", &path, &error))
    }

    /// Keeps the signature file of a copy beside it.
    pub fn keep_signature(&self, digest: Digest, signature: &[u8]) {
        let path = self.path(digest, "wasm.minisig");
        if let Err(error) = memhost_files::durable::write(&path, signature, 0o600) {
            tracing::warn!(%error, path = %path.display(), "the signature of a copy was not kept");
        }
    }

    /// The signature file beside a copy, if there is one.
    pub fn signature(&self, digest: Digest) -> Option<Vec<u8>> {
        files::read_signature(&self.copy(digest))
    }

    /// The copy, if it is there and matches its digest.
    ///
    /// # Errors
    /// Where it cannot be read, or does not match.
    pub fn read(&self, digest: Digest) -> Result<Vec<u8>, PluginError> {
        let path = self.copy(digest);
        let read = files::read(&path)?;
        let bytes =
            read.ok_or_else(|| PluginError::BeingWritten { path: path.display().to_string() })?;
        if Digest::of(&bytes) != digest {
            return Err(PluginError::Changed { digest });
        }
        Ok(bytes)
    }

    /// Removes every copy that is not needed. Answers their digests.
    pub(crate) fn keep_only(
        &self,
        needed: &HashSet<Digest>,
    ) -> Result<BTreeSet<Digest>, PluginError> {
        let mut gone = self.digests()?;
        gone.retain(|digest| !needed.contains(digest));
        for digest in &gone {
            self.remove(*digest)?;
        }
        Ok(gone)
    }

    /// Removes a copy.
    ///
    /// # Errors
    /// Where it cannot be removed.
    pub fn remove(&self, digest: Digest) -> Result<(), PluginError> {
        let path = self.copy(digest);
        std::fs::remove_file(&path).map_err(|error| PluginError::io("removing", &path, &error))?;
        // Most have none.
        let _ = std::fs::remove_file(self.path(digest, "wasm.minisig"));
        Ok(())
    }

    /// Refuses a component that was stopped before, unless a limit is higher now or its file was
    /// written since.
    pub(crate) fn check_stopped(
        &self,
        digest: Digest,
        written: (i64, i64),
        compiler: &Compiler,
    ) -> Result<(), PluginError> {
        use std::io::Read as _;
        // What cannot be read is not known, and the component is tried again.
        let Ok(file) = std::fs::File::open(self.stopped(digest)) else { return Ok(()) };
        let mut text = String::new();
        if file.take(MAX_STOPPED_BYTES).read_to_string(&mut text).is_err() {
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
            false => Err(PluginError::StoppedBefore { reason: stopped.reason }),
        }
    }

    /// Remembers that compiling was stopped.
    pub(crate) fn note_stopped(
        &self,
        digest: Digest,
        written: (i64, i64),
        limits: CompileLimits,
        reason: String,
    ) -> Result<(), PluginError> {
        let path = self.stopped(digest);
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
    pub(crate) fn forget_stopped(&self, digest: Digest) {
        // Most were never remembered.
        let _ = std::fs::remove_file(self.stopped(digest));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use memhost_sandbox::CompilerProcess;

    fn components() -> (tempfile::TempDir, ComponentsDir) {
        let directory = tempfile::tempdir().unwrap();
        let components = ComponentsDir::open(directory.path().join("components")).unwrap();
        (directory, components)
    }

    fn limits() -> CompileLimits {
        CompileLimits { time: Duration::from_secs(9), cpu_seconds: 5, memory_bytes: 7 }
    }

    fn within(limits: CompileLimits) -> Compiler {
        Compiler::Process(CompilerProcess { program: PathBuf::from("memhost"), limits })
    }

    #[test]
    fn a_copy_is_private_and_written_once() {
        let (_directory, components) = components();
        let digest = Digest::of(b"one");
        components.keep(digest, b"one").unwrap();
        let path = components.copy(digest);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(components.read(digest).unwrap(), b"one");
        // What is there is not written again.
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        components.keep(digest, b"other").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    }

    #[test]
    fn a_copy_that_was_changed_or_is_gone_is_not_used() {
        let (_directory, components) = components();
        let digest = Digest::of(b"one");
        components.keep(digest, b"one").unwrap();
        fs::write(components.copy(digest), b"two").unwrap();
        assert!(matches!(components.read(digest), Err(PluginError::Changed { .. })));
        let gone = components.read(Digest::of(b"gone")).unwrap_err();
        assert!(matches!(gone, PluginError::Io { action: "reading", .. }), "{gone}");
    }

    #[test]
    fn copies_that_nothing_needs_are_removed_and_reasons_stay() {
        let (_directory, components) = components();
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        components.keep(one, b"one").unwrap();
        components.keep(two, b"two").unwrap();
        components.note_stopped(two, (1, 0), limits(), "too slow".to_owned()).unwrap();
        components.keep_only(&HashSet::from([one])).unwrap();
        assert!(components.read(one).is_ok() && components.read(two).is_err());
        assert!(components.check_stopped(two, (1, 0), &within(limits())).is_err());
    }

    #[test]
    fn what_was_stopped_is_not_compiled_again_within_the_same_limits() {
        let (_directory, components) = components();
        let digest = Digest::of(b"slow");
        let check =
            |written, compiler: &Compiler| components.check_stopped(digest, written, compiler);
        check((1, 5), &within(limits())).unwrap();
        components.note_stopped(digest, (1, 5), limits(), "it took 9 s".to_owned()).unwrap();
        for compiler in [within(limits()), Compiler::InProcess] {
            let error = check((1, 5), &compiler).unwrap_err().to_string();
            assert!(error.contains("it took 9 s") && error.contains("touch"), "{error}");
        }
        let lower = CompileLimits { cpu_seconds: 1, ..limits() };
        check((1, 5), &within(lower)).unwrap_err();
        components.check_stopped(Digest::of(b"other"), (1, 5), &within(limits())).unwrap();
        components.forget_stopped(digest);
        check((1, 5), &within(limits())).unwrap();
    }

    #[test]
    fn a_higher_limit_or_a_touched_file_is_another_try() {
        let (_directory, components) = components();
        let digest = Digest::of(b"slow");
        components.note_stopped(digest, (1, 5), limits(), "it took 9 s".to_owned()).unwrap();
        let higher = [
            CompileLimits { time: Duration::from_secs(10), ..limits() },
            CompileLimits { cpu_seconds: 6, ..limits() },
            CompileLimits { memory_bytes: 8, ..limits() },
        ];
        for limits in higher {
            components.check_stopped(digest, (1, 5), &within(limits)).unwrap();
        }
        components.check_stopped(digest, (1, 6), &within(limits())).unwrap();
        components.check_stopped(digest, (1, 4), &within(limits())).unwrap_err();
    }

    #[test]
    fn a_reason_that_cannot_be_read_is_another_try() {
        let (_directory, components) = components();
        let digest = Digest::of(b"slow");
        for text in ["", "{", "{\"reason\": 1}"] {
            fs::write(components.stopped(digest), text).unwrap();
            components.check_stopped(digest, (1, 5), &within(limits())).unwrap();
        }
    }
}
