//! Answers whose status and headers are in their type, so that the document and the wire agree.

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{self, MediaType, Operation};
use axum::Json;
use axum::http::header::ETAG;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::document;
use memhost_core::{BindingView, RateState};

type Inferred = Vec<(Option<openapi::StatusCode>, openapi::Response)>;

/// 201: something was created.
pub struct Created<T>(pub T);

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}

impl<T: JsonSchema> OperationOutput for Created<T> {
    type Inner = T;

    fn inferred_responses(ctx: &mut GenContext, operation: &mut Operation) -> Inferred {
        let made = Json::<T>::operation_response(ctx, operation);
        made.map(|made| (Some(openapi::StatusCode::Code(201)), made)).into_iter().collect()
    }
}

/// An answer with how the rate of the binding stands that gave it
/// (draft-ietf-httpapi-ratelimit-headers: `RateLimit` and `RateLimit-Policy`).
pub struct WithRateLimit<T> {
    /// The answer.
    pub answer: T,
    /// How the rate stands; none where the binding has no limit.
    pub rate: Option<RateState>,
}

impl<T: Serialize> IntoResponse for WithRateLimit<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.answer).into_response();
        let Some(rate) = self.rate else { return response };
        let seconds = u64::try_from(rate.full_in.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX);
        let policy = format!("\"callsPerSecond\";q={};w=1", rate.per_second);
        let now = format!("\"callsPerSecond\";r={};t={seconds}", rate.left);
        for (name, value) in [("ratelimit-policy", policy), ("ratelimit", now)] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

impl<T: JsonSchema> OperationOutput for WithRateLimit<T> {
    type Inner = T;

    fn operation_response(ctx: &mut GenContext, operation: &mut Operation) -> Option<openapi::Response> {
        Json::<T>::operation_response(ctx, operation)
    }

    fn inferred_responses(ctx: &mut GenContext, operation: &mut Operation) -> Inferred {
        Json::<T>::inferred_responses(ctx, operation)
    }
}

/// 204: the change is made, and the answer has no body.
pub struct NoContent;

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl OperationOutput for NoContent {
    type Inner = ();

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Inferred {
        let nothing = openapi::Response { description: "It is done.".to_owned(), ..openapi::Response::default() };
        vec![(Some(openapi::StatusCode::Code(204)), nothing)]
    }
}

/// A binding with its revision as the entity tag.
pub struct EntityTagged<const STATUS: u16>(pub BindingView);

impl<const STATUS: u16> OperationOutput for EntityTagged<STATUS> {
    type Inner = BindingView;

    fn inferred_responses(ctx: &mut GenContext, operation: &mut Operation) -> Inferred {
        let shown = Json::<BindingView>::operation_response(ctx, operation);
        let tagged = shown.map(|mut shown| {
            document::answer_header(&mut shown, "etag", "EntityTag");
            (Some(openapi::StatusCode::Code(STATUS)), shown)
        });
        tagged.into_iter().collect()
    }
}

impl<const STATUS: u16> IntoResponse for EntityTagged<STATUS> {
    fn into_response(self) -> Response {
        let tag = HeaderValue::from_str(&format!("\"{}\"", self.0.binding.revision));
        let status = StatusCode::from_u16(STATUS).unwrap_or_default();
        let mut response = (status, Json(self.0)).into_response();
        if let Ok(tag) = tag {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

/// The description of an answer of one JSON value a line (NDJSON).
pub struct NdjsonAnswer;

impl OperationOutput for NdjsonAnswer {
    type Inner = Self;

    fn operation_response(_: &mut GenContext, _: &mut Operation) -> Option<openapi::Response> {
        let description = "One JSON value a line.".to_owned();
        let content = std::iter::once(("application/x-ndjson".to_owned(), MediaType::default())).collect();
        Some(openapi::Response { description, content, ..openapi::Response::default() })
    }
}

/// The description of an answer of server-sent events.
pub struct ServerSentEvents;

impl OperationOutput for ServerSentEvents {
    type Inner = Self;

    fn operation_response(_: &mut GenContext, _: &mut Operation) -> Option<openapi::Response> {
        let description = "Events as they happen.".to_owned();
        let content = std::iter::once(("text/event-stream".to_owned(), MediaType::default())).collect();
        Some(openapi::Response { description, content, ..openapi::Response::default() })
    }
}
