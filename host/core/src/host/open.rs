//! Opening a host on its data directory.

use async_recursion::async_recursion as boxed;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ed25519_dalek::SigningKey;
use tokio::sync::Notify;

use crate::access::Tokens;
use crate::bindings::Bindings;
use crate::companies::import;
use crate::companies::lifecycle::Companies;
use crate::error::OpenError;
use crate::host::ServiceOptions;
use crate::host::feed::Feed;
use crate::host::keys::Keys;
use crate::host::metrics::Metrics;
use crate::host::secrets::SecretStore;
use crate::host::vault::Vault;
use crate::host::vault::VaultKey;
use crate::money::Ledger;
use crate::operations::idempotency::InFlight;
use crate::operations::record::Recorder;
use crate::plugins::Plugins;
use crate::plugins::PluginsOptions;
use crate::plugins::Trust;
use crate::review::Reviews;
use crate::versions::serving::ServingBindings;
use crate::work::background;
use crate::work::hooks::Hooks;
use crate::work::jobs::Jobs;
use crate::work::retry::RetryPolicy;
use memhost_embeddings::Embeddings;
use memhost_ports::Clock;
use memhost_sandbox::{CacheKey, Sandbox};
use memhost_store::{SledStore, Store, Table};
use memhost_types::CursorKey;

/// A host. Embed one in your process, or run it behind HTTP with `memhost serve`. Calls may come from any task; a
/// caller that goes away ends its own call only.
pub struct Service {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bindings: Arc<Bindings>,
    pub(crate) tokens: Tokens,
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) sandbox: Sandbox,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cursors: CursorKey,
    pub(crate) zero_config: bool,
    pub(crate) serving: ServingBindings,
    pub(crate) secrets: Arc<SecretStore>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) hooks: Hooks,
    pub(crate) jobs: Jobs,
    pub(crate) reviews: Reviews,
    pub(crate) companies: Companies,
    pub(crate) idempotency: InFlight,
    pub(crate) retry: RetryPolicy,
    /// Wakes background work: something may be due.
    pub(crate) wake: Arc<Notify>,
    /// Whether no more background work is started.
    pub(crate) is_shutting_down: AtomicBool,
    pub(crate) digest_key: [u8; 32],
    pub(crate) signing: SigningKey,
    pub(crate) data_dir: PathBuf,
}

impl Service {
    /// Opens a host on its data directory, which it has for itself until it is dropped.
    ///
    /// # Errors
    /// Where the directory is not usable, not one of memhost, from a newer version or in use; it is left unchanged.
    #[boxed]
    pub async fn open(options: ServiceOptions) -> Result<Arc<Self>, OpenError> {
        let data_dir = options.data_dir;
        std::fs::create_dir_all(&data_dir).map_err(|error| OpenError::Directory {
            action: "making",
            path: data_dir.clone(),
            message: error.to_string(),
        })?;
        let (path, store_options) = (data_dir.clone(), options.store);
        // Opening reads and may repair: not on the executor.
        let store = tokio::task::spawn_blocking(move || SledStore::open(&path, store_options)).await;
        let store: Arc<dyn Store> = Arc::new(store.map_err(|error| OpenError::Directory {
            action: "opening",
            path: data_dir.clone(),
            message: error.to_string(),
        })??);
        let store = options.wrap_store.map_or_else(|| Arc::clone(&store), |wrap| wrap(Arc::clone(&store)));
        import::undo_cut_imports(&*store, &data_dir).await?;
        let keys = Keys::open(&data_dir)?;
        let vault_file = options.vault_key_file.unwrap_or_else(|| data_dir.join("vault.key"));
        let vault_key = options.vault_key.or_else(|| std::env::var("MEMHOST_VAULT_KEY").ok());
        // A new key instead of a lost one could not decrypt the secrets, and nobody would be told.
        if vault_key.is_none() && !vault_file.exists() {
            let secrets = store.scan(Table::Secrets, b"", None, 1).await?;
            if !secrets.entries.is_empty() {
                return Err(OpenError::VaultKeyGone { path: vault_file });
            }
        }
        let vault = Vault::open(VaultKey::from_env_or_file(vault_key.as_deref(), &vault_file)?);
        let secrets = Arc::new(SecretStore::new(Arc::clone(&store), vault));
        let sandbox = Sandbox::new(options.sandbox)?;
        let shared = options.compiled_dir.and_then(|directory| {
            // Without it, components are compiled again.
            let opened = shared_cache(&directory);
            let advice = "name another directory, such as with MEMHOST_CACHE_DIR";
            let directory = directory.display();
            opened
                .inspect_err(|why| tracing::warn!(%why, %directory, advice, "compiled components are not shared"))
                .ok()
        });
        let cache = match shared {
            None => CacheKey::new(data_dir.join("compiled"), keys.compiled_cache())?,
            Some(shared) => shared,
        };
        let bindings = Arc::new(Bindings::open(Arc::clone(&store), Arc::clone(&options.clock)).await?);
        let tokens = Tokens::open(Arc::clone(&store), Arc::clone(&options.clock)).await?;
        let plugins = open_plugins(&sandbox, cache, &data_dir, options.plugins_dir, options.trust).await?;
        let serving = ServingBindings::new(
            sandbox.clone(),
            Arc::clone(&plugins),
            Arc::clone(&store),
            Arc::clone(&bindings),
            Arc::clone(&secrets),
            Embeddings::open(options.embeddings, &data_dir)?,
            &data_dir,
        );
        serving.drop_unneeded_copies().await;
        plugins.watch();
        let wake = Arc::new(Notify::new());
        let recorder = Arc::new(Recorder {
            store: Arc::clone(&store),
            clock: Arc::clone(&options.clock),
            audit: options.audit,
            metrics: Metrics::new(options.metrics_company_label),
            ledger: Ledger::open(Arc::clone(&store), Arc::clone(&options.clock)).await?,
            feed: Arc::new(Feed::new(Arc::clone(&options.clock))),
            wake: Arc::clone(&wake),
        });
        let service = Arc::new(Self {
            hooks: Hooks::new(Arc::clone(&store), Arc::clone(&options.clock)),
            jobs: Jobs::new(Arc::clone(&store), Arc::clone(&options.clock)),
            reviews: Reviews::open(Arc::clone(&store)).await?,
            companies: Companies::open(&*store).await?,
            idempotency: InFlight::default(),
            retry: options.retry,
            wake,
            is_shutting_down: AtomicBool::new(false),
            digest_key: keys.digests(),
            signing: keys.signing(),
            store,
            bindings,
            tokens,
            plugins,
            sandbox,
            clock: options.clock,
            cursors: keys.cursors(),
            zero_config: options.zero_config,
            serving,
            secrets,
            recorder,
            data_dir,
        });
        if options.has_background {
            background::start(&service);
        }
        service.publish_plugin_changes();
        service.follow_changes();
        Ok(service)
    }
}

/// A directory of compiled components that hosts of one user share, with its key.
fn shared_cache(directory: &Path) -> Result<CacheKey, Box<dyn std::error::Error>> {
    CacheKey::make_directory(directory)?;
    let key = Keys::of_shared_cache(directory)?.compiled_cache();
    Ok(CacheKey::new(directory.to_owned(), key)?)
}

/// The plugins directory is the one named, or one in the data directory that is made for the purpose.
async fn open_plugins(
    sandbox: &Sandbox,
    cache: CacheKey,
    data_dir: &Path,
    named: Option<PathBuf>,
    trust: Trust,
) -> Result<Arc<Plugins>, OpenError> {
    let directory = match named {
        Some(directory) => directory,
        None => {
            let directory = data_dir.join("plugins");
            std::fs::create_dir_all(&directory).map_err(|error| OpenError::Directory {
                action: "making",
                path: directory.clone(),
                message: error.to_string(),
            })?;
            directory
        }
    };
    let options = PluginsOptions { directory, kept: data_dir.join("components"), trust };
    Ok(Arc::new(Plugins::open(sandbox, cache, options).await?))
}
