//! The memory routes of other systems, in their own JSON, mapped to a binding by the host's
//! configuration. A call is one or more operations of `core`, so it is authorized, recorded and
//! budgeted like any other. Errors are problem details.
//!
//! The owner of a record is in its metadata (`userId`, `driveId`, `projectId`) as well as in its
//! scope, and is checked in every answer: records that a provider returns for a wrong scope are
//! dropped. A record without such a member is that of the owner in its scope.
//!
//! # PageSpace: `[integrations.pagespace]`
//!
//! | route | what it does |
//! | --- | --- |
//! | `GET /api/memory/user` | `list`; 200, an array of the user's facts, oldest first |
//! | `POST /api/memory/user` | `upsert`; 201, the fact |
//! | `DELETE /api/memory/user/{id}` | `get`, `forget`; 204; 404 where it is not the user's |
//! | `DELETE /api/memory/user/all` | `list`, `forget`; 200, how many were `removed` |
//! | `GET /api/memory/drive/{driveId}` | the same for a drive |
//! | `POST /api/memory/drive/{driveId}` | |
//! | `DELETE /api/memory/drive/{id}` | |
//! | `DELETE /api/memory/drive/{driveId}/all` | |
//! | `GET`, `POST /api/memory/company`, `DELETE /api/memory/company/{id}` | for neither |
//!
//! | field of a fact | from | to |
//! | --- | --- | --- |
//! | `id` | the provider | the record's id |
//! | `userId` | the header, or the token's agent | the scope's `subjectId`, metadata `userId` |
//! | `driveId` | the address | the scope's `namespace` (`drive`), metadata `driveId` |
//! | `fact` | the body, 1 to 200 characters | the record's text |
//! | `source` | the body: `ai` or `user`; else `ai` for an agent and `user` for others | metadata |
//! | `createdBy` (drive) | the header, or the agent of the token | metadata `createdBy` |
//! | `createdAt` | the host | metadata `createdAt` |
//!
//! # Apropos: `[integrations.apropos]`
//!
//! | route below `/api/projects/{projectId}` | body | what it does |
//! | --- | --- | --- |
//! | `POST /memory` | an item | `upsert`; 201, the item |
//! | `GET /memory?limit=&cursor=&type=&agentKind=&sessionId=` | | `list`; `{items, nextCursor}` |
//! | `GET`, `PATCH`, `DELETE /memory/{id}` | changed fields | `get`, `upsert`, `forget`; the item |
//! | `POST /memory/search` | `{query, limit}` | `query`; `{items}`, each with its `score` |
//! | `POST /memory/recall` | `{query, limit, maxChars}` | `query` at a run; `{items, context}` |
//! | `POST /memory/import` | `{items}` (1,000) | `list`, `upsert`; `{imported, unchanged, ids}` |
//! | `POST /memory/export` | `{cursor}` | `list`; `{projectId, exportedAt, items, nextCursor}` |
//!
//! | field of an item | from | to |
//! | --- | --- | --- |
//! | `id` | the host; at import also the body | the record's id, after the project's mark |
//! | `projectId` | the address; a body must agree | the scope's `projectId`, metadata `projectId` |
//! | `sessionId` | the body, or null | metadata; context of the scope |
//! | `agentKind` | the body, or null | metadata |
//! | `type` | the body, one of the five; `fact` where absent | metadata |
//! | `content` | the body | the record's text |
//! | `tags` | the body, at most 32 | metadata |
//! | `visibility` | the body: `project` or `global`; `project` where absent | metadata |
//! | `confidence` | the body, 0 to 1; absent: 1 | metadata; the binding's review policy judges it |
//! | `source` | `manual` (default), `inferred`, `imported` (default at import) | metadata |
//! | `createdAt`, `updatedAt` | the host; at import also the body | metadata |
//!
//! Importing an item again replaces it if it differs. An item of another project gets another id.

mod apropos;
mod fact_figures;
mod fact_policy;
mod facts;
mod item;
mod options;
mod owned;
mod pagespace;
mod project_events;
mod tools;

use std::sync::Arc;

use axum::{Extension, Router};

use self::fact_figures::FactFigures;
pub use self::facts::{Fact, FactOwner, FactSource, Facts, MAX_FACT_CHARS, own_user};
pub use self::options::{
    AproposOptions, ChangeableFacts, IntegrationOptions, PageSpaceOptions, ScopeField,
};
pub use self::tools::TOOLS;
use memhost_core::Service;
use memhost_http::ReadRoutes;

/// The routes that are asked with `POST` and only read.
pub const READ_ROUTES: ReadRoutes = ReadRoutes(apropos::READS);

/// Attaches to a host what the configuration names. From here on PageSpace's policy guards its
/// binding, the metrics have figures of its facts, and the projects of Apropos have events of their
/// memory, whichever way it is written and recalled.
pub fn attach(service: &Service, options: &IntegrationOptions) {
    if let Some(options) = &options.pagespace {
        service.attach_policy(options.section(), Arc::new(options.clone()));
        service.monitor().attach_metrics(options.section(), Arc::new(FactFigures::new(options)));
    }
    if let Some(options) = &options.apropos {
        service.attach_sink(options.section(), Arc::new(options.clone()));
    }
}

/// The routes that the configuration names.
pub fn routes(options: &IntegrationOptions) -> Router<Arc<Service>> {
    let mut routes = Router::new();
    if let Some(options) = &options.pagespace {
        routes = routes.merge(pagespace::routes().layer(Extension(Arc::new(options.clone()))));
    }
    if let Some(options) = &options.apropos {
        routes = routes.merge(apropos::routes().layer(Extension(Arc::new(options.clone()))));
    }
    routes
}
