//! Converts requests into facts.

use memhost_sdk::types::{Error, RecordWrite, Scope};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::fact::{By, Source, line, micros};
use crate::place::Kind;

/// The most metadata of one fact, in bytes of JSON: a list has to fit into one value of the
/// storage.
const MAX_METADATA: usize = 4 << 10;
/// Operation ids up to this many bytes are part of record ids as they are.
const SHORT_ID: usize = 128;

/// A checked fact of a request.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) text: String,
    pub(crate) summary: Option<String>,
    pub(crate) metadata: Option<String>,
    pub(crate) by: By,
    /// The kind of list that it goes to, if the request says so.
    pub(crate) kind: Option<Kind>,
    pub(crate) source: Option<Source>,
    /// Microseconds since 1970.
    pub(crate) created: Option<i64>,
    pub(crate) expires: Option<i64>,
}

impl Draft {
    /// Reads a write. `at` is its place in the request, with a dot, for errors.
    ///
    /// # Errors
    /// The wrong field, with the limit.
    pub(crate) fn of(
        config: &Config,
        scope: &Scope,
        at: &str,
        write: RecordWrite,
    ) -> Result<Self, Error> {
        let invalid =
            |field: &str, message: String| Err(Error::invalid(&format!("{at}{field}"), message));
        let most = config.max_characters as usize;
        for (field, text) in [("text", Some(&write.text)), ("summary", write.summary.as_ref())] {
            let length = text.map_or(0, |text| text.chars().count());
            if length > most {
                return invalid(
                    field,
                    format!(
                        "has {length} characters; at most {most} are allowed (`maxCharacters` of \
                         the binding): say it shorter"
                    ),
                );
            }
        }
        if write.text.trim().is_empty() {
            return invalid("text", "is empty; say the fact in one sentence".to_owned());
        }
        let length = write.metadata.as_ref().map_or(0, String::len);
        if length > MAX_METADATA {
            return invalid(
                "metadata",
                format!("has {length} bytes; at most {MAX_METADATA} are stored with a fact"),
            );
        }
        let members = object(&format!("{at}metadata"), write.metadata.as_deref())?;
        let kind = match members.get("scope") {
            None | Some(Value::Null) => None,
            Some(named) => match named.as_str().and_then(Kind::named) {
                Some(kind) => Some(kind),
                None => {
                    return invalid(
                        "metadata.scope",
                        format!("is {named}; `user` and `drive` are there"),
                    );
                }
            },
        };
        let by = match members.get("source") {
            None | Some(Value::Null)
                if scope.agent_id.is_some() || scope.actor_agent_id.is_some() =>
            {
                By::Ai
            }
            None | Some(Value::Null) => By::User,
            Some(Value::String(source)) if source == "ai" => By::Ai,
            Some(Value::String(source)) if source == "user" => By::User,
            Some(source) => {
                return invalid(
                    "metadata.source",
                    format!("is {source}; `ai` and `user` are there"),
                );
            }
        };
        Ok(Self {
            text: write.text,
            summary: write.summary,
            metadata: write.metadata,
            by,
            kind,
            source: write.source.map(Source::from),
            created: write.created_at.as_deref().and_then(micros),
            expires: write.expires_at.as_deref().and_then(micros),
        })
    }

    /// Whether another text is the same, except for case, blanks and a full stop.
    pub(crate) fn says(&self, text: &str) -> bool {
        plain(&self.text) == plain(text)
    }
}

fn plain(text: &str) -> String {
    let line = line(text);
    memhost_sdk::words::small(&line).trim_end_matches(['.', '!', ' ']).to_owned()
}

/// The members of a JSON object of a request.
///
/// # Errors
/// If it is not a JSON object.
pub(crate) fn object(field: &str, json: Option<&str>) -> Result<Map<String, Value>, Error> {
    let read = json.map(serde_json::from_str).transpose();
    let members = read.map_err(|error| {
        Error::invalid(field, format!("is not a JSON object: {error}; send an object"))
    })?;
    Ok(members.unwrap_or_default())
}

/// Whether metadata has every member of a filter.
pub(crate) fn matches(metadata: Option<&str>, filter: &Map<String, Value>) -> bool {
    if filter.is_empty() {
        return true;
    }
    let members = object("metadata", metadata).unwrap_or_default();
    filter.iter().all(|(name, value)| members.get(name) == Some(value))
}

/// The id of an operation's record, so that the same operation makes the same one. A later
/// `attempt` gives another id, in case the first is taken.
pub(crate) fn own_id(operation_id: &str, number: Option<usize>, attempt: u32) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut id =
        if (1..=SHORT_ID).contains(&operation_id.len()) && operation_id.chars().all(is_plain) {
            operation_id.to_owned()
        } else {
            let hash = Sha256::digest(operation_id.as_bytes());
            format!(
                "operation-{}",
                hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>()
            )
        };
    if let Some(number) = number {
        id.push_str(&format!(".{number}"));
    }
    if attempt > 0 {
        id.push_str(&format!("~{attempt}"));
    }
    id
}
