//! The metadata of a record: at most 20 values of 256 characters, of few different ones. The tag is
//! cut into some of them.

use memhost_sdk::remote::Tag;
use serde_json::{Map, Value, json};

/// The key of a record, which the memory resource must index.
pub(crate) const KEY: &str = "memhost_key";
/// The beginning of the names of the tag's pieces.
const PIECE: &str = "memhost_tag_";
/// The most pieces, and the longest one, in characters.
const PIECES: usize = 13;
const LONGEST: usize = 256;
/// The most values of a record's own metadata.
const OWN: usize = 6;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Whether AgentCore can keep a text as a value.
pub(crate) fn fits(text: &str) -> bool {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || " ._:/=+@-".contains(c);
    (1..=LONGEST).contains(&text.len()) && text.chars().all(is_kept)
}

/// The metadata of a record. `None` if the tag is too long for it. `indexed` are the members that
/// can be filtered by.
pub(crate) fn write(key: Option<&str>, tag: &Tag, indexed: &[String]) -> Option<Value> {
    let mut all = Map::new();
    let mut put = |name: String, value: &str| all.insert(name, json!({"stringValue": value}));
    key.map(|key| put(KEY.to_owned(), key));
    let text = encoded(tag.compact().to_string().as_bytes());
    // The first one says how many there are: those of an older, longer tag may be there, too.
    let pieces: Vec<&str> = (0..text.len())
        .step_by(LONGEST - 3)
        .map(|at| &text[at..text.len().min(at + LONGEST - 3)])
        .collect();
    if pieces.len() > PIECES {
        return None;
    }
    for (number, piece) in pieces.iter().enumerate() {
        put(format!("{PIECE}{number}"), &format!("{:02}:{piece}", pieces.len()));
    }
    let own = tag.texts().into_iter().filter(|(name, text)| indexed.contains(name) && fits(text));
    own.take(OWN).for_each(|(name, text)| drop(put(name, &text)));
    Some(all.into())
}

/// The key and the tag of a record; no tag where it was not written by this provider.
pub(crate) fn read(metadata: Option<&Map<String, Value>>) -> (Option<String>, Option<Tag>) {
    let text = |name: &str| metadata?.get(name)?["stringValue"].as_str();
    let tag = || {
        let count: usize = text(&format!("{PIECE}0"))?.split_once(':')?.0.parse().ok()?;
        let piece = |number: usize| Some(text(&format!("{PIECE}{number}"))?.split_once(':')?.1);
        let whole: String = (0..count.min(PIECES)).map(piece).collect::<Option<_>>()?;
        serde_json::from_slice(&decoded(&whole)?).ok()
    };
    (text(KEY).map(str::to_owned), tag())
}

/// Base64 without padding.
fn encoded(bytes: &[u8]) -> String {
    let digits = bytes.chunks(3).flat_map(|chunk| {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        (0..=chunk.len()).map(move |at| char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]))
    });
    digits.collect()
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(text.len() * 3 / 4), 0_u32, 0);
    for digit in text.bytes() {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        (bits, held) = ((bits << 6 | u32::try_from(value).ok()?) & 0xFFFF, held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xFF) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use memhost_sdk::types::Scope;

    use super::*;

    #[test]
    fn a_tag_is_read_as_it_was_written() {
        for length in [0, 1, 2, 3, 700] {
            let metadata =
                Some(json!({"topic": "gate", "n": 1.5, "long": "é".repeat(length)}).to_string());
            let tag = Tag { metadata, scope: Some(Scope::company("acme")), ..Tag::default() };
            let written = write(Some("op-1"), &tag, &["topic".to_owned()]).unwrap();
            let members = written.as_object().unwrap();
            assert!(members.len() <= 20 && members["topic"]["stringValue"] == "gate");
            assert!(
                members.values().all(|value| fits(value["stringValue"].as_str().unwrap())),
                "{written}"
            );
            let mut longer =
                write(None, &Tag { summary: Some("x".repeat(1_500)), ..Tag::default() }, &[])
                    .unwrap();
            longer.as_object_mut().unwrap().extend(members.clone());
            assert_eq!(read(longer.as_object()), (Some("op-1".to_owned()), Some(tag)));
        }
        assert!(
            write(None, &Tag { summary: Some("x".repeat(3_000)), ..Tag::default() }, &[]).is_none()
        );
        assert_eq!(read(None), (None, None));
        assert!(!fits("") && !fits("a\"b") && fits("a b"));
    }
}
