//! Tests of the plugins directory with files that are no components, so that the engine compiles
//! nothing.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::plugins::{PluginOutcome, Plugins, PluginsOptions, Trust};
use memhost_sandbox::{CacheKey, Sandbox, SandboxOptions};

struct Host {
    directory: tempfile::TempDir,
    plugins: Arc<Plugins>,
}

impl Host {
    fn new(trust: Trust) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("plugins")).unwrap();
        let sandbox = Sandbox::new(SandboxOptions { instances: 8, ..SandboxOptions::default() });
        let cache = CacheKey::new(path("compiled"), [0; 32]).unwrap();
        let (files, components) = (path("plugins"), path("components"));
        let options = PluginsOptions { directory: files, of_others: None, components, trust };
        let plugins = Plugins::without_builtin(&sandbox.unwrap(), cache, options).unwrap();
        Self { directory, plugins }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join("plugins").join(name)
    }

    /// Looks until nothing changes any more.
    async fn settle(&self) {
        while !self.plugins.scan().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.plugins.idle().await;
    }

    /// Why a file was refused, if it was.
    fn refused(&self, name: &str) -> Option<String> {
        let refused = self.plugins.refused();
        let is_it = |path: &Path| path.ends_with(name);
        refused.into_iter().find(|file| is_it(&file.path)).map(|file| file.reason)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_files_are_refused_each_with_its_reason_and_hold_up_nothing() {
    let host = Host::new(Trust::default());
    fs::write(host.path("empty.wasm"), "").unwrap();
    fs::write(host.path("junk.wasm"), "no WebAssembly at all").unwrap();
    fs::write(host.path("module.wasm"), b"\0asm\x01\0\0\0").unwrap();
    fs::write(host.path("notes.txt"), "not looked at").unwrap();
    fs::create_dir(host.path("folder.wasm")).unwrap();
    let large = fs::File::create(host.path("large.wasm")).unwrap();
    large.set_len(memhost_sandbox::MAX_COMPONENT_BYTES + 1).unwrap();
    std::os::unix::fs::symlink("nowhere", host.path("broken.wasm")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(host.path("pipe.wasm")).status();
    assert!(pipe.unwrap().success());
    host.plugins.begin().await;
    tokio::time::timeout(Duration::from_secs(30), host.plugins.idle()).await.unwrap();
    assert!(host.plugins.is_ready() && host.plugins.list().is_empty());
    let refused = host.plugins.refused();
    let names = refused.iter().map(|file| file.path.file_name().unwrap().to_str().unwrap());
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["empty.wasm", "folder.wasm", "junk.wasm", "large.wasm", "module.wasm", "pipe.wasm"]
    );
    for (name, reason) in [
        ("empty.wasm", "WebAssembly"),
        ("junk.wasm", "WebAssembly"),
        ("folder.wasm", "not a file"),
        ("pipe.wasm", "not a file"),
    ] {
        assert!(host.refused(name).unwrap().contains(reason), "{:?}", host.refused(name));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_file_is_tried_again_when_it_changes_and_forgotten_when_it_goes() {
    let host = Host::new(Trust::default());
    let mut changes = host.plugins.changes();
    host.plugins.begin().await;
    host.plugins.idle().await;
    fs::write(host.path("a.wasm"), "junk").unwrap();
    host.settle().await;
    assert!(host.refused("a.wasm").is_some());
    let change = changes.recv().await.unwrap();
    assert!(
        matches!(change.outcome, PluginOutcome::Refused { .. }) && change.path.ends_with("a.wasm")
    );
    // While it may be incomplete, nothing is said of it.
    fs::write(host.path("a.wasm"), "other junk").unwrap();
    assert!(!host.plugins.scan().await);
    assert_eq!(host.refused("a.wasm"), None);
    host.settle().await;
    assert!(host.refused("a.wasm").is_some());
    assert!(matches!(changes.recv().await.unwrap().outcome, PluginOutcome::Refused { .. }));
    fs::remove_file(host.path("a.wasm")).unwrap();
    host.settle().await;
    assert_eq!(host.refused("a.wasm"), None);
    assert_eq!(changes.recv().await.unwrap().outcome, PluginOutcome::Gone);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signature_is_asked_for_before_anything_else_is_read() {
    let host = Host::new(Trust { requires_signature: true, ..Trust::default() });
    fs::write(host.path("junk.wasm"), "junk").unwrap();
    host.plugins.begin().await;
    host.plugins.idle().await;
    let reason = host.refused("junk.wasm").unwrap();
    assert!(reason.contains("not signed"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_cannot_be_read_for_a_moment_changes_nothing() {
    let host = Host::new(Trust::default());
    fs::write(host.path("junk.wasm"), "junk").unwrap();
    host.plugins.begin().await;
    host.plugins.idle().await;
    let (here, away) = (host.directory.path().join("plugins"), host.directory.path().join("away"));
    fs::rename(&here, &away).unwrap();
    assert!(host.plugins.scan().await);
    assert!(host.refused("junk.wasm").is_some());
    fs::rename(&away, &here).unwrap();
    host.settle().await;
    assert!(host.refused("junk.wasm").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_without_a_copy_is_not_found() {
    let host = Host::new(Trust::default());
    let digest = memhost_types::Digest::of(b"nothing");
    let error = host.plugins.build(digest).await.unwrap_err().to_string();
    assert!(error.contains("the copy of sha256:"), "{error}");
}
