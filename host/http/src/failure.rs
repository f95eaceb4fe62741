//! How handlers fail, in the types of their results: `Problem` where only the host itself can fail,
//! `Failure<C>` where the handler's own work has further codes.

use std::marker::PhantomData;

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::response::{IntoResponse, Response};

use super::document;
use super::problem::{Problem, ProblemCode};
use super::response::Responses;
use memhost_core::ServiceError;
use memhost_types::OperationErrorCode;

/// The codes of a handler's own work. Codes of its extractors and of the layers in front of it are
/// not among them.
pub trait Codes {
    /// The codes.
    fn codes() -> impl Iterator<Item = ProblemCode>;
}

/// A problem of a handler whose own work can have the codes `C`.
pub struct Failure<C> {
    problem: Problem,
    codes: PhantomData<C>,
}

impl<C> From<Problem> for Failure<C> {
    fn from(problem: Problem) -> Self {
        Self { problem, codes: PhantomData }
    }
}

impl<C> From<ServiceError> for Failure<C> {
    fn from(error: ServiceError) -> Self {
        Problem::from(error).into()
    }
}

impl<C> IntoResponse for Failure<C> {
    fn into_response(self) -> Response {
        self.problem.into_response()
    }
}

impl<C: Codes> OperationOutput for Failure<C> {
    type Inner = Self;

    fn inferred_responses(ctx: &mut GenContext, operation: &mut Operation) -> Responses {
        document::problems(operation, C::codes());
        Problem::inferred_responses(ctx, operation)
    }
}

impl OperationOutput for Problem {
    type Inner = Self;

    fn inferred_responses(_: &mut GenContext, operation: &mut Operation) -> Responses {
        document::problems(operation, [ProblemCode::Host, ProblemCode::StoreUnavailable]);
        Vec::new()
    }
}

/// Codes of a memory operation: all that an operation's record can have.
pub(crate) struct OperationCodes;

impl Codes for OperationCodes {
    fn codes() -> impl Iterator<Item = ProblemCode> {
        OperationErrorCode::ALL.iter().map(|code| ProblemCode::from(*code))
    }
}

/// Codes of deciding a review, which writes to the provider where a record is decided.
pub(crate) struct ReviewCodes;

impl Codes for ReviewCodes {
    fn codes() -> impl Iterator<Item = ProblemCode> {
        OperationCodes::codes().chain([ProblemCode::AlreadyDecided])
    }
}

macro_rules! code_sets {
    ($($(#[$doc:meta])* $name:ident = [$($code:ident),+];)+) => {$(
        $(#[$doc])*
        pub(crate) struct $name;
        impl Codes for $name {
            fn codes() -> impl Iterator<Item = ProblemCode> {
                [$(ProblemCode::$code),+].into_iter()
            }
        }
    )+};
}

code_sets! {
    /// Codes of creating or changing a binding. Its provider checks the configuration.
    BindingCodes = [NoProvider, NoVersion, BindingExists, Conflict, InvalidConfig, ProviderFailed];
    /// Codes of importing a company, whose bindings must be served by this host's providers.
    ImportCodes = [NoProvider, NoVersion, InvalidConfig, ProviderFailed];
    /// Codes of setting grants.
    GrantCodes = [NoProvider, NoVersion, Conflict];
    /// Codes of deleting or resetting a binding.
    BindingStateCodes = [NoBinding, Conflict];
    /// Codes of resolving a binding, and of naming one in a body.
    ResolveCodes = [NoBinding];
    /// Codes of pointing a target at a binding.
    TargetCodes = [NoBinding, Conflict];
    /// Codes of changing a token.
    TokenCodes = [TokenRevoked, Conflict];
    /// Codes of replaying a delivery.
    DeliveryCodes = [DeliveryStatus];
    /// Codes of cancelling or retrying a job.
    JobCodes = [JobStatus];
    /// Codes of following events.
    StreamCodes = [TooManyStreams];
    /// Codes of making a company.
    CompanyCodes = [CompanyErased, Importing];
    /// Codes of erasing a company.
    EraseCodes = [NotForgotten, ProviderLoading];
    /// Codes of reading a tombstone.
    TombstoneCodes = [NoTombstone];
}
