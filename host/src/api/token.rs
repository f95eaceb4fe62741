//! Tokens: a company's, and the operators'.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use axum::{Json, Router};

use super::control::Items;
use crate::contract::{NewToken, Token, TokenId};
use crate::edge::Problem;
use crate::edge::{Administering, Host, Hosting, In, Viewing};
use crate::edge::{Body, parse};
use crate::service::{CreateToken, Service};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn company_routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/tokens", get(list).post(create))
        .route("/tokens/{id}/rotate", post(rotate))
        .route("/tokens/{id}", delete(revoke))
}

/// The routes below `/control/v1`.
pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/tokens", get(list_operators).post(create_operator))
        .route("/tokens/{id}/rotate", post(rotate_operator))
        .route("/tokens/{id}", delete(revoke_operator))
}

fn id(text: &str) -> Result<TokenId, Problem> {
    parse("tokenId", text).map(TokenId)
}

async fn list(State(service): State<Arc<Service>>, allowed: In<Viewing>) -> Json<Items<Token>> {
    Json(Items { items: service.tokens(Some(&allowed.company)) })
}

async fn create(
    State(service): State<Arc<Service>>,
    allowed: In<Administering>,
    Body(request): Body<CreateToken>,
) -> Result<(StatusCode, Json<NewToken>), Problem> {
    let made = service.create_token(&allowed.caller, Some(&allowed.company), request).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

async fn rotate(
    State(service): State<Arc<Service>>,
    Path((_, token)): Path<(String, String)>,
    allowed: In<Administering>,
) -> Result<Json<NewToken>, Problem> {
    Ok(Json(service.rotate_token(&allowed.caller, Some(&allowed.company), id(&token)?).await?))
}

async fn revoke(
    State(service): State<Arc<Service>>,
    Path((_, token)): Path<(String, String)>,
    allowed: In<Administering>,
) -> Result<Json<Token>, Problem> {
    Ok(Json(service.revoke_token(&allowed.caller, Some(&allowed.company), id(&token)?).await?))
}

async fn list_operators(State(service): State<Arc<Service>>, _: Host<Hosting>) -> Json<Items<Token>> {
    Json(Items { items: service.tokens(None) })
}

async fn create_operator(
    State(service): State<Arc<Service>>,
    allowed: Host<Hosting>,
    Body(request): Body<CreateToken>,
) -> Result<(StatusCode, Json<NewToken>), Problem> {
    Ok((StatusCode::CREATED, Json(service.create_token(&allowed.caller, None, request).await?)))
}

async fn rotate_operator(
    State(service): State<Arc<Service>>,
    Path(token): Path<String>,
    allowed: Host<Hosting>,
) -> Result<Json<NewToken>, Problem> {
    Ok(Json(service.rotate_token(&allowed.caller, None, id(&token)?).await?))
}

async fn revoke_operator(
    State(service): State<Arc<Service>>,
    Path(token): Path<String>,
    allowed: Host<Hosting>,
) -> Result<Json<Token>, Problem> {
    Ok(Json(service.revoke_token(&allowed.caller, None, id(&token)?).await?))
}
