//! Path parameters that name one thing: a binding, a period, or anything with an id.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use schemars::JsonSchema;
use uuid::Uuid;

use super::document;
use super::extract::{parse, path_segment};
use super::problem::{Problem, ProblemCode};
use memhost_types::{BindingKey, DeliveryId, JobId, OperationId, Period, ReviewId, TokenId};

/// A type of path parameter.
pub trait PathSegment: JsonSchema + Sized {
    /// The parameter's name in the route.
    const NAME: &'static str;
    /// The code of the problem where there is no such thing.
    const MISSING: ProblemCode;
    /// Parses the text of the address.
    fn parse(text: &str) -> Result<Self, Problem>;
}

/// A path parameter.
pub struct PathParam<T>(pub T);

impl<T: PathSegment> OperationInput for PathParam<T> {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        document::path_parameter::<T>(operation, T::NAME);
        document::problems(operation, [ProblemCode::InvalidRequest, T::MISSING]);
    }
}

impl<T: PathSegment, S: Send + Sync> FromRequestParts<S> for PathParam<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        T::parse(&path_segment(parts, state, T::NAME).await?).map(Self)
    }
}

/// Accepts a UUID only in the hyphenated form of the answers, so that a thing has one address.
fn id(field: &str, text: &str) -> Result<Uuid, Problem> {
    let id = Uuid::try_parse(text).ok().filter(|_| text.len() == uuid::fmt::Hyphenated::LENGTH);
    id.ok_or_else(|| {
        let text: String = text.chars().take(64).flat_map(char::escape_debug).collect();
        let detail = format!(
            "{field}: `{text}` is no id; an id is like \
                     0199f0a0-0000-7000-8000-000000000000, as lists show it"
        );
        Problem::invalid(detail).at(field)
    })
}

macro_rules! path_segments {
    ($($type:ty = $name:literal, $missing:ident, $parse:expr;)+) => {$(
        impl PathSegment for $type {
            const NAME: &'static str = $name;
            const MISSING: ProblemCode = ProblemCode::$missing;
            fn parse(text: &str) -> Result<Self, Problem> {
                let parse: fn(&str) -> Result<Self, Problem> = $parse;
                parse(text)
            }
        }
    )+};
}

path_segments! {
    BindingKey = "key", NoBinding, |text| parse("bindingKey", text);
    Period = "period", NoBudget, |text| parse("period", text);
    OperationId = "id", NoOperation, |text| id("operationId", text).and_then(
        |_| parse("operationId", text)
    );
    JobId = "id", NoJob, |text| id("jobId", text).map(JobId);
    DeliveryId = "id", NoDelivery, |text| id("deliveryId", text).map(DeliveryId);
    ReviewId = "id", NoReview, |text| id("reviewId", text).map(ReviewId);
    TokenId = "id", NoToken, |text| id("tokenId", text).map(TokenId);
    HostId = "id", NoHost, |text| id("hostId", text).map(HostId);
    SecretName = "name", NoSecret, |text| Ok(SecretName(text.to_owned()));
}

/// The id that a host on a database got when it was started.
#[derive(JsonSchema)]
pub struct HostId(pub Uuid);

/// The name of a secret in placeholders and grants: 1 to 64 letters, digits, `_` and `-`.
#[derive(JsonSchema)]
pub struct SecretName(
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"))] pub String,
);
