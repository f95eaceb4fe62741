//! What supermemory answers.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A memory as search and list show it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    pub(crate) id: String,
    pub(crate) memory: Option<String>,
    pub(crate) root_memory_id: Option<String>,
    pub(crate) metadata: Option<Map<String, Value>>,
    pub(crate) similarity: Option<f64>,
    pub(crate) created_at: Option<String>,
    pub(crate) updated_at: Option<String>,
    pub(crate) forget_after: Option<String>,
    #[serde(default)]
    pub(crate) is_forgotten: bool,
    pub(crate) is_latest: Option<bool>,
    #[serde(default)]
    pub(crate) history: Vec<Version>,
    #[serde(default)]
    pub(crate) document_ids: Vec<String>,
    #[serde(default)]
    pub(crate) documents: Vec<Version>,
}

/// An earlier version, or a document.
#[derive(Debug, Deserialize)]
pub(crate) struct Version {
    pub(crate) id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct List {
    pub(crate) memory_entries: Vec<Memory>,
    pub(crate) pagination: Pagination,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pagination {
    pub(crate) current_page: u32,
    pub(crate) total_pages: u32,
}

#[derive(Deserialize)]
pub(crate) struct Found {
    pub(crate) results: Vec<Memory>,
}

#[derive(Deserialize)]
pub(crate) struct Known {
    pub(crate) profile: Lines,
}

#[derive(Deserialize)]
pub(crate) struct Lines {
    pub(crate) r#static: Vec<String>,
    pub(crate) dynamic: Vec<String>,
}

/// A document: what was captured, on its way to memories.
#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    pub(crate) id: String,
    pub(crate) status: String,
    #[serde(rename = "customId")]
    pub(crate) custom_id: Option<String>,
}
