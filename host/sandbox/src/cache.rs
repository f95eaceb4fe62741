//! Compiled components on disk. Loading one runs what is in it as native code, so each file is
//! authenticated with the host's own key before a byte of it is used, and the directory is this
//! user's alone.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::engine::Sandbox;
use super::error::AdmissionError;
use memhost_types::Digest;

const MAC_BYTES: usize = 32;
/// What compiled components may take together: a few hundred of the usual ones, and some that carry
/// an interpreter.
const MOST_BYTES: u64 = 2 << 30;
/// The ending of a file that is being written, and how long that may take.
const UNFINISHED: &str = ".unfinished";
const LONGEST_WRITE: Duration = Duration::from_secs(3_600);

/// Where compiled components are kept, and the key that they are authenticated with.
#[derive(Clone)]
pub struct CacheKey {
    directory: PathBuf,
    key: [u8; 32],
}

impl CacheKey {
    /// A cache in `directory`, made with mode 0700 where it is missing.
    ///
    /// # Errors
    /// Where the directory cannot be made.
    pub fn new(directory: PathBuf, key: [u8; 32]) -> Result<Self, AdmissionError> {
        Self::make_directory(&directory)?;
        Ok(Self { directory, key })
    }

    /// Makes the directory of a cache whose key is kept beside what it authenticates.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn make_directory(directory: &Path) -> Result<(), AdmissionError> {
        use std::os::unix::fs::DirBuilderExt;
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| io("making", directory, &error))
    }

    fn path(&self, sandbox: &Sandbox, digest: Digest) -> PathBuf {
        let digest = digest.to_string().replace(':', "-");
        self.directory.join(format!("{digest}-{:016x}", sandbox.engine_fingerprint()))
    }

    /// The compiled form of a component, if it is there and is the work of a host with this key.
    #[allow(
        unsafe_code,
        reason = "the only way to load compiled code; see the comment at the call"
    )]
    pub(super) fn read(
        &self,
        sandbox: &Sandbox,
        digest: Digest,
    ) -> Result<Option<wasmtime::component::Component>, AdmissionError> {
        let path = self.path(sandbox, digest);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io("reading", &path, &error)),
        };
        let tampered = || {
            // In place, it would be refused again at every start.
            let _ = fs::remove_file(&path);
            AdmissionError::Tampered { digest }
        };
        let (mac, compiled) = bytes.split_at_checked(MAC_BYTES).ok_or_else(tampered)?;
        let mac: [u8; MAC_BYTES] = mac.try_into().map_err(|_| tampered())?;
        if self.mac(&path, compiled) != blake3::Hash::from(mac) {
            return Err(tampered());
        }
        // SAFETY: `deserialize` trusts its bytes. These were written by `write` below, from
        // `Component::serialize` of an engine with the same fingerprint: the MAC over them and over
        // the file's name was just checked, made with a key that only hosts of this user have, in a
        // directory that only this user may write.
        let component =
            unsafe { wasmtime::component::Component::deserialize(&sandbox.0.engine, compiled) };
        // `thin_out` keeps the files that were used last. Without times in the file system that is
        // less exact.
        let _ = fs::File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Ok(component.ok())
    }

    pub(super) fn write(
        &self,
        sandbox: &Sandbox,
        digest: Digest,
        compiled: &[u8],
    ) -> Result<(), AdmissionError> {
        let path = self.path(sandbox, digest);
        // Its mode is 0600 and its name is unique: several hosts may write the same component.
        let written = tempfile::Builder::new()
            .suffix(UNFINISHED)
            .tempfile_in(&self.directory)
            .and_then(|mut file| {
                file.write_all(self.mac(&path, compiled).as_bytes())?;
                file.write_all(compiled)?;
                file.persist(&path).map_err(|error| error.error)
            });
        written.map_err(|error| io("writing", &path, &error))?;
        self.thin_out();
        Ok(())
    }

    /// Deletes what was not used for the longest time, as far as all compiled components together
    /// are more than [`MOST_BYTES`], and files that a killed host did not finish. Other files in
    /// the directory stay.
    fn thin_out(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let mut all: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let found = entry.metadata().ok()?;
                Some((found.modified().ok()?, found.len(), entry.path()))
            })
            .collect();
        all.sort_by(|one, other| other.cmp(one));
        let (now, mut bytes) = (SystemTime::now(), 0);
        for (modified, length, path) in all {
            let name = path.file_name().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
            let is_spare = if is_compiled(name) {
                bytes += length;
                bytes > MOST_BYTES
            } else {
                name.ends_with(UNFINISHED)
                    && now.duration_since(modified).is_ok_and(|age| age > LONGEST_WRITE)
            };
            if is_spare {
                // Another host may have deleted it first, and a file that stays does no harm.
                let _ = fs::remove_file(&path);
            }
        }
    }

    /// The file's name is part of it: one component's compiled form cannot replace another's.
    fn mac(&self, path: &Path, body: &[u8]) -> blake3::Hash {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update(body);
        hasher.finalize()
    }
}

fn io(action: &'static str, path: &Path, error: &std::io::Error) -> AdmissionError {
    AdmissionError::io(action, path.display().to_string(), error)
}

/// Whether a file has the name of a compiled component: two hexadecimal numbers behind the name of
/// the hash.
fn is_compiled(name: &str) -> bool {
    let is_hex = |part: &str, digits| {
        part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let parts: Vec<&str> = name.split('-').collect();
    matches!(
        parts.as_slice(), ["sha256", digest, engine] if is_hex(digest, 64) && is_hex(engine, 16),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SandboxOptions;

    #[test]
    fn what_is_used_is_the_youngest() {
        let directory = tempfile::tempdir().unwrap();
        let cache = CacheKey::new(directory.path().to_owned(), [0; 32]).unwrap();
        let sandbox = Sandbox::new(SandboxOptions::default()).unwrap();
        // The head of a component, and nothing in it.
        let empty =
            wasmtime::component::Component::new(&sandbox.0.engine, b"\0asm\x0d\0\x01\0").unwrap();
        let digest = Digest::of(b"empty");
        cache.write(&sandbox, digest, &empty.serialize().unwrap()).unwrap();
        let path = cache.path(&sandbox, digest);
        let a_day_ago = SystemTime::now() - Duration::from_secs(86_400);
        fs::File::open(&path).unwrap().set_modified(a_day_ago).unwrap();
        assert!(cache.read(&sandbox, digest).unwrap().is_some());
        assert!(
            fs::metadata(&path).unwrap().modified().unwrap()
                > a_day_ago + Duration::from_secs(3_600)
        );
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_and_what_is_not_ours_stays() {
        let directory = tempfile::tempdir().unwrap();
        let cache = CacheKey::new(directory.path().to_owned(), [0; 32]).unwrap();
        let compiled = |number: u8| format!("sha256-{number:064x}-{:016x}", 1);
        let hours = |count: u64| SystemTime::now() - Duration::from_secs(3_600 * count);
        let third = MOST_BYTES / 3;
        for (name, bytes, age) in [
            (compiled(1), third, 3),
            (compiled(2), third, 9),
            (compiled(3), third, 1),
            (compiled(4), third, 5),
            ("compiled.key".to_owned(), 32, 9),
            ("sha256-of-something".to_owned(), MOST_BYTES, 9),
            (".tmp1.unfinished".to_owned(), 1, 9),
            (".tmp2.unfinished".to_owned(), 1, 0),
        ] {
            let file = fs::File::create(directory.path().join(name)).unwrap();
            file.set_len(bytes).unwrap();
            file.set_modified(hours(age)).unwrap();
        }
        cache.thin_out();
        let mut left: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        let (one, three, four) = (compiled(1), compiled(3), compiled(4));
        assert_eq!(
            left,
            [".tmp2.unfinished", "compiled.key", &one, &three, &four, "sha256-of-something"]
        );
    }
}
