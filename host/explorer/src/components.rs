//! The parts that every page is made of: one way each to show a time, a table, a form, a filter.

mod badge;
mod bars;
mod chart;
mod details;
mod filter;
mod filter_form;
mod form;
mod format;
mod links;
mod page;
mod problem;
mod query;
mod table;
mod view;

pub(super) use crate::escape::{escape, query};
pub(super) use badge::{Tone, badge, job_status, outcome};
pub(super) use bars::{Bar, usage_meter, waterfall};
pub(super) use chart::Chart;
pub(super) use details::{
    Details, SCOPE, ScopeField, empty, figure, first_note, panel, record_list, scope_details,
};
#[cfg(test)]
pub(super) use filter::check_fields;
pub(super) use filter::{
    Choice, Control, FilterField, ListFilter, ListParams, binding_choices, capture_hook_kinds,
    choices, filter_fields, hook_kinds, read_number, read_since, read_text, read_until,
};
pub(super) use filter_form::FilterForm;
pub(super) use form::{
    CsrfForm, Field, NoFields, checkbox, confirm, deserialize, forged, form, read, select_field,
    submit_or_cancel, unix_lines, unprocessable,
};
pub(super) use format::{
    bytes, clipped, count, duration_us, exact, hour, money, percent, sentence, short_id, time,
    words,
};
pub(super) use links::{
    binding_link, issue_link, operation_link, record_link, run_link, source_link, source_text,
};
pub(super) use page::{Page, bare, tabs};
pub(super) use problem::{as_page, wants_page};
pub(super) use query::QueryParams;
pub(super) use table::{PAGE_SIZE, Row, listing, long, number, pager, table, whole, wide};
pub(super) use view::{CompanyView, Theme, View};
