//! Which build of its provider serves a binding.

use crate::contract::{Binding, Digest, PermissionRequest, ServingVersion, VersionChoice, unreviewed};
use crate::plugins::Plugin;

/// The build that serves, and the newer ones that could and wait.
pub(super) struct Choice {
    pub(super) plugin: Option<Plugin>,
    /// Builds that ask for more than somebody has decided about.
    pub(super) waiting: Vec<WaitingBuild>,
}

/// A build that waits for a decision about its grants.
pub(super) struct WaitingBuild {
    pub(super) plugin: Plugin,
    pub(super) asks: Vec<PermissionRequest>,
}

/// `builds` are all of the binding's provider, newest first; `serving` is what served it last, if anything did.
pub(super) fn choose(binding: &Binding, builds: &[Plugin], serving: Option<&ServingVersion>) -> Choice {
    let mut waiting = Vec::new();
    let current = serving.and_then(|serving| builds.iter().find(|build| build.digest() == serving.digest));
    let is_allowed = |build: &Plugin| {
        let description = build.component.description();
        binding.version.allows(&description.version, build.digest())
    };
    let is_kept_from =
        |digest: Digest| serving.is_some_and(|serving| serving.kept_from.iter().any(|kept| kept.digest == digest));
    let candidate = builds.iter().find(|build| {
        let is_pinned = matches!(binding.version, VersionChoice::Pin(_));
        if !is_allowed(build) || is_kept_from(build.digest()) || !(build.is_present() || is_pinned) {
            return false;
        }
        // The first build that a binding ever gets was looked at when the binding was made.
        let asks = match serving {
            Some(serving) if serving.digest != build.digest() => {
                unreviewed(&binding.reviewed, &build.component.description().permissions)
            }
            _ => Vec::new(),
        };
        if asks.is_empty() {
            return true;
        }
        waiting.push(WaitingBuild { plugin: (*build).clone(), asks: asks.into_iter().cloned().collect() });
        false
    });
    let plugin = match (candidate, current.filter(|current| is_allowed(current))) {
        // A file that was removed or replaced by an older one takes nothing away from a binding that it serves.
        (Some(candidate), Some(current)) if !candidate.is_newer_than(current) => Some(current),
        (Some(candidate), _) => Some(candidate),
        (None, Some(current)) => Some(current),
        // Nothing that the choice allows may serve. What served is not taken away by a choice that cannot be met.
        (None, None) => current,
    };
    Choice { plugin: plugin.cloned(), waiting }
}
