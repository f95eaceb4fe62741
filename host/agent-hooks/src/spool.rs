//! What is to be told to a host and has not been: a directory with one file for each, written whole or not at all, in the
//! order of their names. Every call of the adapter writes here first and hands on to a process of its own, so that nobody
//! waits for a host, and nothing is lost that a host did not take.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::http::{self, RequestError};
use super::settings::Settings;
use super::state::{State, private, short_hash};

/// How long one delivery may take.
const DELIVERY: Duration = Duration::from_secs(5);
/// A file that was never finished is thrown away after this long.
const MAX_UNFINISHED: Duration = Duration::from_secs(60);

/// Something for a host: the path and the body of a `POST`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) body: Value,
}

/// The same in a file. The token is not in it.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    url: String,
    path: String,
    body: Value,
}

/// What waits for one destination: a host, a company, and an agent, since another agent's token must not speak for it.
#[derive(Debug)]
pub(super) struct Spool {
    directory: PathBuf,
    url: String,
    max_files: usize,
    max_bytes: u64,
}

/// What became of an attempt to deliver.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Delivered {
    /// How many the host took.
    pub(super) taken: u64,
    /// How many it will never take; they are thrown away, and the log says which.
    pub(super) refused: u64,
    /// Why it did not go on.
    pub(super) stopped: Option<String>,
    /// Somebody else is at it, and takes what we have added as well.
    pub(super) is_taken: bool,
}

impl Spool {
    /// The one of these settings.
    pub(super) fn open(state: &State, settings: &Settings) -> std::io::Result<Self> {
        let company = settings.company.as_deref().unwrap_or_default();
        let name = short_hash(&[&settings.url, company, settings.agent.as_deref().unwrap_or_default()]);
        let directory = state.directory(&format!("spool/{name}"))?;
        Ok(Self {
            directory,
            url: settings.url.clone(),
            max_files: settings.spool_files,
            max_bytes: settings.spool_bytes,
        })
    }

    /// Every one that there is, for looking at and delivering by hand.
    pub(super) fn all(state: &State, settings: &Settings) -> Vec<Self> {
        let directories = fs::read_dir(state.root().join("spool")).into_iter().flatten().flatten();
        let mut all: Vec<PathBuf> = directories.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        all.sort();
        let of = |directory| Self {
            directory,
            url: settings.url.clone(),
            max_files: settings.spool_files,
            max_bytes: settings.spool_bytes,
        };
        all.into_iter().map(of).collect()
    }

    /// Adds an entry behind all others. Where there are too many, the oldest go, and are counted.
    pub(super) fn add(&self, entry: &Entry) -> std::io::Result<()> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let stored = Stored { url: self.url.clone(), path: entry.path.clone(), body: entry.body.clone() };
        let bytes = serde_json::to_vec(&stored)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // The size is in the name, so that nobody has to ask for the size of every file to know the sum.
        let name = format!("{:020}-{:08}-{number:04}-{}.json", since.as_nanos(), std::process::id(), bytes.len());
        let unfinished = self.directory.join(format!(".{name}"));
        let written = private(&unfinished, true).and_then(|mut file| file.write_all(&bytes));
        let written = written.and_then(|()| fs::rename(&unfinished, self.directory.join(&name)));
        if let Err(error) = written {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        self.bound();
        Ok(())
    }

    fn bound(&self) {
        let files = self.files();
        let (mut count, mut sum) = (files.len(), files.iter().map(|(_, bytes)| bytes).sum::<u64>());
        for (path, bytes) in files {
            if count <= self.max_files && sum <= self.max_bytes {
                break;
            }
            if fs::remove_file(&path).is_ok() {
                self.count("dropped");
            }
            (count, sum) = (count - 1, sum.saturating_sub(bytes));
        }
    }

    /// The files and their sizes, oldest first.
    fn files(&self) -> Vec<(PathBuf, u64)> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| !name.starts_with('.') && name.ends_with(".json"));
        names.sort_unstable();
        let size = |name: &str| name.trim_end_matches(".json").rsplit('-').next().and_then(|size| size.parse().ok());
        names.into_iter().map(|name| (self.directory.join(&name), size(&name).unwrap_or_default())).collect()
    }

    /// How many wait, and how many bytes they have.
    pub(super) fn waiting(&self) -> (usize, u64) {
        let files = self.files();
        (files.len(), files.iter().map(|(_, bytes)| bytes).sum())
    }

    /// How many were dropped because there were too many, or refused by a host, so far.
    pub(super) fn counted(&self, what: &str) -> u64 {
        fs::metadata(self.directory.join(what)).map_or(0, |found| found.len())
    }

    /// A file of so many bytes as something happened: adding one is safe however many processes do it.
    fn count(&self, what: &str) {
        let _ = private(&self.directory.join(what), false).and_then(|mut file| file.write_all(b"."));
    }

    /// Where it is.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Delivers what waits, in order, until nothing does, a host does not take it, or somebody else is at it.
    pub(super) fn deliver(&self, state: &State, token: Option<&str>) -> std::io::Result<Delivered> {
        let mut done = Delivered::default();
        loop {
            let lock = private(&self.directory.join("lock"), false)?;
            if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                done.is_taken = true;
                return Ok(done);
            }
            self.sweep();
            while done.stopped.is_none() {
                let files = self.files();
                if files.is_empty() {
                    break;
                }
                for (path, _) in files {
                    self.one(&path, state, token, &mut done);
                    if done.stopped.is_some() {
                        break;
                    }
                }
            }
            release(lock);
            // Whoever added an entry while we held the lock relies on us: look again now that we do not.
            if done.stopped.is_some() || self.files().is_empty() {
                return Ok(done);
            }
        }
    }

    fn one(&self, path: &Path, state: &State, token: Option<&str>, done: &mut Delivered) {
        let stored: Option<Stored> = fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let Some(stored) = stored else {
            // Nobody can send it; it may have been dropped a moment ago.
            let _ = fs::remove_file(path);
            return;
        };
        if stored.url != self.url {
            // The token at hand is for another host, which must not learn it.
            done.stopped = Some(format!("what comes next is for {}; name it with --url", stored.url));
            return;
        }
        let body = stored.body.to_string();
        match http::post(&stored.url, token, &stored.path, body.as_bytes(), Instant::now() + DELIVERY) {
            Ok((200..300, _)) => {
                state.set_rest(&stored.url, false);
                let _ = fs::remove_file(path);
                done.taken += 1;
            }
            // It will never do, whenever it is sent. That goes for no other status: a token can be put right.
            Ok((status @ (400 | 409 | 413 | 415 | 422), answer)) => {
                state.log(&format!("the host refuses an event with {status}: {}", reason(&answer)));
                let _ = fs::remove_file(path);
                self.count("refused");
                done.refused += 1;
            }
            Ok((status, answer)) => done.stopped = Some(format!("the host answers {status}: {}", reason(&answer))),
            Err(RequestError::Unreachable(why)) => {
                done.stopped = Some(format!("no host answers at {}: {why}", stored.url))
            }
            Err(RequestError::TimedOut) => {
                state.set_rest(&stored.url, true);
                done.stopped = Some(format!("the host at {} does not answer in time", stored.url));
            }
        }
    }

    fn sweep(&self) {
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let is_unfinished = entry.file_name().to_string_lossy().starts_with('.');
            let age = entry.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
            if is_unfinished && age.is_some_and(|age| age > MAX_UNFINISHED) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn release(lock: File) {
    let _ = rustix::fs::flock(&lock, FlockOperation::Unlock);
    drop(lock);
}

/// What a problem says, shortly.
fn reason(answer: &[u8]) -> String {
    let json: Option<Value> = serde_json::from_slice(answer).ok();
    let detail = json.as_ref().and_then(|json| json.get("detail")?.as_str());
    detail.unwrap_or("no reason given").chars().take(300).collect()
}
