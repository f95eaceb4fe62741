//! Panels, description lists and empty states.

use maud::{Markup, Render, html};

use super::format::count;
use super::links::record_link;
use super::view::View;
use memhost_types::{AgentId, RecordHandle, Scope};

/// A part of a page under a heading. `id` is the address of the part within its page.
pub(crate) fn panel(id: &str, title: &str, body: impl Render) -> Markup {
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

/// The command that creates a company's first record.
pub(crate) fn first_note(company: &str) -> Markup {
    html! { code { "memhost note --company " (company) " 'Deploys are frozen on Fridays'" } }
}

/// One of the figures of a page, with a remark.
pub(crate) fn figure(name: &str, value: impl Render, remark: impl Render) -> Markup {
    html! { div { dt { (name) } dd { (value) small { (remark) } } } }
}

/// The records that something brought, `total` in all. Links are to those that are known.
pub(crate) fn record_list(
    view: &View,
    binding: &str,
    known: &[RecordHandle],
    total: u32,
) -> Markup {
    let more = u64::from(total).saturating_sub(known.len() as u64);
    html! {
        @if !known.is_empty() {
            ul.list { @for handle in known { li { (record_link(view, binding, handle)) } } }
        }
        @if more > 0 { p.help { (count(more)) " more." } }
    }
}

/// A field of a scope: its name in an address, its label, and its value.
pub(crate) type ScopeField = (&'static str, &'static str, fn(&Scope) -> Option<&str>);

/// Every field of a scope but the company.
pub(crate) static SCOPE: [ScopeField; 7] = [
    ("agentId", "Agent", |scope| scope.agent_id.as_ref().map(AgentId::as_str)),
    ("subjectId", "Subject", |scope| scope.subject_id.as_deref()),
    ("projectId", "Project", |scope| scope.project_id.as_deref()),
    ("issueId", "Issue", |scope| scope.issue_id.as_deref()),
    ("runId", "Run", |scope| scope.run_id.as_deref()),
    ("sessionKey", "Session", |scope| scope.session_key.as_deref()),
    ("namespace", "Namespace", |scope| scope.namespace.as_deref()),
];

/// The fields of a scope that have a value.
pub(crate) fn scope_details(details: Details, scope: &Scope) -> Details {
    SCOPE.iter().fold(details, |details, &(_, label, value)| details.maybe(label, value(scope)))
}
