//! Panels, description lists and empty states.

use maud::{Markup, Render, html};

use memhost_types::Scope;

/// A part of a page under a heading. `id` is the address of the part within its page.
pub(crate) fn panel(id: &str, title: &str, body: &Markup) -> Markup {
    html! {
        section.panel #(id) aria-labelledby={ (id) "-h" } {
            h2 #{ (id) "-h" } { (title) }
            (body)
        }
    }
}

/// A description list. An absent value has no row.
#[derive(Default)]
pub(crate) struct Details(Vec<(&'static str, Markup)>);

impl Details {
    /// One row.
    pub(crate) fn row(mut self, name: &'static str, value: impl Render) -> Self {
        self.0.push((name, html! { (value) }));
        self
    }

    /// One row, if there is a value.
    pub(crate) fn maybe<T: Render>(self, name: &'static str, value: Option<T>) -> Self {
        match value {
            Some(value) => self.row(name, value),
            None => self,
        }
    }
}

impl Render for Details {
    fn render(&self) -> Markup {
        html! {
            @if !self.0.is_empty() {
                dl.details {
                    @for (name, value) in &self.0 { div { dt { (name) } dd { (value) } } }
                }
            }
        }
    }
}

/// An empty state: its title, and how to get the first item.
pub(crate) fn empty(title: &str, next: &Markup) -> Markup {
    html! { div.empty { p.t { (title) } p { (next) } } }
}

/// The fields of a scope.
pub(crate) fn scope_details(details: Details, scope: &Scope) -> Details {
    details
        .maybe("Agent", scope.agent_id.as_ref().map(ToString::to_string))
        .maybe("Project", scope.project_id.as_ref())
        .maybe("Issue", scope.issue_id.as_ref())
        .maybe("Run", scope.run_id.as_ref())
        .maybe("Subject", scope.subject_id.as_ref())
        .maybe("Session", scope.session_key.as_ref())
        .maybe("Namespace", scope.namespace.as_ref())
}
