//! What comes in: bodies, paths and queries, with errors that name the field.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::MAX_BODY_BYTES;
use super::problem::Problem;
use memhost_types::CompanyId;

fn expect_media(request: &Request, expected: &[&str], what: &str) -> Result<(), Problem> {
    let media = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if expected.iter().any(|expected| media.eq_ignore_ascii_case(expected)) {
        return Ok(());
    }
    let detail = format!("the body is `{media}`; send {what} with `content-type: {}`", expected.join("` or `"));
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail))
}

/// A JSON body of a known type. Unknown fields are errors.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        expect_media(&request, &["application/json"], "JSON")?;
        read_json(&read(request, state).await?).map(Self)
    }
}

async fn read<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    Bytes::from_request(request, state).await.map_err(|rejection| {
        let status = rejection.status();
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            let max = MAX_BODY_BYTES;
            let detail = format!("the body is larger than {max} bytes; send it in parts");
            return Problem::new(status, "body_too_large", detail);
        }
        Problem::new(status, "unreadable_body", rejection.to_string())
    })
}

/// JSON of a known type, with errors that name the field.
pub fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let invalid = |detail: String| Problem::new(StatusCode::BAD_REQUEST, "invalid_request", detail);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        // One form of path everywhere, `records.0.text`, as in the contract's own errors.
        let path = error.path().to_string().replace('[', ".").replace(']', "");
        let problem = invalid(error.inner().to_string());
        // The whole document is no field, and neither is what ended before it had a name.
        if path == "." || path.ends_with('?') { problem } else { problem.at(path) }
    })?;
    deserializer.end().map_err(|error| invalid(error.to_string()))?;
    Ok(value)
}

/// A body of lines, each of which is JSON.
pub struct Lines(pub String);

impl<S: Send + Sync> FromRequest<S> for Lines {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        expect_media(&request, &["application/x-ndjson", "application/jsonl"], "lines of JSON")?;
        let bytes = read(request, state).await?;
        let text = String::from_utf8(bytes.into()).map_err(|error| {
            let detail = format!("the body is not UTF-8: {error}");
            Problem::new(StatusCode::BAD_REQUEST, "invalid_request", detail)
        })?;
        Ok(Self(text))
    }
}

/// The company of the path.
pub struct Company(pub CompanyId);

impl<S: Send + Sync> FromRequestParts<S> for Company {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(names) = Path::<std::collections::HashMap<String, String>>::from_request_parts(parts, state)
            .await
            .map_err(|rejection| Problem::new(StatusCode::BAD_REQUEST, "invalid_request", rejection.to_string()))?;
        parse("companyId", names.get("company").map_or("", String::as_str)).map(Self)
    }
}

/// The query of the address. Unknown parameters are errors.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        axum::extract::Query::<T>::try_from_uri(&parts.uri)
            .map(|query| Self(query.0))
            .map_err(|rejection| Problem::new(StatusCode::BAD_REQUEST, "invalid_request", rejection.body_text()))
    }
}

/// An id from the address.
pub fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(field: &str, text: &str) -> Result<T, Problem> {
    text.parse()
        .map_err(|error: T::Err| Problem::new(StatusCode::BAD_REQUEST, "invalid_request", error.to_string()).at(field))
}
