//! The configuration of a binding. The default weights do not depend on the text.

use memhost_sdk::types::ConfigError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The configuration of a binding. All of it is optional.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The stemmer: an English name such as `english` or `german`, or `none`.
    pub language: Language,
    /// Whether a write waits until its file is on the disk. Without it a power failure may lose the
    /// last writes; a crash of the host never does.
    pub durable: bool,
    /// How long a change by hand may stay unseen while calls come, in milliseconds. 0: every call
    /// checks every file, up to 2,048 of them. 0 to 60,000.
    pub check_ms: u32,
    /// How results are ranked.
    pub ranking: Ranking,
}

/// The longest time that a change by hand may stay unseen, in milliseconds.
const LONGEST_CHECK: u32 = 60_000;

impl Default for Config {
    fn default() -> Self {
        Self {
            language: Language::English,
            durable: true,
            check_ms: 1_500,
            ranking: Ranking::default(),
        }
    }
}

/// The stemmers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are the documentation")]
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

const LANGUAGES: [Language; 12] = [
    Language::Danish,
    Language::Dutch,
    Language::English,
    Language::French,
    Language::German,
    Language::Italian,
    Language::Norwegian,
    Language::Portuguese,
    Language::Russian,
    Language::Spanish,
    Language::Swedish,
    Language::None,
];

/// Weights and constants of the ranking; the schema says what each is for.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Ranking {
    /// The weight of a record's words. 0 to 1.
    pub words: f32,
    /// The weight of a record's meaning, if the binding has an embedding model. 0 to 1.
    pub meaning: f32,
    /// BM25: how soon a repeated word stops counting. 0 to 10.
    pub k1: f32,
    /// BM25: how much long passages are penalized. 0 to 1.
    pub b: f32,
    /// The share that a record's other passages add to its best one. 0 to 1.
    pub whole: f32,
    /// The weight of the whole record, beside 1 for its passages. 0 to 1.
    pub record: f32,
    /// The weight of words that stand together in the question and in the record. 0 to 1.
    pub pairs: f32,
    /// The share of its neighbours' scores that a record gets. 0 to 1.
    pub neighbours: f32,
    /// The weight of the session's score, beside 1 for the record's own. 0 to 1.
    pub session: f32,
    /// The gain of a record when the question names somebody in its metadata. 0 to 1.
    pub names: f32,
}

impl Default for Ranking {
    fn default() -> Self {
        Self {
            words: 1.0,
            meaning: 0.75,
            k1: 1.2,
            b: 0.75,
            whole: 0.2,
            record: 0.7,
            pairs: 0.6,
            neighbours: 0.35,
            session: 0.3,
            names: 0.4,
        }
    }
}

impl Ranking {
    /// Whether the ranking uses vectors.
    pub(crate) fn has_meaning(&self) -> bool {
        self.meaning > 0.0
    }

    /// Name, value, largest value and purpose of each weight. Schema and check are made from this
    /// list. The smallest value is 0.
    fn weights(&self) -> [(&'static str, f32, f32, &'static str); 10] {
        [
            ("words", self.words, 1.0, "The weight of a record's words"),
            (
                "meaning",
                self.meaning,
                1.0,
                "The weight of what a record means, where the binding has a model",
            ),
            ("k1", self.k1, 10.0, "How soon a repeated word stops counting (BM25)"),
            ("b", self.b, 1.0, "How much a long passage is held against it (BM25)"),
            (
                "whole",
                self.whole,
                1.0,
                "The share that a record's other passages add to its best one",
            ),
            (
                "record",
                self.record,
                1.0,
                "The weight of the whole record, beside 1 for its passages",
            ),
            (
                "pairs",
                self.pairs,
                1.0,
                "The weight of words that stand together in the question and in the record",
            ),
            (
                "neighbours",
                self.neighbours,
                1.0,
                "The share of its neighbours' scores that a record gets",
            ),
            (
                "session",
                self.session,
                1.0,
                "The weight of the session's score, beside 1 for the record's own",
            ),
            (
                "names",
                self.names,
                1.0,
                "What a record gains when the question names somebody in its metadata",
            ),
        ]
    }
}

impl Config {
    /// Errors about values out of range.
    ///
    /// # Errors
    /// One error for each value that is out of its range.
    pub fn check(&self) -> Result<(), Vec<ConfigError>> {
        let mut errors: Vec<ConfigError> = self
            .ranking
            .weights()
            .into_iter()
            .filter(|(_, value, most, _)| !(0.0..=*most).contains(value))
            .map(|(name, value, most, _)| ConfigError {
                pointer: format!("/ranking/{name}"),
                message: format!("is {value}; choose a number from 0 to {most}"),
            })
            .collect();
        if self.check_ms > LONGEST_CHECK {
            let message =
                format!("is {}; choose a number from 0 to {LONGEST_CHECK}", self.check_ms);
            errors.push(ConfigError { pointer: "/checkMs".to_owned(), message });
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// The JSON Schema of [`Config`].
pub(crate) fn schema() -> String {
    let default = Config::default();
    let weights: Map<String, Value> = default
        .ranking
        .weights()
        .into_iter()
        .map(|(name, value, most, purpose)| {
            // Through text, because 0.3 as a double is 0.30000001192092896.
            let value: f64 = value.to_string().parse().unwrap_or_default();
            let schema = json!({
                "type": "number", "minimum": 0, "maximum": most, "default": value,
                "description": purpose,
            });
            (name.to_owned(), schema)
        })
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "language": {
                "enum": LANGUAGES,
                "default": default.language,
                "description": "The stemmer for other forms of a word; a change rebuilds the index"
            },
            "durable": {
                "type": "boolean",
                "default": default.durable,
                "description": "Whether a write waits until its file is on the disk"
            },
            "checkMs": {
                "type": "integer",
                "minimum": 0,
                "maximum": LONGEST_CHECK,
                "default": default.check_ms,
                "description": "For how many milliseconds a change by hand may stay unseen"
            },
            "ranking": {
                "type": "object",
                "additionalProperties": false,
                "description": "How results are ranked",
                "properties": weights
            }
        }
    })
    .to_string()
}
