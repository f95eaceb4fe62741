//! Every limit on what crosses the contract, in one place. `wit/types.wit` states them for
//! providers.

/// The longest id that comes from outside, in bytes.
pub const MAX_OUTSIDE_ID_BYTES: usize = 128;
/// The longest record id, in bytes.
pub const MAX_RECORD_ID_BYTES: usize = 512;
/// The longest text of a record, in bytes.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// The longest role of a turn, in bytes.
pub const MAX_ROLE_BYTES: usize = 64;
/// The longest summary, in bytes.
pub const MAX_SUMMARY_BYTES: usize = 64 * 1024;
/// The longest free-form JSON, in bytes of its compact form.
pub const MAX_JSON_BYTES: usize = 256 * 1024;
/// The deepest nesting of free-form JSON.
pub const MAX_JSON_DEPTH: usize = 64;
/// The most records, ids or items in one call.
pub const MAX_ITEMS: usize = 1_000;
/// The most entries of a list or map in a binding's grants and policy.
pub const MAX_FEW: usize = 64;
/// The largest `topK` and `limit`.
pub const MAX_PAGE: u32 = 1_000;
/// `topK` where the request has none.
pub const DEFAULT_TOP_K: u32 = 10;
/// `limit` where the request has none.
pub const DEFAULT_LIMIT: u32 = 50;
/// The longest query, in bytes.
pub const MAX_QUERY_BYTES: usize = 16 * 1024;
/// The largest part of an export that crosses at once, in bytes of whole lines.
pub const MAX_TRANSFER_BYTES: usize = 1024 * 1024;
/// The longest cursor that a provider may return, in bytes.
pub const MAX_PROVIDER_CURSOR_BYTES: usize = 512;
/// The longest cursor that a caller may send, in bytes. The host's own are shorter.
pub const MAX_CURSOR_BYTES: usize = 4 * 1024;
/// The longest `error` of an event, in bytes.
pub const MAX_EVENT_ERROR_BYTES: usize = 4 * 1024;
/// The largest `details` of an event, in bytes of its compact form.
pub const MAX_EVENT_DETAILS_BYTES: usize = 16 * 1024;
/// Where a page of a list ends although it has fewer records than asked for, in bytes as they are
/// stored. The record that passes it is the last one of the page.
pub const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;
/// The most tokens that a caller may ask an answer to fit in.
pub const MAX_TOKEN_BUDGET: u32 = 100_000;
/// The longest path of a node in a provider's own tree, in bytes.
pub const MAX_NODE_PATH_BYTES: usize = 4 * 1024;
/// The most parts of one hit's score.
pub const MAX_CONTRIBUTIONS: usize = 100;
/// Error messages of providers are cut here, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 4 * 1024;
/// The most handles that the record of a read keeps, and those of deliveries and jobs; the count is
/// kept in full. The record of a write keeps up to [`MAX_ITEMS`].
pub const MAX_RECORDED_HANDLES: usize = 100;
/// The most of a request that an operation keeps where its binding bounds that, in bytes.
pub const MAX_BOUNDED_SNAPSHOT_BYTES: usize = 2 * 1024;
/// The most log that an operation's record keeps of its guest, in bytes.
pub const MAX_RECORDED_LOG_BYTES: usize = 8 * 1024;
/// The longest key of a binding's storage, in bytes.
pub const MAX_STORAGE_KEY_BYTES: usize = 1_024;
/// The longest value of a binding's storage, in bytes.
pub const MAX_STORAGE_VALUE_BYTES: usize = 4 * 1024 * 1024;
/// The most writes in one batch of a binding's storage.
pub const MAX_STORAGE_BATCH: usize = 4_096;
/// The most bytes in one batch of a binding's storage.
pub const MAX_STORAGE_BATCH_BYTES: usize = 16 * 1024 * 1024;
/// The most entries of one page of a storage scan.
pub const MAX_STORAGE_PAGE: usize = 1_000;
/// The most bytes of one page of a storage scan.
pub const MAX_STORAGE_PAGE_BYTES: usize = 8 * 1024 * 1024;
