//! Tables and their pagination.

use maud::{Markup, Render, html};

use super::details::empty;
use super::filter::{ListFilter, ListParams};
use super::filter_form::FilterForm;
use super::query::QueryParams;
use super::view::View;

/// The number of rows on one page of a list.
pub(crate) const PAGE_SIZE: Option<u32> = Some(50);

/// A column: the text of its head, and how it is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    class: &'static str,
}

/// Text, at the left.
impl From<&'static str> for Column {
    fn from(name: &'static str) -> Self {
        Self { name, class: "" }
    }
}

/// Text that is shown on wide screens only. The page of the row must have the value, too.
pub(crate) const fn wide(name: &'static str) -> Column {
    Column { name, class: "w" }
}

/// Text that takes the remaining width. It is cut if it is longer.
pub(crate) const fn long(name: &'static str) -> Column {
    Column { name, class: "l" }
}

/// Text that is never cut: it has as many lines as it needs.
pub(crate) const fn whole(name: &'static str) -> Column {
    Column { name, class: "t" }
}

/// A number, at the right.
pub(crate) const fn number(name: &'static str) -> Column {
    Column { name, class: "n" }
}

impl Column {
    /// A number that is shown on wide screens only.
    pub(crate) const fn wide(self) -> Self {
        Self { class: "n w", ..self }
    }
}

/// A row.
#[derive(Default)]
pub(crate) struct Row {
    key: Option<String>,
    href: Option<String>,
    cells: Vec<(Column, Markup)>,
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
    #[allow(
        clippy::needless_pass_by_value,
        reason = "an id, a digest or a text: all are written by value"
    )]
    pub(crate) fn key(mut self, key: impl ToString) -> Self {
        self.key = Some(key.to_string());
        self
    }

    /// The next cell.
    pub(crate) fn cell(mut self, column: impl Into<Column>, value: impl Render) -> Self {
        self.cells.push((column.into(), html! { (value) }));
        self
    }

    /// The next cell, or a dash.
    pub(crate) fn maybe<T: Render>(self, column: impl Into<Column>, value: Option<T>) -> Self {
        match value {
            Some(value) => self.cell(column, value),
            None => self.cell(column, html! { span.none { "–" } }),
        }
    }
}

/// A table of rows that have the same columns. Screen readers read `caption`.
pub(crate) fn table(caption: &str, rows: impl IntoIterator<Item = Row>) -> Markup {
    let rows: Vec<Row> = rows.into_iter().collect();
    // A table that is wider than the screen must be scrollable by keys. Without links it needs its
    // own focus.
    let is_still = rows.iter().all(|row| row.href.is_none());
    let class = |column: &Column| Some(column.class).filter(|class| !class.is_empty());
    html! {
        div.scroll tabindex=[is_still.then_some("0")] role=[is_still.then_some("region")]
            aria-label=[is_still.then_some(caption)] {
            table {
                caption.vh { (caption) }
                thead {
                    tr {
                        @for (column, _) in rows.first().into_iter().flat_map(|row| &row.cells) {
                            th scope="col" class=[class(column)] { (column.name) }
                        }
                    }
                }
                tbody {
                    @for row in &rows {
                        tr data-key=[&row.key] {
                            @for (index, (column, cell)) in row.cells.iter().enumerate() {
                                @match (&row.href, index) {
                                    (Some(href), 0) => th scope="row" class=[class(column)] {
                                        a.row href=(href) { (cell) }
                                    },
                                    _ => td class=[class(column)] { (cell) },
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A list: its filters, its rows and its pager, or why there are no rows. `name` is the plural of
/// the rows, such as `operations`. `none` is the title and the text of a list that is empty without
/// a filter.
pub(crate) fn listing<F: ListFilter>(
    view: &View,
    params: &ListParams<F>,
    (caption, name): (&str, &str),
    next_cursor: Option<&str>,
    none: (&str, &Markup),
    rows: impl Iterator<Item = Row>,
) -> Markup {
    let mut rows = rows.peekable();
    html! {
        @if !F::FIELDS.is_empty() { (FilterForm::of(view, params)) }
        div #rows data-live {
            @if rows.peek().is_some() {
                (table(caption, rows))
                (pager(view, params, next_cursor, name))
            } @else if params.is_filtered() {
                (empty(
                    &format!("No matching {name}"),
                    &html! { a href=(view.path) { "Show all " (name) } },
                ))
                // A page ends after many that do not match: the next one may have some.
                @if next_cursor.is_some() { (pager(view, params, next_cursor, name)) }
            } @else { (empty(none.0, none.1)) }
        }
    }
}

/// Links to the next and the first page. `name` is the plural of the rows, such as `operations`.
pub(crate) fn pager<T>(
    view: &View,
    params: &QueryParams<T>,
    next_cursor: Option<&str>,
    name: &str,
) -> Markup {
    let is_first = params.value("cursor").is_empty();
    if is_first && next_cursor.is_none() {
        return html! {};
    }
    html! {
        nav.pager aria-label="Pages" {
            @if !is_first { a.button href=(params.with(view, "cursor", None)) { "First page" } }
            @if let Some(cursor) = next_cursor {
                a.button rel="next" data-next
                    href=(params.with(view, "cursor", Some(cursor))) { "More " (name) }
            }
        }
    }
}
