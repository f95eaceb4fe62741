//! A host: its parts, and opening it on its data directory.

use async_recursion::async_recursion as boxed;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::backup::{self, BackupRequest, BackupView};
use crate::cluster::make_data_dir;
use crate::error::OpenError;
use crate::keys::Keys;
use crate::monitor::{Monitor, Own, Place};
use crate::options::ServiceOptions;
use crate::shared::SharedParts;
use crate::shared_plugins::directory_of_others;
use crate::{caches, permissions};
use memhost_access::{Attached, Section, Tokens, WritePolicy};
use memhost_background::Background;
use memhost_control::Control;
use memhost_embeddings::{Embeddings, EmbeddingsOptions};
use memhost_operations::{Operations, Parts};
use memhost_oplog::operation::OperationSink;
use memhost_oplog::{Oplog, OplogOptions, Told};
use memhost_ports::Clock;
use memhost_postgres::{DatabaseClock, Membership, PostgresOptions, PostgresStore};
use memhost_queues::waiting::WaitingRecords;
use memhost_queues::{Deliveries, Jobs, RetryPolicy, Reviews};
use memhost_records::Records;
use memhost_registry::bindings::Bindings;
use memhost_registry::plugins::{Plugins, PluginsOptions};
use memhost_registry::secrets::{SecretStore, Vault};
use memhost_registry::versions::ServingBindings;
use memhost_registry::{ActivityLog, CompanyRegister};
use memhost_sandbox::{CacheKey, Sandbox};
use memhost_store::{SledStore, Store};
use memhost_tenancy::{KnownCompanies, ServiceError, Tenancy, TenancyParts};
use memhost_transfer::Transfer;

/// A host. Embed one in your process, or run it behind HTTP with `memhost serve`. Calls may come
/// from any task; a caller that goes away ends its own call only.
pub struct Service {
    tenancy: Arc<Tenancy>,
    operations: Arc<Operations>,
    control: Arc<Control>,
    background: Arc<Background>,
    transfer: Arc<Transfer>,
    monitor: Arc<Monitor>,
    parts: Arc<Parts>,
    data_dir: PathBuf,
}

impl Service {
    /// The companies: which there are, who may enter them, tokens, quotas, retention, events.
    pub fn tenancy(&self) -> &Arc<Tenancy> {
        &self.tenancy
    }

    /// The memory operations, reviews and forgetting.
    pub fn operations(&self) -> &Arc<Operations> {
        &self.operations
    }

    /// Bindings, secrets, costs, logs and providers.
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Hooks and extraction jobs.
    pub fn background(&self) -> &Arc<Background> {
        &self.background
    }

    /// Export, import and erasure of companies.
    pub fn transfer(&self) -> &Arc<Transfer> {
        &self.transfer
    }

    /// Health checks and metrics.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// From here on a policy guards the binding of a section. It is not taken away again: another
    /// policy of the same section and company takes its place.
    pub fn attach_policy(&self, section: Section, policy: Arc<dyn WritePolicy>) {
        self.parts.policies.attach(section, policy);
    }

    /// From here on the operations of a section's binding leave the events that a sink makes of
    /// them.
    pub fn attach_sink(&self, section: Section, sink: Arc<dyn OperationSink>) {
        self.parts.oplog.sinks.attach(section, sink);
    }

    /// Makes a backup while the host works.
    ///
    /// # Errors
    /// Where the directory exists already or cannot be written. An incomplete backup is left in
    /// place, without a manifest.
    #[boxed]
    pub async fn backup(&self, request: BackupRequest) -> Result<BackupView, ServiceError> {
        let now = self.parts.clock.now();
        backup::backup(&*self.parts.store, (self.data_dir.clone(), now), request).await
    }

    /// Opens a host on its data directory, which it has for itself until it is dropped.
    ///
    /// # Errors
    /// Where the directory is not usable, not one of memhost, from a newer version or in use; it is
    /// left unchanged.
    #[boxed]
    pub async fn open(mut options: ServiceOptions) -> Result<Arc<Self>, OpenError> {
        if backup::is_quiet(&options.data_dir) {
            options.sandbox.is_quiet = true;
            options.has_background = false;
            if let EmbeddingsOptions::Endpoint(endpoint) = &mut options.embeddings {
                endpoint.is_quiet = true;
            }
        }
        let shared = options.tenure.as_ref().map(|tenure| Arc::clone(&tenure.shared));
        if let Some(shared) = &shared {
            options.clock = Arc::clone(&shared.clock);
        }
        // Before anything is made: what is asked of it may be wrong.
        let sandbox = match &shared {
            Some(shared) => shared.sandbox.clone(),
            None => Sandbox::new(options.sandbox.clone())?,
        };
        let files_dir = options.files_dir();
        let data_dir = options.data_dir.clone();
        make_data_dir(&data_dir)?;
        let store = open_store(&options).await?;
        let store = options
            .wrap_store
            .take()
            .map_or_else(|| Arc::clone(&store), |wrap| wrap(Arc::clone(&store)));
        if memhost_transfer::is_cut_copy(&*store).await? {
            return Err(OpenError::CutCopy);
        }
        memhost_transfer::undo_cut_imports(&*store, files_dir.as_deref()).await?;
        let keys = Keys::open(&data_dir, options.host_key_file.as_deref())?;
        let vault_file = options.vault_key_path();
        // A new key in the place of a lost one could not decrypt the secrets.
        if options.named_vault_key().is_none()
            && !vault_file.exists()
            && SecretStore::has_any(&*store).await?
        {
            return Err(OpenError::VaultKeyGone { path: vault_file });
        }
        let vault = Vault::open(options.open_vault_key()?);
        let secrets = Arc::new(SecretStore::new(Arc::clone(&store), vault));
        let known = Arc::new(KnownCompanies::open(&*store).await?);
        let activity = Arc::new(ActivityLog::new(
            Arc::clone(&store),
            Arc::clone(&options.clock),
            Arc::clone(&known) as Arc<dyn CompanyRegister>,
        ));
        let (clock, log) = (Arc::clone(&options.clock), Arc::clone(&activity));
        let bindings = Arc::new(Bindings::open(Arc::clone(&store), clock, log).await?);
        let tokens = Arc::new(Tokens::open(Arc::clone(&store), Arc::clone(&options.clock)).await?);
        let (plugins, embeddings, told) = match &shared {
            Some(shared) => {
                (Arc::clone(&shared.plugins), Arc::clone(&shared.embeddings), shared.told.clone())
            }
            None => {
                let cache = open_cache(&data_dir, options.compiled_dir.as_deref(), &keys)?;
                let plugins = open_plugins(&sandbox, cache, &options).await?;
                let embeddings = Embeddings::open(options.embeddings, &data_dir)?;
                let label = options.metrics_company_label;
                (plugins, embeddings, Told::new(Arc::clone(&options.clock), label))
            }
        };
        let serving = Arc::new(ServingBindings::new(
            sandbox.clone(),
            Arc::clone(&plugins),
            Arc::clone(&store),
            Arc::clone(&activity),
            Arc::clone(&secrets),
            embeddings,
            files_dir.as_deref(),
        ));
        memhost_control::finish_cut_deletions(&*store, (&bindings, &serving), None).await.map_err(
            |refusal| {
                OpenError::directory("finishing a deletion in", &data_dir, refusal.error.message)
            },
        )?;
        if shared.is_none() {
            // Before files are admitted: that makes copies.
            serving.drop_unneeded_copies(&bindings).await;
            plugins.begin().await;
            if options.waits_for_plugins {
                plugins.idle().await;
            }
            plugins.watch();
        }
        let now = options.clock.now();
        let records = Arc::new(Records::open(Arc::clone(&store), now).await?);
        let oplog_options =
            OplogOptions { audit: options.audit, compact_after: options.compact_after };
        let oplog = Oplog::open(
            Arc::clone(&store),
            Arc::clone(&options.clock),
            Arc::clone(&records),
            told,
            oplog_options,
        );
        let oplog = oplog.await?;
        let deliveries = Arc::new(Deliveries::new(Arc::clone(&store), Arc::clone(&options.clock)));
        let jobs = Arc::new(Jobs::new(Arc::clone(&store), Arc::clone(&options.clock)));
        let reviews = Arc::new(Reviews::open(Arc::clone(&store)).await?);
        let tenancy = Tenancy::open(TenancyParts {
            store: Arc::clone(&store),
            clock: Arc::clone(&options.clock),
            oplog: Arc::clone(&oplog),
            known,
            activity: Arc::clone(&activity),
            records: Arc::clone(&records),
            deliveries: Arc::clone(&deliveries),
            jobs: Arc::clone(&jobs),
            reviews: Arc::clone(&reviews),
            tokens,
            cursors: keys.cursors(),
            signing: keys.signing(),
            session_key: keys.sessions(),
            zero_config: options.zero_config,
        });
        let policies = Arc::new(Attached::default());
        let parts = Parts {
            tenancy: Arc::new(tenancy.await?),
            waiting: Arc::new(WaitingRecords::open(Arc::clone(&store)).await?),
            store,
            clock: options.clock,
            oplog,
            activity,
            bindings,
            plugins,
            serving,
            records,
            deliveries,
            jobs,
            reviews,
            sandbox,
            policies,
            cursors: keys.cursors(),
            digest_key: keys.digests(),
            zero_config: options.zero_config,
        };
        let place = options.tenure.map(|tenure| Place {
            membership: tenure.membership,
            group: tenure.term.group,
            beside: Arc::clone(&tenure.shared.beside),
        });
        let own = Own { data_dir, files_dir, store_id: keys.store_id(), place };
        let service = Arc::new(Self::new(parts, secrets, own, options.retry));
        if options.has_background {
            let erasing = Arc::clone(&service.transfer);
            memhost_executor::spawn(async move {
                if let Err(error) = erasing.finish_erasures().await {
                    tracing::error!(%error, "an erasure that was cut short could not be finished; \
                        erase the company again");
                }
            });
            service.background.start();
        }
        // Once for each host.
        if shared.as_ref().is_none_or(|shared| shared.beside.add(&service.monitor)) {
            service.control.publish_plugin_changes();
        }
        caches::follow_changes(&service.parts);
        Ok(service)
    }

    fn new(parts: Parts, secrets: Arc<SecretStore>, own: Own, retry: RetryPolicy) -> Self {
        let operations = Arc::new(Operations::new(parts.clone()));
        let control =
            Arc::new(Control::new(parts.clone(), Arc::clone(&operations), Arc::clone(&secrets)));
        let both = (Arc::clone(&operations), Arc::clone(&control));
        let files_dir = own.files_dir.clone();
        let transfer = Transfer::new(parts.clone(), both.clone(), secrets, files_dir);
        let data_dir = own.data_dir.clone();
        let monitor = Arc::new(Monitor::new(parts.clone(), both.clone(), own));
        Self {
            tenancy: Arc::clone(&parts.tenancy),
            background: Arc::new(Background::new(parts.clone(), both, retry)),
            operations,
            control,
            transfer: Arc::new(transfer),
            monitor,
            parts: Arc::new(parts),
            data_dir,
        }
    }
}

impl SharedParts {
    /// Opens them for a host that has joined those on its database.
    ///
    /// # Errors
    /// Where a directory or the database cannot be used.
    pub async fn open(
        options: &ServiceOptions,
        membership: &Membership,
    ) -> Result<Arc<Self>, OpenError> {
        let (sandbox, plugins) = begin_plugins(options).await?;
        if options.waits_for_plugins {
            plugins.idle().await;
        }
        plugins.watch();
        let address = options.database.as_deref().unwrap_or_default();
        let defaults = PostgresOptions::default();
        let database = membership.connect(address, (defaults.lanes, defaults.readers)).await?;
        let lease = Arc::clone(membership.lease());
        let clock: Arc<dyn Clock> = Arc::new(DatabaseClock::new(lease, Arc::clone(&options.clock)));
        Ok(Arc::new(Self {
            database,
            sandbox,
            plugins,
            embeddings: Embeddings::open(options.embeddings.clone(), &options.data_dir)?,
            told: Told::new(Arc::clone(&clock), options.metrics_company_label),
            clock,
            beside: Arc::default(),
        }))
    }
}

/// Opens the store of a data directory, or the database that keeps memory instead.
async fn open_store(options: &ServiceOptions) -> Result<Arc<dyn Store>, OpenError> {
    if let Some(address) = options.database.clone() {
        let company_bytes = options.store.company_bytes;
        let (term, database) = options
            .tenure
            .as_ref()
            .map(|tenure| (tenure.term, Arc::clone(&tenure.shared.database)))
            .unzip();
        let options = PostgresOptions {
            address,
            company_bytes,
            term,
            database,
            ..PostgresOptions::default()
        };
        return Ok(Arc::new(PostgresStore::open(options).await?));
    }
    let (data_dir, options) = (&options.data_dir, options.store.clone());
    let path = data_dir.clone();
    // Opening reads and may repair: not on the executor.
    let opened = memhost_executor::spawn_blocking(move || {
        let store = SledStore::open(&path, options)?;
        // Only now is it certain that the directory is the host's.
        permissions::tighten(&path)
            .map_err(|error| OpenError::directory("protecting", &path, error))?;
        Ok::<_, OpenError>(store)
    });
    let store =
        opened.await.map_err(|error| OpenError::directory("opening", data_dir, error))??;
    Ok(Arc::new(store))
}

/// Where compiled components are kept: in the directory that is named, if it can be trusted.
fn open_cache(data_dir: &Path, named: Option<&Path>, keys: &Keys) -> Result<CacheKey, OpenError> {
    let shared = named.and_then(|directory| {
        let (opened, directory) = (shared_cache(directory), directory.display());
        let advice = "name another directory, such as with MEMHOST_CACHE_DIR";
        let warn = |why: &_| {
            tracing::warn!(%why, %directory, advice, "compiled components are not shared");
        };
        opened.inspect_err(warn).ok()
    });
    match shared {
        Some(shared) => Ok(shared),
        None => Ok(CacheKey::new(data_dir.join("compiled"), keys.compiled_cache())?),
    }
}

/// Compiles what a host with these options would load, so that it opens quickly: for a host that
/// waits to take another one's place.
///
/// # Errors
/// Where a directory cannot be used.
pub async fn compile_ahead(options: &ServiceOptions) -> Result<(), OpenError> {
    begin_plugins(options).await?.1.idle().await;
    Ok(())
}

/// Begins to admit plugins in a sandbox of their own, before there is a store.
async fn begin_plugins(options: &ServiceOptions) -> Result<(Sandbox, Arc<Plugins>), OpenError> {
    let sandbox = Sandbox::new(options.sandbox.clone())?;
    let data_dir = &options.data_dir;
    make_data_dir(data_dir)?;
    let keys = Keys::open(data_dir, options.host_key_file.as_deref())?;
    let cache = open_cache(data_dir, options.compiled_dir.as_deref(), &keys)?;
    let plugins = open_plugins(&sandbox, cache, options).await?;
    plugins.begin().await;
    Ok((sandbox, plugins))
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
    options: &ServiceOptions,
) -> Result<Arc<Plugins>, OpenError> {
    let data_dir = &options.data_dir;
    let directory = match options.plugins_dir.clone() {
        Some(directory) => directory,
        None => {
            let directory = data_dir.join("plugins");
            memhost_files::durable::create_directory(&directory, 0o700)
                .map_err(|error| OpenError::directory("making", &directory, error))?;
            directory
        }
    };
    let of_others = options.database.as_ref().map(|_| directory_of_others(data_dir)).transpose()?;
    let options = PluginsOptions {
        directory,
        of_others,
        components: data_dir.join("components"),
        trust: options.trust.clone(),
    };
    Ok(Plugins::open(sandbox, cache, options).await?)
}
