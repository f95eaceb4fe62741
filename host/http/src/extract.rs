//! Extractors of bodies, the company and queries, with errors that name the field.

use std::collections::HashMap;

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation};
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::document;
use super::objects::Objects;
use super::problem::{Problem, ProblemCode};
use memhost_executor::{off_executor, to_json};
use memhost_types::{CompanyId, plain, plain_syntax};

/// The most JSON values of a body. In memory a small value takes many times the bytes that it has
/// in JSON.
const MAX_VALUES: usize = 1_000_000;

fn expect_media(request: &Request, expected: &[&str], what: &str) -> Result<(), Problem> {
    let media = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if expected.iter().any(|expected| media.eq_ignore_ascii_case(expected)) {
        return Ok(());
    }
    let detail = format!(
        "the body is `{media}`; send {what} with `content-type: {}`",
        expected.join("` or `")
    );
    Err(Problem::new(ProblemCode::UnsupportedMediaType, detail))
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

/// Problems of every extractor that reads a body.
const BODY_CODES: [ProblemCode; 4] = [
    ProblemCode::InvalidRequest,
    ProblemCode::UnreadableBody,
    ProblemCode::BodyTooLarge,
    ProblemCode::UnsupportedMediaType,
];

impl<T: JsonSchema> OperationInput for Body<T> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        document::json_body::<T>(ctx, operation);
        document::problems(operation, BODY_CODES);
    }
}

async fn read<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    Bytes::from_request(request, state).await.map_err(|rejection| Problem::unreadable(&rejection))
}

/// JSON of a known type, with errors that name the field.
pub fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    off_executor(bytes.len(), || read_json_here(bytes))
}

/// How many JSON values a text has, at most.
pub(crate) fn values(text: &[u8]) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (1, false, false);
    for byte in text {
        match (is_text, is_escaped, byte) {
            (true, true, _) => is_escaped = false,
            (true, false, b'\\') => is_escaped = true,
            (_, _, b'"') => is_text = !is_text,
            (false, _, b',' | b'[' | b'{' | b':') => count += 1,
            _ => {}
        }
    }
    count
}

fn read_json_here<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if values(bytes) > MAX_VALUES {
        return Err(Problem::invalid(format!(
            "the body has more than {MAX_VALUES} JSON values; send it in parts"
        )));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(Objects(&mut deserializer)).map_err(|error| {
        let path = error.path().to_string();
        match error.into_inner() {
            error if error.is_data() => misread(&path, &error.to_string()),
            error => no_json(&error),
        }
    })?;
    deserializer.end().map_err(|error| no_json(&error))?;
    Ok(value)
}

/// A part of a body as a known type, with errors that name the field below it.
pub(crate) fn read_value<T: DeserializeOwned>(value: &serde_json::Value) -> Result<T, Problem> {
    // Through its bytes: reading values would be a second copy of the code of each type.
    let json = to_json(value).map_err(|error| no_json(&error))?;
    read_json(&json)
}

fn no_json(error: &serde_json::Error) -> Problem {
    Problem::invalid(format!("the body is no valid JSON: {}", plain_syntax(&error.to_string())))
}

/// The problem of a value that a parser does not accept: where it is, and what the parser said, in
/// plain words.
pub(crate) fn misread(path: &str, message: &str) -> Problem {
    // One form of path everywhere, `records.0.text`, as in the contract's own errors. The whole
    // document is no field, and neither is what ended before it had a name.
    let path = path.replace('[', ".").replace(']', "");
    let path = path.trim_matches(['.', '?']);
    let said = plain(message);
    let field = match said.field {
        None => path.to_owned(),
        Some(field) if path.is_empty() || path == field => field,
        Some(field) if path.ends_with(&format!(".{field}")) => path.to_owned(),
        Some(field) => format!("{path}.{field}"),
    };
    if field.is_empty() {
        return Problem::invalid(format!("the request {}", said.text));
    }
    Problem::invalid(format!("{field}: {}", without_name(&said.text))).at(field)
}

/// The message of an id without the id's own name at its beginning: the field says it.
fn without_name(text: &str) -> &str {
    let is_name = |word: &str| word.ends_with("Id") || word.ends_with("Key");
    text.split_once(' ').filter(|(word, _)| is_name(word)).map_or(text, |(_, rest)| rest)
}

/// The problem of a query that a parser does not accept.
pub fn misread_query(message: &str) -> Problem {
    let message = message.strip_prefix("Failed to deserialize query string: ").unwrap_or(message);
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match message.split_once(": ").filter(|(name, _)| is_name(name)) {
        Some((name, message)) => misread(name, message),
        None => misread("", message),
    }
}

/// A body of lines, each of which is JSON (NDJSON).
pub struct Ndjson(pub String);

impl<S: Send + Sync> FromRequest<S> for Ndjson {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        expect_media(&request, &["application/x-ndjson", "application/jsonl"], "lines of JSON")?;
        let bytes = read(request, state).await?;
        let text = String::from_utf8(bytes.into()).map_err(|error| {
            let detail = format!("the body is not UTF-8: {error}");
            Problem::invalid(detail)
        })?;
        Ok(Self(text))
    }
}

impl OperationInput for Ndjson {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        document::body(operation, "application/x-ndjson", MediaType::default());
        document::problems(operation, BODY_CODES);
    }
}

/// The text of a path parameter.
pub(crate) async fn path_segment<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    name: &str,
) -> Result<String, Problem> {
    let names = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
    let Path(mut names) = names.map_err(|rejection| Problem::invalid(rejection.to_string()))?;
    Ok(names.remove(name).unwrap_or_default())
}

/// The company of the path.
pub struct Company(pub CompanyId);

impl<S: Send + Sync> FromRequestParts<S> for Company {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        parse("companyId", &path_segment(parts, state, "company").await?).map(Self)
    }
}

impl OperationInput for Company {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        document::path_parameter::<CompanyId>(operation, "company");
        document::problems(operation, [ProblemCode::InvalidRequest]);
    }
}

/// The query of the address. Unknown parameters are errors.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        axum::extract::Query::<T>::try_from_uri(&parts.uri)
            .map(|query| Self(query.0))
            .map_err(|rejection| misread_query(&rejection.body_text()))
    }
}

impl<T: JsonSchema> OperationInput for Query<T> {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        document::query_parameters::<T>(operation);
        document::problems(operation, [ProblemCode::InvalidRequest]);
    }
}

/// An id from the address.
pub fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
    field: &str,
    text: &str,
) -> Result<T, Problem> {
    text.parse().map_err(|error: T::Err| {
        let message = error.to_string();
        Problem::invalid(format!("{field}: {}", without_name(&message))).at(field)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        assert_eq!(values(br#"{"a":[1,2],"b":"[,:{\",,\\"}"#), 7);
        assert_eq!(values(br#""text""#), 1);
    }
}
