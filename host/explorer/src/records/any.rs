//! The records of all bindings, one binding after the other.

use memhost_core::ServiceError;
use memhost_types::{BindingKey, ListRequest, Snippet};

use crate::components::{CompanyView, PAGE_SIZE};
use memhost_http::permission;

/// Pages of providers that are read for one page here: one may have many pages of which nothing is
/// shown.
const MOST_CALLS: usize = 10;

/// Records of several bindings.
#[derive(Default)]
pub(super) struct Listed {
    /// Each with its binding.
    pub(super) items: Vec<(BindingKey, Snippet)>,
    /// The binding with which the next page begins, and where in it.
    pub(super) next: Option<String>,
    /// Bindings that cannot list all that they have.
    pub(super) truncated: Vec<BindingKey>,
    /// Bindings that did not answer, and why.
    pub(super) failed: Vec<(BindingKey, String)>,
}

/// Reads as many records as a page has. One binding that fails does not take the others.
pub(super) async fn list(
    view: &CompanyView<permission::List>,
    request: &ListRequest,
) -> Result<Listed, ServiceError> {
    let (mut listed, mut calls) = (Listed::default(), 0);
    let (first, mut cursor) = match request.cursor.as_deref().and_then(|at| at.split_once(' ')) {
        Some((key, cursor)) => (key, Some(cursor.to_owned()).filter(|text| !text.is_empty())),
        None => ("", None),
    };
    let most = PAGE_SIZE.unwrap_or_default() as usize;
    let mut keys = view.service.control().binding_keys(&view.company);
    keys.sort();
    for key in keys.into_iter().filter(|key| key.as_str() >= first) {
        if key.as_str() != first {
            cursor = None;
        }
        loop {
            let room = most.saturating_sub(listed.items.len());
            if room == 0 || calls == MOST_CALLS {
                listed.next = Some(format!("{key} {}", cursor.unwrap_or_default()));
                return Ok(listed);
            }
            calls += 1;
            let request = ListRequest {
                binding_key: Some(key.clone()),
                cursor: cursor.take(),
                limit: u32::try_from(room).ok(),
                ..request.clone()
            };
            match view.service.operations().list(&view.caller, request).await {
                Ok(page) => {
                    let items = page.items.into_iter().map(|item| (key.clone(), item));
                    listed.items.extend(items);
                    if page.truncated {
                        listed.truncated.push(key.clone());
                    }
                    cursor = page.next_cursor;
                }
                Err(error @ ServiceError::Operation { .. }) => {
                    listed.failed.push((key.clone(), error.to_string()));
                }
                Err(error) => return Err(error),
            }
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(listed)
}
