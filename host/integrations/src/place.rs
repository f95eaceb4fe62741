//! Whose records a call is about, and what all calls of this room do with them.

use std::sync::Arc;

use axum::http::StatusCode;

use memhost_core::{Caller, Service};
use memhost_http::Problem;
use memhost_types::{BindingKey, JsonObject, ListRequest, Scope, Snippet, check_id};

/// How many records are asked for at once, and how many times at most.
const PAGE: u32 = 1_000;
const MAX_PAGES: usize = 10;

/// One owner's records: a scope, and what their metadata says.
pub(super) struct Place {
    pub(super) binding: Option<BindingKey>,
    pub(super) scope: Scope,
    /// The name and the value of the metadata that tells this owner's records from all others.
    pub(super) owner: (&'static str, String),
}

/// Some records of a place.
pub(super) struct Found {
    pub(super) items: Vec<Snippet>,
    pub(super) next_cursor: Option<String>,
}

impl Place {
    /// Whether a record is this owner's.
    pub(super) fn owns(&self, record: &Snippet) -> bool {
        let (name, value) = &self.owner;
        let found = record.metadata.as_ref().and_then(|metadata| metadata.get(*name)?.as_str());
        found == Some(value)
    }

    /// The metadata that a record of this place is looked for with.
    pub(super) fn filter(&self) -> JsonObject {
        let (name, value) = &self.owner;
        JsonObject::from_iter([((*name).to_owned(), value.as_str().into())])
    }

    /// One page of them.
    pub(super) async fn page(
        &self,
        service: &Arc<Service>,
        caller: &Caller,
        cursor: Option<String>,
        limit: u32,
        filter: JsonObject,
    ) -> Result<Found, Problem> {
        let request = ListRequest {
            binding_key: self.binding.clone(),
            scope: self.scope.clone(),
            cursor,
            limit: Some(limit),
            metadata_filter: Some(filter),
        };
        let page = service.list(caller, request).await?;
        let items = page.items.into_iter().filter(|record| self.owns(record)).collect();
        Ok(Found { items, next_cursor: page.next_cursor })
    }

    /// As many of them as one answer may have: 10,000.
    pub(super) async fn all(
        &self,
        service: &Arc<Service>,
        caller: &Caller,
        cursor: Option<String>,
    ) -> Result<Found, Problem> {
        let mut all = Found { items: Vec::new(), next_cursor: cursor };
        for _ in 0..MAX_PAGES {
            let page = self.page(service, caller, all.next_cursor.take(), PAGE, self.filter()).await?;
            all.items.extend(page.items);
            all.next_cursor = page.next_cursor;
            if all.next_cursor.is_none() {
                break;
            }
        }
        Ok(all)
    }
}

/// An id of another system, as the host takes ids.
pub(super) fn id(field: &str, text: &str) -> Result<String, Problem> {
    check_id(field, text).map_err(|error| invalid(&error.field, error.message.clone()))?;
    Ok(text.to_owned())
}

/// A field at fault.
pub(super) fn invalid(field: &str, message: impl std::fmt::Display) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "invalid_request", format!("{field} {message}")).at(field)
}

/// The text of a record's metadata under a name.
pub(super) fn text(metadata: Option<&JsonObject>, name: &str) -> Option<String> {
    metadata?.get(name)?.as_str().map(str::to_owned)
}
