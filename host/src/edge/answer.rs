//! Answers whose status is in their type, so that the document and the wire say the same.

use aide::generate::GenContext;
use aide::openapi::{self, MediaType, Operation, ReferenceOr, RequestBody};
use aide::{OperationInput, OperationOutput};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::problem::Problem;

type Inferred = Vec<(Option<openapi::StatusCode>, openapi::Response)>;

/// 201: something was made.
pub(crate) struct Created<T>(pub(crate) T);

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

/// 204: it is done, and there is nothing to say about it.
pub(crate) struct Done;

impl IntoResponse for Done {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl OperationOutput for Done {
    type Inner = ();

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Inferred {
        let nothing = openapi::Response { description: "It is done.".to_owned(), ..openapi::Response::default() };
        vec![(Some(openapi::StatusCode::Code(204)), nothing)]
    }
}

/// One JSON value a line, in a request or an answer.
pub(crate) struct JsonLines;

fn lines() -> (String, MediaType) {
    ("application/x-ndjson".to_owned(), MediaType::default())
}

impl OperationInput for JsonLines {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let content = std::iter::once(lines()).collect();
        let body = RequestBody { description: None, content, required: true, extensions: Default::default() };
        operation.request_body = Some(ReferenceOr::Item(body));
    }
}

impl OperationOutput for JsonLines {
    type Inner = Self;

    fn operation_response(_: &mut GenContext, _: &mut Operation) -> Option<openapi::Response> {
        let description = "One JSON value a line.".to_owned();
        let content = std::iter::once(lines()).collect();
        Some(openapi::Response { description, content, ..openapi::Response::default() })
    }
}

/// Server-sent events.
pub(crate) struct Events;

impl OperationOutput for Events {
    type Inner = Self;

    fn operation_response(_: &mut GenContext, _: &mut Operation) -> Option<openapi::Response> {
        let description = "Events as they happen.".to_owned();
        let content = std::iter::once(("text/event-stream".to_owned(), MediaType::default())).collect();
        Some(openapi::Response { description, content, ..openapi::Response::default() })
    }
}

/// Which problems an operation can answer with is added when the document is finished: it follows from what it takes.
impl OperationOutput for Problem {
    type Inner = Self;
}
