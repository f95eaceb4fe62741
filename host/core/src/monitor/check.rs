//! One health check: what was found, and what to do.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of a health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Nothing is wrong.
    Ok,
    /// It works, but needs attention.
    Warning,
    /// It does not work.
    Error,
}

/// One health check.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// The name of the check.
    pub name: Cow<'static, str>,
    /// The result.
    pub health: Health,
    /// What was found.
    pub found: String,
    /// Advice; empty if nothing is wrong.
    pub advice: String,
    /// What was found, for somebody who may not know companies, where `found` names one.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) unnamed: Option<String>,
}

impl Check {
    pub(crate) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            health: Health::Ok,
            found: found.into(),
            advice: String::new(),
            unnamed: None,
        }
    }

    pub(crate) fn warning(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            health: Health::Warning,
            found: found.into(),
            advice: advice.into(),
            unnamed: None,
        }
    }

    pub(crate) fn error(
        name: &'static str,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { health: Health::Error, ..Self::warning(name, found, advice) }
    }

    /// The same, with what is said to somebody who may not know companies.
    pub(crate) fn unnamed(self, found: impl Into<String>) -> Self {
        Self { unnamed: Some(found.into()), ..self }
    }
}
