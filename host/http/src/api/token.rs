//! Tokens: a company's, and the operators'.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, post_with};
use axum::Json;
use axum::extract::State;

use super::about;
use super::control::Items;
use crate::Problem;
use crate::{Administering, Authorized, Host, Hosting, Viewing};
use crate::{Body, Created, PathParam};
use memhost_core::{CreateToken, Service};
use memhost_types::{NewToken, Token, TokenId};

const ONCE: &str = "The answer has its value, this once: it is kept as a digest only.";

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn company_routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/tokens",
            get_with(list, about("listTokens", "List a company's tokens", "Without their values."))
                .post_with(create, about("createToken", "Make a token of a company", ONCE)),
        )
        .api_route("/tokens/{id}/rotate", post_with(rotate, about("rotateToken", "Make a token's value anew", ONCE)))
        .api_route("/tokens/{id}", delete_with(revoke, about("revokeToken", "Take a token back", "")))
        .with_path_items(|item| item.tag("tokens"))
}

/// The routes below `/control/v1`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/tokens",
            get_with(
                list_operators,
                about("listOperatorTokens", "List the operators' tokens", "Without their values."),
            )
            .post_with(create_operator, about("createOperatorToken", "Make a token of an operator", ONCE)),
        )
        .api_route(
            "/tokens/{id}/rotate",
            post_with(rotate_operator, about("rotateOperatorToken", "Make an operator's token's value anew", ONCE)),
        )
        .api_route(
            "/tokens/{id}",
            delete_with(revoke_operator, about("revokeOperatorToken", "Take an operator's token back", "")),
        )
        .with_path_items(|item| item.tag("tokens"))
}

async fn list(State(service): State<Arc<Service>>, allowed: Authorized<Viewing>) -> Json<Items<Token>> {
    Json(Items { items: service.tokens(Some(&allowed.company)) })
}

async fn create(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Administering>,
    Body(request): Body<CreateToken>,
) -> Result<Created<NewToken>, Problem> {
    let made = service.create_token(&allowed.caller, Some(&allowed.company), request).await?;
    Ok(Created(made))
}

async fn rotate(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Administering>,
    PathParam(token): PathParam<TokenId>,
) -> Result<Json<NewToken>, Problem> {
    Ok(Json(service.rotate_token(&allowed.caller, Some(&allowed.company), token).await?))
}

async fn revoke(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Administering>,
    PathParam(token): PathParam<TokenId>,
) -> Result<Json<Token>, Problem> {
    Ok(Json(service.revoke_token(&allowed.caller, Some(&allowed.company), token).await?))
}

async fn list_operators(State(service): State<Arc<Service>>, _: Host<Hosting>) -> Json<Items<Token>> {
    Json(Items { items: service.tokens(None) })
}

async fn create_operator(
    State(service): State<Arc<Service>>,
    allowed: Host<Hosting>,
    Body(request): Body<CreateToken>,
) -> Result<Created<NewToken>, Problem> {
    Ok(Created(service.create_token(&allowed.caller, None, request).await?))
}

async fn rotate_operator(
    State(service): State<Arc<Service>>,
    allowed: Host<Hosting>,
    PathParam(token): PathParam<TokenId>,
) -> Result<Json<NewToken>, Problem> {
    Ok(Json(service.rotate_token(&allowed.caller, None, token).await?))
}

async fn revoke_operator(
    State(service): State<Arc<Service>>,
    allowed: Host<Hosting>,
    PathParam(token): PathParam<TokenId>,
) -> Result<Json<Token>, Problem> {
    Ok(Json(service.revoke_token(&allowed.caller, None, token).await?))
}
