//! What a provider does not do itself: what the host does in its place, and what it cannot promise.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::named::named;

named!(
    /// Work that the host does because the provider cannot.
    HostWork, "leftToHost" {
        /// Metadata filters of queries and lists.
        MetadataFilter = "metadata_filter",
        /// Keeping the records of agents apart.
        AgentPartition = "agent_partition",
        /// Keeping the records of subjects apart.
        SubjectPartition = "subject_partition",
        /// Keeping the records of namespaces apart.
        NamespacePartition = "namespace_partition",
    }
);

impl HostWork {
    /// The host's work, in words for people.
    pub fn about(self) -> &'static str {
        match self {
            Self::MetadataFilter => "filters by metadata",
            Self::AgentPartition => "keeps the records of agents apart",
            Self::SubjectPartition => "keeps the records of subjects apart",
            Self::NamespacePartition => "keeps the records of namespaces apart",
        }
    }
}

named!(
    /// A promise of the contract that the system behind a provider does not keep.
    Exception, "exceptions" {
        /// After an error, some records of an upsert may be written.
        AllOrNoneUpserts = "all_or_none_upserts",
        /// Written records are found some time later.
        ReadAfterWrite = "read_after_write",
        /// A list may have a record twice, or leave one out, while others write.
        ExactlyOnceLists = "exactly_once_lists",
        /// The same event may make a second record.
        IdempotentCaptures = "idempotent_captures",
    }
);

impl Exception {
    /// The possible effect, in words for people.
    pub fn about(self) -> &'static str {
        match self {
            Self::AllOrNoneUpserts => "an upsert that fails may leave some of its records",
            Self::ReadAfterWrite => "what was written or forgotten is seen some time later",
            Self::ExactlyOnceLists => "a list may repeat or miss records while others write",
            Self::IdempotentCaptures => "an event that is delivered twice may make two records",
        }
    }
}

/// The declarations of a provider. The default: it does and promises everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Declarations {
    /// The most records of one upsert; absent: 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_upsert: Option<u32>,
    /// The most records of one forget; absent: 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_forget: Option<u32>,
    /// The work that it leaves to the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_to_host: Vec<HostWork>,
    /// Which promises it does not keep.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exceptions: Vec<Exception>,
}

impl Declarations {
    /// Whether the host does this.
    pub fn leaves(&self, work: HostWork) -> bool {
        self.left_to_host.contains(&work)
    }

    /// Whether it does not promise this.
    pub fn excepts(&self, exception: Exception) -> bool {
        self.exceptions.contains(&exception)
    }

    /// The most records of one upsert.
    pub fn most_upserted(&self) -> usize {
        most(self.max_upsert)
    }

    /// The most records of one forget.
    pub fn most_forgotten(&self) -> usize {
        most(self.max_forget)
    }
}

fn most(declared: Option<u32>) -> usize {
    declared.map_or(limits::MAX_ITEMS, |most| (most as usize).clamp(1, limits::MAX_ITEMS))
}
