//! Shows lists page by page and single items, once or repeatedly.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde_json::{Value, json};

use super::CliError;
use super::args::{CompanyArgs, OneArgs, PageArgs, Paging, WatchArgs};
use super::output::{
    Format, clip, details, escape, hour, line, lines, micros, moment, table, text,
};
use super::session::Session;
use memhost_types::{Pages, counted};

/// The default page size; `--all` uses the host's largest page.
const PAGE: u32 = 20;
const WHOLE_PAGE: u32 = 1_000;

/// Column titles, each with the JSON pointer of its value.
pub(super) type Columns = [(&'static str, &'static str)];

/// The requested page.
pub(super) struct Asked {
    pub(super) cursor: Option<String>,
    pub(super) limit: u32,
}

impl Asked {
    /// The query string of a request, with filters.
    pub(super) fn query(&self, filters: &[(&str, Option<&str>)]) -> String {
        let limit = self.limit.to_string();
        let mut pairs = vec![("limit", Some(limit.as_str())), ("cursor", self.cursor.as_deref())];
        pairs.extend_from_slice(filters);
        query(&pairs)
    }
}

/// A query string of the given values.
pub(super) fn query(pairs: &[(&str, Option<&str>)]) -> String {
    let given =
        pairs.iter().filter_map(|(name, value)| Some(format!("{name}={}", escape((*value)?))));
    given.collect::<Vec<_>>().join("&")
}

/// Shows the result of `fetch`, once or repeatedly.
pub(super) async fn watched(
    watch: &WatchArgs,
    fetch: impl AsyncFn() -> Result<String, CliError>,
) -> Result<(), CliError> {
    let Some(seconds) = watch.watch else { return line(&fetch().await?) };
    let is_terminal = std::io::stdout().is_terminal();
    let mut shown = None;
    loop {
        let text = match fetch().await {
            Ok(text) => text,
            // The host may restart.
            Err(error) if error.exit_code() == 5 && shown.is_some() => format!("{error}"),
            Err(error) => return Err(error),
        };
        if is_terminal {
            let now = jiff::Timestamp::now().to_string();
            write!(std::io::stdout().lock(), "\x1b[H\x1b[2J\x1b[3J")?;
            line(&format!("every {seconds} s, at {} UTC; Ctrl-C to stop\n\n{text}", moment(&now)))?;
        } else if shown.as_ref() != Some(&text) {
            line(&text)?;
        }
        shown = Some(text);
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    }
}

/// Shows what `fetch` answers, once or repeatedly; `items` names the member with the items of a
/// list.
pub(super) async fn watch(
    session: &Session,
    watch: &WatchArgs,
    items: &str,
    fetch: impl AsyncFn() -> Result<Value, CliError>,
    human: impl Fn(&Value) -> String,
) -> Result<(), CliError> {
    watched(watch, async || session.format.render(&fetch().await?, items, &human)).await
}

/// Shows one page of a list, or all pages; `items` names the member with the items.
pub(super) async fn pages(
    format: Format,
    paging: &Paging,
    items: &str,
    fetch: impl AsyncFn(Asked) -> Result<Value, CliError>,
    human: impl Fn(&Value) -> String,
) -> Result<(), CliError> {
    let asked = |cursor: Option<String>| Asked {
        cursor,
        limit: paging.limit.unwrap_or(if paging.all { WHOLE_PAGE } else { PAGE }),
    };
    let is_streamed = paging.all && format == Format::Jsonl && paging.watch.watch.is_none();
    let render = async || {
        let (skipped, cursor) = place(paging.cursor.as_deref());
        let mut answer = fetch(asked(cursor.map(str::to_owned))).await?;
        cut(&mut answer, items, (skipped, cursor), paging);
        let mut pages = Pages::default();
        pages.go_on(next_cursor(&answer).filter(|_| paging.all));
        while let Some(cursor) = pages.next() {
            if is_streamed {
                line(&lines(&answer, items))?;
                answer[items] = json!([]);
            }
            let mut next = fetch(asked(cursor)).await?;
            pages.go_on(next_cursor(&next));
            for name in ["nextCursor", "more", "trimmedBefore"] {
                match next.get_mut(name).map(Value::take) {
                    Some(value) => answer[name] = value,
                    None if name == "nextCursor" => answer[name] = Value::Null,
                    None => {}
                }
            }
            let more = next[items].as_array_mut().map(std::mem::take).unwrap_or_default();
            if let Some(all) = answer[items].as_array_mut() {
                all.extend(more);
            }
        }
        if answer["nextCursor"].is_null() {
            answer.as_object_mut().map(|answer| answer.remove("nextCursor"));
        }
        format.render(&answer, items, |answer| match answer["nextCursor"].as_str() {
            Some(cursor) if is_last(answer) => {
                format!("{}\n\nwhat comes later: --cursor {cursor}", human(answer))
            }
            Some(cursor) => {
                format!("{}\n\nnext page: --cursor {cursor}; all pages: --all", human(answer))
            }
            None => human(answer),
        })
    };
    watched(&paging.watch, render).await
}

/// The cursor of the page after this one, where there is one now.
pub(super) fn next_cursor(page: &Value) -> Option<String> {
    page["nextCursor"].as_str().filter(|_| !is_last(page)).map(str::to_owned)
}

/// Whether nothing comes after this page now, although it may have a cursor for what comes later.
fn is_last(page: &Value) -> bool {
    page["more"] == false
}

/// Prefix of a cursor of our own: the number of shown items of the host's page, and the host's
/// cursor of that page.
const SHOWN: &str = "shown-";

/// The position of a cursor.
fn place(cursor: Option<&str>) -> (usize, Option<&str>) {
    let ours = cursor.and_then(|cursor| cursor.strip_prefix(SHOWN)?.split_once('-'));
    match ours.and_then(|(shown, of)| Some((shown.parse().ok()?, of))) {
        Some((shown, of)) => (shown, Some(of).filter(|of| !of.is_empty())),
        None => (0, cursor),
    }
}

/// Cuts a page to the requested size: the host returns some short lists as a whole.
fn cut(answer: &mut Value, items: &str, (skipped, cursor): (usize, Option<&str>), paging: &Paging) {
    let limit = paging.limit.filter(|_| !paging.all).map_or(usize::MAX, |limit| limit as usize);
    let Some(all) = answer.get_mut(items).and_then(Value::as_array_mut) else { return };
    all.drain(..skipped.min(all.len()));
    if all.len() > limit {
        all.truncate(limit);
        answer["nextCursor"] =
            format!("{SHOWN}{}-{}", skipped + limit, cursor.unwrap_or_default()).into();
    }
}

/// Shows a list of a company.
pub(super) async fn list(
    page: &PageArgs,
    name: &str,
    filters: &[(&str, Option<&str>)],
    columns: &Columns,
) -> Result<(), CliError> {
    list_as(page, name, filters, |answer| rows(items(answer, "items"), columns)).await
}

/// Shows a list of a company with its own table.
pub(super) async fn list_as(
    page: &PageArgs,
    name: &str,
    filters: &[(&str, Option<&str>)],
    human: impl Fn(&Value) -> String,
) -> Result<(), CliError> {
    let session = page.company.open().await?;
    let fetch = async |asked: Asked| session.get(&format!("{name}?{}", asked.query(filters))).await;
    pages(session.format, &page.paging, "items", fetch, human).await
}

/// Shows a list of the host.
pub(super) async fn list_of_host(
    session: &Session,
    paging: &Paging,
    path: &str,
    items: &str,
    human: impl Fn(&Value) -> String,
) -> Result<(), CliError> {
    // The host answers such a list as a whole, so that all of its cursors are ours.
    if paging.cursor.as_deref().is_some_and(|cursor| !cursor.starts_with(SHOWN)) {
        return Err(CliError::input(
            "--cursor",
            "is not a cursor of this list; begin again without it",
        ));
    }
    let fetch =
        async |asked: Asked| session.host.get(&format!("{path}?{}", asked.query(&[]))).await;
    pages(session.format, paging, items, fetch, human).await
}

/// Shows all fields of one item of a company's list.
pub(super) async fn show(
    company: &CompanyArgs,
    watch: &WatchArgs,
    list: &str,
    id: &str,
) -> Result<(), CliError> {
    let session = company.open().await?;
    let path = format!("{list}/{}", escape(id));
    self::watch(&session, watch, "", async || session.get(&path).await, details).await
}

/// The item whose `key` has this value.
pub(super) fn find(answer: &Value, list: &str, key: &str, value: &str) -> Option<Value> {
    items(answer, list).iter().find(|item| text(item, key) == value).cloned()
}

/// The error for an unknown item.
pub(super) fn missing(what: &str, name: &str) -> CliError {
    let detail = format!("no {what} `{name}`; list them with `memhost {what} list`");
    CliError::Problem { status: 404, detail, operation: None, code: None }
}

/// Runs an action on one item and shows the item.
pub(super) async fn act(
    one: &OneArgs,
    name: &str,
    action: &str,
    body: &Value,
    columns: &Columns,
) -> Result<(), CliError> {
    let session = one.company.open().await?;
    let answer = session.post(&format!("{name}/{}/{action}", escape(&one.id)), body).await?;
    session.show(&answer, "", |answer| rows(std::slice::from_ref(answer), columns))
}

/// Runs an action on everything that the filters match, and says on how many.
pub(super) async fn act_on_all(
    company: &CompanyArgs,
    is_all: bool,
    name: &str,
    action: &str,
    filters: &[(&'static str, Option<&str>)],
    did: &str,
) -> Result<(), CliError> {
    let mut given: serde_json::Map<String, Value> = filters
        .iter()
        .filter_map(|(name, value)| Some(((*name).to_owned(), Value::String((*value)?.to_owned()))))
        .collect();
    if given.is_empty() && !is_all {
        return Err(CliError::input("ID", "is missing; name one, give a filter, or `--every`"));
    }
    if given.is_empty() && name == "jobs" {
        given.insert("every".to_owned(), Value::Bool(true));
    }
    let (session, mut changed) = (company.open().await?, 0);
    loop {
        let answer =
            session.post(&format!("{name}/{action}"), &Value::Object(given.clone())).await?;
        changed += answer["changed"].as_u64().unwrap_or(0);
        if answer["more"] != true {
            let one = if name == "deliveries" { "delivery" } else { "job" };
            let said = format!("{did} {}", counted(changed, one, name));
            return session.show(&serde_json::json!({ "changed": changed }), "", |_| said);
        }
    }
}

/// The items of a list.
pub(super) fn items<'a>(answer: &'a Value, name: &str) -> &'a [Value] {
    answer[name].as_array().map_or(&[], Vec::as_slice)
}

/// Items as a table.
pub(super) fn rows(items: &[Value], columns: &Columns) -> String {
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    let row = |item: &Value| columns.iter().map(|(_, pointer)| cell(item, pointer)).collect();
    table(&titles, items.iter().map(row).collect())
}

fn cell(item: &Value, pointer: &str) -> String {
    let found = text(item, pointer);
    match pointer {
        "/lastUsedAt" => hour(&found),
        _ if pointer.ends_with("At") => moment(&found),
        _ if pointer.ends_with("Us") => micros(item.pointer(pointer)),
        _ => clip(&found, 72),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paging(limit: Option<u32>, cursor: Option<&str>) -> Paging {
        Paging {
            cursor: cursor.map(str::to_owned),
            limit,
            all: false,
            watch: WatchArgs { watch: None },
        }
    }

    #[test]
    fn a_list_that_comes_as_a_whole_has_pages_too() {
        let shown = |answer: &Value, limit: Option<u32>, cursor: Option<&str>| {
            let mut answer = answer.clone();
            cut(&mut answer, "items", place(cursor), &paging(limit, cursor));
            answer
        };
        for (next, of) in [(None, ""), (Some("host"), "here")] {
            let mut answer = json!({ "items": [1, 2, 3] });
            if let Some(next) = next {
                answer["nextCursor"] = next.into();
            }
            let given = Some(of).filter(|of| !of.is_empty());
            assert_eq!(shown(&answer, None, given), answer);
            assert_eq!(shown(&answer, Some(3), given), answer);
            let first = shown(&answer, Some(2), given);
            assert_eq!(first["items"], json!([1, 2]));
            let cursor = first["nextCursor"].as_str();
            assert_eq!(place(cursor), (2, given), "the same page of the host, from there on");
            let second = shown(&answer, Some(2), cursor);
            assert_eq!((&second["items"], second["nextCursor"].as_str()), (&json!([3]), next));
        }
    }
}
