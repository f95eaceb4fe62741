//! A host in a temporary directory, and helpers to call it.

pub mod clock;
pub mod faults;
pub mod figures;
pub mod measure;
pub mod operations;
mod serving;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use memhost_core::{Caller, CreateBinding, Service, ServiceError, ServiceOptions, UsageView};
use memhost_server::{InProcess, ServerOptions};
use memhost_types::{
    AgentId, BindingKey, BindingLimits, BindingPolicy, CaptureMode, CaptureRequest, CompanyId,
    ForgetRequest, GetRequest, Grants, Intent, JsonObject, ListRequest, Operation, OperationFilter,
    QueryRequest, RecordHandle, RecordWrite, Scope, SourceKind, SourcePayload, SourceRef, TextId,
    UpsertRequest, VersionChoice,
};
use tempfile::TempDir;

pub use serving::Serving;

/// The repository's root.
pub fn repository() -> &'static Path {
    Path::new(env!("REPOSITORY"))
}

/// The value of `MEMHOST_CACHE_DIR` for the commands of tests. What one test compiled, the next one
/// loads.
pub fn cache_dir() -> &'static Path {
    Path::new(env!("CACHE"))
}

/// The compiled components in [`cache_dir`].
pub fn compiled_dir() -> PathBuf {
    cache_dir().join("compiled")
}

/// Whether long tests run in their whole form, with more rounds, more concurrent calls and every
/// rule: if `MEMHOST_TESTS_WHOLE` is set, as `.ci/run` does.
pub fn is_whole() -> bool {
    std::env::var_os("MEMHOST_TESTS_WHOLE").is_some()
}

/// Whether hosts keep memory in PostgreSQL: if `MEMHOST_TEST_STORE` is `postgres`.
pub fn is_on_postgres() -> bool {
    std::env::var_os("MEMHOST_TEST_STORE").is_some_and(|store| store == "postgres")
}

/// The environment variable with which a test's process tells another one its database.
pub const DATABASE: &str = "MEMHOST_TEST_DATABASE";

/// A tool that a test needs beside the toolchain: a browser, an interpreter, a package. If it is
/// missing, the test says so and ends. With `MEMHOST_TESTS_NEED_TOOLS`, which `.ci/run` sets, a
/// missing tool fails the test.
///
/// # Panics
/// If the tool is missing and `MEMHOST_TESTS_NEED_TOOLS` is set.
pub fn needed<T>(found: std::result::Result<T, impl std::fmt::Display>) -> Option<T> {
    match found {
        Ok(tool) => Some(tool),
        Err(why) => {
            assert!(
                std::env::var_os("MEMHOST_TESTS_NEED_TOOLS").is_none(),
                "a tool is missing: {why}"
            );
            eprintln!("skipped: {why}");
            None
        }
    }
}

/// The component of a guest, by its folder's name in `tests/guests`.
pub fn guest_file(name: &str) -> PathBuf {
    Path::new(env!("GUESTS")).join(format!("guest_{}.wasm", name.replace('-', "_")))
}

/// The component of an example in another language, by its folder's name in `plugins/examples`, and
/// what follows it in the name of a further one, such as `javascript-fetch`. They are in
/// `target/examples`, or in the directory `MEMHOST_EXAMPLES`.
///
/// # Errors
/// A sentence that says how to build it, if it was not built.
pub fn example_file(name: &str) -> std::result::Result<PathBuf, String> {
    let language = name.split('-').next().unwrap_or(name);
    let directory = std::env::var_os("MEMHOST_EXAMPLES").map(PathBuf::from);
    let directory = directory.unwrap_or_else(|| repository().join("target/examples"));
    let file = directory.join(format!("notes-{name}.wasm"));
    match file.is_file() {
        true => Ok(file),
        false => Err(format!(
            "{} does not exist; build it with `just examples {language}`",
            file.display()
        )),
    }
}

/// The component of a provider of `plugins`, by its folder's name there.
pub fn provider_file(name: &str) -> PathBuf {
    Path::new(env!("PROVIDERS")).join(format!("memhost_{}.wasm", name.replace('-', "_")))
}

/// The guest `stamped` with another stamp: its provider key, its version and its behaviour.
///
/// # Errors
/// If the guest is missing or the stamp does not fit.
pub fn stamped(mut stamp: serde_json::Value) -> Result<Vec<u8>> {
    const BEGIN: &[u8] = br#"{"stamp":"memhost""#;
    const BYTES: usize = 512;
    let mut bytes = std::fs::read(guest_file("stamped"))?;
    let at = bytes
        .windows(BEGIN.len())
        .position(|window| window == BEGIN)
        .context("the guest has no stamp")?;
    stamp["stamp"] = "memhost".into();
    let text = serde_json::to_vec(&stamp)?;
    let block = bytes.get_mut(at..at + BYTES).context("the guest ends within the stamp")?;
    anyhow::ensure!(text.len() <= BYTES, "the stamp is {} bytes; at most {BYTES} fit", text.len());
    block.fill(b' ');
    block[..text.len()].copy_from_slice(&text);
    Ok(bytes)
}

/// The guest `wrong` with a mark that says which rule of the conformance suite it breaks.
///
/// # Errors
/// If the guest is missing or has no mark.
pub fn marked(rule: &str) -> Result<Vec<u8>> {
    const BEGIN: &[u8] = b"memhost breaks a rule:";
    let mut bytes = std::fs::read(guest_file("wrong"))?;
    let at = bytes
        .windows(BEGIN.len())
        .position(|window| window == BEGIN)
        .context("the guest has no mark")?;
    let mark = bytes
        .get_mut(at + BEGIN.len()..)
        .and_then(|rest| rest.get_mut(..rule.len()))
        .context("the guest ends within the mark")?;
    mark.copy_from_slice(rule.as_bytes());
    Ok(bytes)
}

/// A host in a temporary directory.
pub struct TestHost {
    /// The host. `None` between [`TestHost::stop`] and [`TestHost::start`].
    service: Option<Arc<Service>>,
    options: ServiceOptions,
    surfaces: ServerOptions,
    directory: TempDir,
}

impl TestHost {
    /// A host with the company `acme`, the built-in provider and these guests, or providers of
    /// `plugins` if no guest has the name.
    pub async fn new(guests: &[&str]) -> Result<Self> {
        Self::with(guests, |_| {}).await
    }

    /// The same with other options.
    pub async fn with(guests: &[&str], change: impl FnOnce(&mut ServiceOptions)) -> Result<Self> {
        let directory = TempDir::new()?;
        let plugins = directory.path().join("plugins");
        std::fs::create_dir(&plugins)?;
        for guest in guests {
            let file = guest_file(guest);
            let file = if file.exists() { file } else { provider_file(guest) };
            std::fs::copy(&file, plugins.join(format!("{guest}.wasm")))
                .with_context(|| format!("{} is missing", file.display()))?;
        }
        let mut options = ServiceOptions::new(directory.path().join("data"));
        options.plugins_dir = Some(plugins);
        options.compiled_dir = Some(compiled_dir());
        if is_on_postgres() {
            let found = memhost_postgres::testing::database().await;
            options.database = Some(found.context("no PostgreSQL is installed")?);
        }
        change(&mut options);
        let mut host =
            Self { service: None, options, surfaces: ServerOptions::default(), directory };
        host.start().await?;
        // Reads do not make a company, and most tests begin with one.
        host.service().tenancy().make_company(&caller(), &parse("acme")).await?;
        Ok(host)
    }

    /// The same host with other options of its surfaces.
    #[must_use]
    pub fn surfaces(mut self, change: impl FnOnce(&mut ServerOptions)) -> Self {
        change(&mut self.surfaces);
        self
    }

    /// Its routes, without a network.
    pub fn in_process(&self) -> InProcess {
        InProcess::with(Arc::clone(self.service()), &self.surfaces)
    }

    /// The database of a host that keeps memory in PostgreSQL.
    pub fn database(&self) -> Option<&str> {
        self.options.database.as_deref()
    }

    /// Changes the options with which the host is opened next.
    pub fn change(&mut self, change: impl FnOnce(&mut ServiceOptions)) {
        change(&mut self.options);
    }

    /// Opens the host on its directory.
    pub async fn start(&mut self) -> Result<()> {
        self.service = Some(Service::open(self.options.clone()).await?);
        Ok(())
    }

    /// Stops the host. Its background work has ended when this returns.
    pub async fn stop(&mut self) {
        let Some(service) = self.service.take() else { return };
        service.background().shutdown(Duration::from_secs(10)).await;
        for _ in 0..60_000 {
            if Arc::strong_count(&service) == 1 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        unreachable!("the host was shut down a minute ago, but something still uses it");
    }

    /// The host.
    pub fn service(&self) -> &Arc<Service> {
        self.service.as_ref().unwrap_or_else(|| unreachable!("the host is stopped"))
    }

    /// The data directory.
    pub fn data_dir(&self) -> &Path {
        &self.options.data_dir
    }

    /// The directory that holds everything of this host.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Creates a binding named after its provider, the company's default, with storage and a
    /// directory granted.
    pub async fn bind(
        &self,
        company: &str,
        provider: &str,
        limits: BindingLimits,
    ) -> Result<(), ServiceError> {
        self.bind_as(company, provider, provider, limits).await
    }

    /// Creates a binding with this key.
    pub async fn bind_as(
        &self,
        company: &str,
        key: &str,
        provider: &str,
        limits: BindingLimits,
    ) -> Result<(), ServiceError> {
        let request = CreateBinding {
            key: parse(key),
            provider_key: parse(provider),
            config: JsonObject::new(),
            version: VersionChoice::default(),
            grants: Some(Grants {
                storage_bytes: 64 << 20,
                directory_bytes: 64 << 20,
                ..Grants::default()
            }),
            limits,
            policy: BindingPolicy::default(),
            default: true,
        };
        self.service().control().create_binding(&caller(), &parse(company), request).await.map(drop)
    }

    /// What a binding uses of its limits. `None` before the first call of its provider.
    pub async fn usage(&self, company: &str, key: &str) -> Option<UsageView> {
        self.service().control().binding(&parse(company), &parse(key)).await.ok()?.usage
    }

    /// Asks a company's default binding.
    pub async fn query(
        &self,
        company: &str,
        text: &str,
    ) -> Result<Vec<memhost_types::Snippet>, ServiceError> {
        Ok(self.service().operations().query(&caller(), query(company, text)).await?.snippets)
    }

    /// Writes one record through a company's default binding.
    pub async fn write(&self, company: &str, text: &str) -> Result<RecordHandle, ServiceError> {
        let answer =
            self.service().operations().upsert(&caller(), upsert(company, &[text])).await?;
        Ok(answer.records[0].clone())
    }

    /// A company's operations, newest first.
    pub async fn operations(&self, company: &str) -> Result<Vec<Operation>, ServiceError> {
        let page = self
            .service()
            .control()
            .operations(&parse(company), &OperationFilter::default(), None, 1_000)
            .await?;
        Ok(page.items)
    }
}

/// Waits until the condition holds, for at most two minutes, because test machines may be busy.
///
/// # Panics
/// If the condition does not hold in time.
pub async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let until = std::time::Instant::now() + Duration::from_secs(120);
    while !is_so().await {
        assert!(
            std::time::Instant::now() < until,
            "this did not happen within two minutes: {what}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Opens the store of a stopped host. A process that another test starts at that moment can hold
/// the lock until it runs, so this waits for it.
pub fn open_store(data_dir: &Path) -> sled::Db {
    for _ in 0..500 {
        // A compaction of a running host has put it into another directory.
        let name =
            std::fs::read_to_string(data_dir.join("STORE")).unwrap_or_else(|_| "store".to_owned());
        if let Ok(store) = sled::open(data_dir.join(name)) {
            return store;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    unreachable!("another process has the store of {} open", data_dir.display())
}

/// The operator.
pub fn caller() -> Caller {
    Caller::operator()
}

/// A valid id.
pub fn parse<T: TextId>(text: &str) -> T {
    T::parse(text).unwrap_or_else(|error| unreachable!("{text}: {error}"))
}

/// The scope of a company.
pub fn scope(company: &str) -> Scope {
    Scope::company(parse::<CompanyId>(company))
}

/// The scope of an agent.
pub fn agent_scope(company: &str, agent: &str) -> Scope {
    Scope { agent_id: Some(parse::<AgentId>(agent)), ..scope(company) }
}

/// A query with the default number of results.
pub fn query(company: &str, text: &str) -> QueryRequest {
    QueryRequest {
        binding_key: None,
        scope: scope(company),
        query: text.to_owned(),
        top_k: None,
        intent: Intent::Answer,
        metadata_filter: None,
        token_budget: None,
        filter: None,
    }
}

/// A write of texts without ids.
pub fn upsert(company: &str, texts: &[&str]) -> UpsertRequest {
    let records = texts
        .iter()
        .map(|text| RecordWrite { text: (*text).to_owned(), ..RecordWrite::default() })
        .collect();
    UpsertRequest {
        binding_key: None,
        scope: scope(company),
        source: None,
        records,
        visibility: None,
    }
}

/// A capture of a text as a record.
pub fn capture(company: &str, text: &str) -> CaptureRequest {
    CaptureRequest {
        binding_key: None,
        scope: scope(company),
        source: SourceRef::new(SourceKind::ManualNote, parse(company)),
        payload: SourcePayload { text: Some(text.to_owned()), ..SourcePayload::default() },
        hook: None,
        mode: CaptureMode::CaptureRecord,
        metadata: None,
        visibility: None,
        replaces_source: false,
    }
}

/// A page of a company's records.
pub fn list(company: &str, limit: u32, cursor: Option<String>) -> ListRequest {
    ListRequest {
        binding_key: None,
        scope: scope(company),
        cursor,
        limit: Some(limit),
        metadata_filter: None,
        filter: None,
    }
}

/// A request for one record.
pub fn get(company: &str, handle: &RecordHandle) -> GetRequest {
    GetRequest { binding_key: None, scope: scope(company), handle: handle.clone() }
}

/// A request to forget records.
pub fn forget(company: &str, handles: &[RecordHandle]) -> ForgetRequest {
    ForgetRequest { binding_key: None, scope: scope(company), handles: handles.to_vec() }
}

/// A binding key for a request.
pub fn at(key: &str) -> Option<BindingKey> {
    Some(parse(key))
}
