//! Requests that no host has accepted yet: a directory with one file for each. A file is written in
//! one step, and the order of the names is the order of delivery.
//!
//! A hook writes here first, and a process of its own delivers. So no tool waits for a host, and an
//! event is lost only when the spool is full.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::http::{self, Host, RequestError};
use super::json;
use super::settings::Settings;
use super::state::{State, open_private, open_regular, remove_older, short_hash};

/// How long one request may take.
const DELIVERY: Duration = Duration::from_secs(5);
/// An older file that was never finished is removed.
const MAX_UNFINISHED: Duration = Duration::from_secs(60);
/// The longest file that is sent, in bytes. A host takes half of that.
const MAX_FILE: u64 = 16 << 20;
/// The file of a spool that has its [`MadeWith`].
const MADE_WITH: &str = "made-with";
/// The file of a spool that says for whom its token acts.
const PRINCIPAL: &str = "principal";
/// The beginning of every path of a request. The token goes nowhere else, whatever a file says.
const PATHS: &str = "/runtime/v1/companies/";

/// A request: the path and the body of a `POST`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) body: Value,
}

/// A request in a file. The token is not in it.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    url: String,
    path: String,
    body: Value,
}

/// The settings of the hooks that wrote into a spool, for who delivers it in another environment.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct MadeWith {
    pub(super) url: Option<String>,
    pub(super) config: Option<PathBuf>,
    pub(super) company: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) context: Option<String>,
    pub(super) ca: Option<PathBuf>,
    /// Where the token is kept. A token that is replaced there is of the same agent.
    token_place: Option<String>,
}

/// The requests of one tool for one host, company, agent and token. They are kept apart, because
/// the token of one must not send the events of another, unless both are of one agent.
#[derive(Debug)]
pub(super) struct Spool {
    directory: PathBuf,
    url: String,
    ca: Option<PathBuf>,
    max_files: usize,
    max_bytes: u64,
}

/// The result of an attempt to deliver.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Delivered {
    /// How many requests the host accepted.
    pub(super) delivered: u64,
    /// How many it will never accept. They are removed, and the log says why.
    pub(super) refused: u64,
    /// Why delivery stopped before the end.
    pub(super) stopped: Option<String>,
    /// Another process is delivering. It also delivers what was added meanwhile.
    pub(super) is_locked: bool,
}

impl Spool {
    pub(super) fn open(state: &State, settings: &Settings) -> std::io::Result<Self> {
        let directory = state.directory(&format!("spool/{}", Self::named(settings)))?;
        let spool = Self::at(directory, settings);
        let before = spool.made_with();
        // Hooks with the same token may have it from different places: one that is known stays.
        let made_with = MadeWith {
            url: Some(settings.url.clone()),
            config: settings.config.clone().or_else(|| before.config.clone()),
            company: settings.company.clone(),
            agent: settings.agent.clone(),
            context: settings.context.clone().or_else(|| before.context.clone()),
            ca: settings.ca.clone().or_else(|| before.ca.clone()),
            token_place: settings.token_place.clone().or_else(|| before.token_place.clone()),
        };
        if before != made_with {
            let _ = spool.write(MADE_WITH, &serde_json::to_vec(&made_with)?);
        }
        Ok(spool)
    }

    /// The settings of the hooks that wrote into it; empty where nothing says so.
    pub(super) fn made_with(&self) -> MadeWith {
        let bytes = read(&self.directory.join(MADE_WITH)).unwrap_or_default();
        json::parse(&bytes).unwrap_or_default()
    }

    /// The company of the oldest request, by its path.
    pub(super) fn company(&self) -> Option<String> {
        let (path, _) = self.files().into_iter().next()?;
        let stored: Stored = json::parse(&read(&path)?).ok()?;
        company_of(&stored.path).map(str::to_owned)
    }

    /// For whom its token acts, once the host has told: `agent:ada`.
    pub(super) fn principal(&self) -> Option<String> {
        let bytes = read(&self.directory.join(PRINCIPAL))?;
        String::from_utf8(bytes).ok().filter(|principal| !principal.is_empty())
    }

    /// Writes a file that is no request in one step.
    fn write(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let unfinished = self.directory.join(format!(".{name}-{}", std::process::id()));
        let written = open_private(&unfinished, true).and_then(|mut file| file.write_all(bytes));
        written.and_then(|()| fs::rename(&unfinished, self.directory.join(name)))
    }

    /// The spools of earlier tokens that this one's token may deliver: those of the same tool,
    /// host, company and agent. Where the settings name no agent and a token has sent nothing
    /// before, the new token must stand where that one stood, or be of the only agent that the host
    /// has told of.
    pub(super) fn earlier(&self, state: &State, settings: &Settings) -> Vec<Self> {
        let mut all = Self::all(state, settings);
        all.retain(|other| other.is_of(settings));
        let own = self.principal();
        let is_only =
            own.is_some() && all.iter().filter_map(Self::principal).all(|one| Some(one) == own);
        let place = settings.token_place.as_ref();
        all.retain(|other| {
            let is_same = match self.is_of_another(other) {
                Some(is_another) => !is_another,
                None => {
                    is_only
                        || settings.agent.is_some()
                        || place.is_some() && other.made_with().token_place.as_ref() == place
                }
            };
            is_same && other.directory != self.directory && other.waiting().0 > 0
        });
        all
    }

    /// Whether the host has said that the tokens of two spools are of different principals.
    /// `None`: it has not told of both.
    pub(super) fn is_of_another(&self, other: &Self) -> Option<bool> {
        Some(self.principal()? != other.principal()?)
    }

    /// The same spool for the settings of its own tool, which name its host.
    pub(super) fn with(&self, settings: &Settings) -> Self {
        Self::at(self.directory.clone(), settings)
    }

    /// The spool of these settings, whether or not there is one.
    pub(super) fn of(state: &State, settings: &Settings) -> Self {
        Self::at(state.root().join("spool").join(Self::named(settings)), settings)
    }

    /// The name of the directory for some settings: the tool, whom it is for, and the token.
    fn named(settings: &Settings) -> String {
        let company = settings.company.as_deref().unwrap_or_default();
        let (agent, token) =
            (settings.agent.as_deref().unwrap_or_default(), settings.token.as_deref());
        let who = short_hash(&[&settings.url, company, agent]);
        // The hash does not give the token away, because it is short and of much else, too.
        let token = short_hash(&[&who, token.unwrap_or_default()]);
        format!("{}.{who}.{token}", settings.tool)
    }

    fn name(&self) -> &str {
        self.directory.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// The tool whose events it has, by the name of its directory.
    pub(super) fn tool(&self) -> &str {
        self.name().split_once('.').map_or("", |(tool, _)| tool)
    }

    /// Whether it is of the tool, host, company and agent of some settings; its token may be
    /// another.
    pub(super) fn is_of(&self, settings: &Settings) -> bool {
        let without_token = |name: &str| name.rsplit_once('.').map(|(rest, _)| rest.to_owned());
        without_token(self.name())
            .is_some_and(|own| Some(own) == without_token(&Self::named(settings)))
    }

    /// Every spool, to show it or to deliver by hand. A link to a directory is none.
    pub(super) fn all(state: &State, settings: &Settings) -> Vec<Self> {
        let entries = fs::read_dir(state.root().join("spool")).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut all: Vec<PathBuf> = directories.map(|entry| entry.path()).collect();
        all.sort();
        all.into_iter().map(|directory| Self::at(directory, settings)).collect()
    }

    fn at(directory: PathBuf, settings: &Settings) -> Self {
        let (max_files, max_bytes) = (settings.spool_files, settings.spool_bytes);
        let (url, ca) = (settings.url.clone(), settings.ca.clone());
        Self { directory, url, ca, max_files, max_bytes }
    }

    /// Adds a request behind all others. When there are too many, the oldest are removed and
    /// counted.
    pub(super) fn add(&self, entry: &Entry) -> std::io::Result<()> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let stored =
            Stored { url: self.url.clone(), path: entry.path.clone(), body: entry.body.clone() };
        let bytes = serde_json::to_vec(&stored)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // The size is in the name, so that the sum is known without a look at every file.
        let name = format!(
            "{:020}-{:08}-{number:04}-{}.json",
            since.as_nanos(),
            std::process::id(),
            bytes.len()
        );
        let unfinished = self.directory.join(format!(".{name}"));
        let written = open_private(&unfinished, true).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()
        });
        let named = self.directory.join(&name);
        let written = written.and_then(|()| memhost_files::durable::rename(&unfinished, &named));
        if let Err(error) = written {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        self.drop_oldest();
        Ok(())
    }

    fn drop_oldest(&self) {
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

    /// The files and their sizes, oldest first. Whatever else is in the directory is not ours, and
    /// stays.
    fn files(&self) -> Vec<(PathBuf, u64)> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let ours = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let size = size_in(&name)?;
            entry.file_type().is_ok_and(|kind| kind.is_file()).then_some((name, size))
        });
        let mut ours: Vec<(String, u64)> = ours.collect();
        ours.sort_unstable();
        ours.into_iter().map(|(name, size)| (self.directory.join(name), size)).collect()
    }

    /// How many requests wait, and how many bytes they have.
    pub(super) fn waiting(&self) -> (usize, u64) {
        let files = self.files();
        (files.len(), files.iter().map(|(_, bytes)| bytes).sum())
    }

    /// How many were `dropped`, because there were too many, or `refused` by a host, so far.
    pub(super) fn counted(&self, what: &str) -> u64 {
        fs::metadata(self.directory.join(what)).map_or(0, |found| found.len())
    }

    /// Counts in the length of a file: adding a byte is safe, however many processes do it.
    fn count(&self, what: &str) {
        let _ = open_private(&self.directory.join(what), false)
            .and_then(|mut file| file.write_all(b"."));
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Delivers what waits, in order, with the token of the spool itself. It ends when nothing
    /// waits, when the host does not accept a request, or when another process is delivering.
    pub(super) fn deliver(&self, state: &State, token: Option<&str>) -> std::io::Result<Delivered> {
        self.deliver_with(state, token, true)
    }

    /// Delivers what waits with the token that replaced the spool's own.
    pub(super) fn deliver_with_later(
        &self,
        state: &State,
        token: Option<&str>,
    ) -> std::io::Result<Delivered> {
        self.deliver_with(state, token, false)
    }

    /// `learns`: what the host says of the token is of this spool's.
    fn deliver_with(
        &self,
        state: &State,
        token: Option<&str>,
        learns: bool,
    ) -> std::io::Result<Delivered> {
        let mut done = Delivered::default();
        loop {
            let lock = open_private(&self.directory.join("lock"), false)?;
            if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                done.is_locked = true;
                return Ok(done);
            }
            // Unfinished files have a name that begins with a dot.
            remove_older(&self.directory, MAX_UNFINISHED, |name| name.starts_with('.'));
            while done.stopped.is_none() {
                let files = self.files();
                if files.is_empty() {
                    break;
                }
                for (path, _) in files {
                    self.deliver_one(&path, state, token, learns, &mut done);
                    if done.stopped.is_some() {
                        break;
                    }
                }
            }
            release(lock);
            // A process that added a request while we held the lock relies on us: look again
            // without it.
            if done.stopped.is_some() || self.files().is_empty() {
                return Ok(done);
            }
        }
    }

    fn deliver_one(
        &self,
        path: &Path,
        state: &State,
        token: Option<&str>,
        learns: bool,
        done: &mut Delivered,
    ) {
        let stored = read(path).and_then(|bytes| json::parse::<Stored>(&bytes).ok());
        let Some(stored) = stored.filter(|stored| is_path(&stored.path)) else {
            // It cannot be read, so it can never be sent. It may also have been dropped a moment
            // ago.
            remove(path, done);
            return;
        };
        if stored.url != self.url {
            // The token at hand is for another host. This one must not learn it.
            done.stopped = Some(format!(
                "the next event is for {url}; deliver it with --url {url}",
                url = stored.url
            ));
            return;
        }
        let body = stored.body.to_string();
        match http::post(
            Host { url: &stored.url, ca: self.ca.as_deref() },
            token,
            &stored.path,
            body.as_bytes(),
            Instant::now() + DELIVERY,
        ) {
            Ok((200..300, answer)) => {
                state.close_circuit(&stored.url);
                let told = learns.then(|| principal_of(&stored.body, &answer)).flatten();
                if let Some(principal) = told.filter(|told| self.principal().as_ref() != Some(told))
                {
                    let _ = self.write(PRINCIPAL, principal.as_bytes());
                }
                remove(path, done);
                done.delivered += 1;
            }
            // These are refused whenever they are sent. Other refusals end, as when the token is
            // corrected.
            Ok((status @ (400 | 409 | 413 | 415 | 422), answer)) => {
                state.log(&format!("the host refuses an event with {status}: {}", reason(&answer)));
                remove(path, done);
                self.count("refused");
                done.refused += 1;
            }
            Ok((status, answer)) => {
                let company = company_of(&stored.path).unwrap_or_default();
                done.stopped = Some(format!(
                    "the host answers {status} for the company `{company}`: {}",
                    reason(&answer)
                ));
            }
            Err(RequestError::Unreachable(why)) => {
                done.stopped = Some(format!("{} cannot be reached: {why}", stored.url));
            }
            Err(RequestError::TimedOut) => {
                state.open_circuit(&stored.url);
                done.stopped = Some(format!("the host at {} does not answer in time", stored.url));
            }
        }
    }
}

/// For whom a token acts, by the answer to an event that it sent. An event that was there before
/// may have been sent with another token.
fn principal_of(sent: &Value, answer: &[u8]) -> Option<String> {
    let answer: Value = json::parse(answer).ok()?;
    let (sent, kept) = (sent.pointer("/events/0")?, answer.pointer("/items/0")?);
    let is_new = sent["occurredAt"].is_string() && sent["occurredAt"] == kept["occurredAt"];
    is_new.then(|| kept["principal"].as_str().map(str::to_owned))?
}

/// The size that a name of ours says: `TIME-PROCESS-NUMBER-BYTES.json`, all of them digits.
fn size_in(name: &str) -> Option<u64> {
    let parts: Vec<&str> = name.strip_suffix(".json")?.split('-').collect();
    let are_digits =
        parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    let [time, process, number, size] = parts.as_slice() else { return None };
    let is_ours = are_digits && time.len() == 20 && process.len() >= 8 && number.len() >= 4;
    // The sum of a whole directory stays a number.
    size.parse().ok().filter(|size| is_ours && *size <= u64::from(u32::MAX))
}

/// A file's bytes, if it is a file and not too long.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path).ok()?.take(MAX_FILE + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_FILE).then_some(bytes)
}

/// Whether a path is one that hooks ask for. The address of a host with another one could become
/// that of another host.
fn is_path(path: &str) -> bool {
    path.starts_with(PATHS)
        && path.len() <= 1_024
        && path.bytes().all(|byte| byte.is_ascii_graphic() || byte >= 0x80)
}

/// Removes a file that is done with. Where that fails, delivery ends: it would be sent again and
/// again.
fn remove(path: &Path, done: &mut Delivered) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        done.stopped = Some(format!("{} cannot be removed: {error}", path.display()));
    }
}

fn release(lock: File) {
    let _ = rustix::fs::flock(&lock, FlockOperation::Unlock);
    drop(lock);
}

/// The company that a request is for.
fn company_of(path: &str) -> Option<&str> {
    path.strip_prefix(PATHS)?.split('/').next()
}

/// Why the host refused, in at most 300 characters.
fn reason(answer: &[u8]) -> String {
    let json: Option<Value> = json::parse(answer).ok();
    let detail = json.as_ref().and_then(|json| json.get("detail")?.as_str());
    detail.unwrap_or("no reason given").chars().take(300).collect()
}
