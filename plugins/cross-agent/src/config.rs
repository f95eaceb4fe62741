//! The configuration of a binding. The defaults do not depend on the text.

use memhost_sdk::types::ConfigError;
use serde::Deserialize;
use serde_json::json;

use crate::text::LANGUAGES;

/// The longest half-life, in days: a hundred years.
const MAX_HALF_LIFE: f64 = 36_500.0;
/// The largest weight of a part of relevance; only their ratio matters.
const MAX_LEG: f64 = 100.0;

/// The configuration of a binding. All of it is optional.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The stemmer: an English name such as `english` or `german`, or `none`.
    pub language: String,
    /// Days after which an item's recency is half of what it was.
    pub half_life_days: f64,
    /// The weights of the ranking.
    pub weights: Weights,
    /// The part of a captured conversation that is stored.
    pub write_back: WriteBack,
}

/// The stored part of a conversation: raw material (`capture_residue`) with turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteBack {
    /// The statements of the persons in it, each an item of its type. A conversation without one
    /// stores nothing.
    #[default]
    Items,
    /// The conversation itself, as one `task_context`.
    Exchange,
    /// Both.
    Both,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            language: "english".to_owned(),
            half_life_days: 30.0,
            weights: Weights::default(),
            write_back: WriteBack::Items,
        }
    }
}

/// The weights of the ranking: `relevance × recency factor × confidence factor`, see README.md.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Weights {
    /// The share of words in relevance, beside `meaning`. 0 to 100.
    pub words: f64,
    /// The share of meaning in relevance, beside `words`, if the binding has a model. 0 to 100.
    pub meaning: f64,
    /// The share of its score that an infinitely old item loses. 0 to 1.
    pub recency: f64,
    /// The share of its score that an item of confidence 0 loses. 0 to 1.
    pub confidence: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { words: 1.0, meaning: 1.0, recency: 0.3, confidence: 0.5 }
    }
}

impl Config {
    /// Errors about ranges and names.
    ///
    /// # Errors
    /// One error for each wrong value.
    pub fn check(&self) -> Result<(), Vec<ConfigError>> {
        let mut errors = Vec::new();
        let mut complain = |pointer: &str, message: String| {
            errors.push(ConfigError { pointer: pointer.to_owned(), message });
        };
        if !LANGUAGES.iter().any(|(name, _)| *name == self.language) {
            let known: Vec<&str> = LANGUAGES.iter().map(|(name, _)| *name).collect();
            complain(
                "/language",
                format!("is `{}`; choose one of {}", self.language, known.join(", ")),
            );
        }
        if !(self.half_life_days > 0.0 && self.half_life_days <= MAX_HALF_LIFE) {
            let days = self.half_life_days;
            complain(
                "/halfLifeDays",
                format!("is {days}; choose days above 0, at most {MAX_HALF_LIFE}"),
            );
        }
        let weights = &self.weights;
        for (name, value, most) in [
            ("words", weights.words, MAX_LEG),
            ("meaning", weights.meaning, MAX_LEG),
            ("recency", weights.recency, 1.0),
            ("confidence", weights.confidence, 1.0),
        ] {
            if !(0.0..=most).contains(&value) {
                complain(
                    &format!("/weights/{name}"),
                    format!("is {value}; choose a number from 0 to {most}"),
                );
            }
        }
        if weights.words == 0.0 {
            complain(
                "/weights/words",
                "is 0; without a model items are found by words only, so choose more than 0"
                    .to_owned(),
            );
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// The JSON Schema of [`Config`].
pub(crate) fn schema() -> String {
    let default = Config::default();
    let names: Vec<&str> = LANGUAGES.iter().map(|(name, _)| *name).collect();
    let weight = |default: f64, most: f64, purpose: &str| {
        json!({
            "type": "number", "minimum": 0, "maximum": most, "default": default,
            "description": purpose,
        })
    };
    let weights = &default.weights;
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "language": {"enum": names, "default": default.language,
                "description": "The stemmer: the language whose word forms count as one word"},
            "halfLifeDays": {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_HALF_LIFE,
                "default": default.half_life_days,
                "description": "Days after which an item's recency is half of what it was"},
            "writeBack": {"enum": ["items", "exchange", "both"], "default": "items",
                "description": "What is stored of a captured conversation: the statements in it, \
                                itself, or both"},
            "weights": {
                "type": "object",
                "additionalProperties": false,
                "description": "relevance × (1 - recency × (1 - r)) × (1 - confidence × (1 - c))",
                "properties": {
                    "words": weight(
                        weights.words, MAX_LEG, "The share of words in relevance; more than 0",
                    ),
                    "meaning": weight(
                        weights.meaning, MAX_LEG,
                        "The share of meaning in relevance, where there is a model",
                    ),
                    "recency": weight(
                        weights.recency, 1.0,
                        "What an item that is infinitely old loses of its score",
                    ),
                    "confidence": weight(
                        weights.confidence, 1.0, "What an item of confidence 0 loses of its score",
                    )
                }
            }
        }
    })
    .to_string()
}
