//! An answer of the host: its JSON as it came, which programs get, and its type, of which what
//! people see is made. A field that is renamed does not compile here.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{CliError, Result};
use memhost_core::{
    AdmittedPlugin, AskedView, CostEventPage, Evaluation, EvaluationReport, GrantsView, Page,
    PluginView, ResolutionStep, Sums, SumsRow,
};
use memhost_http::api::{BriefResolved, CompaniesView, Items};
use memhost_types::{
    Activity, ActivityPage, CompanyId, ContextBundle, CostEvent, Delivery, ForgetOutcome,
    ForgetResponse, ForgottenAt, ForgottenScope, HookReceipt, ListPage, Operation, OperationPage,
    OutgoingReport, OutgoingRow, Snippet,
};

/// An answer of the host.
pub(super) struct Answer<T> {
    json: Value,
    of: PhantomData<fn() -> T>,
}

impl<T> Answer<T> {
    pub(super) fn new(json: Value) -> Self {
        Self { json, of: PhantomData }
    }

    /// The JSON as it came; null where the host answered nothing.
    pub(super) fn json(&self) -> &Value {
        &self.json
    }

    pub(super) fn into_json(self) -> Value {
        self.json
    }
}

impl<T: DeserializeOwned> Answer<T> {
    /// The answer as its type.
    ///
    /// # Errors
    /// If the host is of a version that answers something else.
    pub(super) fn read(&self) -> Result<T> {
        read(&self.json)
    }
}

impl<T: List> Answer<T> {
    /// The first item of the list that fits.
    ///
    /// # Errors
    /// If the host is of a version that answers something else.
    pub(super) fn find(self, fits: impl Fn(&T::Item) -> bool) -> Result<Option<Answer<T::Item>>> {
        for item in self.items() {
            if fits(&item.read()?) {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// Each item of the list.
    pub(super) fn items(self) -> Vec<Answer<T::Item>> {
        match self.json {
            Value::Object(mut members) => match members.remove(T::ITEMS) {
                Some(Value::Array(items)) => items.into_iter().map(Answer::new).collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

/// JSON of the host as its type.
///
/// # Errors
/// If the host is of a version that answers something else.
pub(super) fn read<T: DeserializeOwned>(json: &Value) -> Result<T> {
    serde_path_to_error::deserialize(json).map_err(|error| {
        CliError::Host(format!(
            "this version of memhost cannot read the host's answer: {}: {}; use the version of the \
             host, or print the answer with `-o json`",
            error.path(),
            error.inner()
        ))
    })
}

/// An answer with a list, of which JSON lines have one item each.
pub(super) trait List: DeserializeOwned {
    type Item: DeserializeOwned;
    /// The list's name in JSON.
    const ITEMS: &'static str;
}

/// The lists of answers: the type, its field and the type of an item.
macro_rules! lists {
    ($($list:ident $(<$of:ident>)?, $items:ident, $item:ty;)+) => {$(
        impl $(<$of: DeserializeOwned>)? List for $list $(<$of>)? {
            type Item = $item;
            const ITEMS: &'static str = {
                // The name in JSON is that of the field.
                let _: fn(&Self) -> &Vec<$item> = |list| &list.$items;
                stringify!($items)
            };
        }
    )+};
}

lists! {
    Page<T>, items, T;
    Items<T>, items, T;
    ActivityPage, items, Activity;
    CompaniesView, items, CompanyId;
    CostEventPage, items, CostEvent;
    ListPage, items, Snippet;
    OperationPage, items, Operation;
    ContextBundle, snippets, Snippet;
    ForgetResponse, outcomes, ForgetOutcome;
    ForgottenScope, bindings, ForgottenAt;
    EvaluationReport, bindings, Evaluation;
    HookReceipt, deliveries, Delivery;
    GrantsView, asked, AskedView;
    BriefResolved, steps, ResolutionStep;
    PluginView, admitted, AdmittedPlugin;
    Sums, rows, SumsRow;
    OutgoingReport, items, OutgoingRow;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_of_another_version_is_told_by_its_field() {
        let page = Answer::<Page<CompanyId>>::new(json!({ "items": ["acme", 7] }));
        let error = page.read().unwrap_err().to_string();
        assert!(error.contains("items[1]: invalid type: integer `7`"), "{error}");
        let first = page.items().remove(0);
        assert_eq!(first.read().unwrap().to_string(), "acme");
    }
}
