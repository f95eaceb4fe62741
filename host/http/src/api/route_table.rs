//! A table of routes: each row is a path with its methods, their operations and their texts.

use aide::transform::TransformOperation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The base path of the runtime plane.
pub(super) const RUNTIME: &str = "/runtime/v1/companies/{company}";
/// The base path of one company in the control plane.
pub(super) const COMPANY: &str = "/control/v1/companies/{company}";
/// The base path of the host in the control plane.
pub(super) const HOST: &str = "/control/v1";

/// The routes of one tag: for each path its methods, each with the handler, the operation's id, its
/// summary and, where there is more to say, its description. Each path is registered
/// whole, with `$base` in front: axum's `nest` would rewrite the path of every request.
macro_rules! routes {
    ($base:ident, $tag:literal: $($path:literal {
        $($method:ident $handler:expr => $id:literal, $summary:literal $(, $description:expr)?;)+
    })+) => {
        aide::axum::ApiRouter::new()
            $(.api_route(
                &[$crate::api::route_table::$base, $path].concat(),
                aide::axum::routing::ApiMethodRouter::new()
                    $(.merge($crate::api::route_table::route!(
                        $method $handler,
                        $crate::api::route_table::describe(
                            $id, $summary, None$(.or(Some($description)))?
                        )
                    )))+
            ))+
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
pub(super) use {route, routes};

/// Sets an operation's id, its summary, and its description if it has one.
pub(super) fn describe(
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
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub struct Items<T> {
    /// All of them.
    pub items: Vec<T>,
}
