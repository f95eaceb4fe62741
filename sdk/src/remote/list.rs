//! The contract's cursors, made of the lists that services have.

use crate::types::{Continuation, Error};

/// How many pages of a service one page of the contract reads.
const MOST: usize = 16;

/// A page of a list that the service gives whole, in the order of ids. The cursor is the last id of
/// the page before: it stays valid while others write. `is_complete` says whether these are all:
/// otherwise the last page says that the list cannot go on.
pub fn whole<T>(
    mut items: Vec<T>,
    id: impl Fn(&T) -> &str,
    is_complete: bool,
    cursor: Option<&str>,
    limit: u32,
) -> (Vec<T>, Continuation) {
    items.retain(|item| cursor.is_none_or(|last| id(item) > last));
    items.sort_by(|a, b| id(a).cmp(id(b)));
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let continuation = match items.last() {
        Some(last) if more => Continuation::Next(id(last).to_owned()),
        _ if is_complete => Continuation::End,
        _ => Continuation::CannotContinue,
    };
    (items, continuation)
}

/// A page of a list that the service gives by number of page, from 1, or by offset, which is the
/// number of the page times its size. `fetch` answers a page and whether another one follows;
/// `keep` says which items the caller may see.
///
/// The cursor is a number of a page and the last id that was read there. If items were added or
/// deleted meanwhile, the id is looked for on the pages beside; a list whose last item was deleted
/// goes on at the start of that page, so an item can come twice, and none is left out.
///
/// # Errors
/// The error of `fetch`, or an invalid request at `cursor` if the cursor is not from this list.
pub fn pages<T>(
    cursor: Option<&str>,
    limit: u32,
    mut fetch: impl FnMut(u32) -> Result<(Vec<T>, bool), Error>,
    id: impl Fn(&T) -> &str,
    keep: impl Fn(&T) -> bool,
) -> Result<(Vec<T>, Continuation), Error> {
    let read = |cursor: &str| {
        cursor.split_once(' ').and_then(|(page, id)| Some((page.parse().ok()?, id.to_owned())))
    };
    let invalid =
        || Error::invalid("cursor", "is not a cursor of this list; begin again without a cursor");
    let start = cursor
        .map(|cursor| read(cursor).filter(|(page, _)| *page > 0).ok_or_else(invalid))
        .transpose()?;
    let (mut page, mut from) = (1, 0);
    let mut fetched = None;
    if let Some((number, last)) = start {
        let behind = |items: &[T]| items.iter().position(|item| id(item) == last).map(|at| at + 1);
        let first = fetch(number)?;
        // What was added moves an item to the next page, and what was deleted to the one before.
        let beside = [(first.1, number + 1), (number > 1, number.saturating_sub(1))];
        (page, from, fetched) = match behind(&first.0) {
            Some(at) => (number, at, Some(first)),
            None => (number, 0, Some(first)),
        };
        for (_, number) in beside.into_iter().filter(|(is_there, _)| *is_there && from == 0) {
            let found = fetch(number)?;
            if let Some(at) = behind(&found.0) {
                (page, from, fetched) = (number, at, Some(found));
                break;
            }
        }
    }
    let mut kept: Vec<T> = Vec::new();
    let mut last = None;
    for _ in 0..MOST {
        let (items, more) = fetched.take().map_or_else(|| fetch(page), Ok)?;
        for item in items.into_iter().skip(std::mem::take(&mut from)) {
            if kept.len() == limit as usize {
                return Ok((kept, last.map_or(Continuation::End, Continuation::Next)));
            }
            last = Some(format!("{page} {}", id(&item)));
            if keep(&item) {
                kept.push(item);
            }
        }
        if !more {
            return Ok((kept, Continuation::End));
        }
        page += 1;
    }
    Ok((kept, last.map_or(Continuation::End, Continuation::Next)))
}

/// Those items of the first pages of a list that fit, for what a service can only be asked for by
/// its lists. `fetch` answers a page, from 1, and whether another one follows; it is called once an
/// item of the page is asked for.
pub fn items<T, E>(
    most: u32,
    mut fetch: impl FnMut(u32) -> Result<(Vec<T>, bool), E>,
    fits: impl Fn(&T) -> bool,
) -> impl Iterator<Item = Result<T, E>> {
    let (mut page, mut more, mut here) = (0, true, Vec::new().into_iter());
    std::iter::from_fn(move || {
        loop {
            if let Some(item) = here.find(&fits) {
                return Some(Ok(item));
            }
            if !more || page == most {
                return None;
            }
            page += 1;
            match fetch(page) {
                Ok((items, follows)) => (here, more) = (items.into_iter(), follows),
                Err(error) => {
                    more = false;
                    return Some(Err(error));
                }
            }
        }
    })
}

/// The place that a cursor of a tree says, where cursors count a service's entries; 0 without one.
///
/// # Errors
/// An invalid request at `cursor` if it is none of this tree.
pub fn offset(cursor: Option<&str>) -> Result<usize, Error> {
    let invalid =
        |_| Error::invalid("cursor", "is not a cursor of this tree; begin again without a cursor");
    cursor.map_or(Ok(0), |cursor| cursor.parse().map_err(invalid))
}
