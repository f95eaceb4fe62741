//! The routes of PageSpace's facts: short sentences about a user, and those of a drive, which its
//! members share.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{delete, get};
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};

use super::facts::{Fact, FactOwner, FactSource, Facts, own_user};
use super::options::PageSpaceOptions;
use super::owned::{id, invalid, options, path_id};
use memhost_core::{Caller, Service};
use memhost_http::{Authenticated, Body, Json, Problem, ProblemCode, header_text};

/// The routes of this system.
pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/api/memory/user", get(list::<UserFacts>).post(add_user))
        .route("/api/memory/user/{id}", delete(remove::<UserFacts>))
        // Not the address without an id: a client that has lost the id of one fact would remove all
        // of them.
        .route("/api/memory/user/all", delete(clear::<UserFacts>))
        // One pattern for two things: a drive's id to list and add, a fact's id to delete.
        .route(
            "/api/memory/drive/{id}",
            get(list::<DriveFacts>).post(add_shared::<DriveFacts>).delete(delete_drive),
        )
        .route("/api/memory/drive/{id}/all", delete(clear::<DriveFacts>))
        .route("/api/memory/company", get(list::<CompanyFacts>).post(add_shared::<CompanyFacts>))
        .route("/api/memory/company/{id}", delete(remove::<CompanyFacts>))
}

/// The header by which an integration says for which person it acts.
const ACTS_FOR: &str = "x-memhost-act-as-person";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewFact {
    fact: String,
    /// Absent: `ai` with an agent's token, else `user`.
    #[serde(default)]
    source: Option<FactSource>,
}

/// The user of the request. A caller with an agent's token is that agent; an integration says for
/// whom it acts, whatever that person's role is: an administrator of a drive does not own other
/// users' facts.
fn user(
    options: &PageSpaceOptions,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Option<String>, Problem> {
    let named = |header: &str| -> Result<Option<String>, Problem> {
        let given = header_text(headers, header).map_err(|message| invalid(header, message))?;
        if given.is_none() && header != ACTS_FOR && headers.contains_key(header) {
            return Err(invalid(header, "is empty; name the user, or leave the header out"));
        }
        given.map(|user| id(header, &user)).transpose()
    };
    let given = named(&options.user_header)?;
    let own = match own_user(caller) {
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

/// The facts of the user that the request is for.
struct UserFacts(Facts);

impl FromRequestParts<Arc<Service>> for UserFacts {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<Service>,
    ) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, service).await?;
        let options = options::<PageSpaceOptions>(parts, service).await?;
        let user = user(&options, &caller, &parts.headers)?;
        let missing =
            || invalid(&options.user_header, "is missing; this header says for which user it is");
        let user = FactOwner::User(user.ok_or_else(missing)?);
        Facts::of(service, &caller, &options, user).map(Self)
    }
}

/// The facts of the drive in the address.
struct DriveFacts(Facts);

impl FromRequestParts<Arc<Service>> for DriveFacts {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<Service>,
    ) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, service).await?;
        let options = options::<PageSpaceOptions>(parts, service).await?;
        let drive = FactOwner::Drive(path_id(parts, service).await?);
        Facts::of(service, &caller, &options, drive).map(Self)
    }
}

/// The facts that name no user and no drive.
struct CompanyFacts(Facts);

impl FromRequestParts<Arc<Service>> for CompanyFacts {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<Service>,
    ) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, service).await?;
        let options = options::<PageSpaceOptions>(parts, service).await?;
        Facts::of(service, &caller, &options, FactOwner::Company).map(Self)
    }
}

/// The facts of a user, of a drive or of the company.
trait Owned: FromRequestParts<Arc<Service>, Rejection = Problem> + Send {
    fn facts(&self) -> &Facts;
}

impl Owned for UserFacts {
    fn facts(&self) -> &Facts {
        &self.0
    }
}

impl Owned for DriveFacts {
    fn facts(&self) -> &Facts {
        &self.0
    }
}

impl Owned for CompanyFacts {
    fn facts(&self) -> &Facts {
        &self.0
    }
}

async fn list<F: Owned>(facts: F) -> Result<Json<Vec<Fact>>, Problem> {
    facts.facts().list().await.map(Json)
}

async fn add_user(
    UserFacts(facts): UserFacts,
    Body(new): Body<NewFact>,
) -> Result<(StatusCode, Json<Fact>), Problem> {
    let added = facts.add(&new.fact, new.source, None).await?;
    Ok((StatusCode::CREATED, Json(added)))
}

/// Adds a fact that several share. The fact names the person who adds it.
async fn add_shared<F: Owned>(
    facts: F,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<PageSpaceOptions>>,
    headers: HeaderMap,
    Body(new): Body<NewFact>,
) -> Result<(StatusCode, Json<Fact>), Problem> {
    let by = user(&options, &caller, &headers)?;
    let added = facts.facts().add(&new.fact, new.source, by).await?;
    Ok((StatusCode::CREATED, Json(added)))
}

async fn remove<F: Owned>(facts: F, Path(fact): Path<String>) -> Result<StatusCode, Problem> {
    facts.facts().remove(&fact).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The address does not name the drive, so the fact is looked up in the company and says of which
/// drive it is.
async fn delete_drive(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Extension(options): Extension<Arc<PageSpaceOptions>>,
    Path(fact): Path<String>,
) -> Result<StatusCode, Problem> {
    let facts = Facts::drive_of(&service, &caller, &options, &fact).await?;
    let not_found = || Problem::new(ProblemCode::NotFound, "there is no such fact here");
    facts.ok_or_else(not_found)?.remove(&fact).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The number of removed facts.
#[derive(Debug, Serialize)]
struct Cleared {
    removed: usize,
}

/// Forgets all present facts of an owner.
async fn clear<F: Owned>(facts: F) -> Result<Json<Cleared>, Problem> {
    Ok(Json(Cleared { removed: facts.facts().clear().await? }))
}
