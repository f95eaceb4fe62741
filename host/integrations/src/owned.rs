//! The records of one owner (a user, a drive, a project), and what every route does with them.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use memhost_core::{Caller, Service};
use memhost_http::{Problem, ProblemCode};
use memhost_types::{
    BindingKey, JsonObject, ListRequest, RecordHandle, RecordWrite, Scope, Snippet, SourceRef, UpsertRequest, check_id,
};

/// The records of one page.
const PAGE: u32 = 1_000;
/// The most pages that one request reads.
const MAX_PAGES: usize = 10;

/// The records of one owner, for one request: their scope, and the metadata that names the owner.
pub(super) struct OwnerRecords {
    pub(super) service: Arc<Service>,
    pub(super) caller: Caller,
    pub(super) binding: Option<BindingKey>,
    pub(super) scope: Scope,
    /// The metadata field that names the owner, and the owner's id in it.
    pub(super) owner: (&'static str, String),
}

/// A page of an owner's records.
pub(super) struct OwnerPage {
    pub(super) items: Vec<Snippet>,
    pub(super) next_cursor: Option<String>,
}

impl OwnerRecords {
    /// Whether a record belongs to this owner.
    pub(super) fn owns(&self, record: &Snippet) -> bool {
        let (name, value) = &self.owner;
        let found = record.metadata.as_ref().and_then(|metadata| metadata.get(*name)?.as_str());
        found == Some(value)
    }

    /// The metadata filter that finds this owner's records.
    pub(super) fn filter(&self) -> JsonObject {
        let (name, value) = &self.owner;
        JsonObject::from_iter([((*name).to_owned(), value.as_str().into())])
    }

    /// One page of the owner's records that match a filter.
    pub(super) async fn page(
        &self,
        cursor: Option<String>,
        limit: u32,
        filter: JsonObject,
    ) -> Result<OwnerPage, Problem> {
        let request = ListRequest {
            binding_key: self.binding.clone(),
            scope: self.scope.clone(),
            cursor,
            limit: Some(limit),
            metadata_filter: Some(filter),
            filter: None,
        };
        let page = self.service.list(&self.caller, request).await?;
        let items = page.items.into_iter().filter(|record| self.owns(record)).collect();
        Ok(OwnerPage { items, next_cursor: page.next_cursor })
    }

    /// At most 10,000 of the owner's records, from a cursor on.
    pub(super) async fn all(&self, cursor: Option<String>) -> Result<OwnerPage, Problem> {
        let mut all = OwnerPage { items: Vec::new(), next_cursor: cursor };
        for _ in 0..MAX_PAGES {
            let page = self.page(all.next_cursor.take(), PAGE, self.filter()).await?;
            all.items.extend(page.items);
            all.next_cursor = page.next_cursor;
            if all.next_cursor.is_none() {
                break;
            }
        }
        Ok(all)
    }

    /// Writes records, and returns a handle for each.
    pub(super) async fn write(
        &self,
        source: Option<SourceRef>,
        records: Vec<RecordWrite>,
    ) -> Result<Vec<RecordHandle>, Problem> {
        let (binding_key, scope) = (self.binding.clone(), self.scope.clone());
        let request = UpsertRequest { binding_key, scope, source, records, visibility: None };
        Ok(self.service.upsert(&self.caller, request).await?.records)
    }

    /// Writes one record.
    pub(super) async fn write_one(
        &self,
        source: Option<SourceRef>,
        record: RecordWrite,
    ) -> Result<RecordHandle, Problem> {
        let written = self.write(source, vec![record]).await?.into_iter().next();
        written.ok_or_else(|| Problem::new(ProblemCode::BadAnswer, "the provider wrote no record"))
    }
}

/// The options of an integration.
pub(super) async fn options<O: Clone + Send + Sync + 'static>(
    parts: &mut Parts,
    service: &Arc<Service>,
) -> Result<Arc<O>, Problem> {
    let options = Extension::<Arc<O>>::from_request_parts(parts, service).await;
    Ok(options.map_err(|error| Problem::new(ProblemCode::Host, error.to_string()))?.0)
}

/// The id in the address.
pub(super) async fn path_id(parts: &mut Parts, service: &Arc<Service>) -> Result<String, Problem> {
    let id = Path::<String>::from_request_parts(parts, service).await;
    Ok(id.map_err(|error| Problem::invalid(error.to_string()))?.0)
}

/// Checks an id of another system by the host's rules for ids.
pub(super) fn id(field: &str, text: &str) -> Result<String, Problem> {
    check_id(field, text).map_err(|error| invalid(&error.field, error.message.clone()))?;
    Ok(text.to_owned())
}

/// A problem with a field of the request.
pub(super) fn invalid(field: &str, message: impl std::fmt::Display) -> Problem {
    Problem::invalid(format!("{field} {message}")).at(field)
}

/// A text in a record's metadata.
pub(super) fn text(metadata: Option<&JsonObject>, name: &str) -> Option<String> {
    metadata?.get(name)?.as_str().map(str::to_owned)
}
