//! Events as server-sent events: `operation`, `job`, `budget`, `plugin` and `reset`. Each has an
//! id; a client that reconnects with it in `Last-Event-ID` continues after that event.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use aide::OperationInput;
use aide::axum::ApiRouter;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_stream::wrappers::ReceiverStream;

use super::route_table::routes;
use crate::failure::StreamCodes;
use crate::{
    Authorized, Failure, HostAuthorized, Problem, Query, ServerSentEvents, document, permission,
};
use memhost_core::{Caller, HostEvent, Service};
use memhost_types::CompanyId;

/// How long a client waits before it reconnects.
const RETRY: Duration = Duration::from_secs(2);
/// The interval of empty comments, so that proxies keep the connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The longest connection. Its client reconnects, and a revoked token is refused then.
const MAX_CONNECTION: Duration = Duration::from_mins(5);

const DESCRIPTION: &str = "Server-sent events `operation`, `job`, `budget`, `plugin` (the host's \
                           stream only) and \
                           `reset`, each with an id. `Last-Event-ID` continues after that event. \
                           After `reset`, some \
                           events were missed: read the lists again. A token has at most 32 \
                           streams at a time.";

/// The id of the last event that a client has seen, if it reconnects.
struct LastEventId(Option<String>);

impl<S: Sync> FromRequestParts<S> for LastEventId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let id = parts.headers.get("last-event-id");
        Ok(Self(id.map(|id| id.to_str().unwrap_or_default().to_owned())))
    }
}

impl OperationInput for LastEventId {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let description =
            "The id of the last event that the client has seen. The stream continues after it.";
        document::header::<String>(operation, "Last-Event-ID", description);
    }
}

/// The route below `/control/v1/companies/{company}`.
pub(super) fn company_routes() -> ApiRouter<Arc<Service>> {
    routes! { COMPANY, "stream":
        "/stream" {
            get of_company => "followCompany", "Stream the events of a company", DESCRIPTION;
        }
    }
}

/// The route below `/control/v1`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    routes! { HOST, "stream":
        "/stream" { get of_host => "followHost", "Stream the events of the host", DESCRIPTION; }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StreamQuery {
    /// Names, separated by commas. If absent: all.
    #[schemars(regex(
        pattern = "^(operation|job|budget|plugin)(,(operation|job|budget|plugin))*$"
    ))]
    kinds: Option<String>,
}

/// The data of a `reset`.
#[derive(Serialize)]
struct Reset {
    advice: &'static str,
}

async fn of_company(
    allowed: Authorized<permission::View>,
    LastEventId(last): LastEventId,
    Query(query): Query<StreamQuery>,
) -> Result<ServerSentEvents, Failure<StreamCodes>> {
    stream(&allowed.service, &allowed.caller, Some(&allowed.company), last, query).await
}

async fn of_host(
    allowed: HostAuthorized,
    LastEventId(last): LastEventId,
    Query(query): Query<StreamQuery>,
) -> Result<ServerSentEvents, Failure<StreamCodes>> {
    stream(&allowed.service, &allowed.caller, None, last, query).await
}

async fn stream(
    service: &Service,
    caller: &Caller,
    company: Option<&CompanyId>,
    last: Option<String>,
    query: StreamQuery,
) -> Result<ServerSentEvents, Failure<StreamCodes>> {
    let kinds = query.kinds.map(|kinds| kinds.split(',').map(str::to_owned).collect::<Vec<_>>());
    let unknown = kinds.iter().flatten().find(|kind| !HostEvent::KINDS.contains(&kind.as_str()));
    if let Some(unknown) = unknown {
        let detail = format!("`{unknown}` is not one of {}", HostEvent::KINDS.join(", "));
        return Err(Problem::invalid(detail).at("kinds").into());
    }
    let mut follower = service.control().follow(caller, company, last.as_deref()).await?;
    // One event at a time: a slow client delays only itself, and gets a `reset` where it missed
    // events.
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let until = tokio::time::Instant::now() + MAX_CONNECTION;
    tokio::spawn(async move {
        loop {
            let notice = tokio::select! {
                // The client has disconnected.
                () = sender.closed() => return,
                () = tokio::time::sleep_until(until) => return,
                notice = follower.next() => notice,
            };
            let Some(notice) = notice else { return };
            let kind = notice.happened.kind();
            let is_wanted = matches!(notice.happened, HostEvent::Reset)
                || kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|wanted| wanted == kind));
            if is_wanted
                && sender
                    .send(Ok::<_, Infallible>(event(&follower.id(&notice), &notice.happened)))
                    .await
                    .is_err()
            {
                return;
            }
        }
    });
    let alive = KeepAlive::new().interval(KEEP_ALIVE);
    // Proxies must not buffer the stream.
    let headers = [("cache-control", "no-store"), ("x-accel-buffering", "no")];
    Ok(ServerSentEvents(
        (headers, Sse::new(ReceiverStream::new(receiver)).keep_alive(alive)).into_response(),
    ))
}

fn event(id: &str, happened: &HostEvent) -> Event {
    let event = Event::default().id(id).event(happened.kind()).retry(RETRY);
    let sent = match happened {
        HostEvent::Operation(operation) => event.json_data(operation),
        HostEvent::Job(job) => event.json_data(job),
        HostEvent::Budget(budget) => event.json_data(budget),
        HostEvent::Plugin(change) => event.json_data(change),
        HostEvent::Reset => {
            event.json_data(Reset { advice: "some events were missed; read the lists again" })
        }
    };
    sent.unwrap_or_else(|error| {
        tracing::error!(%error, kind = happened.kind(), "an event cannot be written as JSON");
        Event::default().comment("an event could not be written")
    })
}
