//! Plugins that hosts on one database share: a file that is dropped at one of them is in a
//! directory of the others within seconds. So a host that takes over has what the former leader
//! had, with the copies of builds whose files are gone.
//!
//! Each host writes about its own plugins directory only, and checks signatures for itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::error::OpenError;
use memhost_files::durable;
use memhost_postgres::{Membership, SharedPlugin, Shelf};
use memhost_registry::plugins::{
    ComponentsDir, Fingerprint, Trust, list_files, read_file, signature_path,
};
use memhost_types::Digest;
use uuid::Uuid;

/// How often a host looks at its plugins directory and at what the others have.
const PERIOD: Duration = Duration::from_secs(1);

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
    /// Files of the plugins directory as they were read last.
    read: HashMap<PathBuf, (Fingerprint, Digest)>,
    /// Copies that were there the last time.
    copies: BTreeSet<Digest>,
    /// What was said about a file or a component, so that it is said once.
    said: HashMap<String, String>,
}

impl State {
    /// One bad file or component does not hold up the others.
    fn say(&mut self, what: &str, error: &dyn Display) {
        let error = error.to_string();
        if self.said.get(what) != Some(&error) {
            tracing::warn!(what, error, "a plugin is not shared with the other hosts");
            self.said.insert(what.to_owned(), error);
        }
    }
}

impl SharedPlugins {
    pub(crate) fn open(
        membership: Arc<Membership>,
        place: Uuid,
        (data_dir, plugins_dir): (&Path, Option<&Path>),
        trust: Trust,
    ) -> Result<Self, OpenError> {
        Ok(Self {
            shelf: membership.shelf(),
            membership,
            place,
            own: plugins_dir.map_or_else(|| data_dir.join("plugins"), Path::to_owned),
            of_others: directory_of_others(data_dir)?,
            components: ComponentsDir::open(data_dir.join("components"))?,
            trust,
            state: Mutex::default(),
        })
    }

    /// Gives the others what is new here and takes what they have, again and again. `changed` is
    /// called after something has come or gone, while another host leads.
    pub async fn follow(&self, changed: impl AsyncFn()) -> ! {
        loop {
            tokio::time::sleep(PERIOD).await;
            if self.update().await && !self.leads() {
                changed().await;
            }
        }
    }

    fn leads(&self) -> bool {
        self.membership.leader().borrow().as_ref().is_some_and(|leader| leader.is_me)
    }

    /// Does it once. Answers whether something has come or gone. What fails is logged and tried
    /// again the next time.
    pub async fn update(&self) -> bool {
        let mut state = self.state.lock().await;
        match self.try_update(&mut state).await {
            Ok(is_changed) => is_changed,
            Err(error) => {
                state.say("the list", &error);
                false
            }
        }
    }

    async fn try_update(&self, state: &mut State) -> Result<bool, OpenError> {
        let own = self.give(state).await?;
        let all = self.shelf.plugins().await?;
        let mut is_changed = self.take(state, &own, &all).await?;
        is_changed |= self.take_copies(state, &own).await?;
        Ok(is_changed)
    }

    /// Writes what this host's plugins directory has. Answers the digests.
    async fn give(&self, state: &mut State) -> Result<BTreeSet<Digest>, OpenError> {
        // What cannot be read for a moment is not gone.
        let files = list_files(&self.own)?;
        let builds: BTreeSet<String> = self.shelf.builds().await?.into_iter().collect();
        let listed = self.shelf.plugins().await?;
        let mut ours: BTreeMap<&str, &str> = listed
            .iter()
            .filter(|plugin| plugin.place == self.place)
            .map(|plugin| (plugin.name.as_str(), plugin.digest.as_str()))
            .collect();
        state.read.retain(|path, _| files.iter().any(|(file, _)| file == path));
        let mut digests = BTreeSet::new();
        for (path, fingerprint) in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let given = self.give_file(state, (&path, fingerprint), &builds, &mut ours).await;
            match given {
                Ok(digest) => digests.extend(digest),
                Err(error) => {
                    // It is there, so it is not taken back.
                    ours.remove(name.as_str());
                    state.say(&name, &error);
                }
            }
        }
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
        builds: &BTreeSet<String>,
        ours: &mut BTreeMap<&str, &str>,
    ) -> Result<Option<Digest>, OpenError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let before = ours.remove(name.as_str());
        let known = state.read.get(path).filter(|(seen, _)| *seen == fingerprint);
        if let Some((_, digest)) = known
            && before == Some(digest.to_string().as_str())
            && builds.contains(&digest.to_string())
        {
            return Ok(Some(*digest));
        }
        let Some(bytes) = read_file(path)? else { return Ok(None) };
        let signature = std::fs::read(signature_path(path)).ok();
        let digest = Digest::of(&bytes);
        let text = digest.to_string();
        self.shelf.put(&text, &bytes, signature.as_deref()).await?;
        self.shelf.bring(&name, &text).await?;
        state.read.insert(path.to_owned(), (fingerprint, digest));
        if before != Some(text.as_str()) {
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
    ) -> Result<bool, OpenError> {
        let mut wanted = BTreeMap::new();
        for plugin in all.iter().filter(|plugin| plugin.place != self.place) {
            match plugin.digest.parse::<Digest>() {
                Ok(digest) if own.contains(&digest) => {}
                Ok(digest) => {
                    wanted.insert(self.of_others.join(name_of(&plugin.name, digest)), digest);
                }
                Err(error) => state.say(&plugin.digest, &error),
            }
        }
        let mut is_changed = false;
        for (path, _) in list_files(&self.of_others)? {
            if wanted.remove(&path).is_none() {
                is_changed = true;
                let failed = |error| OpenError::directory("removing", &path, error);
                std::fs::remove_file(&path).map_err(failed)?;
                let _ = std::fs::remove_file(signature_path(&path));
            }
        }
        for (path, digest) in wanted {
            match self.take_one(&path, digest, false).await {
                Ok(taken) => is_changed |= taken,
                Err(error) => state.say(&digest.to_string(), &error),
            }
        }
        Ok(is_changed)
    }

    /// Copies of builds that some binding may need although their files are gone.
    async fn take_copies(
        &self,
        state: &mut State,
        own: &BTreeSet<Digest>,
    ) -> Result<bool, OpenError> {
        let mut is_changed = false;
        let here = self.components.digests()?;
        let builds = self.shelf.builds().await?;
        let there: BTreeSet<Digest> = builds.iter().filter_map(|text| text.parse().ok()).collect();
        for digest in there.difference(&here).filter(|digest| !own.contains(digest)) {
            // What this host has removed since, it does not take again.
            if self.leads() && state.copies.contains(digest) {
                continue;
            }
            match self.take_one(&self.components.copy(*digest), *digest, true).await {
                Ok(taken) => is_changed |= taken,
                Err(error) => state.say(&digest.to_string(), &error),
            }
        }
        if self.leads() {
            for digest in here.difference(&there) {
                match self.components.read(*digest) {
                    Ok(bytes) => self.shelf.put(&digest.to_string(), &bytes, None).await?,
                    Err(error) => state.say(&digest.to_string(), &error),
                }
            }
            // Only the leader knows which of them bindings need.
            let gone: Vec<String> =
                state.copies.difference(&here).map(ToString::to_string).collect();
            if !gone.is_empty() {
                self.shelf.remove(&gone).await?;
            }
        }
        state.copies = self.components.digests()?;
        Ok(is_changed)
    }

    /// Writes a component, with its signature before it. A copy is checked here; what is in a
    /// plugins directory is checked when it is admitted.
    async fn take_one(
        &self,
        path: &Path,
        digest: Digest,
        is_copy: bool,
    ) -> Result<bool, OpenError> {
        let Some((bytes, signature)) = self.shelf.fetch(&digest.to_string()).await? else {
            return Ok(false);
        };
        let failed = |error| OpenError::directory("writing", path, error);
        if Digest::of(&bytes) != digest {
            let error = "the database has other bytes under its digest";
            return Err(OpenError::directory("taking", path, error));
        }
        let signature_file = path.with_added_extension("minisig");
        if let Some(signature) = signature {
            durable::write(&signature_file, &signature, 0o600).map_err(failed)?;
        }
        if is_copy && let Err(error) = self.trust.check(path, &bytes) {
            let _ = std::fs::remove_file(&signature_file);
            return Err(OpenError::directory("trusting", path, error));
        }
        durable::write(path, &bytes, 0o600).map_err(failed)?;
        Ok(true)
    }
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
