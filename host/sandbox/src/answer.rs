//! What a call of a provider comes back with, checked and in the contract's types.

use memhost_types::{BrowseNode, ExtractionJob, ForgetOutcome, HitTrace, LogLine, RecordHandle, Snippet, Usage};

/// An answer that has been checked, with what is known about the call.
#[derive(Debug)]
pub struct Answer<T> {
    /// What the provider answered.
    pub value: T,
    /// What the guest logged.
    pub log: Vec<LogLine>,
    /// Microseconds in the provider, instantiation included.
    pub provider_us: u64,
    /// What the host's own imports used for it.
    pub embedded: Vec<Usage>,
}

/// What `capture` answered.
#[derive(Debug)]
#[allow(missing_docs, reason = "the contract's names")]
pub struct CaptureAnswer {
    pub records: Vec<RecordHandle>,
    pub jobs: Vec<ExtractionJob>,
    pub usage: Vec<Usage>,
}

/// What `upsert-records` answered.
#[derive(Debug)]
#[allow(missing_docs, reason = "the contract's names")]
pub struct RecordsAnswer {
    pub records: Vec<RecordHandle>,
    pub usage: Vec<Usage>,
}

/// What `query` answered.
#[derive(Debug)]
#[allow(missing_docs, reason = "the contract's names")]
pub struct QueryAnswer {
    pub snippets: Vec<Snippet>,
    pub profile_summary: Option<String>,
    pub usage: Vec<Usage>,
}

/// What `list-records` answered.
#[derive(Debug)]
pub struct ListAnswer {
    /// At most as many as asked for.
    pub items: Vec<Snippet>,
    /// The provider's own cursor.
    pub next: Option<String>,
    /// There may be more, without a way to it.
    pub truncated: bool,
    /// What it used.
    pub usage: Vec<Usage>,
}

/// What `forget` answered.
#[derive(Debug)]
#[allow(missing_docs, reason = "the contract's names")]
pub struct ForgetAnswer {
    pub outcomes: Vec<ForgetOutcome>,
    pub usage: Vec<Usage>,
}

/// What `correct` answered.
#[derive(Debug)]
#[allow(missing_docs, reason = "the contract's names")]
pub struct Correction {
    pub record: RecordHandle,
    pub superseded: Option<RecordHandle>,
    pub usage: Vec<Usage>,
}

/// What `explain-query` answered.
#[derive(Debug)]
pub struct ExplainAnswer {
    /// How the query was read.
    pub query: serde_json::Value,
    /// In the order of the query's result.
    pub hits: Vec<HitTrace>,
}

/// What `list-children` answered.
#[derive(Debug)]
pub struct BrowseAnswer {
    /// At most as many as asked for.
    pub nodes: Vec<BrowseNode>,
    /// The provider's own cursor.
    pub next: Option<String>,
}

/// What `run-job`, `get-job` or `cancel-job` answered.
#[derive(Debug)]
pub struct JobAnswer {
    /// The job as it stands; none where the provider does not know it.
    pub job: Option<ExtractionJob>,
    /// The records that there are because of it.
    pub records: Vec<RecordHandle>,
    /// What it used.
    pub usage: Vec<Usage>,
}

/// What `get-profile` answered.
#[derive(Debug)]
#[allow(missing_docs, reason = "the contract's names")]
pub struct ProfileAnswer {
    pub summary: Option<String>,
    pub usage: Vec<Usage>,
}

/// What `export-records` answered.
#[derive(Debug)]
pub struct ChunkAnswer {
    /// Whole lines, each with a JSON value in it and ended by a line feed.
    pub lines: String,
    /// The provider's own cursor.
    pub next: Option<String>,
}

/// What `import-records` answered.
#[derive(Debug, Clone, Copy)]
pub struct ImportAnswer {
    /// Lines that made or changed a record.
    pub imported: u32,
    /// Lines that were there already.
    pub unchanged: u32,
}
