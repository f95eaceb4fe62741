//! Extractors of bodies, the company and queries, with errors that name the field.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::{MediaType, Operation};
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use super::document;
use super::objects::{Missing, Objects};
use super::problem::{Problem, ProblemCode};
use memhost_executor::{off_executor, to_json};
use memhost_types::{CompanyId, repair_surrogates, without_place};

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
    let bytes = repair_surrogates(bytes);
    let (mut deserializer, missing) =
        (serde_json::Deserializer::from_slice(&bytes), Missing::default());
    let value = serde_path_to_error::deserialize(Objects(&mut deserializer, &missing));
    let value = value.map_err(|error| {
        let path = error.path().to_string();
        match error.into_inner() {
            error if error.is_data() => misread(&path, &missing, &without_place(&error)),
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
    Problem::invalid(format!("the body is no valid JSON: {error}"))
}

/// The problem of a value that a parser does not accept: where it is, and what the parser said.
fn misread(path: &str, missing: &Missing, message: &str) -> Problem {
    let field = field_at(path, missing);
    if field.is_empty() {
        return Problem::invalid(format!("the request: {message}"));
    }
    let message = in_own_words(&field, message).unwrap_or_else(|| without_name(message));
    Problem::invalid(format!("{field}: {message}")).at(field)
}

/// What to write, where a library tells it in words about its own parts.
fn in_own_words(field: &str, message: &str) -> Option<&'static str> {
    // What serde and this host say.
    const OURS: [&str; 5] = ["missing ", "invalid type", "unknown ", "duplicate ", "is "];
    if message == "invalid digit found in string" {
        return Some("is no whole number");
    }
    let last = field.rsplit('.').next().unwrap_or(field);
    let is_time = ["since", "until", "at"].contains(&last) || last.ends_with("At");
    (is_time && !OURS.iter().any(|ours| message.starts_with(ours)))
        .then_some("is no time; write it like 2026-11-20T10:00:00Z")
}

/// A day of a query.
pub(crate) fn day<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Date>, D::Error> {
    let day = Option::<String>::deserialize(from)?.map(|text| text.parse());
    day.transpose().map_err(|_| D::Error::custom("is no day; write it like 2026-11-20"))
}

/// The field at fault, in the one form of a path that there is everywhere, such as
/// `records.0.text`; empty where the whole document is at fault.
pub(crate) fn field_at(path: &str, missing: &Missing) -> String {
    // What ended before it had a name is no field.
    let path = path.replace('[', ".").replace(']', "");
    let path = path.trim_matches(['.', '?']);
    match missing.get() {
        Some(field) if path.is_empty() => field.to_owned(),
        Some(field) => format!("{path}.{field}"),
        None => path.to_owned(),
    }
}

/// The message of an id without the id's own name at its beginning: the field says it.
fn without_name(text: &str) -> &str {
    let is_name = |word: &str| word.ends_with("Id") || word.ends_with("Key");
    text.split_once(' ').filter(|(word, _)| is_name(word)).map_or(text, |(_, rest)| rest)
}

/// A query of a known type, with errors that name the parameter.
pub fn read_query<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let reader = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
    let missing = Missing::default();
    serde_path_to_error::deserialize(Objects(reader, &missing))
        .map_err(|error| misread(&error.path().to_string(), &missing, &error.inner().to_string()))
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
    let all = RawPathParams::from_request_parts(parts, state).await;
    let all = all.map_err(|rejection| Problem::invalid(rejection.to_string()))?;
    let text = all.iter().find(|(found, _)| *found == name).map(|(_, text)| text.to_owned());
    Ok(text.unwrap_or_default())
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
        read_query(parts.uri.query().unwrap_or_default()).map(Self)
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
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Asked {
        top_k: u32,
        #[serde(default)]
        records: Vec<Asked>,
    }

    #[test]
    fn a_problem_names_the_field_and_says_what_the_parser_said() {
        for (json, field, detail) in [
            (r#"{"topk":1}"#, Some("topk"), "topk: unknown field `topk`, expected `topK` or"),
            ("{}", Some("topK"), "topK: missing field `topK`"),
            (r#"{"topK":1,"records":[{}]}"#, Some("records.0.topK"), "records.0.topK: missing"),
            (r#"{"topK":"7"}"#, Some("topK"), "topK: invalid type: string \"7\", expected u32"),
            (r#"{"topK":null}"#, Some("topK"), "topK: invalid type: null, expected u32"),
            ("[]", None, "the request: invalid type: sequence, expected"),
            (r#"{"topK":"#, None, "the body is no valid JSON: EOF while parsing a value at line 1"),
            ("{} x", None, "the body is no valid JSON: trailing characters at line 1 column 4"),
        ] {
            let problem = match json {
                "{} x" => read_json::<serde::de::IgnoredAny>(json.as_bytes()).unwrap_err(),
                json => read_json::<Asked>(json.as_bytes()).unwrap_err(),
            };
            assert_eq!(problem.field(), field, "{json}");
            assert!(problem.detail().starts_with(detail), "{json}: {}", problem.detail());
        }
        for (query, field, detail) in [
            ("topK=x", Some("topK"), "topK: is no whole number"),
            ("top=1", Some("top"), "top: unknown field `top`, expected `topK` or"),
            ("", Some("topK"), "topK: missing field `topK`"),
        ] {
            let problem = read_query::<Asked>(query).unwrap_err();
            assert_eq!(problem.field(), field, "{query}");
            assert!(problem.detail().starts_with(detail), "{query}: {}", problem.detail());
        }
    }

    #[test]
    fn values_are_counted_outside_of_texts() {
        assert_eq!(values(br#"{"a":[1,2],"b":"[,:{\",,\\"}"#), 7);
        assert_eq!(values(br#""text""#), 1);
    }
}
