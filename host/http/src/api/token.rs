//! Tokens: a company's, and the operators'.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, post_with};
use axum::Json;
use axum::extract::State;

use super::control::Items;
use super::describe;
use crate::failure::TokenCodes;
use crate::{Authorized, Body, Created, Failure, HostAuthorized, PathParam, Problem, permission};
use memhost_core::{CreateToken, Service};
use memhost_types::{NewToken, Token, TokenId};

const SHOWN_ONCE: &str = "The answer has its value, this once: it is kept as a digest only.";

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn company_routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/tokens",
            get_with(list, describe("listTokens", "List a company's tokens", "Without their values."))
                .post_with(create, describe("createToken", "Make a token of a company", SHOWN_ONCE)),
        )
        .api_route(
            "/tokens/{id}/rotate",
            post_with(rotate, describe("rotateToken", "Make a token's value anew", SHOWN_ONCE)),
        )
        .api_route("/tokens/{id}", delete_with(revoke, describe("revokeToken", "Take a token back", "")))
        .with_path_items(|item| item.tag("tokens"))
}

/// The routes below `/control/v1`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/tokens",
            get_with(
                list_operators,
                describe("listOperatorTokens", "List the operators' tokens", "Without their values."),
            )
            .post_with(create_operator, describe("createOperatorToken", "Make a token of an operator", SHOWN_ONCE)),
        )
        .api_route(
            "/tokens/{id}/rotate",
            post_with(
                rotate_operator,
                describe("rotateOperatorToken", "Make an operator's token's value anew", SHOWN_ONCE),
            ),
        )
        .api_route(
            "/tokens/{id}",
            delete_with(revoke_operator, describe("revokeOperatorToken", "Take an operator's token back", "")),
        )
        .with_path_items(|item| item.tag("tokens"))
}

async fn list(State(service): State<Arc<Service>>, allowed: Authorized<permission::View>) -> Json<Items<Token>> {
    Json(Items { items: service.tokens(Some(&allowed.company)) })
}

async fn create(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    Body(request): Body<CreateToken>,
) -> Result<Created<NewToken>, Problem> {
    let made = service.create_token(&allowed.caller, Some(&allowed.company), request).await?;
    Ok(Created(made))
}

async fn rotate(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(token): PathParam<TokenId>,
) -> Result<Json<NewToken>, Failure<TokenCodes>> {
    Ok(Json(service.rotate_token(&allowed.caller, Some(&allowed.company), token).await?))
}

async fn revoke(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(token): PathParam<TokenId>,
) -> Result<Json<Token>, Failure<TokenCodes>> {
    Ok(Json(service.revoke_token(&allowed.caller, Some(&allowed.company), token).await?))
}

async fn list_operators(State(service): State<Arc<Service>>, _: HostAuthorized) -> Json<Items<Token>> {
    Json(Items { items: service.tokens(None) })
}

async fn create_operator(
    State(service): State<Arc<Service>>,
    allowed: HostAuthorized,
    Body(request): Body<CreateToken>,
) -> Result<Created<NewToken>, Problem> {
    Ok(Created(service.create_token(&allowed.caller, None, request).await?))
}

async fn rotate_operator(
    State(service): State<Arc<Service>>,
    allowed: HostAuthorized,
    PathParam(token): PathParam<TokenId>,
) -> Result<Json<NewToken>, Failure<TokenCodes>> {
    Ok(Json(service.rotate_token(&allowed.caller, None, token).await?))
}

async fn revoke_operator(
    State(service): State<Arc<Service>>,
    allowed: HostAuthorized,
    PathParam(token): PathParam<TokenId>,
) -> Result<Json<Token>, Failure<TokenCodes>> {
    Ok(Json(service.revoke_token(&allowed.caller, None, token).await?))
}
