//! Plugins that hosts on one database share: a file that is dropped at one of them is in a
//! directory of the others within seconds. So a host that takes companies over has what the former
//! one had, with the copies of builds whose files are gone.
//!
//! Each host writes about its own plugins directory only, and checks signatures for itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::Mutex;

use crate::error::OpenError;
use memhost_files::durable;
use memhost_postgres::{Group, MOST_OF_ONE, Membership, SharedPlugin, Shelf};
use memhost_registry::plugins::{
    ComponentsDir, Fingerprint, Trust, list_files, read_file, read_signature,
};
use memhost_types::Digest;
use uuid::Uuid;

/// How often a host looks at its plugins directory and at what the others have.
const PERIOD: Duration = Duration::from_secs(1);

/// How long a file that could not be taken is left alone.
const TRIED_AGAIN: Duration = Duration::from_secs(60);

/// The directory of what others have brought, in the data directory.
const OF_OTHERS: &str = "plugins-of-others";

/// The longest name of a file that is taken from the database.
const MOST_NAME: usize = 60;

/// Makes the directory of what other hosts have brought.
///
/// # Errors
/// Where it cannot be made.
pub(crate) fn directory_of_others(data_dir: &Path) -> Result<PathBuf, OpenError> {
    let directory = data_dir.join(OF_OTHERS);
    durable::create_directory(&directory, 0o700)
        .map_err(|error| OpenError::directory("making", &directory, error))?;
    Ok(directory)
}

/// The plugins of this host and those of the others.
pub struct SharedPlugins {
    shelf: Shelf,
    membership: Arc<Membership>,
    place: Uuid,
    own: PathBuf,
    of_others: PathBuf,
    components: ComponentsDir,
    trust: Trust,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Files of the plugins directory as they were seen last. One that changes is being written.
    seen: HashMap<PathBuf, Fingerprint>,
    /// Those that were read.
    read: HashMap<PathBuf, (Fingerprint, Digest)>,
    /// Whether all of it was done once.
    is_begun: bool,
    /// What was said about a file, so that it is said once, and when it is tried again.
    said: HashMap<PathBuf, (String, Instant)>,
    /// Copies that the database had when it was asked last. One that is gone since is not needed.
    shared: BTreeSet<Digest>,
    /// The token under which this host led when it last removed what nobody needs.
    cleaned_in: i64,
}

impl State {
    /// One bad file or component does not hold up the others.
    fn say(&mut self, path: &Path, error: &dyn Display) {
        let error = error.to_string();
        let again = Instant::now() + TRIED_AGAIN;
        let before = self.said.insert(path.to_owned(), (error.clone(), again));
        if before.is_none_or(|(before, _)| before != error) {
            let path = path.display();
            tracing::warn!(%path, error, "a plugin is not shared with the other hosts");
        }
    }

    /// Whether a file that could not be taken is not tried yet.
    fn waits(&self, path: &Path) -> bool {
        self.said.get(path).is_some_and(|(_, again)| *again > Instant::now())
    }
}

impl SharedPlugins {
    pub(crate) fn open(
        membership: Arc<Membership>,
        place: Uuid,
        (data_dir, plugins_dir): (&Path, Option<&Path>),
        trust: Trust,
    ) -> Result<Self, OpenError> {
        let own = plugins_dir.map_or_else(|| data_dir.join("plugins"), Path::to_owned);
        let of_others = directory_of_others(data_dir)?;
        if own.canonicalize().is_ok_and(|own| of_others.canonicalize().is_ok_and(|at| at == own)) {
            let error = "it is for the plugins of other hosts; name another plugins directory";
            return Err(OpenError::directory("sharing", own, error));
        }
        Ok(Self {
            shelf: membership.shelf(),
            membership,
            place,
            own,
            of_others,
            components: ComponentsDir::open(data_dir.join("components"))?,
            trust,
            state: Mutex::default(),
        })
    }

    /// Gives the others what is new here and takes what they have, again and again.
    pub async fn follow(&self) -> ! {
        loop {
            tokio::time::sleep(PERIOD).await;
            self.update().await;
        }
    }

    /// Whether this host leads, and for how long it was the one that does, as a number.
    fn leads(&self) -> Option<i64> {
        let seen = self.membership.seen();
        let seen = seen.borrow();
        let home = seen.homes.get(Group::HOST.number())?.as_ref()?;
        home.is_me.then_some(home.token)
    }

    /// Gives and takes once. What fails is logged and tried again the next time.
    pub async fn update(&self) {
        let mut state = self.state.lock().await;
        match self.try_update(&mut state).await {
            // The next failure is said again.
            Ok(()) => drop(state.said.remove(&self.of_others)),
            Err(error) => state.say(&self.of_others, &error),
        }
    }

    async fn try_update(&self, state: &mut State) -> Result<(), OpenError> {
        let all = self.shelf.plugins().await?;
        let builds: BTreeSet<String> = self.shelf.builds().await?.into_iter().collect();
        let own = self.give(state, &all, &builds).await?;
        self.take(state, &own, &all).await?;
        self.take_copies(state, &own, &builds).await?;
        state.is_begun = true;
        // Looking for what needs a build takes a while.
        if let Some(token) = self.leads().filter(|token| *token != state.cleaned_in) {
            state.cleaned_in = token;
            self.shelf.remove_unneeded().await?;
        }
        Ok(())
    }

    /// Writes what this host's plugins directory has. Answers the digests.
    async fn give(
        &self,
        state: &mut State,
        all: &[SharedPlugin],
        builds: &BTreeSet<String>,
    ) -> Result<BTreeSet<Digest>, OpenError> {
        // What cannot be read for a moment is not gone.
        let files = list_files(&self.own)?;
        let mut ours: BTreeMap<&str, &SharedPlugin> = all
            .iter()
            .filter(|plugin| plugin.place == self.place)
            .map(|plugin| (plugin.name.as_str(), plugin))
            .collect();
        let most = usize::try_from(MOST_OF_ONE).unwrap_or(usize::MAX);
        if files.len() > most {
            state.say(&self.own, &format!("only the first {most} files are shared"));
        }
        let mut seen = HashMap::new();
        let mut digests = BTreeSet::new();
        for (path, fingerprint) in files.into_iter().take(most) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // It is there, so it is not taken back.
            let before = ours.remove(name.as_str());
            let is_still = !state.is_begun || state.seen.get(&path) == Some(&fingerprint);
            seen.insert(path.clone(), fingerprint);
            if !is_still {
                continue;
            }
            match self.give_file(state, (&path, fingerprint), &name, before, builds).await {
                Ok(digest) => digests.extend(digest),
                Err(error) => state.say(&path, &error),
            }
        }
        state.read.retain(|path, _| seen.contains_key(path));
        state.seen = seen;
        let gone: Vec<&str> = ours.into_keys().collect();
        if !gone.is_empty() {
            self.shelf.take_back(&gone).await?;
            tracing::info!(?gone, "the other hosts were told that plugins are gone");
        }
        Ok(digests)
    }

    /// Gives one file, if the others do not have it. `None`: it is being written.
    async fn give_file(
        &self,
        state: &mut State,
        (path, fingerprint): (&Path, Fingerprint),
        name: &str,
        before: Option<&SharedPlugin>,
        builds: &BTreeSet<String>,
    ) -> Result<Option<Digest>, OpenError> {
        let is_same = |digest: &str| before.is_some_and(|before| before.digest == digest);
        if let Some((_, digest)) = state.read.get(path).filter(|(seen, _)| *seen == fingerprint) {
            let text = digest.to_string();
            if is_same(&text) && builds.contains(&text) {
                return Ok(Some(*digest));
            }
        }
        let Some(bytes) = read_file(path)? else { return Ok(None) };
        let signature = read_signature(path);
        let digest = Digest::of(&bytes);
        let text = digest.to_string();
        self.shelf.put(&text, &bytes, signature.as_deref()).await?;
        let (seconds, nanoseconds) = fingerprint.modified();
        let written_us = seconds.saturating_mul(1_000_000).saturating_add(nanoseconds / 1_000);
        self.shelf.bring(name, &text, written_us).await?;
        state.read.insert(path.to_owned(), (fingerprint, digest));
        if !is_same(&text) {
            tracing::info!(name, digest = text, "a plugin is shared with the other hosts");
        }
        Ok(Some(digest))
    }

    /// Makes the directory of others have what they have, but what this host has itself.
    async fn take(
        &self,
        state: &mut State,
        own: &BTreeSet<Digest>,
        all: &[SharedPlugin],
    ) -> Result<(), OpenError> {
        let mut wanted = BTreeMap::new();
        for plugin in all.iter().filter(|plugin| plugin.place != self.place) {
            match plugin.digest.parse::<Digest>() {
                Ok(digest) if own.contains(&digest) => {}
                Ok(digest) => {
                    let path = self.of_others.join(name_of(&plugin.name, digest));
                    wanted.insert(path, (digest, plugin));
                }
                Err(error) => state.say(Path::new(&plugin.digest), &error),
            }
        }
        for (path, _) in list_files(&self.of_others)? {
            match wanted.get(&path) {
                // A signature that was added later counts from then on.
                Some((_, plugin)) => {
                    if read_signature(&path) == plugin.signature {
                        wanted.remove(&path);
                    }
                }
                None => match std::fs::remove_file(&path) {
                    Ok(()) => drop(std::fs::remove_file(signature_beside(&path))),
                    Err(error) => state.say(&path, &error),
                },
            }
        }
        for (path, (digest, plugin)) in wanted {
            if state.waits(&path) {
                continue;
            }
            match self.take_one(&path, digest, Some(plugin.written_us)).await {
                Ok(()) => {}
                Err(error) => state.say(&path, &error),
            }
        }
        Ok(())
    }

    /// Copies of builds that some binding may need although their files are gone. Each host gives
    /// those that only it has.
    async fn take_copies(
        &self,
        state: &mut State,
        own: &BTreeSet<Digest>,
        builds: &BTreeSet<String>,
    ) -> Result<(), OpenError> {
        let here = self.components.digests()?;
        let there: BTreeSet<Digest> = builds.iter().filter_map(|text| text.parse().ok()).collect();
        for digest in there.difference(&here).filter(|digest| !own.contains(digest)) {
            let path = self.components.copy(*digest);
            if state.waits(&path) {
                continue;
            }
            match self.take_one(&path, *digest, None).await {
                Ok(()) => {}
                Err(error) => state.say(&path, &error),
            }
        }
        for digest in here.difference(&there).filter(|digest| !own.contains(digest)) {
            if state.shared.contains(digest) {
                if let Err(error) = self.components.remove(*digest) {
                    state.say(&self.components.copy(*digest), &error);
                }
                continue;
            }
            let signature = self.components.signature(*digest);
            match self.components.read(*digest) {
                Ok(bytes) => {
                    let text = digest.to_string();
                    self.shelf.put(&text, &bytes, signature.as_deref()).await?;
                }
                Err(error) => state.say(&self.components.copy(*digest), &error),
            }
        }
        state.shared = there;
        Ok(())
    }

    /// Writes a component, with its signature before it. A copy, which has no time, is checked
    /// here; what is in a plugins directory is checked when it is admitted.
    async fn take_one(
        &self,
        path: &Path,
        digest: Digest,
        written_us: Option<i64>,
    ) -> Result<(), OpenError> {
        let Some((bytes, signature)) = self.shelf.fetch(&digest.to_string()).await? else {
            return Ok(());
        };
        let failed = |error| OpenError::directory("writing", path, error);
        if Digest::of(&bytes) != digest {
            let error = "the database has other bytes under its digest";
            return Err(OpenError::directory("taking", path, error));
        }
        let signature_file = signature_beside(path);
        match signature {
            Some(signature) => {
                durable::write(&signature_file, &signature, 0o600).map_err(failed)?;
            }
            // Otherwise it would differ from what the database has, again and again.
            None if signature_file.exists() => {
                std::fs::remove_file(&signature_file).map_err(failed)?;
            }
            None => {}
        }
        if written_us.is_none()
            && let Err(error) = self.trust.check(path, &bytes)
        {
            let _ = std::fs::remove_file(&signature_file);
            return Err(OpenError::directory("trusting", path, error));
        }
        durable::write(path, &bytes, 0o600).map_err(failed)?;
        if let Some(written) = written_us.and_then(|us| u64::try_from(us).ok()) {
            // The newer of two builds of one version serves, at each host the same.
            let written = SystemTime::UNIX_EPOCH + Duration::from_micros(written);
            let file = std::fs::File::options().write(true).open(path).map_err(failed)?;
            file.set_modified(written).map_err(failed)?;
        }
        Ok(())
    }
}

/// Where the signature of a file is that came from another host.
fn signature_beside(path: &Path) -> PathBuf {
    path.with_added_extension("minisig")
}

/// The name of a file of another host. Whoever writes the database chooses no path.
fn name_of(name: &str, digest: Digest) -> String {
    let stem = name.strip_suffix(".wasm").unwrap_or(name);
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let stem: String = stem.chars().filter(is_plain).take(MOST_NAME).collect();
    let hash = digest.to_string();
    let hash = hash.rsplit(':').next().unwrap_or_default();
    format!("{stem}.{}.wasm", &hash[..hash.len().min(16)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_of_another_host_is_no_path() {
        let digest = Digest::of(b"x");
        for name in ["../../etc/x.wasm", "/x.wasm", "", "a\0b.wasm", &"x".repeat(300)] {
            let made = name_of(name, digest);
            assert!(made.len() < 100 && !made.contains(['/', '\0']), "{made}");
            assert!(made.ends_with(".wasm") && !made.contains(".."), "{made}");
        }
        assert!(name_of("graph-1.wasm", digest).starts_with("graph-1."));
    }
}
