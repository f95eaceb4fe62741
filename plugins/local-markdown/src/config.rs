//! What a binding may set. Every weight has a default that knows nothing of the text.

use memhost_sdk::types::ConfigError;
use serde::Deserialize;

/// The configuration of a binding. All of it is optional.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Which stemmer: an English name such as `english` or `german`, or `none`.
    pub language: Language,
    /// Whether agents of the company see each other's records.
    pub shared_across_agents: bool,
    /// Whether a write waits until its file is on the disk. Without it a power failure may lose the last writes; a
    /// crash of the host never does.
    pub durable: bool,
    /// How results are ranked.
    pub ranking: Ranking,
}

impl Default for Config {
    fn default() -> Self {
        Self { language: Language::English, shared_across_agents: false, durable: true, ranking: Ranking::default() }
    }
}

/// The stemmers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Language {
    Danish,
    Dutch,
    English,
    French,
    German,
    Italian,
    Norwegian,
    Portuguese,
    Russian,
    Spanish,
    Swedish,
    None,
}

/// Weights and constants of the ranking; `README.md` says what each is for.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Ranking {
    /// BM25: how soon a repeated word stops counting.
    pub k1: f32,
    /// BM25: how much a long passage is held against it, 0 to 1.
    pub b: f32,
    /// The share of its neighbours' scores that a record gets.
    pub neighbours: f32,
    /// The weight of the session's score, beside 1 for the record's own.
    pub session: f32,
    /// What a record gains when the question names its author or another short metadata value.
    pub actor: f32,
}

impl Default for Ranking {
    fn default() -> Self {
        Self { k1: 1.2, b: 0.75, neighbours: 0.3, session: 0.25, actor: 0.15 }
    }
}

/// The JSON Schema of [`Config`].
pub(crate) const SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "language": {"enum": ["danish", "dutch", "english", "french", "german", "italian", "norwegian", "portuguese", "russian", "spanish", "swedish", "none"], "default": "english", "description": "Which stemmer"},
    "sharedAcrossAgents": {"type": "boolean", "default": false, "description": "Whether agents of the company see each other's records"},
    "durable": {"type": "boolean", "default": true, "description": "Whether a write waits until its file is on the disk"},
    "ranking": {"type": "object", "additionalProperties": false, "properties": {
      "k1": {"type": "number", "minimum": 0, "maximum": 10, "default": 1.2},
      "b": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.75},
      "neighbours": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.3},
      "session": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.25},
      "actor": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.15}
    }}
  }
}"#;

impl Config {
    /// Complaints about ranges.
    ///
    /// # Errors
    /// One complaint for each value that is out of its range.
    pub fn check(&self) -> Result<(), Vec<ConfigError>> {
        let ranking = &self.ranking;
        let complaints: Vec<ConfigError> = [
            ("k1", ranking.k1, 10.0),
            ("b", ranking.b, 1.0),
            ("neighbours", ranking.neighbours, 1.0),
            ("session", ranking.session, 1.0),
            ("actor", ranking.actor, 1.0),
        ]
        .into_iter()
        .filter(|(_, value, max)| !(0.0..=*max).contains(value))
        .map(|(name, value, max)| ConfigError {
            pointer: format!("/ranking/{name}"),
            message: format!("is {value}; 0 to {max} is allowed"),
        })
        .collect();
        if complaints.is_empty() { Ok(()) } else { Err(complaints) }
    }
}
