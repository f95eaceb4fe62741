//! The configuration of a binding.

use memhost_sdk::types::ConfigError;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The largest `maxFacts`. A scope's facts are one value of the storage, which has room for this
/// many of the longest facts.
const MOST_FACTS: u32 = 200;
/// The largest `maxCharacters`, for the same reason.
const MOST_CHARACTERS: u32 = 1_000;
/// The range of `tokenBudget`. With less there is no room for a heading and a fact.
const BUDGETS: (u32, u32) = (50, 100_000);

/// The configuration of a binding. All of it is optional.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The most facts of one user or one workspace.
    pub max_facts: u32,
    /// The longest fact, in characters.
    pub max_characters: u32,
    /// The most tokens of a preamble's lists.
    pub token_budget: u32,
    /// Whether a fact that exists already is not written again.
    pub detect_duplicates: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_facts: 50, max_characters: 200, token_budget: 500, detect_duplicates: false }
    }
}

impl Config {
    /// Errors about values out of range.
    ///
    /// # Errors
    /// One error for each value that is out of its range.
    pub fn check(&self) -> Result<(), Vec<ConfigError>> {
        let errors: Vec<ConfigError> = [
            ("maxFacts", self.max_facts, (1, MOST_FACTS)),
            ("maxCharacters", self.max_characters, (1, MOST_CHARACTERS)),
            ("tokenBudget", self.token_budget, BUDGETS),
        ]
        .into_iter()
        .filter(|(_, value, (least, most))| !(least..=most).contains(&value))
        .map(|(name, value, (least, most))| ConfigError {
            pointer: format!("/{name}"),
            message: format!("is {value}; choose a number from {least} to {most}"),
        })
        .collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// The JSON Schema of [`Config`].
pub(crate) fn schema() -> String {
    let default = Config::default();
    let number = |value: u32, (least, most): (u32, u32), what: &str| {
        json!({
            "type": "integer", "minimum": least, "maximum": most, "default": value,
            "description": what,
        })
    };
    let choice =
        |value: bool, what: &str| json!({"type": "boolean", "default": value, "description": what});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "maxFacts": number(
                default.max_facts, (1, MOST_FACTS), "The most facts of one user or one workspace",
            ),
            "maxCharacters": number(
                default.max_characters, (1, MOST_CHARACTERS), "The longest fact, in characters",
            ),
            "tokenBudget": number(
                default.token_budget, BUDGETS, "The most tokens of a preamble's lists",
            ),
            "detectDuplicates":
                choice(
                    default.detect_duplicates,
                    "Whether a fact that exists already is not written again",
                )
        }
    })
    .to_string()
}
