//! The plugins directory while a host runs: files are added, changed and removed, and bindings
//! follow.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::Signer as _;
use memhost_core::plugins::{Trust, TrustedKey};
use memhost_core::{BindingView, CreateBinding, UpdateBinding};
use memhost_tests::{TestHost, caller, capture, eventually, parse, query, stamped};
use memhost_types::{
    BindingKey, BindingLimits, Digest, Grants, OperationFilter, Outcome, VersionChoice,
};
use serde_json::{Value, json};

fn build(version: &str, more: &Value) -> Vec<u8> {
    let mut stamp = json!({"key": "stamped", "version": version});
    for (name, value) in more.as_object().into_iter().flatten() {
        stamp[name] = value.clone();
    }
    stamped(stamp).unwrap()
}

fn file(host: &TestHost, name: &str) -> PathBuf {
    host.directory().join("plugins").join(name)
}

/// Puts a complete file there, by a rename.
fn put(host: &TestHost, name: &str, bytes: &[u8]) {
    let temporary = host.directory().join("being-written");
    std::fs::write(&temporary, bytes).unwrap();
    std::fs::rename(temporary, file(host, name)).unwrap();
}

async fn bind(host: &TestHost, storage_bytes: u64) {
    let request = CreateBinding {
        policy: memhost_types::BindingPolicy::default(),
        key: parse("default"),
        provider_key: parse("stamped"),
        version: VersionChoice::default(),
        config: Default::default(),
        grants: Some(Grants { storage_bytes, ..Grants::default() }),
        limits: BindingLimits::default(),
        default: true,
    };
    host.service().control().create_binding(&caller(), &parse("acme"), request).await.unwrap();
}

/// A host with version 1.0.0 of `stamped` that has answered once.
async fn host(more: &Value) -> TestHost {
    let host = TestHost::new(&[]).await.unwrap();
    put(&host, "one.wasm", &build("1.0.0", more));
    host.service().control().scan_plugins().await;
    bind(&host, more["storage"].as_u64().unwrap_or(0)).await;
    assert_eq!(version(&host).await, "1.0.0");
    host
}

/// Which version answers.
async fn version(host: &TestHost) -> String {
    let found = host.query("acme", "who is it?").await.unwrap();
    found[0].handle.provider_record_id.to_string()
}

async fn view(host: &TestHost) -> BindingView {
    host.service().control().binding(&parse("acme"), &parse("default")).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn added_changed_and_removed_files_are_noticed() {
    let mut host = TestHost::new(&[]).await.unwrap();
    put(&host, "one.wasm", &build("1.0.0", &json!({})));
    let admitted = |host: &TestHost| host.service().control().plugins().admitted.len();
    eventually("the file is admitted", async || admitted(&host) == 2).await;
    bind(&host, 0).await;
    assert_eq!(version(&host).await, "1.0.0");
    put(&host, "one.wasm", &build("1.1.0", &json!({})));
    eventually("the new file serves", async || version(&host).await == "1.1.0").await;
    std::fs::remove_file(file(&host, "one.wasm")).unwrap();
    eventually("there is a warning", async || {
        view(&host).await.warnings.iter().any(|warning| warning.contains("gone"))
    })
    .await;
    assert_eq!(version(&host).await, "1.1.0", "a copy goes on serving");
    host.stop().await;
    host.start().await.unwrap();
    assert_eq!(version(&host).await, "1.1.0", "and after a restart");
    let kept = std::fs::read_dir(host.data_dir().join("components")).unwrap().count();
    assert_eq!(kept, 1, "the copy of the version that serves nobody is gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incomplete_file_is_not_read_and_a_bad_one_is_read_again_after_a_change() {
    use std::io::Write;
    let host = TestHost::new(&[]).await.unwrap();
    let bytes = build("1.0.0", &json!({}));
    // The second of two parts in quick succession is noticed while the first is still settling.
    let mut slow = std::fs::File::create(file(&host, "slow.wasm")).unwrap();
    for (part, pause) in bytes.chunks(bytes.len() / 12 + 1).zip([30, 90].into_iter().cycle()) {
        slow.write_all(part).unwrap();
        tokio::time::sleep(Duration::from_millis(pause)).await;
        assert!(
            host.service().control().plugins().refused.is_empty(),
            "an incomplete file was read"
        );
    }
    drop(slow);
    host.service().control().scan_plugins().await;
    assert_eq!(host.service().control().plugins().admitted.len(), 2);
    put(&host, "bad.wasm", &bytes[..bytes.len() / 2]);
    host.service().control().scan_plugins().await;
    assert!(
        host.service().control().plugins().refused[0].reason.contains("truncated"),
        "{:?}",
        host.service().control().plugins().refused
    );
    put(&host, "bad.wasm", &build("1.2.0", &json!({})));
    host.service().control().scan_plugins().await;
    assert!(host.service().control().plugins().refused.is_empty());
    assert_eq!(host.service().control().plugins().admitted.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_while_a_version_is_replaced() {
    let host = host(&json!({"storage": 1 << 20})).await;
    let service = Arc::clone(host.service());
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let answered = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&answered);
    let load = tokio::spawn(async move {
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut calls, mut answers) = (tokio::task::JoinSet::new(), Vec::new());
        for n in 0.. {
            if stopped.try_recv().is_ok() {
                break;
            }
            tick.tick().await;
            // More calls than the queue takes would be refused.
            if calls.len() == 64 {
                answers.extend(calls.join_next().await.map(Result::unwrap));
            }
            let (service, counted) = (Arc::clone(&service), Arc::clone(&counted));
            calls.spawn(async move {
                let answer = service
                    .operations()
                    .capture(&caller(), capture("acme", &format!("event {n}")))
                    .await;
                counted.fetch_add(1, Ordering::Relaxed);
                answer
            });
        }
        answers.extend(calls.join_all().await);
        answers
    });
    eventually("the old version has answered", async || answered.load(Ordering::Relaxed) > 50)
        .await;
    put(&host, "two.wasm", &build("2.0.0", &json!({"storage": 1 << 20})));
    eventually("the new version serves", async || version(&host).await == "2.0.0").await;
    let before = answered.load(Ordering::Relaxed);
    eventually("the new version has answered", async || {
        answered.load(Ordering::Relaxed) > before + 50
    })
    .await;
    stop.send(()).unwrap();
    let answers = load.await.unwrap();
    assert_eq!(
        answers.iter().filter(|answer| answer.is_err()).count(),
        0,
        "{:?}",
        answers.iter().find(|a| a.is_err())
    );
    assert_eq!(version(&host).await, "2.0.0");
    // The guest marks each capture with its version, and the migration rewrites those of the first
    // version.
    let text = host.query("acme", "marks").await.unwrap()[0].text.clone();
    let count = answers.len();
    assert_eq!(text.lines().count(), 1 + count, "a capture was lost");
    let marks = || text.lines().skip(1);
    let old = marks().filter(|mark| mark.ends_with("2.0.0 from 1.0.0")).count();
    let new = marks().filter(|mark| mark.ends_with(" 2.0.0")).count();
    assert!(old > 0 && new > 0 && old + new == count, "{old} before the swap and {new} after it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_fails_is_rolled_back() {
    // Its migration writes nothing, because otherwise there is no automatic rollback.
    let host = host(&json!({})).await;
    put(&host, "two.wasm", &build("2.0.0", &json!({"traps": true})));
    host.service().control().scan_plugins().await;
    assert_eq!(version(&host).await, "1.0.0", "the version before answers the call");
    let view = view(&host).await;
    assert_eq!(view.serving.unwrap().version.to_string(), "1.0.0");
    assert_eq!(view.rejected_versions[0].version.to_string(), "2.0.0");
    assert!(
        view.rejected_versions[0].reason.contains("crashed"),
        "{}",
        view.rejected_versions[0].reason
    );
    let operations = host
        .service()
        .control()
        .operations(&parse("acme"), &OperationFilter::default(), None, 10)
        .await
        .unwrap();
    assert!(operations.items.iter().all(|operation| operation.outcome == Outcome::Succeeded));
    assert_eq!(
        operations.items[0].provider_version.as_deref(),
        Some("1.0.0"),
        "the version that answered is recorded"
    );
    let activity = serde_json::to_value(
        host.service().control().activity(&parse("acme"), None).await.unwrap(),
    )
    .unwrap();
    assert_eq!(activity["items"][0]["action"], "version_rejected");
    // A version after the bad one is tried.
    put(&host, "three.wasm", &build("2.0.1", &json!({})));
    host.service().control().scan_plugins().await;
    assert_eq!(version(&host).await, "2.0.1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_is_applied_completely_or_not_at_all() {
    let mut host = host(&json!({"storage": 1 << 20})).await;
    for n in 0..3 {
        host.service()
            .operations()
            .capture(&caller(), capture("acme", &n.to_string()))
            .await
            .unwrap();
    }
    put(&host, "two.wasm", &build("2.0.0", &json!({"storage": 1 << 20, "migration_fails": true})));
    host.service().control().scan_plugins().await;
    let marks = |text: &str, what: &str| text.lines().filter(|line| line.ends_with(what)).count();
    let text = host.query("acme", "x").await.unwrap()[0].text.clone();
    assert!(text.starts_with("version 1.0.0"), "{text}");
    assert_eq!(marks(&text, " 1.0.0"), 1 + 3, "the failed migration left nothing: {text}");
    assert!(
        view(&host).await.rejected_versions[0].reason.contains("migration"),
        "{:?}",
        view(&host).await.rejected_versions
    );
    host.stop().await;
    put(&host, "three.wasm", &build("3.0.0", &json!({"storage": 1 << 20})));
    host.start().await.unwrap();
    let text = host.query("acme", "x").await.unwrap()[0].text.clone();
    assert_eq!(marks(&text, "3.0.0 from 1.0.0"), 3, "{text}");
    // Once, and not at the next start.
    host.stop().await;
    host.start().await.unwrap();
    let text = host.query("acme", "x").await.unwrap()[0].text.clone();
    assert_eq!(marks(&text, "3.0.0 from 1.0.0"), 3, "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_whose_migration_fails_does_not_block_others() {
    let host = host(&json!({"storage": 1 << 20})).await;
    put(&host, "good.wasm", &build("1.5.0", &json!({"storage": 1 << 20})));
    put(&host, "bad.wasm", &build("2.0.0", &json!({"storage": 1 << 20, "migration_fails": true})));
    host.service().control().scan_plugins().await;
    eventually("the sound version serves", async || version(&host).await == "1.5.0").await;
    let rejected_versions: Vec<_> =
        view(&host).await.rejected_versions.iter().map(|kept| kept.version.to_string()).collect();
    assert_eq!(rejected_versions, ["2.0.0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_file_serves_existing_bindings_only() {
    let host = host(&json!({})).await;
    std::fs::remove_file(file(&host, "one.wasm")).unwrap();
    host.service().control().scan_plugins().await;
    assert_eq!(version(&host).await, "1.0.0");
    let request = |version| CreateBinding {
        policy: memhost_types::BindingPolicy::default(),
        key: parse("another"),
        provider_key: parse("stamped"),
        version,
        config: Default::default(),
        grants: None,
        limits: BindingLimits::default(),
        default: false,
    };
    let follows = request(VersionChoice::default());
    let error = host
        .service()
        .control()
        .create_binding(&caller(), &parse("acme"), follows)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("stamped"), "{error}");
    let pins = request(VersionChoice::Pin(Digest::of(&build("1.0.0", &json!({})))));
    host.service().control().create_binding(&caller(), &parse("acme"), pins).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_asks_for_more_waits_for_a_grant() {
    let host = host(&json!({})).await;
    put(
        &host,
        "two.wasm",
        &build("2.0.0", &json!({"storage": 4096, "origin": "https://api.example.com"})),
    );
    host.service().control().scan_plugins().await;
    assert_eq!(version(&host).await, "1.0.0");
    let waiting = view(&host).await.waiting;
    assert_eq!((waiting.len(), waiting[0].asks.len()), (1, 2));
    let (company, key): (_, BindingKey) = (parse("acme"), parse("default"));
    let grants = host.service().control().grants(&company, &key).await.unwrap();
    assert!(grants.asked.iter().all(|asked| !asked.is_reviewed));
    assert_eq!(grants.granted, Grants::default(), "nothing is granted silently");
    // A partial grant: the version serves with what was granted.
    let part = Grants { storage_bytes: 4096, ..Grants::default() };
    host.service().control().set_grants(&caller(), &company, &key, None, part).await.unwrap();
    assert_eq!(version(&host).await, "2.0.0");
    assert!(view(&host).await.waiting.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exact_time_is_a_grant() {
    let host = host(&json!({"clock": true})).await;
    let (company, key): (_, BindingKey) = (parse("acme"), parse("default"));
    let is_coarse = async || {
        let mut all = Vec::new();
        for _ in 0..5 {
            let answer = host.query("acme", "time").await.unwrap();
            all.push(answer[0].text.parse::<u128>().unwrap() % 100_000_000 == 0);
        }
        all.iter().all(|is_coarse| *is_coarse)
    };
    assert!(is_coarse().await);
    let grants = Grants { clock: true, ..Grants::default() };
    host.service().control().set_grants(&caller(), &company, &key, None, grants).await.unwrap();
    assert!(!is_coarse().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bindings_follow_pins_and_ranges() {
    let host = host(&json!({})).await;
    let (company, key): (_, BindingKey) = (parse("acme"), parse("default"));
    let set = async |version: VersionChoice| {
        let request = UpdateBinding { version: Some(version), ..UpdateBinding::default() };
        host.service().control().update_binding(&caller(), &company, &key, request).await
    };
    put(&host, "two.wasm", &build("2.0.0", &json!({})));
    put(&host, "three.wasm", &build("3.0.0", &json!({})));
    host.service().control().scan_plugins().await;
    set(VersionChoice::Pin(Digest::of(&build("1.0.0", &json!({}))))).await.unwrap();
    assert_eq!(version(&host).await, "1.0.0");
    set(serde_json::from_value(json!({"follow": "^2"})).unwrap()).await.unwrap();
    assert_eq!(version(&host).await, "2.0.0");
    set(VersionChoice::default()).await.unwrap();
    assert_eq!(version(&host).await, "3.0.0");
    let error = set(VersionChoice::Pin(Digest::of(b"nothing"))).await.unwrap_err().to_string();
    assert!(error.contains("no build"), "{error}");
    let stale =
        UpdateBinding { revision: Some(1), enabled: Some(false), ..UpdateBinding::default() };
    let error = host
        .service()
        .control()
        .update_binding(&caller(), &company, &key, stale)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("meanwhile"), "{error}");
}

/// Signs as `minisign -S -l` does. What `minisign` itself signed is verified by the tests of
/// `registry`.
pub(crate) struct Publisher([u8; 8], ed25519_dalek::SigningKey);

impl Publisher {
    pub(crate) fn new(seed: u8) -> Self {
        Self([seed; 8], ed25519_dalek::SigningKey::from_bytes(&[seed; 32]))
    }

    pub(crate) fn public(&self) -> TrustedKey {
        let key = self.1.verifying_key().to_bytes();
        BASE64.encode([&b"Ed"[..], &self.0, &key].concat()).parse().unwrap()
    }

    pub(crate) fn sign(&self, bytes: &[u8], comment: &str) -> String {
        let signature = self.1.sign(bytes).to_bytes();
        let global = self.1.sign(&[&signature, comment.as_bytes()].concat()).to_bytes();
        let signature = BASE64.encode([&b"Ed"[..], &self.0, &signature].concat());
        format!(
            "untrusted comment: x\n{signature}\ntrusted comment: {comment}\n{}\n",
            BASE64.encode(global)
        )
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn required_signatures_admit_only_signed_or_named_builds() {
    let key = Publisher::new(1);
    let named = Digest::of(&build("3.0.0", &json!({})));
    let trust = Trust {
        keys: vec![key.public()],
        requires_signature: true,
        digests: vec![named],
        ..Trust::default()
    };
    let host = TestHost::with(&[], |options| options.trust = trust).await.unwrap();
    let versions = || -> Vec<String> {
        let admitted = host.service().control().plugins().admitted;
        let stamped = admitted
            .iter()
            .filter(|plugin| plugin.inspection.description.provider_key.as_str() == "stamped");
        stamped.map(|plugin| plugin.inspection.description.version.to_string()).collect()
    };
    let one = build("1.0.0", &json!({}));
    put(&host, "one.wasm", &one);
    put(&host, "two.wasm", &build("2.0.0", &json!({})));
    put(&host, "two.wasm.sig", key.sign(&one, "of another file").as_bytes());
    put(&host, "three.wasm", &build("3.0.0", &json!({})));
    put(&host, "four.wasm", &build("4.0.0", &json!({})));
    let stranger = Publisher::new(2);
    let four = build("4.0.0", &json!({}));
    put(&host, "four.wasm.sig", stranger.sign(&four, "x").as_bytes());
    host.service().control().scan_plugins().await;
    assert_eq!(versions(), ["3.0.0"], "the build that was named");
    let refused = host.service().control().plugins().refused;
    let reason =
        |name: &str| refused.iter().find(|file| file.path.ends_with(name)).unwrap().reason.clone();
    assert!(reason("one.wasm").contains("not signed"), "{}", reason("one.wasm"));
    assert!(reason("two.wasm").contains("two.wasm.sig"), "{}", reason("two.wasm"));
    assert!(reason("four.wasm").contains("not trusted"), "{}", reason("four.wasm"));
    put(&host, "one.wasm.sig", key.sign(&one, "v1").as_bytes());
    host.service().control().scan_plugins().await;
    assert_eq!(versions(), ["3.0.0", "1.0.0"], "a signature that comes later counts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_circuit_of_a_failing_provider_opens_and_is_reset() {
    let host = TestHost::new(&["traps"]).await.unwrap();
    host.bind("acme", "traps", BindingLimits::default()).await.unwrap();
    let mut last = String::new();
    for _ in 0..20 {
        last = host.query("acme", "trap").await.unwrap_err().to_string();
        if last.contains("its circuit is open") {
            break;
        }
    }
    assert!(last.contains("memhost binding reset"), "{last}");
    let error =
        host.service().operations().query(&caller(), query("acme", "fine")).await.unwrap_err();
    assert!(
        error.to_string().contains("its circuit is open"),
        "an innocent call is refused too: {error}"
    );
    host.service()
        .control()
        .reset_binding(&caller(), &parse("acme"), &parse("traps"))
        .await
        .unwrap();
    host.query("acme", "fine").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_over_the_rate_are_refused() {
    let host = TestHost::new(&["echo"]).await.unwrap();
    let limits = BindingLimits { calls_per_second: 1, ..BindingLimits::default() };
    host.bind("acme", "echo", limits).await.unwrap();
    let mut refused = Vec::new();
    for _ in 0..20 {
        refused.extend(host.query("acme", "x").await.err());
    }
    assert!(refused.len() >= 10, "{} of 20 calls were refused", refused.len());
    assert!(refused[0].to_string().contains("callsPerSecond"), "{}", refused[0]);
}

/// Opening a named pipe waits for a writer, which would block every later scan.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_named_pipe_among_the_plugins_is_refused() {
    let host = TestHost::new(&[]).await.unwrap();
    let pipe = file(&host, "pipe.wasm");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let scanned =
        tokio::time::timeout(Duration::from_secs(20), host.service().control().scan_plugins())
            .await;
    // With a writer that stays, no reader waits, so that a failure does not hang.
    std::mem::forget(std::fs::OpenOptions::new().read(true).write(true).open(&pipe));
    assert!(scanned.is_ok(), "the scan waits for the pipe");
    let refused = host.service().control().plugins().refused;
    assert!(refused.len() == 1 && refused[0].reason.contains("not a file"), "{refused:?}");
}
