//! Names of files and peers, made of what the host gives. OpenViking writes tags in small letters
//! and takes few signs.

use memhost_sdk::remote::{partition_name, partition_of, plain};
use memhost_sdk::types::Scope;

/// The directory of what this provider writes.
const OWN: &str = "memories/memhost/";
/// The longest name of a peer, so that paths below it can be ids of records.
const LONGEST_PEER: usize = 200;
/// The longest name of a file that every file system takes.
const LONGEST_FILE: usize = 200;

/// The file of a record that is written with this key; a long name is a path.
pub(crate) fn file(key: &str) -> String {
    let name = plain(key);
    let parts: Vec<_> = name.as_bytes().chunks(LONGEST_FILE).map(String::from_utf8_lossy).collect();
    format!("{OWN}{}.md", parts.join("/"))
}

/// Whether a file is one that this provider writes, with a tag.
pub(crate) fn is_own(id: &str) -> bool {
    id.starts_with(OWN)
}

/// Whether a text can be the id of a record: a path below a user's memories or peers, that leads
/// nowhere else.
pub(crate) fn is_id(id: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.');
    let signs = |c: char| c.is_control() || matches!(c, '\\' | '?' | '#' | '%' | '*');
    (id.starts_with("memories/") || id.starts_with("peers/"))
        && id.ends_with(".md")
        && id.split('/').all(is_plain)
        && !id.contains(signs)
}

/// The id of a record at a URI, which is its path below the user.
pub(crate) fn id_of(uri: &str) -> Option<&str> {
    let (_, id) = uri.strip_prefix("viking://user/")?.split_once('/')?;
    is_id(id).then_some(id)
}

/// The peer whose memories are those of a partition: OpenViking merges what it extracts with what
/// it has of that peer, and with nothing of others. None where the names are too long.
pub(crate) fn peer(scope: &Scope) -> Option<String> {
    Some(partition_name(scope)).filter(|name| name.len() <= LONGEST_PEER)
}

/// The partition whose memories are at this path.
pub(crate) fn partition(id: &str) -> Option<Scope> {
    partition_of(id.strip_prefix("peers/")?.split_once('/')?.0)
}
