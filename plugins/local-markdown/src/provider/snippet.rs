//! Converts records into snippets.

use memhost_sdk::types::Snippet;
use serde_json::Value;

use crate::record::{Record, instant};
use crate::text::passage_starts;

/// A record up to this many characters is the text of a hit. Of a longer record the text is the best passage with the
/// passages around it.
const WHOLE_TEXT: usize = 4_000;

/// A record as a snippet.
pub(super) fn snippet(id: &str, record: Record, company: &str) -> Snippet {
    // A person may have written something that is not a time.
    let time = |text: Option<&String>| text.and_then(|text| instant(text)).map(|time| time.to_string());
    Snippet {
        source: record.source(company),
        created_at: time(record.front.created_at.as_ref()),
        updated_at: time(record.front.updated_at.as_ref()),
        expires_at: time(record.front.expires_at.as_ref()),
        metadata: record.front.metadata.map(|metadata| Value::Object(metadata).to_string()),
        summary: record.front.summary,
        ..Snippet::new(id, record.text)
    }
}

/// The best passage of a long text, with the passage before and the one behind it.
pub(super) fn around(text: String, passage: usize) -> String {
    if text.len() <= WHOLE_TEXT || text.chars().count() <= WHOLE_TEXT {
        return text;
    }
    let starts = passage_starts(&text);
    let start = |passage: usize| starts.get(passage).copied().unwrap_or(text.len());
    let length = |from: usize, to: usize| text[from..to].chars().count();
    let mut from = start(passage.saturating_sub(1));
    let mut to = start(passage + 2);
    if length(from, to) > WHOLE_TEXT {
        (from, to) = (start(passage), start(passage + 1));
    }
    if let Some((end, _)) = text[from..to].char_indices().nth(WHOLE_TEXT) {
        to = from + end;
    }
    let cut = |is_cut: bool| if is_cut { "…" } else { "" };
    format!("{}{}{}", cut(from > 0), text[from..to].trim_end(), cut(to < text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_around_the_passage() {
        let text: String = (0..2_000).map(|n| format!("word{n} ")).collect();
        let middle = around(text.clone(), 10);
        assert!(middle.starts_with("…word540 ") && middle.ends_with(" word719…"), "{middle}");
        assert!(around(text.clone(), 0).starts_with("word0 "));
        assert!(around(text, 32).ends_with(" word1999"), "the trailing space is not cut text");
        let long = "é".repeat(5_000);
        assert_eq!(around(long, 0).chars().count(), WHOLE_TEXT + 1);
        assert_eq!(around("é".repeat(4_000), 0).chars().count(), WHOLE_TEXT);
    }
}
