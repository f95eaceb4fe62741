//! Errors as pages: made of the problem details that the same request to the API would be answered with.

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::facts::Facts;
use super::page::{Page, bare};
use super::view::View;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    title: String,
    status: u16,
    detail: String,
    field: Option<String>,
    operation_id: Option<String>,
    #[serde(default)]
    errors: Vec<Complaint>,
}

#[derive(Deserialize)]
struct Complaint {
    pointer: String,
    message: String,
}

/// Whether it is a person's browser that asks.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|accept| accept.contains("text/html"))
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
    let page = match serde_json::from_slice::<Told>(&bytes) {
        Ok(told) => page(view.as_ref(), &told),
        Err(_) => bare("Something went wrong", &html! { p { "The host could not say what. Its log says more." } }),
    };
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    Response::from_parts(parts, page.into_string().into())
}

fn page(view: Option<&View>, told: &Told) -> Markup {
    let (title, next) = match told.status {
        403 => ("Not for you", "Your token does not reach this. Whoever gave it to you can give you another one."),
        404 => ("Not found", "It may have been removed, or the address is wrong."),
        400 | 422 => ("That will not do", "Go back, change it and try again."),
        409 | 412 => ("It changed meanwhile", "Go back, look at it as it is now, and try again."),
        402 | 429 | 503 => ("Not now", "Nothing was lost. Try again in a moment."),
        _ => (told.title.as_str(), "The operation log says more."),
    };
    let facts = Facts::default().maybe("Field", told.field.as_ref().map(|field| html! { code { (field) } })).maybe(
        "Operation",
        told.operation_id.as_ref().map(|id| match view.filter(|view| view.company.is_some()) {
            Some(view) => html! { a href=(view.at(&["operations", id])) { code { (id) } } },
            None => html! { code { (id) } },
        }),
    );
    let body = html! {
        div.problem data-problem=(told.status) {
            p { (told.detail) }
            @if !told.errors.is_empty() {
                ul { @for error in &told.errors { li { code { (error.pointer) } " " (error.message) } } }
            }
            (facts)
            p.help { (next) }
        }
    };
    match view {
        Some(view) => Page::new(view, title, "").render(&body),
        None => bare(title, &html! { (body) p { a href="/" { "To the overview" } } }),
    }
}
