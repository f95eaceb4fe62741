//! Error pages, made from the problem details that the API would return.

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::details::Details;
use super::page::{Page, bare};
use super::view::View;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProblemDetails {
    title: String,
    status: u16,
    detail: String,
    field: Option<String>,
    operation_id: Option<String>,
    #[serde(default)]
    errors: Vec<FieldProblem>,
}

#[derive(Deserialize)]
struct FieldProblem {
    pointer: String,
    message: String,
}

/// Whether the client accepts HTML.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}

/// Shows problem details as a page.
pub(crate) async fn as_page(request: Request, next: Next) -> Response {
    let view = request.extensions().get::<View>().cloned();
    let response = next.run(request).await;
    let media = response.headers().get(CONTENT_TYPE);
    if !media.is_some_and(|media| media.as_bytes().starts_with(b"application/problem+json")) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let bytes = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let page = match serde_json::from_slice::<ProblemDetails>(&bytes) {
        Ok(problem) => page(view.as_ref(), &problem),
        Err(_) => bare(
            "Something went wrong",
            &html! { p { "The details could not be read. See the log of the host." } },
        ),
    };
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    Response::from_parts(parts, page.into_string().into())
}

fn page(view: Option<&View>, problem: &ProblemDetails) -> Markup {
    let (title, next) = match problem.status {
        403 => (
            "Access denied",
            "Your token does not allow this. Ask an administrator for a token that does.",
        ),
        404 => ("Not found", "It may have been deleted, or the address is wrong."),
        400 | 422 => ("Invalid request", "Go back, correct it and try again."),
        409 | 412 => {
            ("Conflict", "Somebody else changed it. Go back, reload the page and try again.")
        }
        402 | 429 | 503 => ("Temporarily unavailable", "Nothing was lost. Try again in a moment."),
        _ => (problem.title.as_str(), "See the operation log for details."),
    };
    let details = Details::default()
        .maybe("Field", problem.field.as_ref().map(|field| html! { code { (field) } }))
        .maybe(
            "Operation",
            problem.operation_id.as_ref().map(|id| {
                match view.filter(|view| view.company.is_some()) {
                    Some(view) => html! { a href=(view.at(&["operations", id])) { code { (id) } } },
                    None => html! { code { (id) } },
                }
            }),
        );
    let body = html! {
        div.problem data-problem=(problem.status) {
            p { (problem.detail) }
            @if !problem.errors.is_empty() {
                ul {
                    @for error in &problem.errors {
                        li { code { (error.pointer) } " " (error.message) }
                    }
                }
            }
            (details)
            p.help { (next) }
        }
    };
    match view {
        Some(view) => Page::new(view, title, "").render(&body),
        None => bare(title, &html! { (body) p { a href="/" { "Go to the overview" } } }),
    }
}
