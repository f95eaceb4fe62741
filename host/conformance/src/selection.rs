//! The rules that a check tests.

use super::rule::{Mode, Rule};
use super::{CheckError, rules};

/// The rules that are tested.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Those of this mode and below.
    pub mode: Mode,
    /// Only these; empty: all.
    pub rules: Vec<String>,
}

impl Selection {
    /// The rules, in test order.
    pub(super) fn rules(&self) -> Result<Vec<&'static Rule>, CheckError> {
        if let Some(id) = self.rules.iter().find(|id| !rules::all().any(|rule| rule.id == **id)) {
            return Err(CheckError::NoRule { id: id.clone() });
        }
        let is_asked = |rule: &&Rule| match self.rules.as_slice() {
            [] => rule.mode <= self.mode,
            named => named.iter().any(|id| id == rule.id),
        };
        Ok(rules::all().filter(is_asked).collect())
    }
}
