//! Pieces of a page that show one thing: panels, definition lists, and what stands where there is nothing yet.

use maud::{Markup, Render, html};

/// A part of a page under a heading. `id` is the address of the part within its page.
pub(crate) fn panel(id: &str, title: &str, body: &Markup) -> Markup {
    html! {
        section.panel #(id) aria-labelledby={ (id) "-h" } {
            h2 #{ (id) "-h" } { (title) }
            (body)
        }
    }
}

/// A definition list. What is not there has no row.
#[derive(Default)]
pub(crate) struct Facts(Vec<(&'static str, Markup)>);

impl Facts {
    /// One row.
    pub(crate) fn row(mut self, name: &'static str, value: impl Render) -> Self {
        self.0.push((name, html! { (value) }));
        self
    }

    /// One row, where there is something to say.
    pub(crate) fn maybe<T: Render>(self, name: &'static str, value: Option<T>) -> Self {
        match value {
            Some(value) => self.row(name, value),
            None => self,
        }
    }
}

impl Render for Facts {
    fn render(&self) -> Markup {
        html! {
            @if !self.0.is_empty() {
                dl.facts { @for (name, value) in &self.0 { div { dt { (name) } dd { (value) } } } }
            }
        }
    }
}

/// What stands where there is nothing yet: what would be here, and how it comes to be.
pub(crate) fn empty(title: &str, next: &Markup) -> Markup {
    html! { div.empty { p.t { (title) } p { (next) } } }
}
