//! The arguments of the tools. None of them is a scope.

use schemars::JsonSchema;
use serde::Deserialize;

use memhost_types::{JobStatus, JsonObject, Visibility};

/// The most records that one search returns.
pub(super) const MAX_TOP_K: u32 = 50;
/// The default length at which each text is cut, in characters.
pub(super) const DEFAULT_CHARS: u32 = 2_000;
/// The least and the most characters that a model may ask for of each text.
pub(super) const CHARS: (u32, u32) = (100, 20_000);
/// The longest query and instruction, in characters.
pub(super) const MAX_QUERY: usize = 16_384;
/// The longest text, in characters.
pub(super) const MAX_TEXT: usize = 1_048_576;
/// The longest summary, in characters.
pub(super) const MAX_SUMMARY: usize = 65_536;
/// The most records that one call forgets or cites.
pub(super) const MAX_IDS: usize = 100;
/// The longest path and cursor, in characters.
pub(super) const MAX_PATH: usize = 4_096;
/// The most nodes of one page.
pub(super) const MAX_NODES: u32 = 200;

/// `memory_search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Search {
    /// What you want to know, as a question or as words.
    #[schemars(length(min = 1, max = MAX_QUERY))]
    pub(super) query: String,
    /// At most this many records; 10 where absent.
    #[schemars(range(min = 1, max = MAX_TOP_K))]
    pub(super) top_k: Option<u32>,
    /// Each text is cut after this many characters; 2000 where absent.
    #[schemars(range(min = CHARS.0, max = CHARS.1))]
    pub(super) max_chars: Option<u32>,
    /// Only records whose metadata has these members.
    pub(super) metadata_filter: Option<JsonObject>,
}

/// `memory_note`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Note {
    /// One durable fact, preference or decision, so that it makes sense without this conversation.
    #[schemars(length(min = 1, max = MAX_TEXT))]
    pub(super) text: String,
    /// A short form.
    #[schemars(length(min = 1, max = MAX_SUMMARY))]
    pub(super) summary: Option<String>,
    /// Free-form, such as {"kind": "decision"}.
    pub(super) metadata: Option<JsonObject>,
    /// Ids of the records that this one builds on.
    #[serde(default)]
    #[schemars(length(max = MAX_IDS), inner(length(min = 1, max = 2_048)))]
    pub(super) cited_records: Vec<String>,
    /// Who finds it: `company` for everybody, `agent` for you alone, `person` for the person you
    /// work for. What the memory is set to where absent.
    pub(super) visibility: Option<Visibility>,
}

/// `memory_correct`: exactly one of `text` and `instruction`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Correct {
    /// The record that is wrong, as a search gave its id.
    #[schemars(length(min = 1, max = 2_048))]
    pub(super) id: String,
    /// The whole text as it should be. Either this or `instruction`.
    #[schemars(length(min = 1, max = MAX_TEXT))]
    pub(super) text: Option<String>,
    /// With `text`: its short form.
    #[schemars(length(min = 1, max = MAX_SUMMARY))]
    pub(super) summary: Option<String>,
    /// With `text`: its metadata.
    pub(super) metadata: Option<JsonObject>,
    /// What is wrong, in words. Not every provider understands that.
    #[schemars(length(min = 1, max = MAX_QUERY))]
    pub(super) instruction: Option<String>,
}

/// `memory_forget`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Forget {
    /// The records, as a search gave their ids.
    #[schemars(length(min = 1, max = MAX_IDS), inner(length(min = 1, max = 2_048)))]
    pub(super) ids: Vec<String>,
}

/// `memory_browse`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Browse {
    /// The node whose children you want, as this tool gave its path; the root where absent.
    #[serde(default)]
    #[schemars(length(max = MAX_PATH))]
    pub(super) path: String,
    /// Where the page begins: the `nextCursor` of the page before.
    #[schemars(length(min = 1, max = MAX_PATH))]
    pub(super) cursor: Option<String>,
    /// At most this many nodes; 50 where absent.
    #[schemars(range(min = 1, max = MAX_NODES))]
    pub(super) limit: Option<u32>,
}

/// `memory_jobs`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Jobs {
    /// Only jobs with this status: `queued`, `running`, `succeeded`, `failed` or `cancelled`.
    pub(super) status: Option<JobStatus>,
    /// Where the page begins: the `nextCursor` of the page before.
    #[schemars(length(min = 1, max = MAX_PATH))]
    pub(super) cursor: Option<String>,
    /// At most this many jobs; 50 where absent.
    #[schemars(range(min = 1, max = MAX_NODES))]
    pub(super) limit: Option<u32>,
}
