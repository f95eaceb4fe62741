//! Opening a host on its data directory.

use async_recursion::async_recursion as boxed;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::Service;
use crate::access::{Attached, Tokens};
use crate::background::deliver_batch::BatchOrder;
use crate::background::deliveries::Deliveries;
use crate::background::jobs::Jobs;
use crate::background::worker;
use crate::bindings::deletion;
use crate::companies::cache::Companies;
use crate::companies::import;
use crate::companies::known::KnownCompanies;
use crate::companies::waiting::WaitingRecords;
use crate::error::OpenError;
use crate::host::ServiceOptions;
use crate::host::doctor::permissions;
use crate::host::keys::Keys;
use crate::operations::corrections::Corrections;
use crate::review::Reviews;
use memhost_embeddings::Embeddings;
use memhost_oplog::{Oplog, OplogOptions};
use memhost_records::Records;
use memhost_registry::bindings::Bindings;
use memhost_registry::plugins::{Plugins, PluginsOptions, Trust};
use memhost_registry::secrets::{SecretStore, Vault, key_from_env_or_file};
use memhost_registry::versions::ServingBindings;
use memhost_registry::{ActivityLog, CompanyRegister};
use memhost_sandbox::{CacheKey, Sandbox};
use memhost_store::{SledStore, Store};

impl Service {
    /// Opens a host on its data directory, which it has for itself until it is dropped.
    ///
    /// # Errors
    /// Where the directory is not usable, not one of memhost, from a newer version or in use; it is
    /// left unchanged.
    #[boxed]
    pub async fn open(options: ServiceOptions) -> Result<Arc<Self>, OpenError> {
        // Before anything is made: what is asked of it may be wrong.
        let sandbox = Sandbox::new(options.sandbox)?;
        let data_dir = options.data_dir;
        // Memory is for the host's user only.
        memhost_files::durable::create_directory(&data_dir, 0o700)
            .map_err(|error| OpenError::directory("making", &data_dir, error))?;
        let (path, store_options) = (data_dir.clone(), options.store);
        // Opening reads and may repair: not on the executor.
        let opened = memhost_executor::spawn_blocking(move || {
            let store = SledStore::open(&path, store_options)?;
            // Only now is it certain that the directory is the host's.
            permissions::tighten(&path)
                .map_err(|error| OpenError::directory("protecting", &path, error))?;
            Ok::<_, OpenError>(store)
        });
        let store =
            opened.await.map_err(|error| OpenError::directory("opening", &data_dir, error))??;
        let store: Arc<dyn Store> = Arc::new(store);
        let store =
            options.wrap_store.map_or_else(|| Arc::clone(&store), |wrap| wrap(Arc::clone(&store)));
        import::undo_cut_imports(&*store, &data_dir).await?;
        let keys = Keys::open(&data_dir)?;
        let vault_file = options.vault_key_file.unwrap_or_else(|| data_dir.join("vault.key"));
        let vault_key = options.vault_key.or_else(|| std::env::var("MEMHOST_VAULT_KEY").ok());
        // A new key in the place of a lost one could not decrypt the secrets.
        if vault_key.is_none() && !vault_file.exists() && SecretStore::has_any(&*store).await? {
            return Err(OpenError::VaultKeyGone { path: vault_file });
        }
        let vault = Vault::open(key_from_env_or_file(vault_key.as_deref(), &vault_file)?);
        let secrets = Arc::new(SecretStore::new(Arc::clone(&store), vault));
        let shared = options.compiled_dir.and_then(|directory| {
            let (opened, directory) = (shared_cache(&directory), directory.display());
            let advice = "name another directory, such as with MEMHOST_CACHE_DIR";
            let warn = |why: &_| {
                tracing::warn!(%why, %directory, advice, "compiled components are \
                not shared");
            };
            opened.inspect_err(warn).ok()
        });
        let cache = match shared {
            None => CacheKey::new(data_dir.join("compiled"), keys.compiled_cache())?,
            Some(shared) => shared,
        };
        let known = Arc::new(KnownCompanies::open(&*store).await?);
        let activity = Arc::new(ActivityLog::new(
            Arc::clone(&store),
            Arc::clone(&options.clock),
            Arc::clone(&known) as Arc<dyn CompanyRegister>,
        ));
        let (clock, log) = (Arc::clone(&options.clock), Arc::clone(&activity));
        let bindings = Arc::new(Bindings::open(Arc::clone(&store), clock, log).await?);
        let tokens = Tokens::open(Arc::clone(&store), Arc::clone(&options.clock)).await?;
        let plugins =
            open_plugins(&sandbox, cache, &data_dir, options.plugins_dir, options.trust).await?;
        let serving = ServingBindings::new(
            sandbox.clone(),
            Arc::clone(&plugins),
            Arc::clone(&store),
            Arc::clone(&activity),
            Arc::clone(&secrets),
            Embeddings::open(options.embeddings, &data_dir)?,
            &data_dir,
        );
        deletion::finish_cut(&*store, (&bindings, &serving), None).await.map_err(|refusal| {
            OpenError::directory("finishing a deletion in", &data_dir, refusal.error.message)
        })?;
        // Before files are admitted: that makes copies.
        serving.drop_unneeded_copies(&bindings).await;
        plugins.begin().await;
        if options.waits_for_plugins {
            plugins.idle().await;
        }
        plugins.watch();
        let now = options.clock.now();
        let records = Arc::new(Records::open(Arc::clone(&store), now).await?);
        let oplog_options = OplogOptions {
            audit: options.audit,
            compact_after: options.compact_after,
            has_company_label: options.metrics_company_label,
        };
        let oplog = Oplog::open(
            Arc::clone(&store),
            Arc::clone(&options.clock),
            Arc::clone(&records),
            oplog_options,
        );
        let oplog = oplog.await?;
        let service = Arc::new(Self {
            deliveries: Deliveries::new(Arc::clone(&store), Arc::clone(&options.clock)),
            batch_order: BatchOrder::default(),
            jobs: Jobs::new(Arc::clone(&store), Arc::clone(&options.clock)),
            reviews: Reviews::open(Arc::clone(&store)).await?,
            corrections: Corrections::default(),
            records,
            companies: Companies::open(&*store).await?,
            waiting: WaitingRecords::open(&*store).await?,
            retry: options.retry,
            wake: Arc::clone(&oplog.wake),
            is_shutting_down: AtomicBool::new(false),
            digest_key: keys.digests(),
            signing: keys.signing(),
            store_id: keys.store_id(),
            store,
            bindings,
            activity,
            known,
            tokens,
            plugins,
            sandbox,
            clock: options.clock,
            cursors: keys.cursors(),
            zero_config: options.zero_config,
            serving,
            secrets,
            oplog,
            policies: Attached::default(),
            metric_sources: Attached::default(),
            data_dir,
        });
        if options.has_background {
            worker::start(&service);
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

/// Opens the plugins directory that was named, or makes one in the data directory.
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
            memhost_files::durable::create_directory(&directory, 0o700)
                .map_err(|error| OpenError::directory("making", &directory, error))?;
            directory
        }
    };
    let options = PluginsOptions { directory, components: data_dir.join("components"), trust };
    Ok(Plugins::open(sandbox, cache, options).await?)
}
