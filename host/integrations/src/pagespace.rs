//! PageSpace's facts: short sentences about a user, and those of a drive, which its members share.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{delete, get};
use axum::{Extension, Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::options::PageSpaceOptions;
use super::owned::{OwnerRecords, id, invalid, options, path_id, text};
use memhost_core::{Caller, Service};
use memhost_http::{Authenticated, Body, Problem, ProblemCode};
use memhost_types::{
    ForgetEffect, ForgetRequest, GetRequest, JsonObject, ProviderKey, RecordHandle, RecordId, RecordWrite, Scope,
    Snippet, SourceKind, SourceRef,
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
        .route("/api/memory/user", get(list::<UserFacts>).post(add_user))
        .route("/api/memory/user/{id}", delete(delete_user))
        // Not the address without an id: a client that has lost the id of one fact would remove all of them.
        .route("/api/memory/user/all", delete(clear::<UserFacts>))
        // One pattern for two things: a drive's id to list and add, a fact's id to delete.
        .route("/api/memory/drive/{id}", get(list::<DriveFacts>).post(add_drive).delete(delete_drive))
        .route("/api/memory/drive/{id}/all", delete(clear::<DriveFacts>))
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

/// The user of the request. A caller with an agent's token is that agent; an integration says for whom it acts.
fn user(options: &PageSpaceOptions, caller: &Caller, headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let given = headers.get(options.user_header.as_str()).map(|value| value.to_str().unwrap_or_default());
    let given = given.map(|user| id(&options.user_header, user)).transpose()?;
    let own = caller.person().map(str::to_owned).or_else(|| caller.agent().map(ToString::to_string));
    match (own, given) {
        (Some(own), Some(given)) if own != given => {
            let detail = format!("the token is for {own}; it cannot be used for another user");
            Err(Problem::new(ProblemCode::Forbidden, detail))
        }
        (own, given) => Ok(own.or(given)),
    }
}

/// The facts of the user that the request is for.
struct UserFacts(OwnerRecords);

impl FromRequestParts<Arc<Service>> for UserFacts {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, service).await?;
        let options = options::<PageSpaceOptions>(parts, service).await?;
        let user = user(&options, &caller, &parts.headers)?;
        let missing = || invalid(&options.user_header, "is missing; this header says for which user it is");
        let user = user.ok_or_else(missing)?;
        let mut scope = Scope::company(options.company.clone());
        options.user.set(&mut scope, &user);
        let (service, binding) = (Arc::clone(service), options.binding.clone());
        Ok(Self(OwnerRecords { service, caller, binding, scope, owner: (USER, user) }))
    }
}

/// The facts of the drive in the address.
struct DriveFacts(OwnerRecords);

impl FromRequestParts<Arc<Service>> for DriveFacts {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, service).await?;
        let options = options::<PageSpaceOptions>(parts, service).await?;
        let drive = path_id(parts, service).await?;
        of_drive(service, caller, &options, &drive).map(Self)
    }
}

fn of_drive(
    service: &Arc<Service>,
    caller: Caller,
    options: &PageSpaceOptions,
    drive: &str,
) -> Result<OwnerRecords, Problem> {
    let drive = id(DRIVE, drive)?;
    let mut scope = Scope::company(options.company.clone());
    options.drive.set(&mut scope, &drive);
    let (service, binding) = (Arc::clone(service), options.binding.clone());
    Ok(OwnerRecords { service, caller, binding, scope, owner: (DRIVE, drive) })
}

/// The facts of a user or of a drive.
trait Facts: FromRequestParts<Arc<Service>, Rejection = Problem> + Send {
    fn records(&self) -> &OwnerRecords;
}

impl Facts for UserFacts {
    fn records(&self) -> &OwnerRecords {
        &self.0
    }
}

impl Facts for DriveFacts {
    fn records(&self) -> &OwnerRecords {
        &self.0
    }
}

async fn list<F: Facts>(facts: F) -> Result<Json<Vec<Fact>>, Problem> {
    let records = facts.records();
    let found = records.all(None).await?.items;
    let mut facts: Vec<Fact> = found.into_iter().map(|record| fact(records, record)).collect();
    facts.sort_by_key(|fact| fact.created_at);
    Ok(Json(facts))
}

async fn add_user(
    UserFacts(records): UserFacts,
    Body(new): Body<NewFact>,
) -> Result<(StatusCode, Json<Fact>), Problem> {
    add(&records, new, None).await
}

async fn add_drive(
    DriveFacts(records): DriveFacts,
    Extension(options): Extension<Arc<PageSpaceOptions>>,
    headers: HeaderMap,
    Body(new): Body<NewFact>,
) -> Result<(StatusCode, Json<Fact>), Problem> {
    let by = user(&options, &records.caller, &headers)?;
    add(&records, new, by).await
}

async fn add(records: &OwnerRecords, new: NewFact, by: Option<String>) -> Result<(StatusCode, Json<Fact>), Problem> {
    let (sentence, length) = (new.fact.trim(), new.fact.trim().chars().count());
    if !(1..=MAX_FACT_CHARS).contains(&length) {
        return Err(invalid("fact", format!("has {length} characters; 1 to {MAX_FACT_CHARS} are allowed")));
    }
    // The provider may keep no times.
    let mut metadata = records.filter();
    metadata.insert("source".to_owned(), json!(new.source));
    metadata.insert("createdAt".to_owned(), json!(Timestamp::now()));
    if let Some(by) = by {
        metadata.insert("createdBy".to_owned(), by.into());
    }
    let record = RecordWrite { text: sentence.to_owned(), metadata: Some(metadata.clone()), ..RecordWrite::default() };
    let source = SourceRef::new(SourceKind::ManualNote, records.scope.company_id.clone());
    let handle = records.write_one(Some(source), record).await?;
    Ok((StatusCode::CREATED, Json(row(records, &handle, sentence.to_owned(), Some(&metadata), None))))
}

async fn delete_user(UserFacts(records): UserFacts, Path(fact): Path<String>) -> Result<StatusCode, Problem> {
    let (handle, _) = decode(&fact).filter(|(_, drive)| drive.is_none()).ok_or_else(not_found)?;
    forget(&records, handle).await
}

async fn delete_drive(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<PageSpaceOptions>>,
    Path(fact): Path<String>,
) -> Result<StatusCode, Problem> {
    let (handle, drive) = decode(&fact).ok_or_else(not_found)?;
    let records = of_drive(&service, caller, &options, &drive.ok_or_else(not_found)?)?;
    forget(&records, handle).await
}

/// The number of removed facts.
#[derive(Debug, Serialize)]
struct Cleared {
    removed: usize,
}

/// Forgets all present facts of an owner.
async fn clear<F: Facts>(facts: F) -> Result<Json<Cleared>, Problem> {
    let records = facts.records();
    let found = records.all(None).await?.items;
    let mut removed = 0;
    for some in found.chunks(MAX_HANDLES) {
        let handles = some.iter().map(|record| record.handle.clone()).collect();
        let request = ForgetRequest { binding_key: records.binding.clone(), scope: records.scope.clone(), handles };
        let done = records.service.forget(&records.caller, request).await?;
        removed += done.outcomes.iter().filter(|outcome| outcome.effect != ForgetEffect::NotFound).count();
    }
    Ok(Json(Cleared { removed }))
}

/// Forgets a record after checking its owner.
async fn forget(records: &OwnerRecords, handle: RecordHandle) -> Result<StatusCode, Problem> {
    let OwnerRecords { service, caller, .. } = records;
    let (binding_key, scope) = (records.binding.clone(), records.scope.clone());
    let get = GetRequest { binding_key: binding_key.clone(), scope: scope.clone(), handle: handle.clone() };
    let found = service.get(caller, get).await?;
    if !found.record.as_ref().is_some_and(|record| records.owns(record)) {
        return Err(not_found());
    }
    service.forget(caller, ForgetRequest { binding_key, scope, handles: vec![handle] }).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn not_found() -> Problem {
    Problem::new(ProblemCode::NotFound, "there is no such fact here")
}

fn fact(records: &OwnerRecords, record: Snippet) -> Fact {
    row(records, &record.handle, record.text, record.metadata.as_ref(), record.created_at)
}

fn row(
    records: &OwnerRecords,
    handle: &RecordHandle,
    fact: String,
    metadata: Option<&JsonObject>,
    created_at: Option<Timestamp>,
) -> Fact {
    let is_drive = records.owner.0 == DRIVE;
    let owner = Some(records.owner.1.clone());
    let kept = text(metadata, "createdAt").and_then(|at| at.parse().ok());
    Fact {
        id: encode(handle, is_drive.then_some(records.owner.1.as_str())),
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
    #[serde(rename = "p")]
    provider_key: ProviderKey,
    #[serde(rename = "r")]
    record_id: RecordId,
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    drive: Option<String>,
}

fn encode(handle: &RecordHandle, drive: Option<&str>) -> String {
    let (provider_key, record_id) = (handle.provider_key.clone(), handle.provider_record_id.clone());
    let id = FactId { provider_key, record_id, drive: drive.map(str::to_owned) };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&id).unwrap_or_default())
}

/// The record and the drive of a fact's id.
fn decode(text: &str) -> Option<(RecordHandle, Option<String>)> {
    let FactId { provider_key, record_id, drive } = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    Some((RecordHandle { provider_key, provider_record_id: record_id }, drive))
}
