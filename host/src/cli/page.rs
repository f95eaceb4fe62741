//! Lists of a company, page by page, and single things: the same grammar for each of them.

use clap::Args;
use serde_json::Value;

use super::output::{self, clip, escape, line, micros, table, text};
use super::{Backend, CliError, CompanyArgs};

#[derive(Debug, Args)]
pub(super) struct PageArgs {
    #[command(flatten)]
    pub(super) company: CompanyArgs,
    /// Where the page before ended.
    #[arg(long)]
    cursor: Option<String>,
    /// At most this many.
    #[arg(long, default_value_t = 20)]
    limit: u32,
}

#[derive(Debug, Args)]
pub(super) struct OneArgs {
    /// Its id.
    pub(super) id: String,
    #[command(flatten)]
    pub(super) company: CompanyArgs,
}

/// A title, and where in an item its value is.
pub(super) type Columns = [(&'static str, &'static str)];

/// The address of something of a company.
pub(super) fn path(company: &CompanyArgs, rest: &str) -> String {
    format!("/control/v1/companies/{}/{rest}", escape(&company.company))
}

/// A query string of what is given.
pub(super) fn query(pairs: &[(&str, Option<&str>)]) -> String {
    let given = pairs.iter().filter_map(|(name, value)| Some(format!("{name}={}", escape((*value)?))));
    given.collect::<Vec<_>>().join("&")
}

/// Shows a page of a list.
pub(super) async fn list(
    page: &PageArgs,
    name: &str,
    filters: &[(&str, Option<&str>)],
    columns: &Columns,
) -> Result<(), CliError> {
    let limit = page.limit.to_string();
    let mut pairs = vec![("limit", Some(limit.as_str())), ("cursor", page.cursor.as_deref())];
    pairs.extend_from_slice(filters);
    let answer = Backend::open(&page.company.host)
        .await?
        .get(&path(&page.company, &format!("{name}?{}", query(&pairs))))
        .await?;
    if page.company.host.json {
        return output::json(&answer);
    }
    rows(answer["items"].as_array().map_or(&[], Vec::as_slice), columns)?;
    match answer["nextCursor"].as_str() {
        Some(cursor) => line(&format!("\nmore: --cursor {cursor}")),
        None => Ok(()),
    }
}

/// Shows one thing with everything that is known of it.
pub(super) async fn show(one: &OneArgs, name: &str) -> Result<(), CliError> {
    let path = path(&one.company, &format!("{name}/{}", escape(&one.id)));
    output::json(&Backend::open(&one.company.host).await?.get(&path).await?)
}

/// Does something to one thing and shows it.
pub(super) async fn act(
    one: &OneArgs,
    name: &str,
    action: &str,
    body: &Value,
    columns: &Columns,
) -> Result<(), CliError> {
    let path = path(&one.company, &format!("{name}/{}/{action}", escape(&one.id)));
    let answer = Backend::open(&one.company.host).await?.post(&path, body).await?;
    changed(&one.company, &answer, columns)
}

/// Shows something that was changed.
pub(super) fn changed(company: &CompanyArgs, answer: &Value, columns: &Columns) -> Result<(), CliError> {
    match company.host.json {
        true => output::json(answer),
        false => rows(std::slice::from_ref(answer), columns),
    }
}

/// Items as a table.
pub(super) fn rows(items: &[Value], columns: &Columns) -> Result<(), CliError> {
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    let row = |item: &Value| columns.iter().map(|(_, pointer)| cell(item, pointer)).collect();
    table(&titles, items.iter().map(row).collect())
}

fn cell(item: &Value, pointer: &str) -> String {
    let found = text(item, pointer);
    match pointer {
        _ if pointer.ends_with("At") => found.get(..19).unwrap_or(&found).replace('T', " "),
        _ if pointer.ends_with("Us") => micros(item.pointer(pointer)),
        _ => clip(&found, 72),
    }
}
