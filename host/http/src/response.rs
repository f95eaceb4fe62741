//! Answers whose status and headers are in their type, so that the document and the wire agree.

use aide::OperationOutput;
use aide::generate::GenContext;
use aide::openapi::{self, MediaType, Operation};
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::document;
use super::problem::{Problem, ProblemCode};
use super::rate::set_rate;
use memhost_core::{BindingView, RateState};
use memhost_executor::to_json;

/// The statuses of an answer, each with its description.
pub type Responses = Vec<(Option<openapi::StatusCode>, openapi::Response)>;

/// An answer in JSON. A long one is written away from the executor.
pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match to_json(&self.0) {
            Ok(body) => ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body)
                .into_response(),
            Err(error) => Problem::new(ProblemCode::Host, error.to_string()).into_response(),
        }
    }
}

impl<T: JsonSchema> OperationOutput for Json<T> {
    type Inner = T;

    fn operation_response(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Option<openapi::Response> {
        axum::Json::<T>::operation_response(ctx, operation)
    }

    fn inferred_responses(ctx: &mut GenContext, operation: &mut Operation) -> Responses {
        axum::Json::<T>::inferred_responses(ctx, operation)
    }
}

/// 201: something was created.
pub struct Created<T>(pub T);

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}

impl<T: JsonSchema> OperationOutput for Created<T> {
    type Inner = T;

    fn inferred_responses(ctx: &mut GenContext, operation: &mut Operation) -> Responses {
        let made = Json::<T>::operation_response(ctx, operation);
        made.map(|made| (Some(openapi::StatusCode::Code(201)), made)).into_iter().collect()
    }
}

/// An answer with how the rate of the binding stands that gave it
/// (draft-ietf-httpapi-ratelimit-headers: `RateLimit` and `RateLimit-Policy`).
pub struct WithRateLimit<T> {
    /// The answer.
    pub answer: T,
    /// How the rate stands. `None` if the binding has no limit.
    pub rate: Option<RateState>,
}

impl<T: Serialize> IntoResponse for WithRateLimit<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.answer).into_response();
        if let Some(rate) = self.rate {
            set_rate(response.headers_mut(), rate);
        }
        response
    }
}

impl<T: JsonSchema> OperationOutput for WithRateLimit<T> {
    type Inner = T;

    fn operation_response(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Option<openapi::Response> {
        Json::<T>::operation_response(ctx, operation)
    }

    fn inferred_responses(ctx: &mut GenContext, operation: &mut Operation) -> Responses {
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

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Responses {
        let nothing = openapi::Response {
            description: "Done; there is no body.".to_owned(),
            ..openapi::Response::default()
        };
        vec![(Some(openapi::StatusCode::Code(204)), nothing)]
    }
}

/// A binding with its revision as the entity tag.
pub struct EntityTagged<const STATUS: u16>(pub BindingView);

impl<const STATUS: u16> OperationOutput for EntityTagged<STATUS> {
    type Inner = BindingView;

    fn inferred_responses(ctx: &mut GenContext, operation: &mut Operation) -> Responses {
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

/// 200: one JSON value a line (NDJSON).
pub struct NdjsonAnswer(pub Body);

impl IntoResponse for NdjsonAnswer {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/x-ndjson")], self.0).into_response()
    }
}

impl OperationOutput for NdjsonAnswer {
    type Inner = Self;

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Responses {
        media_answer("application/x-ndjson", "One JSON value a line.")
    }
}

/// 200: server-sent events.
pub struct ServerSentEvents(pub Response);

impl IntoResponse for ServerSentEvents {
    fn into_response(self) -> Response {
        self.0
    }
}

impl OperationOutput for ServerSentEvents {
    type Inner = Self;

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Responses {
        media_answer("text/event-stream", "Events as they happen.")
    }
}

/// The description of a 200 of a media type without a schema.
pub fn media_answer(media: &str, description: &str) -> Responses {
    let content = std::iter::once((media.to_owned(), MediaType::default())).collect();
    let answer = openapi::Response {
        description: description.to_owned(),
        content,
        ..openapi::Response::default()
    };
    vec![(Some(openapi::StatusCode::Code(200)), answer)]
}
