//! Shows lists page by page and single items, once or repeatedly.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answer::{self, Answer, List};
use super::args::{CompanyArgs, OneArgs, PageArgs, Paging, WatchArgs};
use super::output::{Format, details, line, lines, table};
use super::session::Session;
use super::texts::{escape, moment};
use super::{CliError, Result};
use memhost_core::{ChangedCount, Page};
use memhost_types::{JsonObject, Pages, counted};

/// The default page size; `--all` uses the host's largest page.
const PAGE: u32 = 20;
const WHOLE_PAGE: u32 = 1_000;

/// The columns of a table: a title and the text of an item each.
pub(super) type Columns<T> = [(&'static str, fn(&T) -> String)];

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
    fetch: impl AsyncFn() -> Result<String>,
) -> Result<()> {
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
            let now = moment(Timestamp::now());
            write!(std::io::stdout().lock(), "\x1b[H\x1b[2J\x1b[3J")?;
            line(&format!("every {seconds} s, at {now} UTC; Ctrl-C to stop\n\n{text}"))?;
        } else if shown.as_ref() != Some(&text) {
            line(&text)?;
        }
        shown = Some(text);
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    }
}

/// Shows what `fetch` answers, once or repeatedly.
pub(super) async fn watch<T: DeserializeOwned>(
    session: &Session,
    watch: &WatchArgs,
    fetch: impl AsyncFn() -> Result<Answer<T>>,
    human: impl Fn(&T) -> String,
) -> Result<()> {
    let render = async || {
        let answer = fetch().await?;
        session.format.render(answer.json(), "", || answer.read().map(|read| human(&read)))
    };
    watched(watch, render).await
}

/// Shows the list that `fetch` answers, once or repeatedly.
pub(super) async fn watch_list<T: List>(
    session: &Session,
    watch: &WatchArgs,
    fetch: impl AsyncFn() -> Result<Answer<T>>,
    human: impl Fn(&T) -> String,
) -> Result<()> {
    let render = async || {
        let answer = fetch().await?;
        session.format.render(answer.json(), T::ITEMS, || answer.read().map(|read| human(&read)))
    };
    watched(watch, render).await
}

/// Shows all fields of what `fetch` answers, once or repeatedly.
pub(super) async fn watch_details<T>(
    session: &Session,
    watch: &WatchArgs,
    fetch: impl AsyncFn() -> Result<Answer<T>>,
) -> Result<()> {
    let render = async || {
        let answer = fetch().await?;
        session.format.render(answer.json(), "", || Ok(details(answer.json())))
    };
    watched(watch, render).await
}

/// Shows one page of a list, or all pages.
pub(super) async fn pages<T: List>(
    format: Format,
    paging: &Paging,
    fetch: impl AsyncFn(Asked) -> Result<Answer<T>>,
    human: impl Fn(&T) -> String,
) -> Result<()> {
    let items = T::ITEMS;
    let asked = |cursor: Option<String>| Asked {
        cursor,
        limit: paging.limit.unwrap_or(if paging.all { WHOLE_PAGE } else { PAGE }),
    };
    let is_streamed = paging.all && format == Format::Jsonl && paging.watch.watch.is_none();
    let render = async || {
        let (skipped, cursor) = place(paging.cursor.as_deref());
        let mut answer = fetch(asked(cursor.map(str::to_owned))).await?.into_json();
        cut(&mut answer, items, (skipped, cursor), paging);
        let mut pages = Pages::default();
        pages.go_on(next_cursor(&answer).filter(|_| paging.all));
        while let Some(cursor) = pages.next() {
            if is_streamed {
                line(&lines(&answer, items))?;
                answer[items] = json!([]);
            }
            let mut next = fetch(asked(cursor)).await?.into_json();
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
        format.render(&answer, items, || {
            let shown = human(&answer::read(&answer)?);
            Ok(match answer["nextCursor"].as_str() {
                Some(cursor) if is_last(&answer) => {
                    format!("{shown}\n\nwhat comes later: --cursor {cursor}")
                }
                Some(cursor) => {
                    format!("{shown}\n\nnext page: --cursor {cursor}; all pages: --all")
                }
                None => shown,
            })
        })
    };
    watched(&paging.watch, render).await
}

/// The cursor of the page after this one, where there is one now.
fn next_cursor(page: &Value) -> Option<String> {
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
pub(super) async fn list<T: DeserializeOwned>(
    page: &PageArgs,
    name: &str,
    filters: &[(&str, Option<&str>)],
    columns: &Columns<T>,
) -> Result<()> {
    list_as(page, name, filters, |page: &Page<T>| rows(&page.items, columns)).await
}

/// Shows a list of a company with its own table.
pub(super) async fn list_as<T: List>(
    page: &PageArgs,
    name: &str,
    filters: &[(&str, Option<&str>)],
    human: impl Fn(&T) -> String,
) -> Result<()> {
    let session = page.company.open().await?;
    let binding = filters.iter().find(|(parameter, _)| *parameter == "bindingKey");
    let fetch = async |asked: Asked| {
        let answer: Answer<T> = session.get(&format!("{name}?{}", asked.query(filters))).await?;
        // What a deleted binding did is still there; one that never was has done nothing.
        if let Some(key) = binding.and_then(|(_, key)| *key)
            && answer.json()[T::ITEMS].as_array().is_some_and(Vec::is_empty)
        {
            there(&session, key).await?;
        }
        Ok(answer)
    };
    pages(session.format, &page.paging, fetch, human).await
}

/// Fails where the company has no binding of this key.
pub(super) async fn there(session: &Session, key: &str) -> Result<()> {
    match session.get::<()>(&format!("bindings/{}", escape(key))).await {
        Err(error @ CliError::Problem { status: 404, .. }) => Err(error),
        // Who may not look at bindings is told nothing of them.
        _ => Ok(()),
    }
}

/// Shows a list of the host.
pub(super) async fn list_of_host<T: List>(
    session: &Session,
    paging: &Paging,
    path: &str,
    human: impl Fn(&T) -> String,
) -> Result<()> {
    // The host answers such a list as a whole, so that all of its cursors are ours.
    if paging.cursor.as_deref().is_some_and(|cursor| !cursor.starts_with(SHOWN)) {
        return Err(CliError::input(
            "--cursor",
            "is not a cursor of this list; begin again without it",
        ));
    }
    let fetch =
        async |asked: Asked| session.host.get(&format!("{path}?{}", asked.query(&[]))).await;
    pages(session.format, paging, fetch, human).await
}

/// Shows all fields of one item of a company's list.
pub(super) async fn show(
    company: &CompanyArgs,
    watch: &WatchArgs,
    list: &str,
    id: &str,
) -> Result<()> {
    let session = company.open().await?;
    let path = format!("{list}/{}", escape(id));
    watch_details(&session, watch, async || session.get::<()>(&path).await).await
}

/// The error for an unknown item.
pub(super) fn missing(what: &str, name: &str) -> CliError {
    let detail = format!("no {what} `{name}`; list them with `memhost {what} list`");
    CliError::Problem { status: 404, detail, operation: None, code: None }
}

/// Runs an action on one item and shows the item.
pub(super) async fn act<T: DeserializeOwned>(
    one: &OneArgs,
    name: &str,
    action: &str,
    body: &impl Serialize,
    columns: &Columns<T>,
) -> Result<()> {
    let session = one.company.open().await?;
    let answer = session.post(&format!("{name}/{}/{action}", escape(&one.id)), body).await?;
    session.show(&answer, |item| rows(std::slice::from_ref(item), columns))
}

/// Runs an action on everything that the filters match, and says on how many.
pub(super) async fn act_on_all(
    company: &CompanyArgs,
    is_all: bool,
    name: &str,
    action: &str,
    filters: &[(&'static str, Option<&str>)],
    did: &str,
) -> Result<()> {
    let mut given: JsonObject = filters
        .iter()
        .filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?.into())))
        .collect();
    if given.is_empty() && !is_all {
        return Err(CliError::input("ID", "is missing; name one, give a filter, or `--every`"));
    }
    if given.is_empty() && name == "jobs" {
        given.insert("every".to_owned(), true.into());
    }
    let (session, mut changed) = (company.open().await?, 0_u64);
    loop {
        let answer: Answer<ChangedCount> =
            session.post(&format!("{name}/{action}"), &given).await?;
        let done = answer.read()?;
        changed += u64::from(done.changed);
        if !done.more {
            let one = if name == "deliveries" { "delivery" } else { "job" };
            let said = format!("{did} {}", counted(changed, one, name));
            return session.tell(&json!({ "changed": changed }), || said);
        }
    }
}

/// Items as a table.
pub(super) fn rows<T>(items: &[T], columns: &Columns<T>) -> String {
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    let row = |item: &T| columns.iter().map(|(_, cell)| cell(item)).collect();
    table(&titles, items.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use memhost_core::CostEventPage;
    use memhost_types::{ActivityPage, ListPage, OperationPage};

    use super::*;

    /// Pages are joined as JSON, so that programs get what the host answered.
    #[test]
    fn pages_are_joined_by_the_names_that_the_host_gives() {
        let next_cursor = Some("here".to_owned());
        let page = json!(Page::<()> { items: Vec::new(), next_cursor: next_cursor.clone() });
        let operations =
            json!(OperationPage { items: Vec::new(), next_cursor: next_cursor.clone() });
        let activity = json!(ActivityPage { items: Vec::new(), next_cursor: next_cursor.clone() });
        let costs = json!(CostEventPage {
            items: Vec::new(),
            next_cursor: next_cursor.clone(),
            more: false,
            trimmed_before: Some(Timestamp::UNIX_EPOCH),
        });
        assert!(is_last(&costs) && costs.get("trimmedBefore").is_some(), "{costs}");
        for page in [&page, &operations, &activity] {
            assert_eq!(super::next_cursor(page), next_cursor, "{page}");
        }
        let id = "0199f0a0-0000-7000-8000-000000000000";
        let records =
            json!({ "operationId": id, "items": [], "nextCursor": "here", "truncated": false });
        let records: ListPage = answer::read(&records).unwrap();
        assert_eq!(super::next_cursor(&json!(records)), next_cursor);
    }

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
