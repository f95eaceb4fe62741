//! PageSpace's facts: short sentences about a user, and those of a drive, which its members share.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{delete, get};
use axum::{Extension, Json, Router};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::options::PageSpaceOptions;
use super::owned::{OwnerRecords, id, invalid, options, owner_of, path_id, text};
use memhost_core::{Act, Caller, Service};
use memhost_http::{Authenticated, Body, Problem, ProblemCode};
use memhost_types::{
    ForgetEffect, ForgetRequest, OperationKind, RecordWrite, Role, Scope, Snippet, SourceKind, SourceRef,
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

/// The header by which an integration says for which person it acts.
const ACTS_FOR: &str = "x-memhost-act-as-person";

/// Who made a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Source {
    Ai,
    User,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewFact {
    fact: String,
    /// Absent: `ai` with an agent's token, else `user`.
    #[serde(default)]
    source: Option<Source>,
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

/// The user of the request. A caller with an agent's token is that agent; an integration says for whom it acts, whatever
/// that person's role is: an administrator of a drive does not own other users' facts.
fn user(options: &PageSpaceOptions, caller: &Caller, headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let named = |header: &str| -> Result<Option<String>, Problem> {
        let given = headers.get(header).map(|value| value.to_str().unwrap_or_default());
        given.filter(|user| !user.is_empty() || header != ACTS_FOR).map(|user| id(header, user)).transpose()
    };
    let given = named(&options.user_header)?;
    let own = caller.person().map(str::to_owned).or_else(|| caller.agent().map(ToString::to_string));
    let own = match own {
        None if caller.is_acting() => named(ACTS_FOR)?,
        own => own,
    };
    match (own, given) {
        (Some(own), Some(given)) if own != given => {
            let detail = format!("the token is for {own}; it cannot be used for another user");
            Err(Problem::new(ProblemCode::Forbidden, detail))
        }
        (own, given) => Ok(own.or(given)),
    }
}

/// Refuses who is no administrator: an operator, a company's administrator, or whom an integration acts for as one.
/// Moving records is what only those may.
fn administers(records: &OwnerRecords, what: &str) -> Result<(), Problem> {
    let act = Act::Operate(OperationKind::Export);
    if records.caller.may(act, Some(&records.scope.company_id)).is_ok() {
        return Ok(());
    }
    let detail = format!(
        "only an administrator or the owner of a drive may {what}; an integration says so with x-memhost-act-as-role: \
         company_administrator"
    );
    Err(Problem::new(ProblemCode::Forbidden, detail))
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
        Ok(Self(OwnerRecords { service, caller, binding, scope, owner: (USER, user), field: options.user }))
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
    Ok(OwnerRecords { service, caller, binding, scope, owner: (DRIVE, drive), field: options.drive })
}

/// The facts of a user or of a drive.
trait Facts: FromRequestParts<Arc<Service>, Rejection = Problem> + Send {
    fn records(&self) -> &OwnerRecords;

    /// Refuses who may not remove all of them.
    fn check_clear(&self) -> Result<(), Problem> {
        Ok(())
    }
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

    fn check_clear(&self) -> Result<(), Problem> {
        administers(&self.0, "remove a drive's facts")
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
    // A model saves what it learns in a chat of any member; what a person adds by hand is for administrators.
    if source(&records, &new) == Source::User {
        administers(&records, "add a drive's fact by hand")?;
    }
    add(&records, new, by).await
}

/// Who made a fact: with an agent's token always a model.
fn source(records: &OwnerRecords, new: &NewFact) -> Source {
    let is_agent = records.caller.role() == Role::Agent;
    new.source.unwrap_or(if is_agent { Source::Ai } else { Source::User })
}

async fn add(records: &OwnerRecords, new: NewFact, by: Option<String>) -> Result<(StatusCode, Json<Fact>), Problem> {
    let (sentence, length) = (new.fact.trim(), new.fact.trim().chars().count());
    if !(1..=MAX_FACT_CHARS).contains(&length) {
        return Err(invalid("fact", format!("has {length} characters; 1 to {MAX_FACT_CHARS} are allowed")));
    }
    // The provider may keep no times.
    let mut metadata = records.filter();
    metadata.insert("source".to_owned(), json!(source(records, &new)));
    // As `save_memory` writes it: a user's fact is bound to no drive, and a drive's to no user.
    metadata.insert("scope".to_owned(), if records.owner.0 == DRIVE { "drive" } else { "user" }.into());
    metadata.insert("createdAt".to_owned(), json!(Timestamp::now()));
    if let Some(by) = by {
        metadata.insert("createdBy".to_owned(), by.into());
    }
    let record = RecordWrite { text: sentence.to_owned(), metadata: Some(metadata.clone()), ..RecordWrite::default() };
    let origin = SourceRef::new(SourceKind::ManualNote, records.scope.company_id.clone());
    let handle = records.write_one(Some(origin), record).await?;
    let written = Snippet {
        handle,
        text: sentence.to_owned(),
        score: None,
        score_kind: None,
        summary: None,
        source: None,
        metadata: Some(metadata),
        created_at: None,
        updated_at: None,
        expires_at: None,
        scope: None,
        corrected: None,
    };
    Ok((StatusCode::CREATED, Json(fact(records, written))))
}

async fn delete_user(UserFacts(records): UserFacts, Path(fact): Path<String>) -> Result<StatusCode, Problem> {
    let found = records.get(&fact).await?.filter(|record| records.owns(record)).ok_or_else(not_found)?;
    records.forget(found.handle).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The address does not name the drive, so the fact is looked up in the company and says of which drive it is.
async fn delete_drive(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<PageSpaceOptions>>,
    Path(fact): Path<String>,
) -> Result<StatusCode, Problem> {
    let any = OwnerRecords {
        service: Arc::clone(&service),
        caller: caller.clone(),
        binding: options.binding.clone(),
        scope: Scope::company(options.company.clone()),
        owner: (DRIVE, String::new()),
        field: options.drive,
    };
    administers(&any, "remove a drive's fact")?;
    let found = any.get(&fact).await?.ok_or_else(not_found)?;
    let drive = owner_of(&found, DRIVE, options.drive).ok_or_else(not_found)?;
    of_drive(&service, caller, &options, &drive)?.forget(found.handle).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The number of removed facts.
#[derive(Debug, Serialize)]
struct Cleared {
    removed: usize,
}

/// Forgets all present facts of an owner.
async fn clear<F: Facts>(facts: F) -> Result<Json<Cleared>, Problem> {
    facts.check_clear()?;
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

fn not_found() -> Problem {
    Problem::new(ProblemCode::NotFound, "there is no such fact here")
}

fn fact(records: &OwnerRecords, record: Snippet) -> Fact {
    let is_drive = records.owner.0 == DRIVE;
    let (owner, metadata) = (Some(records.owner.1.clone()), record.metadata.as_ref());
    let kept = text(metadata, "createdAt").and_then(|at| at.parse().ok());
    // A record that a tool or a program wrote has no member for it; the host knows who asserts where it comes from.
    let writer = record.source.as_ref().and_then(|source| source.asserted_by.clone());
    let agent = writer.as_deref().and_then(|writer| Some(writer.rsplit_once("agent:")?.1.to_owned()));
    let made = if agent.is_some() { "ai" } else { "user" };
    Fact {
        id: record.handle.provider_record_id.to_string(),
        user_id: owner.clone().filter(|_| !is_drive),
        drive_id: owner.filter(|_| is_drive),
        fact: record.text,
        created_at: kept.or(record.created_at),
        created_by: is_drive.then(|| text(metadata, "createdBy").or(agent)),
        source: Some(text(metadata, "source").unwrap_or_else(|| made.to_owned())),
    }
}
