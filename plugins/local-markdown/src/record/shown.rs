//! A record as an answer shows it.

use memhost_sdk::types::Snippet;
use serde_json::{Map, Value};

use super::{Record, fields, instant};
use crate::text::passage_starts;

/// A hit shows a record of up to this many characters as a whole, and the best passage of a longer
/// one with the passages around it.
const WHOLE_TEXT: usize = 4_000;
/// About what a snippet takes beside its texts, in bytes.
const BESIDE: usize = 512;

/// A record ready to be shown, and cut.
#[derive(Debug)]
pub(crate) struct Shown {
    /// The record, with its whole text.
    whole: Snippet,
    /// Where the passages of a text begin that is too long to be shown as a whole.
    starts: Option<Box<[usize]>>,
}

impl Shown {
    /// Prepares a record.
    pub(crate) fn of(whole: Snippet) -> Self {
        let is_long = whole.text.len() > WHOLE_TEXT && whole.text.chars().count() > WHOLE_TEXT;
        let starts = is_long.then(|| passage_starts(&whole.text).into());
        Self { whole, starts }
    }

    /// About how much memory it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let whole = &self.whole;
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let starts = self.starts.as_ref().map_or(0, |starts| size_of_val::<[usize]>(starts));
        BESIDE
            + whole.id.len()
            + whole.text.len()
            + text(&whole.summary)
            + text(&whole.metadata)
            + starts
    }

    /// Whether its metadata have every member of a filter.
    pub(crate) fn matches(&self, filter: &Map<String, Value>) -> bool {
        let metadata: Option<Map<String, Value>> =
            self.whole.metadata.as_deref().and_then(|text| serde_json::from_str(text).ok());
        crate::index::matches(metadata.as_ref(), filter)
    }

    /// As a hit: of a long text the best passage, with the passage before and the one behind it.
    pub(crate) fn hit(&self, passage: usize) -> Snippet {
        let Some(starts) = &self.starts else { return self.whole.clone() };
        let text = around(&self.whole.text, starts, passage);
        let Snippet {
            id,
            score,
            source,
            created_at,
            updated_at,
            expires_at,
            metadata,
            summary,
            ..
        } = &self.whole;
        Snippet {
            score: *score,
            source: source.clone(),
            created_at: created_at.clone(),
            updated_at: updated_at.clone(),
            expires_at: expires_at.clone(),
            metadata: metadata.clone(),
            summary: summary.clone(),
            ..Snippet::new(id.clone(), text)
        }
    }
}

/// A record as a snippet, with its whole text, and what a person should change in its file.
pub(crate) fn snippet(id: &str, record: Record, company: &str) -> (Snippet, Vec<String>) {
    let front = record.front;
    let mut problems = Vec::new();
    let mut time = |name: &str, text: Option<&String>| {
        let time = instant(text?);
        if time.is_none() {
            let right = "write it as 2026-03-01T12:00:00Z";
            problems.push(format!("has no time in `{name}`, which is left out; {right}"));
        }
        Some(time?.to_string())
    };
    let mut snippet = Snippet {
        source: fields::source(&front.source, company),
        created_at: time("createdAt", front.created_at.as_ref()),
        updated_at: time("updatedAt", front.updated_at.as_ref()),
        expires_at: time("expiresAt", front.expires_at.as_ref()),
        metadata: front.metadata.map(|metadata| Value::Object(metadata).to_string()),
        summary: front.summary,
        ..Snippet::new(id, record.text)
    };
    problems.extend(snippet.fit(company));
    (snippet, problems)
}

fn around(text: &str, starts: &[usize], passage: usize) -> String {
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

    fn hit(text: &str, passage: usize) -> String {
        Shown::of(Snippet::new("id", text)).hit(passage).text
    }

    #[test]
    fn long_texts_are_cut_around_the_passage() {
        let text: String = (0..2_000).map(|n| format!("word{n} ")).collect();
        let middle = hit(&text, 10);
        assert!(middle.starts_with("…word540 ") && middle.ends_with(" word719…"), "{middle}");
        assert!(hit(&text, 0).starts_with("word0 "));
        assert!(hit(&text, 32).ends_with(" word1999"), "the trailing space is not cut text");
        assert_eq!(hit(&"é".repeat(5_000), 0).chars().count(), WHOLE_TEXT + 1);
        assert_eq!(hit(&"é".repeat(4_000), 0).chars().count(), WHOLE_TEXT);
    }
}
