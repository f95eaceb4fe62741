//! Which build of its provider serves a binding.

use crate::plugins::Plugin;
use crate::versions::asked::asked_by;
use memhost_types::{Binding, PermissionRequest, ServingVersion, VersionChoice, unreviewed};

/// The build that serves, and newer ones that wait for a decision.
pub(crate) struct Choice {
    pub(crate) plugin: Option<Plugin>,
    /// Builds that ask for something that nobody has decided about.
    pub(crate) waiting: Vec<WaitingBuild>,
}

/// A build that waits for a decision about its grants.
pub(crate) struct WaitingBuild {
    pub(crate) plugin: Plugin,
    pub(crate) asks: Vec<PermissionRequest>,
}

/// `builds` are all of the binding's provider, newest first; `serving` is what served it last, if
/// anything did.
pub(crate) fn choose(
    binding: &Binding,
    builds: &[Plugin],
    serving: Option<&ServingVersion>,
) -> Choice {
    let current =
        serving.and_then(|serving| builds.iter().find(|build| build.digest() == serving.digest));
    let is_pinned = matches!(binding.version, VersionChoice::Pin(_));
    let is_allowed = |build: &Plugin| build.is_allowed_by(&binding.version);
    let is_rejected = |build: &Plugin| {
        serving.is_some_and(|serving| {
            serving.rejected_versions.iter().any(|other| other.digest == build.digest())
        })
    };
    // A build whose file was removed, or replaced by an older one, goes on serving.
    let holds = current.filter(|current| is_allowed(current));
    let takes_over = |build: &Plugin| {
        is_allowed(build)
            && !is_rejected(build)
            && (build.is_present() || is_pinned)
            && holds.is_none_or(|current| build.is_newer_than(current))
    };
    let mut waiting = Vec::new();
    let successor = builds.iter().filter(|build| takes_over(build)).find(|build| {
        // The first build of a binding was reviewed when the binding was made.
        let asks = match serving {
            Some(_) => {
                let asked = asked_by(build, &binding.config);
                unreviewed(&binding.reviewed, &asked).into_iter().cloned().collect()
            }
            None => Vec::new(),
        };
        if asks.is_empty() {
            return true;
        }
        waiting.push(WaitingBuild { plugin: (*build).clone(), asks });
        false
    });
    // Where no build meets the choice, the present one goes on.
    Choice { plugin: successor.or(current).cloned(), waiting }
}
