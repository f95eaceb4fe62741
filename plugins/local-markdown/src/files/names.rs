//! Names for new files: `2026/03/2026-03-01-the-text-begins-1f2e3d4c5b6a7988.md`.
//!
//! A folder a month keeps them in an order that people expect, and few enough folders to look at
//! all of them often. The last part is a hash of the id, so that an id never becomes a path.

use crate::hash::hash;
use crate::text::words;

/// A folder that has this many files gets a successor, so that a file manager can still show it.
pub(crate) const FOLDER_FILES: usize = 2_000;
const SLUG_BYTES: usize = 40;

/// A path that `is_taken` does not know, in a folder that has room by `folder_size`.
pub(crate) fn new_path(
    at: jiff::Timestamp,
    text: &str,
    id: &str,
    folder_size: impl Fn(&str) -> usize,
    is_taken: impl Fn(&str) -> bool,
) -> String {
    let date = jiff::tz::Offset::UTC.to_datetime(at).date();
    let month = format!("{:04}/{:02}", date.year(), date.month());
    let mut folder = month.clone();
    let mut number = 1;
    while folder_size(&folder) >= FOLDER_FILES {
        number += 1;
        folder = format!("{month}.{number}");
    }
    let slug = slug(text);
    // Two ids may have the same hash, also on purpose.
    let mut salt = 0_u32;
    loop {
        let hash = hash(&salt.to_le_bytes(), id.as_bytes());
        let path = format!("{folder}/{date}-{slug}-{hash:016x}.md");
        if !is_taken(&path) {
            return path;
        }
        salt += 1;
    }
}

/// The name that a file of ours has for another text, in the same folder. None where it has it
/// already, or where a person has named the file.
pub(crate) fn renamed(path: &str, text: &str) -> Option<String> {
    let (before, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (date, rest) = name.split_at_checked("2026-03-01".len())?;
    let (rest, hash) = rest.strip_suffix(".md")?.rsplit_once('-')?;
    let is_date = date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let slug = slug(text);
    if !is_date || !is_hash || rest.strip_prefix('-')? == slug {
        return None;
    }
    let name = format!("{date}-{slug}-{hash}.md");
    Some(if before.is_empty() { name } else { format!("{before}/{name}") })
}

/// The first words, shortened to what a file name can hold on every system.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    let begin = &text[..text.floor_char_boundary(1_000)];
    for word in words(begin).take(8) {
        let word: String = word.text.chars().filter(char::is_ascii_alphanumeric).collect();
        if word.is_empty() || slug.len() + word.len() > SLUG_BYTES {
            continue;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word);
    }
    if slug.is_empty() { "note".to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_and_stay_in_the_directory() {
        let at = "2026-03-01T09:30:15Z".parse().unwrap();
        let name = |text: &str, id: &str| new_path(at, text, id, |_| 0, |_| false);
        let usual = name("The launch, at last: ../../etc", "../../a");
        assert!(usual.starts_with("2026/03/2026-03-01-the-launch-at-last-etc-"), "{usual}");
        assert!(name("標識", "x/../y").starts_with("2026/03/2026-03-01-note-"));
        assert_ne!(name("same", "a"), name("same", "b"));
        let taken = name("same", "a");
        assert_ne!(new_path(at, "same", "a", |_| 0, |path| path == taken), taken);
        let other = renamed(&usual, "Another beginning").unwrap();
        assert!(other.starts_with("2026/03/2026-03-01-another-beginning-"), "{other}");
        assert_eq!(other[other.len() - 20..], usual[usual.len() - 20..], "the id stays");
        assert_eq!(renamed(&usual, "The launch, at last: ../../etc!"), None);
        for of_a_person in ["notes/launch.md", "2026-03-01-launch.md", "launch-1f2e3d4c5b6a7988.md"]
        {
            assert_eq!(renamed(of_a_person, "Another beginning"), None, "{of_a_person}");
        }
        let full = |folder: &str| if folder == "2026/03" { FOLDER_FILES } else { 0 };
        assert!(new_path(at, "x", "a", full, |_| false).starts_with("2026/03.2/"));
    }
}
