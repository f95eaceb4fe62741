//! Parts of an address that name one thing: a binding, a period, something that has an id.

use std::collections::HashMap;

use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use schemars::JsonSchema;
use uuid::Uuid;

use super::extract::parse;
use super::problem::Problem;
use memhost_types::{BindingKey, DeliveryId, JobId, OperationId, Period, ReviewId, TokenId};

/// Something that an address can name.
pub trait Part: JsonSchema + Sized {
    /// What it is called in the address.
    const NAME: &'static str;
    /// Reads it.
    fn read(text: &str) -> Result<Self, Problem>;
}

/// What the address names.
pub struct PathParam<T>(pub T);

impl<T: Part, S: Send + Sync> FromRequestParts<S> for PathParam<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(names) = Path::<HashMap<String, String>>::from_request_parts(parts, state)
            .await
            .map_err(|rejection| Problem::new(StatusCode::BAD_REQUEST, "invalid_request", rejection.to_string()))?;
        T::read(names.get(T::NAME).map_or("", String::as_str)).map(Self)
    }
}

/// An id in the one form that answers have it in: UUIDs have others, and two spellings of one address are two addresses.
fn id(field: &str, text: &str) -> Result<Uuid, Problem> {
    let id = Uuid::try_parse(text).ok().filter(|_| text.len() == uuid::fmt::Hyphenated::LENGTH);
    id.ok_or_else(|| {
        let text: String = text.chars().take(64).flat_map(char::escape_debug).collect();
        let detail = format!("{field} is not an id; `{text}` is no UUID as answers have them");
        Problem::new(StatusCode::BAD_REQUEST, "invalid_request", detail).at(field)
    })
}

macro_rules! parts {
    ($($type:ty = $name:literal, $read:expr;)+) => {$(
        impl Part for $type {
            const NAME: &'static str = $name;
            fn read(text: &str) -> Result<Self, Problem> {
                let read: fn(&str) -> Result<Self, Problem> = $read;
                read(text)
            }
        }
    )+};
}

parts! {
    BindingKey = "key", |text| parse("bindingKey", text);
    Period = "period", |text| parse("period", text);
    OperationId = "id", |text| id("operationId", text).and_then(|_| parse("operationId", text));
    JobId = "id", |text| id("jobId", text).map(JobId);
    DeliveryId = "id", |text| id("deliveryId", text).map(DeliveryId);
    ReviewId = "id", |text| id("reviewId", text).map(ReviewId);
    TokenId = "id", |text| id("tokenId", text).map(TokenId);
    SecretName = "name", |text| Ok(SecretName(text.to_owned()));
}

/// What placeholders and grants call a secret: 1 to 64 letters, digits, `_` and `-`.
#[derive(JsonSchema)]
pub struct SecretName(#[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"))] pub String);
