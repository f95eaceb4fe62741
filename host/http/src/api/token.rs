//! Tokens: a company's, and the operators'. The same handlers serve both.

use std::sync::Arc;

use aide::OperationInput;
use aide::axum::ApiRouter;
use axum::extract::FromRequestParts;
use schemars::JsonSchema;
use serde::Deserialize;

use super::route_table::{Items, routes};
use crate::failure::TokenCodes;
use crate::permission::{Administer, Establish, View};
use crate::{
    Authorized, Body, Created, Failure, HostAuthorized, Json, PathParam, Permission, Problem,
};
use memhost_core::{Caller, CreateToken, RotateToken, Service};
use memhost_types::{CompanyId, FoundToken, NewToken, Token, TokenId};

const NO_VALUES: &str = "Without their values.";
const NOT_A_USE: &str = "No answer and no log has the value, and to ask is no use of the token.";
const SHOWN_ONCE: &str = "Only this answer has the token's value: the host stores a digest.";

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn company_routes() -> ApiRouter<Arc<Service>> {
    routes! { COMPANY, "tokens":
        "/tokens" {
            get list::<Authorized<View>> => "listTokens", "List a company's tokens", NO_VALUES;
            post create::<Authorized<Establish>> =>
                "createToken", "Create a token of a company", SHOWN_ONCE;
        }
        "/tokens/find" {
            post find::<Authorized<View>> =>
                "findToken", "Say whose a token's value is", NOT_A_USE;
        }
        "/tokens/{id}/rotate" {
            post rotate::<Authorized<Administer>> =>
                "rotateToken", "Give a token a new value", SHOWN_ONCE;
        }
        "/tokens/{id}" {
            delete revoke::<Authorized<Administer>> => "revokeToken", "Revoke a token";
        }
    }
}

/// The routes below `/control/v1`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    routes! { HOST, "tokens":
        "/tokens" {
            get list::<HostAuthorized> =>
                "listOperatorTokens", "List the operators' tokens", NO_VALUES;
            post create::<HostAuthorized> =>
                "createOperatorToken", "Create a token of an operator", SHOWN_ONCE;
        }
        "/tokens/find" {
            post find::<HostAuthorized> =>
                "findAnyToken", "Say whose a token's value is, of operators or of any company",
                NOT_A_USE;
        }
        "/tokens/{id}/rotate" {
            post rotate::<HostAuthorized> =>
                "rotateOperatorToken", "Give an operator's token a new value", SHOWN_ONCE;
        }
        "/tokens/{id}" {
            delete revoke::<HostAuthorized> => "revokeOperatorToken", "Revoke an operator's token";
        }
    }
}

/// The owner of a route's tokens: the company in the address, or the operators.
trait TokenOwner: FromRequestParts<Arc<Service>, Rejection = Problem> + OperationInput + Send {
    /// The host, the caller, and the company; None: the operators' tokens.
    fn parts(&self) -> (&Service, &Caller, Option<&CompanyId>);
}

impl<P: Permission> TokenOwner for Authorized<P> {
    fn parts(&self) -> (&Service, &Caller, Option<&CompanyId>) {
        (&self.service, &self.caller, Some(&self.company))
    }
}

impl TokenOwner for HostAuthorized {
    fn parts(&self) -> (&Service, &Caller, Option<&CompanyId>) {
        (&self.service, &self.caller, None)
    }
}

async fn list<O: TokenOwner>(owner: O) -> Json<Items<Token>> {
    let (service, _, company) = owner.parts();
    Json(Items { items: service.tenancy().tokens(company) })
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TokenValue {
    /// What its bearer sends as `authorization: Bearer …`.
    #[schemars(length(max = MAX_VALUE_BYTES))]
    value: String,
}

/// The longest value that can be asked about, in bytes. The host's own are shorter.
const MAX_VALUE_BYTES: usize = 512;

async fn find<O: TokenOwner>(
    owner: O,
    Body(request): Body<TokenValue>,
) -> Result<Json<FoundToken>, Problem> {
    let length = request.value.len();
    if length > MAX_VALUE_BYTES {
        let detail = format!(
            "`value` has {length} bytes; send the token alone, which has at most {MAX_VALUE_BYTES}"
        );
        return Err(Problem::invalid(detail).at("value"));
    }
    let (service, _, company) = owner.parts();
    Ok(Json(service.tenancy().whose_token(company, &request.value).await?))
}

async fn create<O: TokenOwner>(
    owner: O,
    Body(request): Body<CreateToken>,
) -> Result<Created<NewToken>, Problem> {
    let (service, caller, company) = owner.parts();
    Ok(Created(service.tenancy().create_token(caller, company, request).await?))
}

async fn rotate<O: TokenOwner>(
    owner: O,
    PathParam(token): PathParam<TokenId>,
    Body(request): Body<RotateToken>,
) -> Result<Json<NewToken>, Failure<TokenCodes>> {
    let (service, caller, company) = owner.parts();
    Ok(Json(service.tenancy().rotate_token(caller, company, token, request).await?))
}

async fn revoke<O: TokenOwner>(
    owner: O,
    PathParam(token): PathParam<TokenId>,
) -> Result<Json<Token>, Failure<TokenCodes>> {
    let (service, caller, company) = owner.parts();
    Ok(Json(service.tenancy().revoke_token(caller, company, token).await?))
}
