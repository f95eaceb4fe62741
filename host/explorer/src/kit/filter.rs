//! Filters: what the address asks for, the form that shows it, and addresses that ask for something else.

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use maud::{Markup, Render, html};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use super::view::{View, escape};
use memhost_http::Problem;

/// The query of the address. A field that was left empty was not asked for, as forms send it. Unknown ones are errors.
pub(crate) struct Asked<T> {
    /// What was asked for.
    pub(crate) query: T,
    pairs: Vec<(String, String)>,
}

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let pairs = pairs(parts.uri.query().unwrap_or_default());
        let wrong = |detail: String| Problem::invalid(detail);
        let uri: Uri =
            format!("/?{}", join(&pairs)).parse().map_err(|_| wrong("the address is too long".to_owned()))?;
        let query = axum::extract::Query::<T>::try_from_uri(&uri).map_err(|rejection| wrong(rejection.body_text()))?;
        Ok(Self { query: query.0, pairs })
    }
}

/// Names and values of a query or a form, without empty ones.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (decode(name), decode(value))).filter(|(_, value)| !value.trim().is_empty()).collect()
}

/// As they stand in a query or a form.
pub(super) fn join(pairs: &[(String, String)]) -> String {
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    pairs.join("&")
}

impl<T> Asked<T> {
    /// The value of a field as it was asked for; empty where it was not.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.pairs.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Whether anything was asked for beside these fields.
    pub(crate) fn is_filtered(&self) -> bool {
        self.pairs.iter().any(|(name, _)| name != "cursor")
    }

    /// The address of this page with another value of one field. A filter that changes begins at the first page.
    pub(crate) fn with(&self, view: &View, name: &str, value: Option<&str>) -> String {
        let mut pairs: Vec<_> =
            self.pairs.iter().filter(|(known, _)| known != name && known != "cursor").cloned().collect();
        pairs.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        if pairs.is_empty() { view.path.clone() } else { format!("{}?{}", view.path, join(&pairs)) }
    }
}

/// The form above a table. Its fields keep their values, and it works without a script.
pub(crate) struct Filter<'a, T> {
    view: &'a View,
    asked: &'a Asked<T>,
    first: Vec<Markup>,
    more: Vec<Markup>,
    is_more: bool,
    is_open: bool,
    does: &'static str,
}

impl<'a, T> Filter<'a, T> {
    /// An empty one, for the page itself.
    pub(crate) fn new(view: &'a View, asked: &'a Asked<T>) -> Self {
        Self { view, asked, first: Vec::new(), more: Vec::new(), is_more: false, is_open: false, does: "Filter" }
    }

    /// The fields that follow are folded away until one of them is used.
    pub(crate) fn more(mut self) -> Self {
        self.is_more = true;
        self
    }

    /// What its button says, where that is not `Filter`.
    pub(crate) fn does(mut self, does: &'static str) -> Self {
        self.does = does;
        self
    }

    /// A field for text that takes a line for itself.
    pub(crate) fn long(self, name: &'static str, label: &str) -> Self {
        let field = html! {
            label.f.whole { span { (label) } input name=(name) value=(self.asked.value(name)) autocomplete="off"; }
        };
        self.add(name, field)
    }

    fn add(mut self, name: &str, field: Markup) -> Self {
        if self.is_more {
            self.is_open |= !self.asked.value(name).is_empty();
            self.more.push(field);
        } else {
            self.first.push(field);
        }
        self
    }

    /// A field for text.
    pub(crate) fn text(self, name: &'static str, label: &str) -> Self {
        let field = html! {
            label.f { span { (label) } input name=(name) value=(self.asked.value(name)) autocomplete="off" spellcheck="false"; }
        };
        self.add(name, field)
    }

    /// A field for a day.
    pub(crate) fn day(self, name: &'static str, label: &str) -> Self {
        let field =
            html! { label.f { span { (label) } input type="date" name=(name) value=(self.asked.value(name)); } };
        self.add(name, field)
    }

    /// A choice of one, or any. Options are values and what they are called.
    pub(crate) fn choice<V: AsRef<str>, N: Render>(
        self,
        name: &'static str,
        label: &str,
        options: impl IntoIterator<Item = (V, N)>,
    ) -> Self {
        let chosen = self.asked.value(name);
        let field = html! {
            label.f {
                span { (label) }
                select name=(name) data-submit {
                    option value="" { "Any" }
                    @for (value, called) in options {
                        option value=(value.as_ref()) selected[value.as_ref() == chosen] { (called) }
                    }
                }
            }
        };
        self.add(name, field)
    }
}

impl<T> Filter<'_, T> {
    /// A choice of one that always is one: `usual` where nothing was asked for.
    pub(crate) fn pick<V: AsRef<str>, N: Render>(
        self,
        name: &'static str,
        label: &str,
        usual: &str,
        options: impl IntoIterator<Item = (V, N)>,
    ) -> Self {
        let chosen = match self.asked.value(name) {
            "" => usual,
            chosen => chosen,
        };
        let field = html! {
            label.f {
                span { (label) }
                select name=(name) data-submit {
                    @for (value, called) in options {
                        option value=(value.as_ref()) selected[value.as_ref() == chosen] { (called) }
                    }
                }
            }
        };
        self.add(name, field)
    }
}

impl<T> Render for Filter<'_, T> {
    fn render(&self) -> Markup {
        html! {
            form.filter method="get" action=(self.view.path) role="search" aria-label="Filter" data-filter {
                div.fields { @for field in &self.first { (field) } }
                @if !self.more.is_empty() {
                    details.more open[self.is_open] {
                        summary { "More filters" }
                        div.fields { @for field in &self.more { (field) } }
                    }
                }
                div.actions {
                    button { (self.does) }
                    @if self.asked.is_filtered() { a.quiet href=(self.view.path) { "Clear" } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_empty_was_not_asked_for_and_the_rest_comes_back() {
        let found = pairs("agentId=a+b%26c&issueId=&outcome=+&x=1=2");
        assert_eq!(found, [("agentId".to_owned(), "a b&c".to_owned()), ("x".to_owned(), "1=2".to_owned())]);
        assert_eq!(pairs(&join(&found)), found);
    }
}
