//! The query of a list that has pages: its filter, and which page.

use aide::OperationInput;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Problem, Query, document, read_query};
use memhost_types::schema::{cursor, page_size};

/// Which page of a list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    /// Where the page begins: `nextCursor` of the page before.
    #[schemars(transform = cursor)]
    pub(super) cursor: Option<String>,
    /// The most items of the page.
    #[schemars(transform = page_size)]
    pub(super) limit: Option<u32>,
}

/// The filter and the page of a list. A parameter that is neither is an error.
pub(super) struct ListQuery<F> {
    pub(super) filter: F,
    pub(super) page: PageQuery,
}

impl<F: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for ListQuery<F> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let is_page = |pair: &&str| matches!(pair.split('=').next(), Some("cursor" | "limit"));
        let (page, filter): (Vec<_>, Vec<_>) =
            parts.uri.query().unwrap_or_default().split('&').partition(is_page);
        Ok(Self { filter: read_query(&filter.join("&"))?, page: read_query(&page.join("&"))? })
    }
}

impl<F: JsonSchema> OperationInput for ListQuery<F> {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        document::query_parameters::<F>(operation);
        Query::<PageQuery>::operation_input(ctx, operation);
    }
}
