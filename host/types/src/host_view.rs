//! The hosts that share a database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// One of the hosts on a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostView {
    /// The id that it got when it was started.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Where the others reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_url: Option<String>,
    /// The program's version.
    pub version: String,
    /// Whether it leads: it serves what belongs to no company, such as the list of companies.
    pub is_leader: bool,
    /// How many of the 16 groups of companies it serves. The others pass requests on to it.
    pub groups: u32,
    /// Whether it takes no group and gives its own away, because it is not ready or stops.
    pub is_leaving: bool,
    /// Whether it does so and takes none, because an operator wants it.
    pub is_draining: bool,
    /// Whether it has renewed its lease in time.
    pub is_up: bool,
    /// Seconds since it was started.
    pub up_seconds: i64,
}
