//! PageSpace's facts: short sentences about a user, who has them everywhere, and of a drive, which its members share.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{delete, get};
use axum::{Extension, Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::options::PageSpaceOptions;
use super::owned::{Owned, id, invalid, text};
use memhost_core::{Caller, Service};
use memhost_http::{Authenticated, Body, Problem, ProblemCode};
use memhost_types::{
    ForgetEffect, ForgetRequest, GetRequest, JsonObject, RecordHandle, RecordWrite, Scope, Snippet, SourceKind,
    SourceRef, UpsertRequest,
};

/// The most records that one call forgets.
const MAX_HANDLES: usize = 1_000;
/// The longest fact, in characters.
const MAX_FACT_CHARS: usize = 200;
const USER: &str = "userId";
const DRIVE: &str = "driveId";

/// The routes of this system.
pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/api/memory/user", get(list_user).post(add_user))
        .route("/api/memory/user/{id}", delete(delete_user))
        // Not the address without an id: a client that has lost the id of one fact would remove all of them.
        .route("/api/memory/user/all", delete(clear_user))
        // One pattern for two things: a drive's id to list and add, a fact's id to delete.
        .route("/api/memory/drive/{id}", get(list_drive).post(add_drive).delete(delete_drive))
        .route("/api/memory/drive/{id}/all", delete(clear_drive))
}

/// Who made a fact.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Source {
    Ai,
    #[default]
    User,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewFact {
    fact: String,
    #[serde(default)]
    source: Source,
}

/// A row of `user_memories` or of `drive_memories`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Fact {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drive_id: Option<String>,
    fact: String,
    created_at: Option<Timestamp>,
    /// Of a drive's fact, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_by: Option<Option<String>>,
    source: Option<String>,
}

/// For whom the call is. Who has an agent's token is that agent and nobody else.
fn user(options: &PageSpaceOptions, caller: &Caller, headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let given = headers.get(options.user_header.as_str()).map(|value| value.to_str().unwrap_or_default());
    let given = given.map(|user| id(&options.user_header, user)).transpose()?;
    match (caller.agent().map(ToString::to_string), given) {
        (Some(own), Some(given)) if own != given => {
            let detail = format!("the token is for {own}; it cannot be used for another user");
            Err(Problem::new(ProblemCode::Forbidden, detail))
        }
        (own, given) => Ok(own.or(given)),
    }
}

fn of_user(options: &PageSpaceOptions, caller: &Caller, headers: &HeaderMap) -> Result<Owned, Problem> {
    let user = user(options, caller, headers)?;
    let user =
        user.ok_or_else(|| invalid(&options.user_header, "is missing; this header says for which user it is"))?;
    let mut scope = Scope::company(options.company.clone());
    options.user.set(&mut scope, &user);
    Ok(Owned { binding: options.binding.clone(), scope, owner: (USER, user) })
}

fn of_drive(options: &PageSpaceOptions, drive: &str) -> Result<Owned, Problem> {
    let drive = id(DRIVE, drive)?;
    let mut scope = Scope::company(options.company.clone());
    options.drive.set(&mut scope, &drive);
    Ok(Owned { binding: options.binding.clone(), scope, owner: (DRIVE, drive) })
}

async fn list_user(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<PageSpaceOptions>>,
    headers: HeaderMap,
) -> Result<Json<Vec<Fact>>, Problem> {
    let owned = of_user(&options, &caller, &headers)?;
    list(&service, &caller, &owned).await
}

async fn list_drive(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<PageSpaceOptions>>,
    Path(drive): Path<String>,
) -> Result<Json<Vec<Fact>>, Problem> {
    let owned = of_drive(&options, &drive)?;
    list(&service, &caller, &owned).await
}

async fn list(service: &Arc<Service>, caller: &Caller, owned: &Owned) -> Result<Json<Vec<Fact>>, Problem> {
    let found = owned.all(service, caller, None).await?;
    let mut facts: Vec<Fact> = found.items.into_iter().map(|record| fact(owned, record)).collect();
    facts.sort_by_key(|fact| fact.created_at);
    Ok(Json(facts))
}

async fn add_user(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<PageSpaceOptions>>,
    headers: HeaderMap,
    Body(new): Body<NewFact>,
) -> Result<(StatusCode, Json<Fact>), Problem> {
    let owned = of_user(&options, &caller, &headers)?;
    add(&service, &caller, &owned, new, None).await
}

async fn add_drive(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<PageSpaceOptions>>,
    Path(drive): Path<String>,
    headers: HeaderMap,
    Body(new): Body<NewFact>,
) -> Result<(StatusCode, Json<Fact>), Problem> {
    let owned = of_drive(&options, &drive)?;
    let by = user(&options, &caller, &headers)?;
    add(&service, &caller, &owned, new, by).await
}

async fn add(
    service: &Arc<Service>,
    caller: &Caller,
    owned: &Owned,
    new: NewFact,
    by: Option<String>,
) -> Result<(StatusCode, Json<Fact>), Problem> {
    let (sentence, length) = (new.fact.trim(), new.fact.trim().chars().count());
    if !(1..=MAX_FACT_CHARS).contains(&length) {
        return Err(invalid("fact", format!("has {length} characters; 1 to {MAX_FACT_CHARS} are allowed")));
    }
    // The provider may keep no times.
    let mut metadata = owned.filter();
    metadata.insert("source".to_owned(), json!(new.source));
    metadata.insert("createdAt".to_owned(), json!(Timestamp::now()));
    if let Some(by) = by {
        metadata.insert("createdBy".to_owned(), by.into());
    }
    let record = RecordWrite { id: None, text: sentence.to_owned(), summary: None, metadata: Some(metadata.clone()) };
    let request = UpsertRequest {
        binding_key: owned.binding.clone(),
        scope: owned.scope.clone(),
        source: Some(SourceRef::new(SourceKind::ManualNote, owned.scope.company_id.clone())),
        records: vec![record],
    };
    let written = service.upsert(caller, request).await?;
    let Some(handle) = written.records.into_iter().next() else {
        return Err(Problem::new(ProblemCode::BadAnswer, "the provider wrote nothing"));
    };
    Ok((StatusCode::CREATED, Json(row(owned, &handle, sentence.to_owned(), Some(&metadata), None))))
}

async fn delete_user(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<PageSpaceOptions>>,
    Path(fact): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let owned = of_user(&options, &caller, &headers)?;
    let name = decode(&fact).filter(|name| name.drive.is_none()).ok_or_else(not_found)?;
    forget(&service, &caller, &owned, name.handle).await
}

async fn delete_drive(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<PageSpaceOptions>>,
    Path(fact): Path<String>,
) -> Result<StatusCode, Problem> {
    let name = decode(&fact).ok_or_else(not_found)?;
    let owned = of_drive(&options, &name.drive.ok_or_else(not_found)?)?;
    forget(&service, &caller, &owned, name.handle).await
}

/// The number of removed facts.
#[derive(Debug, Serialize)]
struct Cleared {
    removed: usize,
}

async fn clear_user(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<PageSpaceOptions>>,
    headers: HeaderMap,
) -> Result<Json<Cleared>, Problem> {
    let owned = of_user(&options, &caller, &headers)?;
    clear(&service, &caller, &owned).await
}

async fn clear_drive(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<PageSpaceOptions>>,
    Path(drive): Path<String>,
) -> Result<Json<Cleared>, Problem> {
    let owned = of_drive(&options, &drive)?;
    clear(&service, &caller, &owned).await
}

/// Forgets all present facts of an owner.
async fn clear(service: &Arc<Service>, caller: &Caller, owned: &Owned) -> Result<Json<Cleared>, Problem> {
    let found = owned.all(service, caller, None).await?.items;
    let mut removed = 0;
    for some in found.chunks(MAX_HANDLES) {
        let handles = some.iter().map(|record| record.handle.clone()).collect();
        let request = ForgetRequest { binding_key: owned.binding.clone(), scope: owned.scope.clone(), handles };
        let done = service.forget(caller, request).await?;
        removed += done.outcomes.iter().filter(|outcome| outcome.effect != ForgetEffect::NotFound).count();
    }
    Ok(Json(Cleared { removed }))
}

/// Forgets a record after checking its owner.
async fn forget(
    service: &Arc<Service>,
    caller: &Caller,
    owned: &Owned,
    handle: RecordHandle,
) -> Result<StatusCode, Problem> {
    let (binding_key, scope) = (owned.binding.clone(), owned.scope.clone());
    let get = GetRequest { binding_key: binding_key.clone(), scope: scope.clone(), handle: handle.clone() };
    let found = service.get(caller, get).await?;
    if !found.record.as_ref().is_some_and(|record| owned.owns(record)) {
        return Err(not_found());
    }
    service.forget(caller, ForgetRequest { binding_key, scope, handles: vec![handle] }).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn not_found() -> Problem {
    Problem::new(ProblemCode::NotFound, "there is no such fact here")
}

fn fact(owned: &Owned, record: Snippet) -> Fact {
    row(owned, &record.handle, record.text, record.metadata.as_ref(), record.created_at)
}

fn row(
    owned: &Owned,
    handle: &RecordHandle,
    fact: String,
    metadata: Option<&JsonObject>,
    created_at: Option<Timestamp>,
) -> Fact {
    let is_drive = owned.owner.0 == DRIVE;
    let owner = Some(owned.owner.1.clone());
    let kept = text(metadata, "createdAt").and_then(|at| at.parse().ok());
    Fact {
        id: encode(handle, is_drive.then_some(owned.owner.1.as_str())),
        user_id: owner.clone().filter(|_| !is_drive),
        drive_id: owner.filter(|_| is_drive),
        fact,
        created_at: kept.or(created_at),
        created_by: is_drive.then(|| text(metadata, "createdBy")),
        source: text(metadata, "source"),
    }
}

/// The content of a fact's id. It names the drive, because the address that deletes a drive's fact does not.
#[derive(Debug, Serialize, Deserialize)]
struct FactId {
    #[serde(flatten)]
    handle: RecordHandleParts,
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    drive: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordHandleParts {
    p: String,
    r: String,
}

struct Decoded {
    handle: RecordHandle,
    drive: Option<String>,
}

fn encode(handle: &RecordHandle, drive: Option<&str>) -> String {
    let parts = RecordHandleParts { p: handle.provider_key.to_string(), r: handle.provider_record_id.to_string() };
    let name = FactId { handle: parts, drive: drive.map(str::to_owned) };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&name).unwrap_or_default())
}

fn decode(text: &str) -> Option<Decoded> {
    let name: FactId = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let handle =
        RecordHandle { provider_key: name.handle.p.parse().ok()?, provider_record_id: name.handle.r.parse().ok()? };
    Some(Decoded { handle, drive: name.drive })
}
