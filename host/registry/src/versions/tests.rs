//! Tests of what serves a binding as far as no build does: an engine that compiles nothing.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;

use crate::plugins::{Plugins, PluginsOptions, Trust};
use crate::secrets::{SecretStore, SetSecret, Vault};
use crate::testing::{Process, id, store};
use crate::versions::{ServingBindings, remove_company_directory};
use memhost_embeddings::{Embeddings, EmbeddingsOptions};
use memhost_ports::{StorageEntry, StorageSize, StorageWrite};
use memhost_sandbox::{CacheKey, Sandbox, SandboxOptions};
use memhost_store::Store;
use memhost_types::{
    Binding, Digest, OperationErrorCode, Principal, Refusal, RejectedVersion, SecretUse,
    ServingVersion, VersionChoice,
};

struct Host {
    directory: TempDir,
    store: Arc<dyn Store>,
    process: Process,
    plugins: Arc<Plugins>,
    secrets: Arc<SecretStore>,
    serving: ServingBindings,
}

impl Host {
    async fn new() -> Self {
        let store = store();
        let process = Process::on(&store).await;
        let directory = TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("plugins")).unwrap();
        let options = SandboxOptions { instances: 8, ..SandboxOptions::default() };
        let sandbox = Sandbox::new(options).unwrap();
        let cache = CacheKey::new(path("compiled"), [0; 32]).unwrap();
        let options = PluginsOptions {
            of_others: None,
            directory: path("plugins"),
            components: path("components"),
            trust: Trust::default(),
        };
        let plugins = Plugins::without_builtin(&sandbox, cache, options).unwrap();
        let secrets = Arc::new(SecretStore::new(Arc::clone(&store), Vault::open([7; 32])));
        let serving = ServingBindings::new(
            sandbox,
            Arc::clone(&plugins),
            Arc::clone(&store),
            Arc::clone(&process.activity),
            Arc::clone(&secrets),
            Embeddings::open(EmbeddingsOptions::default(), directory.path()).unwrap(),
            Some(directory.path()),
        );
        Self { directory, store, process, plugins, secrets, serving }
    }

    async fn binding(&self) -> Arc<Binding> {
        self.process.make("acme", "a", true).await
    }

    async fn refused(&self, binding: &Arc<Binding>) -> Refusal {
        self.serving.get(binding).await.err().unwrap()
    }

    /// The directory of a binding's provider.
    fn files(&self, binding: &Binding) -> PathBuf {
        let id = binding.id.0.simple().to_string();
        let name = format!("{}.{}", binding.key, &id[20..]);
        self.directory.path().join("memory").join("acme").join(name)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_without_a_build_says_where_to_put_one() {
    let host = Host::new().await;
    let refusal = host.refused(&host.binding().await).await;
    assert_eq!(refusal.error.code, OperationErrorCode::ProviderMissing);
    let message = refusal.error.message;
    assert!(message.contains("`local-markdown`") && message.contains("plugins directory"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_that_served_and_is_gone_is_not_replaced_in_silence() {
    let host = Host::new().await;
    let binding = host.binding().await;
    let pinned = VersionChoice::Pin(Digest::of(b"gone"));
    let by = (&Principal::Operator, memhost_types::ActivityAction::BindingChanged);
    let company = id("acme");
    let changed = host.process.bindings.update(&company, &binding.key, None, by, |binding| {
        binding.version = pinned;
    });
    let refusal = host.refused(&changed.await.unwrap()).await;
    assert_eq!(refusal.error.code, OperationErrorCode::ProviderMissing);
    assert!(refusal.error.message.contains("pinned to"), "{}", refusal.error.message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_binding_serves_nothing_and_makes_no_storage_again() {
    let host = Host::new().await;
    let binding = host.binding().await;
    {
        let _lock = host.serving.lock(binding.id).await.unwrap();
        host.serving.close(binding.id).await;
    }
    let refusal = host.refused(&binding).await;
    assert_eq!(refusal.error.code, OperationErrorCode::NoBinding);
    assert!(refusal.error.message.contains("was deleted"), "{}", refusal.error.message);
    assert!(!host.files(&binding).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_forgets_the_builds_that_were_rejected() {
    let host = Host::new().await;
    let binding = host.binding().await;
    assert!(host.serving.state(&binding).await.unwrap().is_none());
    host.serving.reset(&binding).await.unwrap();
    assert!(host.serving.state(&binding).await.unwrap().is_none(), "nothing to reset");
    let version: semver::Version = "1.0.0".parse().unwrap();
    let rejected = RejectedVersion {
        digest: Digest::of(b"bad"),
        version: version.clone(),
        reason: "it trapped".to_owned(),
    };
    let digest = Digest::of(b"good");
    let state = ServingVersion { digest, version, rejected_versions: vec![rejected] };
    host.serving.write_state(&binding, &state, Vec::new()).await.unwrap();
    host.serving.reset(&binding).await.unwrap();
    let reset = host.serving.state(&binding).await.unwrap().unwrap();
    assert_eq!(reset, ServingVersion { rejected_versions: Vec::new(), ..state });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_provider_stored_is_found_and_removed_and_no_link_is_followed() {
    let host = Host::new().await;
    let binding = host.binding().await;
    assert!(host.serving.stored_nothing(&binding).await.unwrap());
    let partition = memhost_store::company_key(&binding.company_id, binding.id.0.as_bytes());
    let size = StorageSize { bytes: 1 << 20, keys: 100 };
    let storage = host.store.binding_storage(&partition, size).await.unwrap();
    let entry = StorageEntry { key: b"k".to_vec(), value: b"v".to_vec() };
    storage.apply(vec![StorageWrite::Put(entry)]).await.unwrap();
    assert!(!host.serving.stored_nothing(&binding).await.unwrap());
    drop(storage);
    host.serving.remove_stored(&binding).await.unwrap();
    assert!(host.serving.stored_nothing(&binding).await.unwrap());
    // Files count, too.
    let (files, outside) = (host.files(&binding), host.directory.path().join("outside"));
    fs::create_dir_all(files.join("deep/down")).unwrap();
    fs::write(&outside, "not the provider's").unwrap();
    std::os::unix::fs::symlink(&outside, files.join("link")).unwrap();
    std::os::unix::fs::symlink(host.directory.path(), files.join("deep/up")).unwrap();
    assert!(!host.serving.stored_nothing(&binding).await.unwrap());
    host.serving.remove_stored(&binding).await.unwrap();
    assert!(!files.exists() && outside.exists());
    // Again, and a company without any directory.
    host.serving.remove_stored(&binding).await.unwrap();
    remove_company_directory(host.directory.path(), &id("acme")).await.unwrap();
    assert!(!host.directory.path().join("memory/acme").exists() && outside.exists());
    remove_company_directory(host.directory.path(), &id("never")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_is_granted_and_not_set_is_missing() {
    let host = Host::new().await;
    let mut binding = (*host.binding().await).clone();
    binding.grants.secrets = vec!["SET".to_owned(), "UNSET".to_owned()];
    let request = SetSecret {
        value: "correct-horse-battery".to_owned(),
        origins: vec!["https://a.example".parse().unwrap()],
        used_as: SecretUse::bearer(),
    };
    let now = jiff::Timestamp::UNIX_EPOCH;
    let (_, change) = host.secrets.set(&id("acme"), "SET", request, now).await.unwrap();
    assert!(memhost_store::write(&*host.store, &[change.row]).await.unwrap());
    assert_eq!(host.serving.missing_secrets(&binding).await, ["UNSET"]);
    // Nothing serves yet that would have to get it.
    host.serving.renew_secrets(&id("acme")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_that_serve_or_are_pinned_stay_when_the_host_starts() {
    let host = Host::new().await;
    let copy = |bytes: &[u8]| {
        let name = format!("{}.wasm", Digest::of(bytes).to_string().replace(':', "-"));
        let path = host.directory.path().join("components").join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let [serves, pinned, unneeded] = [copy(b"serves"), copy(b"pinned"), copy(b"unneeded")];
    let a = host.binding().await;
    let state = ServingVersion {
        digest: Digest::of(b"serves"),
        version: "1.0.0".parse().unwrap(),
        rejected_versions: Vec::new(),
    };
    host.serving.write_state(&a, &state, Vec::new()).await.unwrap();
    let b = host.process.make("acme", "b", false).await;
    let by = (&Principal::Operator, memhost_types::ActivityAction::BindingChanged);
    let company = id("acme");
    let pin = host.process.bindings.update(&company, &b.key, None, by, |binding| {
        binding.version = VersionChoice::Pin(Digest::of(b"pinned"));
    });
    pin.await.unwrap();
    host.serving.drop_unneeded_copies(&host.process.bindings).await;
    assert!(serves.exists() && pinned.exists() && !unneeded.exists());
    assert_eq!(host.plugins.generation(), 1, "no build came or went");
}
