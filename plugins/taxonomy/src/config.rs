//! The configuration of a binding.

use std::collections::BTreeMap;

use memhost_sdk::types::ConfigError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::kind::Kind;

/// The configuration of a binding. All of it is optional.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Which reading of the taxonomy's workflow counts.
    pub workflow: Workflow,
    /// The confidence from which an item of a kind is approved without review, 0 to 1, if it
    /// differs from the workflow's.
    pub thresholds: BTreeMap<Kind, f64>,
    /// Extracted candidates below this confidence, 0 to 1, are dropped. Between it and the
    /// threshold they wait.
    pub reject_below: f64,
    /// The treatment of raw personal data.
    pub pii: Pii,
    /// How long a `todo` lives.
    pub todo: TodoLife,
    /// How a `fact` ages.
    pub fact: FactLife,
    /// How long a `hypothesis` lives.
    pub hypothesis: HypothesisLife,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workflow: Workflow::Document,
            thresholds: BTreeMap::new(),
            reject_below: 0.5,
            pii: Pii::Pending,
            todo: TodoLife::default(),
            fact: FactLife::default(),
            hypothesis: HypothesisLife::default(),
        }
    }
}

/// The taxonomy's workflow. Its document has a diagram with one threshold and a table with one for
/// each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Workflow {
    /// The diagram: approved from 0.60 for every kind, unless it holds raw personal data. What a
    /// person approves stays as the person saw it.
    Document,
    /// The table of thresholds for each kind, and nothing with raw personal data is ever approved:
    /// an approval redacts it, an edit that holds it is refused.
    Strict,
}

/// The treatment of an item with raw personal data (level 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Pii {
    /// It waits for a person, who sees the raw text.
    Pending,
    /// It is redacted before it is written, and then has level 1.
    Redact,
}

/// The life of a `todo`.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TodoLife {
    /// Days that one without a date lives, 1 to 3,650.
    pub default_days: u32,
    /// Days for which a todo is still shown after its date, 0 to 3,650.
    pub grace_days: u32,
}

impl Default for TodoLife {
    fn default() -> Self {
        Self { default_days: 30, grace_days: 3 }
    }
}

/// The ageing of a `fact`.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FactLife {
    /// Days after which an unused fact weighs half, 1 to 3,650. Each use starts them again and
    /// makes them longer.
    pub half_life_days: u32,
}

impl Default for FactLife {
    fn default() -> Self {
        Self { half_life_days: 60 }
    }
}

/// The life of a `hypothesis`.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HypothesisLife {
    /// Days until it expires unless it was said again, 0 to 3,650; 0: never.
    pub days: u32,
}

impl Default for HypothesisLife {
    fn default() -> Self {
        Self { days: 30 }
    }
}

impl Config {
    /// The threshold of a kind.
    pub(crate) fn threshold(&self, kind: Kind) -> f64 {
        self.thresholds.get(&kind).copied().unwrap_or_else(|| match self.workflow {
            Workflow::Document => APPROVED,
            Workflow::Strict => kind.threshold(),
        })
    }

    /// Errors about values out of range.
    ///
    /// # Errors
    /// One error for each value that is out of its range.
    pub fn check(&self) -> Result<(), Vec<ConfigError>> {
        let shares = self
            .thresholds
            .iter()
            .map(|(kind, value)| (format!("/thresholds/{}", kind.name()), *value));
        let shares = shares.chain([("/rejectBelow".to_owned(), self.reject_below)]);
        let shares = shares.filter(|(_, value)| !(0.0..=1.0).contains(value));
        let mut errors: Vec<ConfigError> = shares
            .map(|(pointer, value)| ConfigError {
                pointer,
                message: format!("is {value}; choose a number from 0 to 1"),
            })
            .collect();
        for (pointer, value, least) in [
            ("/todo/defaultDays", self.todo.default_days, 1),
            ("/todo/graceDays", self.todo.grace_days, 0),
            ("/fact/halfLifeDays", self.fact.half_life_days, 1),
            ("/hypothesis/days", self.hypothesis.days, 0),
        ] {
            if !(least..=MOST_DAYS).contains(&value) {
                let message =
                    format!("is {value}; choose a number of days from {least} to {MOST_DAYS}");
                errors.push(ConfigError { pointer: pointer.to_owned(), message });
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// The threshold of the document's diagram.
const APPROVED: f64 = 0.60;
/// Ten years.
const MOST_DAYS: u32 = 3_650;

/// The JSON Schema of [`Config`].
pub(crate) fn schema() -> String {
    let default = Config::default();
    let thresholds: Map<String, Value> = Kind::ALL
        .into_iter()
        .map(|kind| {
            (
                kind.name().to_owned(),
                json!({"type": "number", "minimum": 0, "maximum": 1, "default": APPROVED}),
            )
        })
        .collect();
    let days = |least: u32, default: u32, purpose: &str| {
        json!({
            "type": "integer", "minimum": least, "maximum": MOST_DAYS, "default": default,
            "description": purpose,
        })
    };
    let object = |purpose: &str, properties: Value| {
        json!({
            "type": "object", "additionalProperties": false, "description": purpose,
            "properties": properties,
        })
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "workflow": {"enum": ["document", "strict"], "default": default.workflow,
                "description": "document: approved from 0.60, what a person approves stays as it \
                                is; strict: a threshold for each kind from 0.50 to 0.85, and raw \
                                personal data is never approved"},
            "thresholds": object(
                "The confidence from which an item of a kind is approved without review",
                thresholds.into(),
            ),
            "rejectBelow": {"type": "number", "minimum": 0, "maximum": 1,
                "default": default.reject_below,
                "description": "Extracted candidates below this confidence are dropped"},
            "pii": {"enum": ["pending", "redact"], "default": default.pii,
                "description": "Whether an item with raw personal data waits for a person or is \
                                redacted at once"},
            "todo": object("How long a todo lives", json!({
                "defaultDays": days(
                    1, default.todo.default_days, "Days that one without a date lives",
                ),
                "graceDays": days(0, default.todo.grace_days,
                    "Days that one is shown after its date")})),
            "fact": object("How a fact ages", json!({
                "halfLifeDays": days(
                    1, default.fact.half_life_days, "Days until an unused fact weighs half",
                ),
            })),
            "hypothesis": object("How long a hypothesis lives", json!({
                "days": days(0, default.hypothesis.days, "Days until it expires; 0: never")})),
        }
    })
    .to_string()
}
