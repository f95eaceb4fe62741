//! Authorization in types: a handler names the permission that it needs in its arguments, and
//! cannot get the company without it.

use std::marker::PhantomData;
use std::sync::Arc;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::document;
use super::extract::Company;
use super::permission::{self, Permission};
use super::problem::{Problem, ProblemCode};
use memhost_core::{Caller, Service};
use memhost_types::CompanyId;

/// The caller, as the token says.
pub struct Authenticated(pub Caller);

impl<S: Sync> FromRequestParts<S> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        // The token layer sets the caller. A route that is not behind it must refuse every request.
        let missing = || Problem::new(ProblemCode::Unauthenticated, "the request has no caller");
        caller.map(Self).ok_or_else(missing)
    }
}

impl OperationInput for Authenticated {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        document::problems(operation, [ProblemCode::Unauthenticated]);
    }
}

/// A caller who has a permission in the company of the address.
pub struct Authorized<P> {
    /// The host.
    pub service: Arc<Service>,
    /// The caller.
    pub caller: Caller,
    /// The company of the address.
    pub company: CompanyId,
    permission: PhantomData<P>,
}

impl<P: Permission> FromRequestParts<Arc<Service>> for Authorized<P> {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<Service>,
    ) -> Result<Self, Problem> {
        let found = AuthorizedByCore::<P>::from_request_parts(parts, service).await?;
        let AuthorizedByCore { service, caller, company, permission } = found;
        match P::MAY_BE_FIRST {
            true => service.tenancy().allow_new(&caller, P::ACT, &company).await?,
            false => service.tenancy().allow(&caller, P::ACT, Some(&company)).await?,
        }
        Ok(Self { service, caller, company, permission })
    }
}

impl<P: Permission> OperationInput for Authorized<P> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        AuthorizedByCore::<P>::operation_input(ctx, operation);
    }
}

/// A caller whose permission `core` checks itself, because the scope in the body decides and a
/// refusal is recorded as the operation that it is.
pub struct AuthorizedByCore<P> {
    /// The host.
    pub service: Arc<Service>,
    /// The caller.
    pub caller: Caller,
    /// The company of the address.
    pub company: CompanyId,
    permission: PhantomData<P>,
}

impl<P: Permission> FromRequestParts<Arc<Service>> for AuthorizedByCore<P> {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<Service>,
    ) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, service).await?;
        let Company(company) = Company::from_request_parts(parts, service).await?;
        Ok(Self { service: Arc::clone(service), caller, company, permission: PhantomData })
    }
}

impl<P: Permission> OperationInput for AuthorizedByCore<P> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Authenticated::operation_input(ctx, operation);
        Company::operation_input(ctx, operation);
        document::roles::<P>(operation);
        // A company that is unknown, erased or being imported takes no requests.
        let codes =
            [ProblemCode::Forbidden, ProblemCode::UnknownCompany, ProblemCode::CompanyErased];
        document::problems(operation, codes.into_iter().chain([ProblemCode::Importing]));
    }
}

/// A caller who has a permission for the host itself.
pub struct HostAuthorized<P = permission::Host> {
    /// The host.
    pub service: Arc<Service>,
    /// The caller.
    pub caller: Caller,
    permission: PhantomData<P>,
}

impl<P: Permission> FromRequestParts<Arc<Service>> for HostAuthorized<P> {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<Service>,
    ) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, service).await?;
        match P::IS_PROBED {
            true => caller
                .may(P::ACT, None)
                .map_err(|denied| Problem::new(ProblemCode::Forbidden, denied.to_string()))?,
            false => service.tenancy().allow(&caller, P::ACT, None).await?,
        }
        Ok(Self { service: Arc::clone(service), caller, permission: PhantomData })
    }
}

impl<P: Permission> OperationInput for HostAuthorized<P> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Authenticated::operation_input(ctx, operation);
        document::roles::<P>(operation);
        document::problems(operation, [ProblemCode::Forbidden]);
    }
}
