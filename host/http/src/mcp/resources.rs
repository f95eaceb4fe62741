//! Records as resources: listed page by page, read by address.

use rmcp::model::{
    Annotations, ListResourcesResult, MetaObject, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::{Value, json};

use super::error::McpError;
use super::request_scope::RequestScope;
use super::results::{CorrectedBy, Source, shown_metadata};
use super::uri;
use memhost_core::{Act, Service};
use memhost_types::foreign::{one_line, visible, visible_lines};
use memhost_types::{GetRequest, ListRequest, OperationKind, Snippet};

/// How many records one page has.
const PAGE: u32 = 50;
/// The longest name, in characters.
const MAX_NAME: usize = 80;
const MEDIA: &str = "text/plain";

/// One page of the records. A caller who may not list records gets an empty page, because clients
/// ask unprompted.
///
/// # Errors
/// Those of the service.
pub(super) async fn list(
    service: &Service,
    from: RequestScope,
    cursor: Option<String>,
) -> Result<ListResourcesResult, McpError> {
    if !may(service, &from, OperationKind::List) {
        return Ok(ListResourcesResult::with_all_items(Vec::new()));
    }
    let request = ListRequest {
        binding_key: from.binding,
        scope: from.scope,
        cursor,
        limit: Some(PAGE),
        metadata_filter: None,
        filter: None,
    };
    let page = service.operations().list(&from.caller, request).await?;
    let mut result = ListResourcesResult::with_all_items(page.items.iter().map(resource).collect());
    result.next_cursor = page.next_cursor;
    Ok(result)
}

/// The template of a record's address, for callers who may read records.
pub(super) fn templates(service: &Service, from: &RequestScope) -> Vec<ResourceTemplate> {
    if !may(service, from, OperationKind::Get) {
        return Vec::new();
    }
    let template = ResourceTemplate::new(uri::TEMPLATE, "record")
        .with_title("A record of memory")
        .with_description(
            "A record by its provider and its id, percent-encoded, as a search gives its `uri`.",
        )
        .with_mime_type(MEDIA);
    vec![template]
}

/// A record by its address.
///
/// # Errors
/// If this scope has no such record, and those of the service.
pub(super) async fn read(
    service: &Service,
    from: RequestScope,
    address: &str,
) -> Result<ReadResourceResult, McpError> {
    let none = || McpError::NoRecord(address.to_owned());
    let handle = uri::parse(address).ok_or_else(none)?;
    let request = GetRequest { binding_key: from.binding, scope: from.scope, handle };
    let record = service.operations().get(&from.caller, request).await?.record.ok_or_else(none)?;
    let meta = meta(&record);
    let contents = ResourceContents::text(visible_lines(&record.text), uri::uri(&record.handle))
        .with_mime_type(MEDIA)
        .with_meta(meta);
    Ok(ReadResourceResult::new(vec![contents]))
}

fn may(service: &Service, from: &RequestScope, kind: OperationKind) -> bool {
    service.tenancy().allows(&from.caller, Act::Operate(kind), &from.scope.company_id)
}

fn resource(record: &Snippet) -> Resource {
    let title = record
        .summary
        .as_deref()
        .unwrap_or(&record.text)
        .lines()
        .find(|line| !line.trim().is_empty());
    // A line may be as long as a record.
    let title: String = title.unwrap_or_default().trim().chars().take(MAX_NAME).collect();
    let title = one_line(&title);
    let mut annotations = Annotations::default();
    annotations.last_modified = record.updated_at.or(record.created_at).map(|at| at.to_string());
    let size = u64::try_from(record.text.len()).unwrap_or(u64::MAX);
    let resource =
        Resource::new(uri::uri(&record.handle), visible(record.handle.provider_record_id.as_str()))
            .with_mime_type(MEDIA)
            .with_size(size)
            .with_annotations(annotations);
    if title.is_empty() { resource } else { resource.with_title(title) }
}

/// The fields of a record beside its text.
fn meta(record: &Snippet) -> MetaObject {
    let members = [
        ("summary", json!(record.summary.as_deref().map(visible_lines))),
        ("source", json!(record.source.as_ref().map(Source::from))),
        ("claimedSource", json!(record.claimed_source.as_deref().map(Source::from))),
        ("writtenBy", json!(record.written_by)),
        ("corrected", json!(record.corrected.as_ref().map(CorrectedBy::from))),
        ("metadata", json!(record.metadata.clone().map(shown_metadata))),
        ("createdAt", json!(record.created_at)),
        ("updatedAt", json!(record.updated_at)),
        ("happenedAt", json!(record.happened_at)),
        ("expiresAt", json!(record.expires_at)),
    ];
    let known = members.into_iter().filter(|(_, value)| !value.is_null());
    let mut meta = MetaObject::default();
    let members: serde_json::Map<String, Value> =
        known.map(|(name, value)| (name.to_owned(), value)).collect();
    meta.insert("memhost.dev/record".to_owned(), Value::Object(members));
    meta
}
