//! A row of claude-mem: its columns, and the ids of its session and project in a host.

use std::collections::HashMap;

use jiff::Timestamp;
use memhost_types::{JsonObject, check_id};

/// A row by its columns.
pub(super) type Row = JsonObject;
/// The rows of sessions, by `memory_session_id`.
pub(super) type Sessions = HashMap<String, Row>;

/// The longest row that is kept beside the record, in bytes of JSON; the host takes 256 KiB of
/// metadata.
pub(super) const MAX_ROW: usize = 200 << 10;
/// The longest id of a project or session, in bytes.
const MAX_ID: usize = 128;
/// The prefix of the content hash of a row that was exported from a host.
pub(super) const OURS: &str = "memhost:";

/// The table of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Observations,
    Summaries,
}

/// The type of a preference, and the concept of one in claude-mem.
pub(super) const PREFERENCE: &str = "preference";

impl Table {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Observations => "observations",
            Self::Summaries => "session_summaries",
        }
    }

    /// The table of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Observations, Self::Summaries].into_iter().find(|table| table.name() == name)
    }
}

/// The text of a column that has some.
pub(super) fn text<'a>(row: &'a Row, column: &str) -> Option<&'a str> {
    row.get(column)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

/// A column of milliseconds since 1970, as a time.
pub(super) fn time(row: &Row, column: &str) -> Option<Timestamp> {
    Timestamp::from_millisecond(row.get(column)?.as_i64()?).ok()
}

/// The session's id in its tool.
pub(super) fn session_id(row: &Row) -> String {
    let id = text(row, "content_session_id").or_else(|| text(row, "memory_session_id"));
    clean(id.unwrap_or("claude-mem"))
}

/// The tool of a session.
pub(super) fn agent_kind(row: &Row) -> String {
    clean(text(row, "platform_source").unwrap_or("claude"))
}

/// The project that a row names.
pub(super) fn project_of(row: &Row) -> String {
    clean(text(row, "merged_into_project").or_else(|| text(row, "project")).unwrap_or("claude-mem"))
}

/// An id that the host accepts: other characters become dashes, and a hash keeps different ids
/// different.
pub(super) fn clean(id: &str) -> String {
    let is_fine = |id: &str| id.len() <= MAX_ID && check_id("id", id).is_ok();
    if is_fine(id) {
        return id.to_owned();
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
    let start: String = id.chars().take(64).map(plain).collect();
    format!("{}-{}", start.trim_matches(['-', '.']), &hash(&[id])[..8])
        .trim_start_matches('-')
        .to_owned()
}

/// A hash of several texts.
pub(super) fn hash(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_such_as_the_host_accepts() {
        assert_eq!(clean("memhost"), "memhost");
        for odd in ["a/b", "", " ", "/", &"x".repeat(500), "ü/é"] {
            assert!(check_id("id", &clean(odd)).is_ok(), "{odd}: {}", clean(odd));
        }
        assert_ne!(clean("a/b"), clean("a-b"));
    }
}
