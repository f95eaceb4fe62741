//! Apropos' memory of a project, which every agent framework shares.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Extension, Json, Router};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::item::{Item, ItemType, NewItem};
use super::options::AproposOptions;
use super::place::{Place, id, invalid};
use memhost_core::{Caller, Service};
use memhost_http::{Authenticated, Body, Problem, Query};
use memhost_types::{Intent, QueryRequest, RecordHandle, RecordWrite, Scope, Snippet, UpsertRequest};

/// The longest context of a recall, in characters, where nobody says; and at all.
const CONTEXT_CHARS: usize = 2_000;
const MAX_CONTEXT_CHARS: usize = 100_000;
/// How many items a page has where nobody says, and how many are looked for.
const PAGE: u32 = 50;
const TOP: u32 = 10;

/// The routes of this system.
pub(super) fn routes() -> Router<Arc<Service>> {
    let memory = Router::new()
        .route("/memory", post(add).get(list))
        .route("/memory/search", post(search))
        .route("/memory/recall", post(recall))
        .route("/memory/import", post(import))
        .route("/memory/export", post(export));
    Router::new().nest("/api/projects/{projectId}", memory)
}

fn place(options: &AproposOptions, project: &str, session: Option<&str>) -> Result<Place, Problem> {
    let project = id("projectId", project)?;
    let mut scope = Scope::company(options.company.clone());
    scope.session_key = session.map(str::to_owned);
    options.project.set(&mut scope, &project);
    Ok(Place { binding: options.binding.clone(), scope, owner: ("projectId", project) })
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
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<AproposOptions>>,
    Path(project): Path<String>,
    Body(new): Body<NewItem>,
) -> Result<(StatusCode, Json<Item>), Problem> {
    if let Some(session) = &new.session_id {
        id("sessionId", session)?;
    }
    let place = place(&options, &project, new.session_id.as_deref())?;
    let record = new.record(&place, "", false)?;
    let handles = write(&service, &caller, &place, vec![record.clone()]).await?;
    let Some(handle) = handles.into_iter().next() else {
        return Err(Problem::new(StatusCode::BAD_GATEWAY, "bad_answer", "the provider wrote nothing"));
    };
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
    };
    Ok((StatusCode::CREATED, Json(Item::of(&place, written))))
}

async fn write(
    service: &Arc<Service>,
    caller: &Caller,
    place: &Place,
    records: Vec<RecordWrite>,
) -> Result<Vec<RecordHandle>, Problem> {
    let request =
        UpsertRequest { binding_key: place.binding.clone(), scope: place.scope.clone(), source: None, records };
    Ok(service.upsert(caller, request).await?.records)
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
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<AproposOptions>>,
    Path(project): Path<String>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Items>, Problem> {
    let place = place(&options, &project, None)?;
    let mut filter = place.filter();
    if let Some(kind) = query.r#type {
        filter.insert("type".to_owned(), serde_json::json!(kind));
    }
    for (name, value) in [("agentKind", query.agent_kind), ("sessionId", query.session_id)] {
        if let Some(value) = value {
            filter.insert(name.to_owned(), value.into());
        }
    }
    let found = place.page(&service, &caller, query.cursor, query.limit.unwrap_or(PAGE), filter).await?;
    let items = found.items.into_iter().map(|record| Item::of(&place, record)).collect();
    Ok(Json(Items { items, next_cursor: found.next_cursor }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Search {
    query: String,
    #[serde(default)]
    limit: Option<u32>,
}

async fn search(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<AproposOptions>>,
    Path(project): Path<String>,
    Body(search): Body<Search>,
) -> Result<Json<Items>, Problem> {
    let place = place(&options, &project, None)?;
    let items = find(&service, &caller, &place, search.query, search.limit, Intent::Answer).await?;
    Ok(Json(Items { items, next_cursor: None }))
}

async fn find(
    service: &Arc<Service>,
    caller: &Caller,
    place: &Place,
    query: String,
    limit: Option<u32>,
    intent: Intent,
) -> Result<Vec<Item>, Problem> {
    let request = QueryRequest {
        binding_key: place.binding.clone(),
        scope: place.scope.clone(),
        query,
        top_k: Some(limit.unwrap_or(TOP)),
        intent,
        metadata_filter: Some(place.filter()),
    };
    let found = service.query(caller, request).await?;
    let own = found.snippets.into_iter().filter(|record| place.owns(record));
    Ok(own.map(|record| Item::of(place, record)).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Recall {
    query: String,
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    max_chars: Option<usize>,
}

/// Items, and the same as a text for a prompt.
#[derive(Debug, Serialize)]
struct Recalled {
    items: Vec<Item>,
    context: String,
}

async fn recall(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<AproposOptions>>,
    Path(project): Path<String>,
    Body(recall): Body<Recall>,
) -> Result<Json<Recalled>, Problem> {
    let place = place(&options, &project, None)?;
    let max = recall.max_chars.unwrap_or(CONTEXT_CHARS);
    if !(1..=MAX_CONTEXT_CHARS).contains(&max) {
        return Err(invalid("maxChars", format!("is {max}; 1 to {MAX_CONTEXT_CHARS} are allowed")));
    }
    let items = find(&service, &caller, &place, recall.query, recall.limit, Intent::AgentPreamble).await?;
    let context = context(&items, max);
    Ok(Json(Recalled { items, context }))
}

/// One line for each item, as long as they fit.
fn context(items: &[Item], max: usize) -> String {
    let (mut text, mut chars) = (String::new(), 0);
    for item in items {
        let line = format!("- {}\n", item.content.split_whitespace().collect::<Vec<_>>().join(" "));
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
    // What an export says beside its items.
    #[serde(default)]
    project_id: Option<String>,
    #[serde(default, rename = "exportedAt")]
    _exported_at: Option<Timestamp>,
    #[serde(default, rename = "nextCursor")]
    _next_cursor: Option<String>,
}

/// What an import came to.
#[derive(Debug, Serialize)]
struct Imported {
    imported: usize,
    /// In the order of the items.
    ids: Vec<String>,
}

async fn import(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<AproposOptions>>,
    Path(project): Path<String>,
    Body(import): Body<Import>,
) -> Result<Json<Imported>, Problem> {
    let place = place(&options, &project, None)?;
    if import.project_id.is_some_and(|project| project != place.owner.1) {
        return Err(invalid("projectId", "is not the project of the address"));
    }
    let records = import.items.into_iter().enumerate();
    let records = records.map(|(index, item)| item.record(&place, &format!("items.{index}."), true));
    let handles = write(&service, &caller, &place, records.collect::<Result<_, _>>()?).await?;
    let ids: Vec<String> = handles.into_iter().map(|handle| handle.provider_record_id.to_string()).collect();
    Ok(Json(Imported { imported: ids.len(), ids }))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Export {
    #[serde(default)]
    cursor: Option<String>,
}

/// All items of a project, or as many as one answer may have.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Exported {
    project_id: String,
    exported_at: Timestamp,
    items: Vec<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

async fn export(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<AproposOptions>>,
    Path(project): Path<String>,
    body: Bytes,
) -> Result<Json<Exported>, Problem> {
    let place = place(&options, &project, None)?;
    // The document shows no body, so none is needed.
    let asked: Export = if body.is_empty() {
        Export::default()
    } else {
        serde_json::from_slice(&body)
            .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, "invalid_request", error.to_string()))?
    };
    let found = place.all(&service, &caller, asked.cursor).await?;
    let items = found.items.into_iter().map(|record| Item::of(&place, record)).collect();
    let (project_id, exported_at) = (place.owner.1.clone(), Timestamp::now());
    Ok(Json(Exported { project_id, exported_at, items, next_cursor: found.next_cursor }))
}
