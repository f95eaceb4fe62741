//! Apropos' memory of a project, which every agent framework shares.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::{get, post};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::item::{Item, ItemChange, ItemType, NewItem, check_project, record_id};
use super::options::{AproposOptions, ScopeField};
use super::owned::{OwnerRecords, id, invalid, options};
use memhost_core::Service;
use memhost_executor::off_executor;
use memhost_http::{Authenticated, Body, Json, Problem, ProblemCode, Query, read_json};
use memhost_types::foreign::one_line;
use memhost_types::{Intent, QueryRequest, Scope, Snippet};

/// The default length of a recall's context, in characters.
const CONTEXT_CHARS: usize = 2_000;
/// The longest context of a recall, in characters.
const MAX_CONTEXT_CHARS: usize = 100_000;
/// The default size of a page.
const PAGE: u32 = 50;
/// Pages that one request for a list reads at most, where what is wanted is not on the first ones.
const MOST_PAGES: u32 = 20;
/// The default number of items that a search finds.
const TOP: u32 = 10;

/// The routes below that are asked with `POST` and only read.
pub(super) const READS: &[&str] = &[
    "/api/projects/{projectId}/memory/search",
    "/api/projects/{projectId}/memory/recall",
    "/api/projects/{projectId}/memory/export",
];

/// The routes of this system.
pub(super) fn routes() -> Router<Arc<Service>> {
    let memory = Router::new()
        .route("/memory", post(add).get(list))
        .route("/memory/{itemId}", get(one).patch(change).delete(remove))
        .route("/memory/search", post(search))
        .route("/memory/recall", post(recall))
        .route("/memory/import", post(import))
        .route("/memory/export", post(export));
    Router::new().nest("/api/projects/{projectId}", memory)
}

/// The items of the project in the address.
struct Project(OwnerRecords);

impl FromRequestParts<Arc<Service>> for Project {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<Service>,
    ) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, service).await?;
        let options = options::<AproposOptions>(parts, service).await?;
        let project = id("projectId", &path_value(parts, service, "projectId").await?)?;
        let mut scope = Scope::company(options.company.clone());
        options.project.set(&mut scope, &project);
        let (service, binding) = (Arc::clone(service), options.binding.clone());
        Ok(Self(OwnerRecords {
            service,
            caller,
            binding,
            scope,
            owner: ("projectId", project),
            field: options.project,
            facts: None,
        }))
    }
}

/// A named part of the address.
async fn path_value(
    parts: &mut Parts,
    service: &Arc<Service>,
    name: &str,
) -> Result<String, Problem> {
    let all = Path::<HashMap<String, String>>::from_request_parts(parts, service).await;
    let mut all = all.map_err(|error| Problem::invalid(error.to_string()))?.0;
    Ok(all.remove(name).unwrap_or_default())
}

/// Records as items. What their metadata have is read again, which takes long for many.
fn items(records: &OwnerRecords, found: Vec<Snippet>) -> Vec<Item> {
    let bytes = found.iter().map(Snippet::weight).sum();
    off_executor(bytes, || found.into_iter().map(|record| Item::of(records, record)).collect())
}

fn not_found(records: &OwnerRecords) -> Problem {
    let project = &records.owner.1;
    let message = format!(
        "there is no such item in this project; `GET /api/projects/{project}/memory` lists its \
         items"
    );
    Problem::new(ProblemCode::NotFound, message)
}

#[derive(Deserialize)]
struct Of {
    #[serde(rename = "itemId")]
    item: String,
}

async fn one(Project(records): Project, Path(of): Path<Of>) -> Result<Json<Item>, Problem> {
    let found = records.get(&of.item).await?;
    let found = found
        .filter(|record| records.owns(record) || records.shares(record))
        .ok_or_else(|| not_found(&records))?;
    Ok(Json(Item::of(&records, found)))
}

/// Changes the fields that the body has; without one nothing is written. The item keeps its id and
/// `createdAt`, and where it comes from: a write that names no source leaves that as the host has
/// it.
async fn change(
    Project(mut records): Project,
    Path(of): Path<Of>,
    Body(change): Body<ItemChange>,
) -> Result<Json<Item>, Problem> {
    let found = records
        .get(&of.item)
        .await?
        .filter(|record| records.owns(record))
        .ok_or_else(|| not_found(&records))?;
    if change.is_empty() {
        return Ok(Json(Item::of(&records, found)));
    }
    let mut scope = found.scope.clone();
    // An item that a hook or a tool wrote has its session in its scope.
    if records.field != ScopeField::SessionKey {
        let kept = scope.as_ref().and_then(|scope| scope.session_key.clone());
        records.scope.session_key = change.session(kept);
        scope =
            scope.map(|scope| Scope { session_key: records.scope.session_key.clone(), ..scope });
    }
    let record = change.record(&records, &found)?;
    records.write_one(None, record.clone()).await?;
    Ok(Json(Item::of(
        &records,
        Snippet { text: record.text, metadata: record.metadata, scope, ..found },
    )))
}

async fn remove(Project(records): Project, Path(of): Path<Of>) -> Result<StatusCode, Problem> {
    let found = records
        .get(&of.item)
        .await?
        .filter(|record| records.owns(record))
        .ok_or_else(|| not_found(&records))?;
    records.forget(found.handle).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Some items.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Items {
    items: Vec<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

async fn add(
    Project(mut records): Project,
    Body(new): Body<NewItem>,
) -> Result<(StatusCode, Json<Item>), Problem> {
    if let Some(session) = &new.session_id {
        records.scope.session_key = Some(id("sessionId", session)?);
    }
    let record = new.record(&records, "", false)?;
    let handle = records.write_one(None, record.clone()).await?;
    let written = Snippet {
        handle,
        text: record.text,
        score: None,
        score_kind: None,
        summary: None,
        source: None,
        metadata: record.metadata,
        created_at: None,
        updated_at: None,
        expires_at: None,
        scope: None,
        claimed_source: None,
        written_by: None,
        happened_at: None,
        corrected: None,
    };
    Ok((StatusCode::CREATED, Json(Item::of(&records, written))))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListQuery {
    limit: Option<u32>,
    cursor: Option<String>,
    r#type: Option<ItemType>,
    agent_kind: Option<String>,
    session_id: Option<String>,
}

async fn list(
    Project(records): Project,
    Query(query): Query<ListQuery>,
) -> Result<Json<Items>, Problem> {
    let ListQuery { limit, cursor, r#type, agent_kind, session_id } = query;
    let is_filtered = r#type.is_some() || agent_kind.is_some() || session_id.is_some();
    let (mut cursor, mut further) = (cursor, 1..MOST_PAGES);
    loop {
        let found = records.page(cursor, limit.unwrap_or(PAGE)).await?;
        let mut items = items(&records, found.items);
        // By what an item shows: its metadata do not say everything of what a tool or a hook wrote.
        items.retain(|item| item.is_of(r#type, agent_kind.as_deref(), session_id.as_deref()));
        cursor = found.next_cursor;
        // Where everything was left out, what is wanted may be on the next page.
        let goes_on = is_filtered && items.is_empty() && cursor.is_some();
        if !goes_on || further.next().is_none() {
            return Ok(Json(Items { items, next_cursor: cursor }));
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Search {
    query: String,
    #[serde(default)]
    limit: Option<u32>,
}

async fn search(
    Project(records): Project,
    Body(search): Body<Search>,
) -> Result<Json<Items>, Problem> {
    let items = find(&records, search.query, search.limit, Intent::Answer).await?;
    Ok(Json(Items { items, next_cursor: None }))
}

async fn find(
    records: &OwnerRecords,
    query: String,
    limit: Option<u32>,
    intent: Intent,
) -> Result<Vec<Item>, Problem> {
    let request = QueryRequest {
        binding_key: records.binding.clone(),
        scope: records.scope.clone(),
        query,
        top_k: Some(limit.unwrap_or(TOP)),
        intent,
        metadata_filter: None,
        token_budget: None,
        filter: None,
    };
    let found = records.service.operations().query(&records.caller, request).await?;
    let found = records.checked(found.snippets).await?;
    let own = found.into_iter().filter(|record| records.owns(record) || records.shares(record));
    Ok(items(records, own.collect()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Recall {
    #[serde(default)]
    query: String,
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    max_chars: Option<usize>,
    // For whom, in the event that it leaves.
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    agent_kind: Option<String>,
}

/// The items of a recall, and the same as text for a prompt.
#[derive(Debug, Serialize)]
struct Recalled {
    items: Vec<Item>,
    context: String,
}

async fn recall(
    Project(mut records): Project,
    Body(recall): Body<Recall>,
) -> Result<Json<Recalled>, Problem> {
    let max = recall.max_chars.unwrap_or(CONTEXT_CHARS);
    if !(1..=MAX_CONTEXT_CHARS).contains(&max) {
        return Err(invalid("maxChars", format!("is {max}; 1 to {MAX_CONTEXT_CHARS} are allowed")));
    }
    // The event of the recall names both.
    if let Some(session) = recall.session_id {
        records.scope.session_key = Some(id("sessionId", &session)?);
    }
    let kind =
        recall.agent_kind.map(|kind| id("agentKind", &kind)).transpose()?.unwrap_or_default();
    records.caller = records.caller.through(format!("apropos:{kind}"));
    // Without a question the most useful items are meant; for one that nothing fits, nothing is the
    // answer.
    let intent =
        if recall.query.trim().is_empty() { Intent::AgentPreamble } else { Intent::Answer };
    let items = find(&records, recall.query, recall.limit, intent).await?;
    let context =
        off_executor(items.iter().map(|item| item.content.len()).sum(), || context(&items, max));
    Ok(Json(Recalled { items, context }))
}

/// One line for each item that still fits.
fn context(items: &[Item], max: usize) -> String {
    let (mut text, mut chars) = (String::new(), 0);
    for item in items {
        // Not even a line of one letter fits.
        if chars + "- a\n".len() > max {
            break;
        }
        let line = format!("- {}\n", one_line(&item.content));
        let length = line.chars().count();
        if chars + length <= max {
            text.push_str(&line);
            chars += length;
        }
    }
    text
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Import {
    items: Vec<NewItem>,
    // An export has these beside its items.
    #[serde(default)]
    project_id: Option<String>,
    #[serde(default, rename = "exportedAt")]
    _exported_at: Option<Timestamp>,
    #[serde(default, rename = "nextCursor")]
    _next_cursor: Option<String>,
}

/// The result of an import.
#[derive(Debug, Serialize)]
struct Imported {
    imported: usize,
    /// Items that were there as they are.
    unchanged: usize,
    /// In the order of the items.
    ids: Vec<String>,
}

async fn import(
    Project(records): Project,
    Body(import): Body<Import>,
) -> Result<Json<Imported>, Problem> {
    check_project("projectId", import.project_id.as_deref(), &records)?;
    // By their ids: an item that a tool or a program wrote has no mark of the project in its id.
    let present = records.all(None).await?.items;
    let present: HashMap<String, Item> =
        items(&records, present).into_iter().map(|item| (item.id.clone(), item)).collect();
    let (mut ids, mut writes) = (Vec::with_capacity(import.items.len()), Vec::new());
    let read = |(index, item): (usize, NewItem)| -> Result<(), Problem> {
        // What came from elsewhere has another id here than in the body.
        let known = item.id.as_deref();
        let known = known.and_then(|id| {
            present.get(id).or_else(|| present.get(&record_id(&records.owner.1, Some(id))))
        });
        if let Some(known) = known.filter(|known| item.is(known)) {
            ids.push(known.id.clone());
            return Ok(());
        }
        let own_id = known.map(|known| known.id.clone());
        let mut record = item.record(&records, &format!("items.{index}."), true)?;
        record.id = own_id.and_then(|id| id.parse().ok()).or(record.id);
        ids.push(record.id.as_ref().map(ToString::to_string).unwrap_or_default());
        writes.push(record);
        Ok(())
    };
    // Items may have vectors of thousands of numbers.
    off_executor(usize::MAX, || import.items.into_iter().enumerate().try_for_each(read))?;
    let imported = writes.len();
    if imported > 0 {
        records.write(None, writes).await?;
    }
    Ok(Json(Imported { imported, unchanged: ids.len() - imported, ids }))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Export {
    #[serde(default)]
    cursor: Option<String>,
}

/// The items of a project: at most 10,000, and no page more once they have 16 MiB.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Exported {
    project_id: String,
    exported_at: Timestamp,
    items: Vec<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

async fn export(Project(records): Project, body: Bytes) -> Result<Json<Exported>, Problem> {
    // The body is optional in the system's own API.
    let asked: Export = if body.is_empty() { Export::default() } else { read_json(&body)? };
    let found = records.all(asked.cursor).await?;
    let items = items(&records, found.items);
    let (project_id, exported_at) = (records.owner.1.clone(), Timestamp::now());
    Ok(Json(Exported { project_id, exported_at, items, next_cursor: found.next_cursor }))
}
