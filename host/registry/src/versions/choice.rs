//! The choice of the build that serves a binding.

use crate::plugins::Build;
use memhost_types::{Binding, PermissionRequest, ServingVersion, VersionChoice, unreviewed};

/// The build that serves, and newer ones that wait for a decision.
pub struct Choice<B> {
    /// The build that serves, if one may.
    pub build: Option<B>,
    /// Builds that ask for something that nobody has decided about.
    pub waiting: Vec<WaitingBuild<B>>,
}

/// A build that waits for a decision about its grants.
pub struct WaitingBuild<B> {
    /// Which.
    pub build: B,
    /// The requests that nobody has decided about.
    pub asks: Vec<PermissionRequest>,
}

/// `builds` are all of the binding's provider, newest first; `serving` is what served it last, if
/// anything did.
pub fn choose<B: Build + Clone>(
    binding: &Binding,
    builds: &[B],
    serving: Option<&ServingVersion>,
) -> Choice<B> {
    let current =
        serving.and_then(|serving| builds.iter().find(|build| build.digest() == serving.digest));
    let is_pinned = matches!(binding.version, VersionChoice::Pin(_));
    let is_allowed = |build: &B| build.is_allowed_by(&binding.version);
    let is_rejected = |build: &B| {
        serving.is_some_and(|serving| {
            serving.rejected_versions.iter().any(|other| other.digest == build.digest())
        })
    };
    // A build whose file was removed, or replaced by an older one, goes on serving.
    let holds = current.filter(|current| is_allowed(current));
    let takes_over = |build: &B| {
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
                let asked = build.requests(&binding.config);
                unreviewed(&binding.reviewed, &asked).into_iter().cloned().collect()
            }
            None => Vec::new(),
        };
        if asks.is_empty() {
            return true;
        }
        waiting.push(WaitingBuild { build: (*build).clone(), asks });
        false
    });
    // Where no build meets the choice, the present one goes on.
    Choice { build: successor.or(current).cloned(), waiting }
}

/// The newest build that a binding may choose. Builds whose files are there come before those that
/// are only kept as copies.
pub fn newest<'a, B: Build>(builds: &'a [B], version: &VersionChoice) -> Option<&'a B> {
    let allowed = || builds.iter().filter(|build| build.is_allowed_by(version));
    allowed().find(|build| build.is_present()).or_else(|| allowed().next())
}

/// What is wrong with the build that serves a binding, or with there being none, a sentence each.
pub fn warnings<B: Build>(
    binding: &Binding,
    builds: &[B],
    serving: Option<&ServingVersion>,
    choice: &Choice<B>,
) -> Vec<String> {
    let Some(ServingVersion { version, digest, .. }) = serving else {
        let missing = choice.build.is_none().then(|| {
            format!(
                "no build of `{}` may serve; put its `.wasm` into the plugins directory",
                binding.provider_key
            )
        });
        return missing.into_iter().collect();
    };
    let mut all = Vec::new();
    if !builds.iter().any(|build| build.digest() == *digest && build.is_present()) {
        all.push(format!(
            "the file of version {version}, which serves, is gone; a copy goes on serving"
        ));
    }
    if !binding.version.allows(version, *digest) {
        all.push(format!(
            "version {version} serves although the binding {}: no other build may",
            binding.version
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeBuild;
    use memhost_types::{Permission, RejectedVersion};

    fn binding(version: VersionChoice) -> Binding {
        Binding { version, ..crate::testing::binding() }
    }

    fn follows(range: &str) -> Binding {
        binding(VersionChoice::Follow(range.parse().unwrap()))
    }

    fn any() -> Binding {
        follows("*")
    }

    fn serves(build: &FakeBuild) -> ServingVersion {
        let (digest, version) = (build.digest, build.version.clone());
        ServingVersion { digest, version, rejected_versions: Vec::new() }
    }

    /// The builds, of which the host has them newest first.
    fn builds(versions: &[&str]) -> Vec<FakeBuild> {
        versions.iter().map(|version| FakeBuild::new(version)).collect()
    }

    fn asking(mut build: FakeBuild, permission: Permission) -> FakeBuild {
        let reason = "to work".to_owned();
        build.requests.push(PermissionRequest { permission, reason, optional: false });
        build
    }

    fn chosen(choice: &Choice<FakeBuild>) -> Option<String> {
        choice.build.as_ref().map(|build| build.version.to_string())
    }

    #[test]
    fn the_newest_build_of_the_range_serves() {
        let builds = builds(&["3.0.0", "2.1.0", "2.0.0", "1.0.0"]);
        for (range, expected) in [("*", "3.0.0"), ("^2", "2.1.0"), ("=2.0.0", "2.0.0")] {
            assert_eq!(chosen(&choose(&follows(range), &builds, None)).as_deref(), Some(expected));
        }
        assert_eq!(chosen(&choose(&follows("^4"), &builds, None)), None);
        assert_eq!(chosen(&choose(&any(), &[], None)), None);
    }

    #[test]
    fn a_newer_build_takes_over_and_an_older_one_does_not() {
        let builds = builds(&["3.0.0", "2.0.0", "1.0.0"]);
        assert_eq!(chosen(&choose(&any(), &builds, Some(&serves(&builds[1])))).unwrap(), "3.0.0");
        assert_eq!(chosen(&choose(&any(), &builds, Some(&serves(&builds[0])))).unwrap(), "3.0.0");
        let older = follows("^2");
        let choice = choose(&older, &builds, Some(&serves(&builds[0])));
        assert_eq!(chosen(&choice).unwrap(), "2.0.0", "the range says which");
    }

    #[test]
    fn a_build_whose_file_is_gone_goes_on_and_takes_over_from_none() {
        let mut builds = builds(&["2.0.0", "1.0.0"]);
        builds[0].is_present = false;
        assert_eq!(chosen(&choose(&any(), &builds, None)).unwrap(), "1.0.0");
        assert_eq!(chosen(&choose(&any(), &builds, Some(&serves(&builds[1])))).unwrap(), "1.0.0");
        assert_eq!(chosen(&choose(&any(), &builds, Some(&serves(&builds[0])))).unwrap(), "2.0.0");
    }

    #[test]
    fn a_pinned_build_serves_also_when_its_file_is_gone() {
        let mut builds = builds(&["2.0.0", "1.0.0"]);
        builds[1].is_present = false;
        let pinned = binding(VersionChoice::Pin(builds[1].digest));
        assert_eq!(chosen(&choose(&pinned, &builds, None)).unwrap(), "1.0.0");
        assert_eq!(chosen(&choose(&pinned, &builds, Some(&serves(&builds[0])))).unwrap(), "1.0.0");
        let missing = binding(VersionChoice::Pin(memhost_types::Digest::of(b"other")));
        assert_eq!(chosen(&choose(&missing, &builds, None)), None);
    }

    #[test]
    fn without_a_build_of_the_choice_the_present_one_goes_on() {
        let builds = builds(&["2.0.0", "1.0.0"]);
        let choice = choose(&follows("^3"), &builds, Some(&serves(&builds[1])));
        assert_eq!(chosen(&choice).unwrap(), "1.0.0");
    }

    #[test]
    fn a_rejected_build_is_not_tried_again() {
        let builds = builds(&["3.0.0", "2.0.0", "1.0.0"]);
        let mut serving = serves(&builds[2]);
        let reject = |build: &FakeBuild| RejectedVersion {
            digest: build.digest,
            version: build.version.clone(),
            reason: "it trapped".to_owned(),
        };
        serving.rejected_versions.push(reject(&builds[0]));
        assert_eq!(chosen(&choose(&any(), &builds, Some(&serving))).unwrap(), "2.0.0");
        serving.rejected_versions.push(reject(&builds[1]));
        assert_eq!(chosen(&choose(&any(), &builds, Some(&serving))).unwrap(), "1.0.0");
    }

    #[test]
    fn a_build_that_asks_for_more_waits_and_lets_an_older_one_pass() {
        let mut all = builds(&["3.0.0", "2.0.0", "1.0.0"]);
        all[0] = asking(all[0].clone(), Permission::Embeddings);
        let choice = choose(&any(), &all, Some(&serves(&all[2])));
        assert_eq!(chosen(&choice).unwrap(), "2.0.0");
        let [waiting] = &choice.waiting[..] else { panic!("one waits") };
        assert_eq!(waiting.build.version.to_string(), "3.0.0");
        assert_eq!(waiting.asks[0].permission, Permission::Embeddings);
        // Somebody has decided, whether it was granted or not.
        let decided = Binding { reviewed: vec![Permission::Embeddings], ..any() };
        let choice = choose(&decided, &all, Some(&serves(&all[2])));
        assert_eq!((chosen(&choice).unwrap().as_str(), choice.waiting.len()), ("3.0.0", 0));
    }

    #[test]
    fn more_bytes_than_were_decided_about_wait_and_fewer_do_not() {
        for (asks, expected) in [(10, "2.0.0"), (5, "2.0.0"), (11, "1.0.0")] {
            let mut all = builds(&["2.0.0", "1.0.0"]);
            all[0] = asking(all[0].clone(), Permission::Storage(asks));
            let decided = Binding { reviewed: vec![Permission::Storage(10)], ..any() };
            let choice = choose(&decided, &all, Some(&serves(&all[1])));
            assert_eq!(chosen(&choice).unwrap(), expected, "{asks}");
        }
    }

    #[test]
    fn the_first_build_of_a_binding_was_decided_about_with_the_binding() {
        let all = [asking(FakeBuild::new("1.0.0"), Permission::Clock)];
        let choice = choose(&any(), &all, None);
        assert_eq!((chosen(&choice).unwrap().as_str(), choice.waiting.len()), ("1.0.0", 0));
    }

    #[test]
    fn of_two_builds_of_one_version_the_file_written_later_serves() {
        let (mut early, mut late) = (FakeBuild::new("1.0.0"), FakeBuild::new("1.0.0"));
        late.digest = memhost_types::Digest::of(b"late");
        (early.written, late.written) = ((5, 0), (5, 1));
        let all = [late.clone(), early.clone()];
        assert_eq!(choose(&any(), &all, Some(&serves(&early))).build.unwrap(), late);
        assert_eq!(choose(&any(), &all, Some(&serves(&late))).build.unwrap(), late);
        // A copy of the later one is no newer build.
        late.is_present = false;
        let all = [late.clone(), early.clone()];
        assert_eq!(choose(&any(), &all, Some(&serves(&early))).build.unwrap(), early);
        // Its file came back.
        early.is_present = false;
        late.is_present = true;
        late.written = (1, 0);
        let all = [late.clone(), early.clone()];
        assert_eq!(choose(&any(), &all, Some(&serves(&early))).build.unwrap(), late);
    }

    #[test]
    fn a_build_has_what_it_asks_for_and_was_granted() {
        let build = asking(FakeBuild::new("1.0.0"), Permission::Storage(100));
        let build = asking(build, Permission::Clock);
        let mut binding = any();
        binding.grants.storage_bytes = 50;
        binding.grants.embeddings = true;
        let granted = build.granted(&binding);
        assert_eq!(granted.storage_bytes, 50, "no more than was granted");
        assert!(!granted.embeddings, "it does not ask for it");
        assert!(!granted.clock, "it was not granted");
    }

    #[test]
    fn an_address_of_the_configuration_is_asked_for_as_it_is_configured() {
        let request = serde_json::json!({
            "permission": {"kind": "http", "detail": {"origin": "{{config:/url}}", "methods": []}},
            "reason": "its service", "optional": false,
        });
        let mut build = FakeBuild::new("1.0.0");
        build.requests.push(serde_json::from_value(request).unwrap());
        let mut binding = any();
        let asked = |binding: &Binding| match &build.requests(&binding.config)[0].permission {
            Permission::Http(http) => http.origin.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(asked(&binding), "{{config:/url}}", "nothing covers it");
        binding.config.insert("url".to_owned(), "https://a.example".into());
        assert_eq!(asked(&binding), "https://a.example");
    }

    #[test]
    fn a_new_binding_takes_a_build_whose_file_is_there_before_a_copy() {
        let mut all = builds(&["2.0.0", "1.0.0"]);
        all[0].is_present = false;
        let newest = |version: &VersionChoice| newest(&all, version).map(|build| build.digest);
        assert_eq!(newest(&VersionChoice::default()), Some(all[1].digest));
        assert_eq!(newest(&follows("^2").version), Some(all[0].digest), "a copy before nothing");
        assert_eq!(newest(&follows("^3").version), None);
    }

    #[test]
    fn the_warnings_say_what_is_wrong_with_the_build_that_serves() {
        let mut all = builds(&["2.0.0", "1.0.0"]);
        let said = |binding: &Binding, all: &[FakeBuild], serving: Option<&ServingVersion>| {
            warnings(binding, all, serving, &choose(binding, all, serving)).join("; ")
        };
        assert_eq!(said(&any(), &all, None), "");
        assert!(said(&follows("^3"), &all, None).contains("no build of `local-markdown`"));
        let serving = serves(&all[1]);
        assert_eq!(said(&any(), &all, Some(&serving)), "");
        all[1].is_present = false;
        assert!(said(&any(), &all, Some(&serving)).contains("the file of version 1.0.0"));
        let warned = said(&follows("^3"), &all, Some(&serving));
        assert!(warned.contains("although the binding follows ^3"), "{warned}");
    }
}
