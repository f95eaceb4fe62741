//! Places: the combinations of partitions and project that decide who sees an item. Many items
//! share few places, so each place has a number and is judged once in a call.

use std::collections::HashMap;

use memhost_sdk::types::Scope;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Sight {
    /// The three partitions of the contract.
    pub(crate) agent: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) namespace: Option<String>,
    /// None: visible in the whole company.
    pub(crate) project: Option<String>,
    /// Whether every project sees it.
    pub(crate) is_global: bool,
}

/// All places, by number.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Its keys are chosen by whoever writes, so its hash has a random key.
    numbers: HashMap<Sight, u32>,
    all: Vec<Sight>,
}

impl Places {
    /// The number of a place. A new place gets a new number.
    pub(super) fn number(&mut self, place: &Sight) -> u32 {
        if let Some(number) = self.numbers.get(place) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.numbers.insert(place.clone(), number);
        self.all.push(place.clone());
        number
    }

    /// Which places a caller sees, by number.
    pub(crate) fn seen(&self, asked: &Asked<'_>) -> Vec<bool> {
        self.all.iter().map(|place| asked.sees(place)).collect()
    }

    /// Whether a caller sees a place.
    pub(crate) fn sees(&self, place: u32, asked: &Asked<'_>) -> bool {
        asked.sees(&self.all[place as usize])
    }
}

/// A caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    scope: &'a Scope,
    project: Option<&'a str>,
    /// Whether the call is a query, which stays in its project. Other calls without a project see
    /// all projects.
    is_recall: bool,
    /// Whether an item counts only if everybody can see it who sees what the scope writes.
    is_shared: bool,
}

impl<'a> Asked<'a> {
    /// A call about single records or all of them.
    pub(crate) fn looking(scope: &'a Scope) -> Self {
        Self { scope, project: scope.project_id.as_deref(), is_recall: false, is_shared: false }
    }

    /// The caller of a query. If the scope names no project, the filter may.
    pub(crate) fn recalling(scope: &'a Scope, filter: Option<&'a Map<String, Value>>) -> Self {
        let filtered = filter.and_then(|filter| filter.get("projectId")?.as_str());
        Self {
            scope,
            project: scope.project_id.as_deref().or(filtered),
            is_recall: true,
            is_shared: false,
        }
    }

    /// Everybody who sees what is written in the scope.
    pub(crate) fn sharing(scope: &'a Scope) -> Self {
        Self { is_shared: true, ..Self::recalling(scope, None) }
    }

    /// Whether the scope has no other value in a field that the item has set.
    fn sees(&self, place: &Sight) -> bool {
        let fits = |of_item: &Option<String>, of_scope: &Option<String>| {
            of_item.is_none() || of_scope.is_none() && !self.is_shared || of_item == of_scope
        };
        let in_project = match (place.project.as_deref(), self.project) {
            _ if place.is_global => true,
            (None, _) => true,
            (Some(_), None) => !self.is_recall,
            (Some(of_item), Some(asked)) => of_item == asked,
        };
        in_project
            && fits(&place.agent, &self.scope.agent_id)
            && fits(&place.subject, &self.scope.subject_id)
            && fits(&place.namespace, &self.scope.namespace)
    }
}
