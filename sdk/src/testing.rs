//! A host in memory, for `cargo test` without WebAssembly: storage, configuration, a directory and,
//! where a test brings one, an embedding model; one set a thread.
//!
//! [`open`] gives a provider as the sandbox would open it. [`reopen`] drops what it held in memory
//! and keeps what it stored, which is what a restart looks like from inside.

pub mod faults;
pub mod http;
pub mod recorded;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Provider;
use crate::call::Grant;
use crate::types::{
    CaptureMode, CaptureRequest, Error, ForgetRequest, ImportRequest, Intent, ListRequest,
    QueryRequest, RecordId, RecordWrite, Scope, SourceKind, SourcePayload, SourceRef,
    UpsertRequest, Usage,
};

#[derive(Default)]
struct State {
    config: String,
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    directory: Option<PathBuf>,
    embedder: Option<Embedder>,
    reported: Vec<Usage>,
    remaining: Option<Duration>,
    granted: Vec<Grant>,
}

struct Embedder {
    name: String,
    dimensions: u32,
    embed: fn(&str) -> Vec<f32>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::new(State::default());
}

/// Empties this thread's host and gives it a configuration.
#[allow(clippy::needless_pass_by_value, reason = "so that a test can write json!({}) in place")]
pub fn reset(config: serde_json::Value) {
    STATE
        .with_borrow_mut(|state| *state = State { config: config.to_string(), ..State::default() });
}

/// Opens a provider on an empty host.
///
/// # Errors
/// The error of `open` or of the configuration's check.
pub fn open<P: Provider>(config: serde_json::Value) -> Result<P, Error> {
    reset(config);
    reopen()
}

/// Opens a provider on an empty host whose directory is `directory`.
///
/// # Errors
/// The error of `open` or of the configuration's check.
pub fn open_in<P: Provider>(directory: &Path, config: serde_json::Value) -> Result<P, Error> {
    reset(config);
    STATE.with_borrow_mut(|state| {
        state.directory = Some(directory.to_owned());
        state.granted.push(Grant::Directory(1 << 30));
    });
    reopen()
}

/// Opens a provider again on what this thread's host holds, as after a restart.
///
/// # Errors
/// The error of `open` or of the configuration's check.
pub fn reopen<P: Provider>() -> Result<P, Error> {
    let config = crate::check_config::<P>(&binding::config())
        .map_err(|errors| Error::internal(format!("the configuration does not fit: {errors:?}")))?;
    P::open(config)
}

/// Loses everything in storage, and keeps the directory: what a provider that indexes its files
/// must survive.
pub fn lose_storage() {
    STATE.with_borrow_mut(|state| state.entries.clear());
}

/// Gives this thread's host an embedding model, until the next [`reset`]: `embed` must answer
/// `dimensions` numbers, of unit length as the contract says.
pub fn embed_with(name: &str, dimensions: u32, embed: fn(&str) -> Vec<f32>) {
    let embedder = Embedder { name: name.to_owned(), dimensions, embed };
    STATE.with_borrow_mut(|state| state.embedder = Some(embedder));
}

/// Sets what [`crate::call::remaining`] answers in this thread, until the next [`reset`]. Before it
/// is 30 s.
pub fn set_remaining(left: Duration) {
    STATE.with_borrow_mut(|state| state.remaining = Some(left));
}

/// Sets what [`crate::call::grants`] answers in this thread, until the next [`reset`].
pub fn grant(granted: Vec<Grant>) {
    STATE.with_borrow_mut(|state| state.granted = granted);
}

/// The usage reported with [`crate::meter::report`] since the last time.
pub fn reported() -> Vec<Usage> {
    STATE.with_borrow_mut(|state| std::mem::take(&mut state.reported))
}

/// The answer of [`crate::directory`] in this thread.
pub(crate) fn current_directory() -> PathBuf {
    STATE.with_borrow(|state| state.directory.clone().unwrap_or_else(|| PathBuf::from("/data")))
}

/// The scope that the helpers below use: company `company`, agent `agent`.
pub fn scope() -> Scope {
    Scope { agent_id: Some("agent".to_owned()), ..Scope::company("company") }
}

/// A manual note's source.
pub fn source() -> SourceRef {
    SourceRef {
        kind: SourceKind::ManualNote,
        company_id: "company".to_owned(),
        issue_id: None,
        comment_id: None,
        document_key: None,
        run_id: None,
        activity_id: None,
        external_ref: None,
    }
}

/// A capture of a text, in the mode `capture-record`.
pub fn capture(operation_id: &str, text: &str) -> CaptureRequest {
    CaptureRequest {
        operation_id: operation_id.to_owned(),
        scope: scope(),
        source: source(),
        payload: SourcePayload { text: Some(text.to_owned()), ..SourcePayload::default() },
        hook: None,
        mode: CaptureMode::CaptureRecord,
        metadata: None,
    }
}

/// An upsert of texts without ids.
pub fn upsert(operation_id: &str, texts: &[&str]) -> UpsertRequest {
    let records = texts
        .iter()
        .map(|text| RecordWrite { text: (*text).to_owned(), ..RecordWrite::default() })
        .collect();
    UpsertRequest { operation_id: operation_id.to_owned(), scope: scope(), source: None, records }
}

/// A query for ten answers.
pub fn query(text: &str) -> QueryRequest {
    QueryRequest {
        scope: scope(),
        query: text.to_owned(),
        top_k: 10,
        intent: Intent::Answer,
        metadata_filter: None,
        token_budget: None,
    }
}

/// A page of `limit` records.
pub fn list(cursor: Option<String>, limit: u32) -> ListRequest {
    ListRequest { scope: scope(), cursor, limit, metadata_filter: None }
}

/// A request to forget.
pub fn forget(ids: Vec<RecordId>, scope: Scope) -> ForgetRequest {
    ForgetRequest { operation_id: "forget".to_owned(), scope, ids }
}

/// A request to import the lines of an export.
pub fn import(scope: Scope, lines: String) -> ImportRequest {
    ImportRequest { operation_id: "import".to_owned(), scope, lines }
}

pub(crate) mod call {
    use std::time::Duration;

    use super::{Grant, STATE};

    pub(crate) fn remaining_ms() -> u64 {
        let left = STATE.with_borrow(|state| state.remaining.unwrap_or(Duration::from_secs(30)));
        u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn get_limit(_: &str) -> Option<u64> {
        None
    }

    pub(crate) fn grants() -> Vec<Grant> {
        STATE.with_borrow(|state| state.granted.clone())
    }
}

pub(crate) mod meter {
    use super::{STATE, Usage};

    pub(crate) fn report(usage: &Usage) {
        STATE.with_borrow_mut(|state| state.reported.push(usage.clone()));
    }
}

pub(crate) mod binding {
    use super::STATE;

    pub(crate) fn config() -> String {
        STATE.with_borrow(|state| {
            if state.config.is_empty() { "{}".to_owned() } else { state.config.clone() }
        })
    }
}

pub(crate) mod embeddings {
    use super::STATE;
    pub(crate) use crate::bindings::provider::paperclip::memory::embeddings::{
        Embedded, Error, Model,
    };
    use crate::embeddings::{MAX_TEXT_BYTES, MAX_TEXTS};

    fn denied() -> Error {
        Error::Denied("this test has no model; `testing::embed_with` gives it one".to_owned())
    }

    pub(crate) fn get_model() -> Result<Model, Error> {
        STATE.with_borrow(|state| {
            let embedder = state.embedder.as_ref().ok_or_else(denied)?;
            Ok(Model { name: embedder.name.clone(), dimensions: embedder.dimensions })
        })
    }

    pub(crate) fn embed(texts: &[String]) -> Result<Embedded, Error> {
        if texts.len() > MAX_TEXTS || texts.iter().any(|text| text.len() > MAX_TEXT_BYTES) {
            return Err(Error::LimitExceeded(format!(
                "at most {MAX_TEXTS} texts of {MAX_TEXT_BYTES} bytes"
            )));
        }
        STATE.with_borrow(|state| {
            let embedder = state.embedder.as_ref().ok_or_else(denied)?;
            Ok(Embedded {
                vectors: texts.iter().map(|text| (embedder.embed)(text)).collect(),
                usage: None,
            })
        })
    }
}

pub(crate) mod storage {
    use super::STATE;
    pub(crate) use crate::bindings::provider::paperclip::memory::storage::{
        Entry, Error, Page, Write,
    };

    const PAGE: usize = 1_000;

    #[allow(clippy::unnecessary_wraps, reason = "the shape of the import")]
    pub(crate) fn get(key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        STATE.with_borrow(|state| Ok(state.entries.get(key).cloned()))
    }

    #[allow(clippy::unnecessary_wraps, reason = "the shape of the import")]
    pub(crate) fn scan(prefix: &[u8], cursor: Option<&[u8]>, limit: u32) -> Result<Page, Error> {
        let limit = if limit == 0 { PAGE } else { PAGE.min(limit as usize) };
        STATE.with_borrow(|state| {
            let mut rest = state
                .entries
                .range(cursor.unwrap_or(prefix).to_vec()..)
                .take_while(|(key, _)| key.starts_with(prefix))
                .map(|(key, value)| Entry { key: key.clone(), value: value.clone() });
            let entries: Vec<Entry> = rest.by_ref().take(limit).collect();
            Ok(Page { entries, next: rest.next().map(|entry| entry.key) })
        })
    }

    #[allow(clippy::unnecessary_wraps, reason = "the shape of the import")]
    pub(crate) fn apply(batch: &[Write]) -> Result<(), Error> {
        STATE.with_borrow_mut(|state| {
            for write in batch {
                match write {
                    Write::Put(entry) => {
                        drop(state.entries.insert(entry.key.clone(), entry.value.clone()));
                    }
                    Write::Delete(key) => drop(state.entries.remove(key)),
                }
            }
        });
        Ok(())
    }

    #[allow(clippy::unnecessary_wraps, reason = "the shape of the import")]
    pub(crate) fn compare_and_swap(
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        STATE.with_borrow_mut(|state| {
            if state.entries.get(key).map(Vec::as_slice) != expected {
                return Ok(false);
            }
            match new {
                Some(value) => drop(state.entries.insert(key.to_vec(), value.to_vec())),
                None => drop(state.entries.remove(key)),
            }
            Ok(true)
        })
    }
}
