//! The form above a list. It keeps its values and works without a script.

use maud::{Markup, Render, html};

use super::filter::{Control, ListFilter, ListParams, ListQuery, binding_choices};
use super::query::QueryParams;
use super::view::View;

/// The form above a list. Each field says what it is in `data-control`, so that tests need no list
/// of their own.
pub(crate) struct FilterForm<'a, T> {
    view: &'a View,
    params: &'a QueryParams<T>,
    first: Vec<Markup>,
    more: Vec<Markup>,
    is_more: bool,
    is_open: bool,
    submit: &'static str,
}

impl<'a, F: ListFilter> FilterForm<'a, ListQuery<F>> {
    /// The form of a list's table of filters.
    pub(crate) fn of(view: &'a View, params: &'a ListParams<F>) -> Self {
        let add = |form: Self, field: &super::filter::FilterField<F>| match field.control {
            Control::Text => form.text(field.name, field.label),
            Control::Day => form.day(field.name, field.label),
            Control::Select(choices) => form.select(field.name, field.label, choices()),
            Control::Binding => form.select(field.name, field.label, binding_choices(view)),
            Control::Required(choices) => form.required(field.name, field.label, choices()),
        };
        let form =
            F::FIELDS.iter().filter(|field| !field.is_advanced).fold(Self::new(view, params), add);
        F::FIELDS.iter().filter(|field| field.is_advanced).fold(form.more(), add)
    }
}

impl<'a, T> FilterForm<'a, T> {
    /// An empty form for the page itself.
    pub(crate) fn new(view: &'a View, params: &'a QueryParams<T>) -> Self {
        Self {
            view,
            params,
            first: Vec::new(),
            more: Vec::new(),
            is_more: false,
            is_open: false,
            submit: "Filter",
        }
    }

    /// The fields that follow are folded away until one of them has a value.
    pub(crate) fn more(mut self) -> Self {
        self.is_more = true;
        self
    }

    /// The text of the button. `Filter` where this is not called.
    pub(crate) fn submit(mut self, submit: &'static str) -> Self {
        self.submit = submit;
        self
    }

    /// A field for a text that is as wide as the form.
    pub(crate) fn wide_text(self, name: &'static str, label: &str) -> Self {
        let field = html! {
            label.f.whole {
                span { (label) }
                input name=(name) value=(self.params.value(name)) data-control="text"
                    autocomplete="off";
            }
        };
        self.add(name, field)
    }

    /// A field for a text.
    pub(crate) fn text(self, name: &'static str, label: &str) -> Self {
        let field = html! {
            label.f {
                span { (label) }
                input name=(name) value=(self.params.value(name)) data-control="text"
                    autocomplete="off"
                    spellcheck="false";
            }
        };
        self.add(name, field)
    }

    /// A field for a day.
    pub(crate) fn day(self, name: &'static str, label: &str) -> Self {
        let field = html! {
            label.f {
                span { (label) }
                input type="date" name=(name) value=(self.params.value(name)) data-control="day";
            }
        };
        self.add(name, field)
    }

    /// A select of one value, or any. Choices are values and labels.
    pub(crate) fn select<V: AsRef<str>, L: Render>(
        self,
        name: &'static str,
        label: &str,
        choices: impl IntoIterator<Item = (V, L)>,
    ) -> Self {
        let field = select(name, label, self.params.value(name), true, choices);
        self.add(name, field)
    }

    /// A select that always has one value. A browser shows the first one where the address has
    /// none.
    pub(crate) fn required<V: AsRef<str>, L: Render>(
        self,
        name: &'static str,
        label: &str,
        choices: impl IntoIterator<Item = (V, L)>,
    ) -> Self {
        let field = select(name, label, self.params.value(name), false, choices);
        self.add(name, field)
    }

    fn add(mut self, name: &str, field: Markup) -> Self {
        if self.is_more {
            self.is_open |= !self.params.value(name).is_empty();
            self.more.push(field);
        } else {
            self.first.push(field);
        }
        self
    }
}

fn select<V: AsRef<str>, L: Render>(
    name: &str,
    label: &str,
    chosen: &str,
    has_any: bool,
    choices: impl IntoIterator<Item = (V, L)>,
) -> Markup {
    html! {
        label.f {
            span { (label) }
            select name=(name) data-control="select" data-submit {
                @if has_any { option value="" { "Any" } }
                @for (value, label) in choices {
                    option value=(value.as_ref()) selected[value.as_ref() == chosen] { (label) }
                }
            }
        }
    }
}

impl<T> Render for FilterForm<'_, T> {
    fn render(&self) -> Markup {
        html! {
            form.filter method="get" action=(self.view.path) role="search" aria-label="Filter"
                data-filter {
                div.fields { @for field in &self.first { (field) } }
                @if !self.more.is_empty() {
                    details.more open[self.is_open] {
                        summary { "More filters" }
                        div.fields { @for field in &self.more { (field) } }
                    }
                }
                div.actions {
                    button { (self.submit) }
                    @if self.params.is_filtered() { a.quiet href=(self.view.path) { "Clear" } }
                }
            }
        }
    }
}
