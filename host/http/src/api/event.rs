//! Events of sessions and tools.

use std::sync::Arc;

use aide::axum::ApiRouter;
use schemars::JsonSchema;
use serde::Deserialize;

use super::list::ListQuery;
use super::route_table::{Items, routes};
use crate::{Authorized, Body, Created, Json, Problem, permission};
use memhost_core::{Page, Service};
use memhost_types::schema::items;
use memhost_types::{Event, EventFilter, NewEvent};

/// The route below `/runtime/v1/companies/{company}`.
pub(super) fn runtime_routes() -> ApiRouter<Arc<Service>> {
    routes! { RUNTIME, "events":
        "/events" {
            post emit => "emitEvents", "Store events of sessions and tools",
                "An event whose `eventId` is known is stored once; the answer has it as it was \
                 stored the first time.";
        }
    }
}

/// The route below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    routes! { COMPANY, "events":
        "/events" { get list => "listEvents", "List the events that match", "Newest first."; }
    }
}

/// Events as they are sent.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewEvents {
    /// In the order in which they happened.
    #[schemars(transform = items)]
    events: Vec<NewEvent>,
}

async fn emit(
    allowed: Authorized<permission::Emit>,
    Body(request): Body<NewEvents>,
) -> Result<Created<Items<Event>>, Problem> {
    let items =
        allowed.service.tenancy().emit(&allowed.caller, &allowed.company, request.events).await?;
    Ok(Created(Items { items }))
}

async fn list(
    allowed: Authorized<permission::View>,
    ListQuery { filter, page }: ListQuery<EventFilter>,
) -> Result<Json<Page<Event>>, Problem> {
    Ok(Json(
        allowed
            .service
            .tenancy()
            .events(&allowed.company, &filter, page.cursor.as_deref(), page.limit)
            .await?,
    ))
}
