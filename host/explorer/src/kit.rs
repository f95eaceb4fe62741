//! What every page is made of. One way to show a time, a table, a form: a page says what, and here is how.

mod badge;
mod facts;
mod filter;
mod form;
mod format;
mod page;
mod plot;
mod problem;
mod source;
mod table;
mod view;
mod waterfall;

pub(super) use badge::{Tone, badge, outcome};
pub(super) use facts::{Facts, empty, panel};
pub(super) use filter::{Asked, Filter};
pub(super) use form::{Field, Signed, confirm, deserialize, forged, form, read};
pub(super) use format::{bytes, count, duration_us, exact, money, percent, short_id, time, words};
pub(super) use page::{Page, bare};
pub(super) use plot::Plot;
pub(super) use problem::{as_page, wants_page};
pub(super) use source::{issue_link, record_link, run_link, source_link, source_words};
pub(super) use table::{Col, Row, pager, table};
pub(super) use view::{Theme, View, escape};
pub(super) use waterfall::{Bar, waterfall};
