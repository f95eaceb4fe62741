//! Who calls, and whether that one may: what a handler does is a type in its arguments, and without it there is no
//! company to do it in.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;

use super::extract::Company;
use super::problem::Problem;
use memhost_core::{Act, Caller, Service};
use memhost_types::{CompanyId, OperationKind};

/// Who calls, as the token says.
pub struct Authenticated(pub Caller);

impl<S: Sync> FromRequestParts<S> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        // Every route is behind the token: a route that is not answers this and nothing else.
        let missing = || Problem::new(StatusCode::UNAUTHORIZED, "unauthenticated", "the request has no caller");
        caller.map(Self).ok_or_else(missing)
    }
}

/// What a handler does.
pub trait Doing {
    /// As the rules name it.
    const ACT: Act;
}

macro_rules! doing {
    ($($(#[$doc:meta])* $name:ident = $act:expr),+ $(,)?) => {$(
        $(#[$doc])*
        pub struct $name;
        impl Doing for $name {
            const ACT: Act = $act;
        }
    )+};
}

doing! {
    /// Captures.
    Capturing = Act::Operate(OperationKind::Capture),
    /// Lists records.
    Listing = Act::Operate(OperationKind::List),
    /// Reads one record.
    Reading = Act::Operate(OperationKind::Get),
    /// Asks for what fits.
    Querying = Act::Operate(OperationKind::Query),
    /// Looks at a provider's own tree.
    Browsing = Act::Operate(OperationKind::Browse),
    /// Writes records as they are.
    Writing = Act::Operate(OperationKind::RecordUpsert),
    /// Says that a record is wrong.
    Correcting = Act::Operate(OperationKind::Correct),
    /// Makes records unreachable.
    Forgetting = Act::Operate(OperationKind::Forget),
    /// Looks at something of a company.
    Viewing = Act::View,
    /// Changes something of a company.
    Administering = Act::Administer,
    /// Decides what a provider may reach and use.
    Granting = Act::Grant,
    /// Erases a company, or takes one in.
    Erasing = Act::Erase,
    /// Asks which binding answers.
    Resolving = Act::Resolve,
    /// Tells of a session or a tool.
    Emitting = Act::Emit,
    /// Does something with the host itself.
    Hosting = Act::Host,
}

/// A caller who may do this in the company of the address.
pub struct Authorized<D> {
    /// Who calls.
    pub caller: Caller,
    /// The company of the address.
    pub company: CompanyId,
    doing: PhantomData<D>,
}

impl<D: Doing> FromRequestParts<Arc<Service>> for Authorized<D> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, service).await?;
        let Company(company) = Company::from_request_parts(parts, service).await?;
        service.allow(&caller, D::ACT, Some(&company)).await?;
        Ok(Self { caller, company, doing: PhantomData })
    }
}

/// A caller who may do this with the host itself.
pub struct Host<D> {
    /// Who calls.
    pub caller: Caller,
    doing: PhantomData<D>,
}

impl<D: Doing> FromRequestParts<Arc<Service>> for Host<D> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Problem> {
        let Authenticated(caller) = Authenticated::from_request_parts(parts, service).await?;
        service.allow(&caller, D::ACT, None).await?;
        Ok(Self { caller, doing: PhantomData })
    }
}
