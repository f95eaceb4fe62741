//! The host's state of one instance, and its side of the contract's own imports.

use std::sync::Arc;
use std::time::Instant;

use wasmtime::Store;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::clocks;
use crate::computing::Computing;
use crate::contract::{binding, call, embeddings, meter, storage, types};
use crate::convert;
use crate::egress::GuestHttp;
use crate::error::CallError;
use crate::limiter::{Held, Limiter};
use crate::log::GuestLog;
use crate::normalize;
use crate::open_files::{FAST_BYTES, OpenFiles};
use crate::quota::DirectoryQuota;
use memhost_ports::{
    BindingStorage, Embedder, EmbeddingError, MAX_EMBEDDING_TEXT_BYTES, MAX_EMBEDDING_TEXTS,
    StorageEntry, StorageError, StoragePage, StorageWrite,
};
use memhost_types::{BindingLimits, Grants, Microcents, Usage, limits};

/// The header fields, requests and responses of an instance.
#[derive(Default)]
pub(crate) struct HttpMemory {
    /// As much counts as the guest's memory.
    pub(super) room: usize,
    pub(super) held: Option<Held>,
    /// As much is there at most: what there was at the last measurement, and all that was added
    /// since.
    pub(super) bytes: usize,
}

/// The host's state of one instance.
pub(crate) struct State {
    pub(crate) wasi: WasiCtx,
    pub(crate) http: WasiHttpCtx,
    /// The guest's header fields, requests and responses.
    pub(crate) http_memory: HttpMemory,
    pub(crate) outgoing: GuestHttp,
    pub(crate) table: ResourceTable,
    pub(crate) limiter: Limiter,
    pub(crate) quota: Option<Arc<DirectoryQuota>>,
    /// What the guest has open; with a directory that it may write, together with the binding's
    /// other instances.
    pub(crate) files: Arc<OpenFiles>,
    pub(crate) log: GuestLog,
    pub(crate) config: Arc<str>,
    pub(crate) grants: Arc<Grants>,
    pub(crate) limits: BindingLimits,
    /// When the present call is ended.
    pub(crate) deadline: Instant,
    pub(crate) storage: Option<Arc<dyn BindingStorage>>,
    /// Whether storage could not be used in the present call, for a reason that passes.
    pub(crate) storage_is_away: bool,
    /// Whether the present call has written to storage.
    pub(crate) storage_was_written: bool,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    /// What the present call used: of the embedder, one entry for each model, and what the guest
    /// reported.
    pub(crate) metered: Vec<Usage>,
    /// How often the guest has reported in the present call.
    pub(crate) reports: usize,
    /// The bytes of the details in these reports.
    pub(crate) report_bytes: usize,
    /// The computing of the present call.
    pub(crate) computing: Computing,
}

impl Drop for State {
    /// Closing files that were removed while they were open frees their disk space, which can take
    /// long.
    fn drop(&mut self) {
        // Otherwise they are closed at once, so that the next call has room for its own.
        if self.files.removed_bytes() <= FAST_BYTES {
            return;
        }
        let table = std::mem::take(&mut self.table);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn_blocking(move || drop(table)));
        }
    }
}

/// The store of one instance.
pub(crate) type GuestStore = Store<State>;

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.table, hooks: &mut self.outgoing }
    }
}

impl types::Host for State {}

impl binding::Host for State {
    fn config(&mut self) -> wasmtime::Result<String> {
        Ok(self.config.to_string())
    }
}

impl call::Host for State {
    /// In steps like the clocks', so that it is no exact clock.
    fn remaining_ms(&mut self) -> wasmtime::Result<u64> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = if self.grants.clock { left } else { clocks::floor(left) };
        Ok(u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
    }

    fn get_limit(&mut self, name: String) -> wasmtime::Result<Option<u64>> {
        let limit = BindingLimits::TABLE.iter().find(|limit| limit.name == name);
        Ok(limit.map(|limit| limit.value(&self.limits)))
    }

    fn grants(&mut self) -> wasmtime::Result<Vec<call::Grant>> {
        Ok(convert::grants(&self.grants))
    }
}

impl State {
    fn storage(&self) -> Result<Arc<dyn BindingStorage>, storage::Error> {
        self.storage.clone().ok_or_else(|| {
            storage::Error::Denied(
                "this binding has no grant for `storage`; an operator types `memhost binding grant \
                 NAME`".to_owned(),
            )
        })
    }
}

impl State {
    /// What the guest is told of storage. It says no more than that it failed, so the host notes
    /// where that passes.
    fn told<T>(&mut self, answer: Result<T, StorageError>) -> Answer<T> {
        self.storage_is_away |= matches!(answer, Err(StorageError::Unavailable(_)));
        answer.map_err(storage::Error::from)
    }
}

impl From<StorageError> for storage::Error {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::LimitExceeded(message) => Self::LimitExceeded(message),
            StorageError::Failed(message) | StorageError::Unavailable(message) => {
                Self::Failed(message)
            }
        }
    }
}

type Answer<T> = Result<T, storage::Error>;

impl storage::Host for State {
    async fn get(&mut self, key: Vec<u8>) -> wasmtime::Result<Answer<Option<Vec<u8>>>> {
        let found = match self.storage() {
            Ok(storage) => storage.get(&key).await,
            Err(denied) => return Ok(Err(denied)),
        };
        Ok(self.told(found))
    }

    async fn scan(
        &mut self,
        prefix: Vec<u8>,
        cursor: Option<Vec<u8>>,
        limit: u32,
    ) -> wasmtime::Result<Answer<storage::Page>> {
        let page = match self.storage() {
            Ok(storage) => storage.scan(&prefix, cursor.as_deref(), limit as usize).await,
            Err(denied) => return Ok(Err(denied)),
        };
        let entry = |StorageEntry { key, value }| storage::Entry { key, value };
        Ok(self.told(page).map(|page: StoragePage| storage::Page {
            entries: page.entries.into_iter().map(entry).collect(),
            next: page.next,
        }))
    }

    async fn apply(&mut self, batch: Vec<storage::Write>) -> wasmtime::Result<Answer<()>> {
        let write = |write| match write {
            storage::Write::Put(storage::Entry { key, value }) => {
                StorageWrite::Put(StorageEntry { key, value })
            }
            storage::Write::Delete(key) => StorageWrite::Delete(key),
        };
        let batch = batch.into_iter().map(write).collect();
        let applied = match self.storage() {
            Ok(storage) => storage.apply(batch).await,
            Err(denied) => return Ok(Err(denied)),
        };
        self.storage_was_written |= applied.is_ok();
        Ok(self.told(applied))
    }

    async fn compare_and_swap(
        &mut self,
        key: Vec<u8>,
        expected: Option<Vec<u8>>,
        new: Option<Vec<u8>>,
    ) -> wasmtime::Result<Answer<bool>> {
        let swapped = match self.storage() {
            Ok(storage) => {
                storage.compare_and_swap(&key, expected.as_deref(), new.as_deref()).await
            }
            Err(denied) => return Ok(Err(denied)),
        };
        self.storage_was_written |= matches!(swapped, Ok(true));
        Ok(self.told(swapped))
    }
}

impl meter::Host for State {
    /// Ends the call where the report is not acceptable: nothing that a provider says it used is
    /// dropped silently.
    fn report(&mut self, usage: types::Usage) -> wasmtime::Result<()> {
        self.reports += 1;
        self.report_bytes += usage.details.as_ref().map_or(0, String::len);
        if self.reports > limits::MAX_ITEMS || self.report_bytes > limits::MAX_JSON_BYTES {
            let (reports, bytes) = (limits::MAX_ITEMS, limits::MAX_JSON_BYTES);
            let message = format!(
                "it reported usage more than {reports} times or with {bytes} bytes of `details`"
            );
            return Err(CallError::BadAnswer(message).into());
        }
        self.metered.push(normalize::usage(usage)?);
        Ok(())
    }
}

impl From<EmbeddingError> for embeddings::Error {
    fn from(error: EmbeddingError) -> Self {
        match error {
            EmbeddingError::Unavailable(message) => Self::Unavailable(message),
            EmbeddingError::Failed(message) => Self::Failed(message),
        }
    }
}

impl State {
    fn embedder(&self) -> Result<Arc<dyn Embedder>, embeddings::Error> {
        self.embedder.clone().ok_or_else(|| {
            embeddings::Error::Denied(
                "this binding has no grant for `embeddings`; an operator types `memhost binding \
                 grant NAME`"
                    .to_owned(),
            )
        })
    }

    async fn vectors(
        &mut self,
        texts: Vec<String>,
    ) -> Result<embeddings::Embedded, embeddings::Error> {
        let embedder = self.embedder()?;
        if texts.len() > MAX_EMBEDDING_TEXTS {
            let message =
                format!("{} texts; {MAX_EMBEDDING_TEXTS} may be embedded in one call", texts.len());
            return Err(embeddings::Error::LimitExceeded(message));
        }
        if let Some(number) = texts.iter().position(|text| text.len() > MAX_EMBEDDING_TEXT_BYTES) {
            let message = format!("text {number} has more than {MAX_EMBEDDING_TEXT_BYTES} bytes");
            return Err(embeddings::Error::LimitExceeded(message));
        }
        let embedded = embedder.embed(texts, self.outgoing.counter()).await?;
        if let Some(usage) = &embedded.usage {
            self.count(usage);
        }
        Ok(embeddings::Embedded {
            vectors: embedded.vectors,
            usage: embedded.usage.map(convert::used),
        })
    }

    /// A call may embed often; its record has one entry for each model.
    fn count(&mut self, usage: &Usage) {
        let known = self
            .metered
            .iter_mut()
            .find(|known| (&known.provider, &known.model) == (&usage.provider, &usage.model));
        let Some(known) = known else { return self.metered.push(usage.clone()) };
        // What a provider reported before may have any size.
        let sum = |sum: &mut Option<u64>, more: Option<u64>| {
            *sum = Some(sum.unwrap_or(0).saturating_add(more.unwrap_or(0)));
        };
        sum(&mut known.embedding_tokens, usage.embedding_tokens);
        sum(&mut known.latency_ms, usage.latency_ms);
        let cost =
            known.cost.unwrap_or_default().0.saturating_add(usage.cost.unwrap_or_default().0);
        known.cost = Some(Microcents(cost));
    }
}

impl embeddings::Host for State {
    fn get_model(&mut self) -> wasmtime::Result<Result<embeddings::Model, embeddings::Error>> {
        let model = self.embedder().and_then(|embedder| Ok(embedder.model()?));
        Ok(model.map(|model| embeddings::Model { name: model.name, dimensions: model.dimensions }))
    }

    async fn embed(
        &mut self,
        texts: Vec<String>,
    ) -> wasmtime::Result<Result<embeddings::Embedded, embeddings::Error>> {
        Ok(self.vectors(texts).await)
    }
}
