//! A fact, as it is stored and as it is returned.

use jiff::Timestamp;
use memhost_sdk::types::{RecordId, Snippet, SourceKind, SourceRef};
use serde::{Deserialize, Serialize};

use crate::place::Place;

/// The author of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum By {
    /// A model. These facts are left out of a preamble first.
    Ai,
    /// A person.
    User,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fact {
    pub(crate) id: RecordId,
    /// Its permanent number in its list: facts are added at the end.
    pub(crate) number: u64,
    pub(crate) text: String,
    pub(crate) summary: Option<String>,
    /// A JSON object, as it was sent.
    pub(crate) metadata: Option<String>,
    pub(crate) source: Option<Source>,
    pub(crate) by: By,
    /// Microseconds since 1970.
    pub(crate) created: i64,
    pub(crate) updated: i64,
    /// Whether this provider made the id. Then a write with the same id is the same operation.
    pub(crate) has_own_id: bool,
    /// From then on it is in no answer.
    pub(crate) expires: Option<i64>,
    /// The list that it was read from.
    #[serde(skip)]
    pub(crate) place: Option<Place>,
}

/// A source without its company, which is that of the scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Source {
    /// The plan's name.
    kind: String,
    issue_id: Option<String>,
    comment_id: Option<String>,
    document_key: Option<String>,
    run_id: Option<String>,
    activity_id: Option<String>,
    external_ref: Option<String>,
}

impl From<SourceRef> for Source {
    fn from(source: SourceRef) -> Self {
        Self {
            kind: source.kind.name().to_owned(),
            issue_id: source.issue_id,
            comment_id: source.comment_id,
            document_key: source.document_key,
            run_id: source.run_id,
            activity_id: source.activity_id,
            external_ref: source.external_ref,
        }
    }
}

impl Source {
    fn into_ref(self, company: &str) -> SourceRef {
        SourceRef {
            kind: SourceKind::of_name(&self.kind),
            company_id: company.to_owned(),
            issue_id: self.issue_id,
            comment_id: self.comment_id,
            document_key: self.document_key,
            run_id: self.run_id,
            activity_id: self.activity_id,
            external_ref: self.external_ref,
        }
    }
}

impl Fact {
    /// The fact as a snippet.
    pub(crate) fn into_snippet(self, company: &str) -> Snippet {
        Snippet {
            source: self.source.map(|source| source.into_ref(company)),
            summary: self.summary,
            metadata: self.metadata,
            created_at: time(self.created),
            updated_at: time(self.updated),
            expires_at: self.expires.and_then(time),
            scope: self.place.map(|place| place.into_scope(company)),
            ..Snippet::new(self.id, self.text)
        }
    }
}

/// Microseconds since 1970, now.
pub(crate) fn now() -> i64 {
    Timestamp::now().as_microsecond()
}

/// Microseconds since 1970, of a time in RFC 3339.
pub(crate) fn micros(time: &str) -> Option<i64> {
    time.parse().ok().map(Timestamp::as_microsecond)
}

fn time(micros: i64) -> Option<String> {
    Timestamp::from_microsecond(micros).ok().map(|time| time.to_string())
}

/// A fact as one line of a list: blanks and line feeds are joined, so that it cannot look like a
/// heading.
pub(crate) fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    format!("- {}", words.join(" "))
}
