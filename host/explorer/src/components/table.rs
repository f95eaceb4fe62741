//! Tables and their pagination.

use maud::{Markup, Render, html};

use super::query::QueryParams;
use super::view::View;

/// The number of rows on one page of a list.
pub(crate) const PAGE_SIZE: Option<u32> = Some(50);

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    class: &'static str,
}

impl Column {
    /// Text, at the left.
    pub(crate) const fn text(name: &'static str) -> Self {
        Self { name, class: "" }
    }

    /// A number, at the right.
    pub(crate) const fn number(name: &'static str) -> Self {
        Self { name, class: "n" }
    }

    /// Shown on wide screens only. The page of the row must have the value, too.
    pub(crate) const fn wide(self) -> Self {
        Self { name: self.name, class: if self.class.is_empty() { "w" } else { "n w" } }
    }

    /// Takes the remaining width. Long text is cut.
    pub(crate) const fn long(self) -> Self {
        Self { name: self.name, class: "l" }
    }
}

/// A row.
#[derive(Default)]
pub(crate) struct Row {
    key: Option<String>,
    href: Option<String>,
    cells: Vec<Markup>,
}

impl Row {
    /// A row that is a link as a whole.
    pub(crate) fn to(href: impl Into<String>) -> Self {
        Self { href: Some(href.into()), ..Self::default() }
    }

    /// A row without a link.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The key of the row, for tests and live updates.
    #[allow(clippy::needless_pass_by_value, reason = "an id, a digest or a text: all are written by value")]
    pub(crate) fn key(mut self, key: impl ToString) -> Self {
        self.key = Some(key.to_string());
        self
    }

    /// The next cell.
    pub(crate) fn cell(mut self, value: impl Render) -> Self {
        self.cells.push(html! { (value) });
        self
    }

    /// The next cell, or a dash.
    pub(crate) fn maybe<T: Render>(self, value: Option<T>) -> Self {
        match value {
            Some(value) => self.cell(value),
            None => self.cell(html! { span.none { "–" } }),
        }
    }
}

/// A table. Screen readers read `caption`.
pub(crate) fn table(caption: &str, columns: &[Column], rows: impl IntoIterator<Item = Row>) -> Markup {
    let rows: Vec<Row> = rows.into_iter().collect();
    // A table that is wider than the screen must be scrollable by keys. Without links it needs its own focus.
    let is_still = rows.iter().all(|row| row.href.is_none());
    html! {
        div.scroll tabindex=[is_still.then_some("0")] role=[is_still.then_some("region")] aria-label=[is_still.then_some(caption)] {
            table {
                caption.vh { (caption) }
                thead { tr { @for column in columns { th scope="col" class=[some(column.class)] { (column.name) } } } }
                tbody {
                    @for row in &rows {
                        tr data-key=[&row.key] {
                            @for (index, (cell, column)) in row.cells.iter().zip(columns).enumerate() {
                                @match (&row.href, index) {
                                    (Some(href), 0) => th scope="row" class=[some(column.class)] {
                                        a.row href=(href) { (cell) }
                                    },
                                    _ => td class=[some(column.class)] { (cell) },
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn some(class: &str) -> Option<&str> {
    (!class.is_empty()).then_some(class)
}

/// Links to the next and the first page. `name` is the plural of the rows, such as `operations`.
pub(crate) fn pager<T>(view: &View, params: &QueryParams<T>, next_cursor: Option<&str>, name: &str) -> Markup {
    let is_first = params.value("cursor").is_empty();
    if is_first && next_cursor.is_none() {
        return html! {};
    }
    html! {
        nav.pager aria-label="Pages" {
            @if !is_first { a.button href=(params.with(view, "cursor", None)) { "First page" } }
            @if let Some(cursor) = next_cursor {
                a.button rel="next" data-next href=(params.with(view, "cursor", Some(cursor))) { "More " (name) }
            }
        }
    }
}
