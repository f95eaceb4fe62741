//! What the host accepts in a record of an answer. Records come from files that people edit, and
//! from services. One odd record must not make the host refuse an answer with others.

use serde_json::Value;

use crate::remote::utc;
use crate::types::{Scope, Score, Snippet, SourceRef};

/// The longest text of a record, in bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 20;
/// The longest summary, in bytes.
const MAX_SUMMARY_BYTES: usize = 64 << 10;
/// The largest metadata, in bytes of JSON, and how deep they may be nested.
const MAX_METADATA_BYTES: usize = 256 << 10;
const MAX_METADATA_DEPTH: usize = 64;
/// The longest id, and the longest field of a source or a scope, in bytes.
const MAX_NAME_BYTES: usize = 512;

/// Whether the host accepts a record of this id: 1 to 512 bytes without control characters.
#[must_use]
pub fn is_record_id(id: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&id.len()) && !id.chars().any(char::is_control)
}

impl Snippet {
    /// Cuts or takes out what the host would refuse in an answer to this company, and answers what
    /// that was, such as `has a summary of more than 64 KiB, …`. The id stays: see
    /// [`is_record_id`].
    ///
    /// ```
    /// use memhost_sdk::types::Snippet;
    ///
    /// let mut snippet = Snippet::new("note", "The gate is red");
    /// snippet.created_at = Some("yesterday".to_owned());
    /// let problems = snippet.fit("company");
    /// assert!(problems[0].contains("created-at") && snippet.created_at.is_none());
    /// assert!(snippet.fit("company").is_empty());
    /// ```
    #[must_use = "say in the log what is left out"]
    pub fn fit(&mut self, company: &str) -> Vec<String> {
        let mut problems = Vec::new();
        if cut(&mut self.text, MAX_TEXT_BYTES) {
            problems.push("has more than 1 MiB of text, whose end is left out; split it".into());
        }
        if self.summary.as_mut().is_some_and(|summary| cut(summary, MAX_SUMMARY_BYTES)) {
            problems.push(
                "has a summary of more than 64 KiB, whose end is left out; shorten it".into(),
            );
        }
        if self.metadata.as_deref().is_some_and(|metadata| !is_metadata(metadata)) {
            self.metadata = None;
            problems.push(
                "has metadata that are left out, because they are no JSON object of at most 256 \
                 KiB and 64 levels; make them smaller"
                    .into(),
            );
        }
        let times = [
            ("created-at", &mut self.created_at),
            ("updated-at", &mut self.updated_at),
            ("expires-at", &mut self.expires_at),
        ];
        for (name, time) in times {
            if time.as_deref().is_some_and(|time| !is_time(time)) {
                *time = None;
                problems.push(format!("has no time as `{name}`, which is left out; correct it"));
            }
        }
        let is_foreign = |of: &String| of != company;
        if self.source.as_ref().is_some_and(|source| is_foreign(&source.company_id)) {
            self.source = None;
            problems.push("has a source of another company, which is left out; remove it".into());
        }
        if self.source.as_ref().is_some_and(has_long_field_of_source) {
            self.source = None;
            problems.push("has a source of more than 512 bytes, which is left out".into());
        }
        if let Some(scope) = &mut self.scope
            && is_foreign(&scope.company_id)
        {
            // The host asked for records of its company only, and of which agent it is stays.
            company.clone_into(&mut scope.company_id);
            problems.push("has a scope of another company, which is taken for this one".into());
        }
        if self.scope.as_ref().is_some_and(has_long_field_of_scope) {
            self.scope = None;
            problems.push("has a scope of more than 512 bytes, which is left out".into());
        }
        if let Score::Similarity(score) | Score::Rank(score) = &mut self.score
            && !(0.0..=1.0).contains(score)
        {
            *score = if score.is_nan() { 0.0 } else { score.clamp(0.0, 1.0) };
        }
        problems
    }
}

/// Cuts a text to so many bytes, and answers whether it was longer.
fn cut(text: &mut String, most: usize) -> bool {
    let is_long = text.len() > most;
    if is_long {
        text.truncate(text.floor_char_boundary(most));
    }
    is_long
}

/// Whether it is a day that there is, with a time and an offset.
fn is_time(time: &str) -> bool {
    let (day, offset) = (time.get(..10), time.get(19..).unwrap_or_default());
    let in_utc = time.get(..19).and_then(|local| utc(&format!("{local}Z")));
    utc(time).is_some()
        && offset.contains(['Z', 'z', '+', '-'])
        && in_utc.as_deref().and_then(|time| time.get(..10)) == day
}

fn is_metadata(metadata: &str) -> bool {
    metadata.len() <= MAX_METADATA_BYTES
        && serde_json::from_str::<Value>(metadata)
            .is_ok_and(|read| read.is_object() && !is_deeper(&read, MAX_METADATA_DEPTH))
}

fn is_deeper(value: &Value, most: usize) -> bool {
    let below = |value: &Value| is_deeper(value, most - 1);
    match value {
        Value::Array(items) => most == 0 || items.iter().any(below),
        Value::Object(members) => most == 0 || members.values().any(below),
        _ => false,
    }
}

fn is_long(text: Option<&String>) -> bool {
    text.is_some_and(|text| text.len() > MAX_NAME_BYTES)
}

fn has_long_field_of_source(source: &SourceRef) -> bool {
    [
        &source.issue_id,
        &source.comment_id,
        &source.document_key,
        &source.run_id,
        &source.activity_id,
        &source.external_ref,
    ]
    .into_iter()
    .any(|text| is_long(text.as_ref()))
}

fn has_long_field_of_scope(scope: &Scope) -> bool {
    [
        &scope.agent_id,
        &scope.actor_agent_id,
        &scope.project_id,
        &scope.issue_id,
        &scope.run_id,
        &scope.subject_id,
        &scope.session_key,
        &scope.namespace,
    ]
    .into_iter()
    .any(|text| is_long(text.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_would_refuse_is_taken_out_and_named() {
        let deep = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        let mut fitted = Snippet {
            score: Score::Rank(f64::NAN),
            summary: Some("é".repeat(40_000)),
            metadata: Some(deep(65)),
            updated_at: Some("2026-02-30".to_owned()),
            source: Some(SourceRef { company_id: "other".to_owned(), ..crate::testing::source() }),
            scope: Some(Scope { agent_id: Some("ada".to_owned()), ..Scope::company("other") }),
            ..Snippet::new("id", "x".repeat(MAX_TEXT_BYTES + 1))
        };
        assert_eq!(fitted.fit("company").len(), 6);
        assert_eq!(fitted.text.len(), MAX_TEXT_BYTES);
        assert_eq!(fitted.summary.as_deref().map(str::len), Some(MAX_SUMMARY_BYTES));
        assert_eq!((&fitted.metadata, &fitted.updated_at, &fitted.source), (&None, &None, &None));
        assert_eq!(fitted.scope.as_ref().and_then(|scope| scope.agent_id.as_deref()), Some("ada"));
        assert!(matches!(fitted.score, Score::Rank(score) if score == 0.0));
        assert!(fitted.fit("company").is_empty());
        let mut sound = Snippet {
            metadata: Some(deep(64)),
            created_at: Some("2026-03-01T12:00:00.5+02:00".to_owned()),
            ..Snippet::new("id", "text")
        };
        assert!(sound.fit("company").is_empty());
        for time in ["", "2026-02-30T00:00:00Z", "2026-03-01T00:00:00", "2026-03-01", "é"] {
            assert!(!is_time(time), "{time}");
        }
        for id in ["", "a\nb", "\u{9b}", &"x".repeat(513)] {
            assert!(!is_record_id(id), "{id:?}");
        }
        assert!(is_record_id("file:Übung 標.md"));
    }
}
