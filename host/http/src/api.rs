//! The runtime plane (`/runtime/v1`, memory traffic) and the control plane (`/control/v1`,
//! bindings, operation log, plugins). Turns a request into one call of `core`, and its answer or
//! error into a response.

mod batch;
mod binding;
mod company;
mod control;
mod event;
mod hook;
mod job;
mod list;
mod money;
mod review;
mod runtime;
mod stream;
mod token;

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::transform::TransformOperation;
use schemars::JsonSchema;
use serde::Serialize;

use crate::document;
use memhost_core::Service;

/// Memory traffic.
pub fn runtime() -> ApiRouter<Arc<Service>> {
    let routes = runtime::routes()
        .merge(batch::routes())
        .merge(hook::runtime_routes())
        .merge(event::runtime_routes());
    let routes = routes.merge(job::runtime_routes());
    ApiRouter::new()
        .nest("/runtime/v1/companies/{company}", routes)
        .with_path_items(document::plane("runtime"))
}

/// Governance and views for operators.
pub fn control() -> ApiRouter<Arc<Service>> {
    let company = control::company_routes()
        .merge(binding::routes())
        .merge(token::company_routes())
        .merge(hook::routes())
        .merge(job::routes())
        .merge(review::routes())
        .merge(money::routes())
        .merge(event::routes())
        .merge(stream::company_routes())
        .merge(company::company_routes());
    let host =
        control::routes().merge(token::routes()).merge(company::routes()).merge(stream::routes());
    let planes =
        ApiRouter::new().nest("/control/v1/companies/{company}", company).nest("/control/v1", host);
    planes.with_path_items(document::plane("control"))
}

/// The routes of one tag: for each path its methods, each with the handler, the operation's id, its
/// summary and, where there is more to say, its description.
macro_rules! routes {
    ($tag:literal: $($path:literal {
        $($method:ident $handler:expr => $id:literal, $summary:literal $(, $description:expr)?;)+
    })+) => {
        aide::axum::ApiRouter::new()
            $(.api_route($path, aide::axum::routing::ApiMethodRouter::new()
                $(.merge($crate::api::route!(
                $method $handler,
                $crate::api::describe($id, $summary, None$(.or(Some($description)))?)
            )))+))+
            .with_path_items(|item| item.tag($tag))
    };
}

macro_rules! route {
    (get $($rest:tt)+) => { aide::axum::routing::get_with($($rest)+) };
    (post $($rest:tt)+) => { aide::axum::routing::post_with($($rest)+) };
    (put $($rest:tt)+) => { aide::axum::routing::put_with($($rest)+) };
    (patch $($rest:tt)+) => { aide::axum::routing::patch_with($($rest)+) };
    (delete $($rest:tt)+) => { aide::axum::routing::delete_with($($rest)+) };
}
use {route, routes};

/// Sets an operation's id, its summary, and its description if it has one.
fn describe(
    id: &'static str,
    summary: &'static str,
    description: Option<&'static str>,
) -> impl FnOnce(TransformOperation<'_>) -> TransformOperation<'_> {
    move |operation| {
        let operation = operation.id(id).summary(summary);
        match description {
            Some(description) => operation.description(description),
            None => operation,
        }
    }
}

/// A list without pages.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}List")]
struct Items<T> {
    /// All of them.
    items: Vec<T>,
}
