//! Events as server-sent events: `operation`, `job`, `budget`, `plugin` and `reset`. Each has an id; a client that
//! reconnects with it in `Last-Event-ID` continues after that event.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use aide::OperationInput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_stream::wrappers::ReceiverStream;

use super::describe;
use crate::{Authorized, HostAuthorized, Problem, Query, ServerSentEvents, document, permission};
use memhost_core::{HostEvent, Service};
use memhost_types::CompanyId;

/// How long a client waits before it reconnects.
const RETRY: Duration = Duration::from_secs(2);
/// The interval of empty comments, so that proxies keep the connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The longest connection. Its client reconnects, and a revoked token is refused then.
const MAX_CONNECTION: Duration = Duration::from_mins(5);

const DESCRIPTION: &str = "Server-sent events `operation`, `job`, `budget`, `plugin` (the host's stream only) and `reset`, each with an \
                     id; `Last-Event-ID` goes on behind one. After `reset`, which says that some were missed, read the lists again.";

/// The description of the header of a client that reconnects.
struct LastEventId;

impl OperationInput for LastEventId {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let description = "The id of the last event that the client has seen: it goes on behind that one.";
        document::header::<String>(operation, "Last-Event-ID", description);
    }
}

/// The route below `/control/v1/companies/{company}`.
pub(super) fn company_routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/stream",
            get_with(of_company, |operation| {
                describe("followCompany", "Follow what happens in a company", DESCRIPTION)(operation)
                    .input::<LastEventId>()
                    .response::<200, ServerSentEvents>()
            }),
        )
        .with_path_items(|item| item.tag("stream"))
}

/// The route below `/control/v1`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/stream",
            get_with(of_host, |operation| {
                describe("followHost", "Follow what happens on the host", DESCRIPTION)(operation)
                    .input::<LastEventId>()
                    .response::<200, ServerSentEvents>()
            }),
        )
        .with_path_items(|item| item.tag("stream"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StreamQuery {
    /// Names with commas between them; absent: everything.
    #[schemars(regex(pattern = "^(operation|job|budget|plugin)(,(operation|job|budget|plugin))*$"))]
    kinds: Option<String>,
}

/// The data of a `reset`.
#[derive(Serialize)]
struct Reset {
    advice: &'static str,
}

async fn of_company(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    headers: HeaderMap,
    Query(query): Query<StreamQuery>,
) -> Result<Response, Problem> {
    stream(&service, Some(&allowed.company), &headers, query).await
}

async fn of_host(
    State(service): State<Arc<Service>>,
    _: HostAuthorized,
    headers: HeaderMap,
    Query(query): Query<StreamQuery>,
) -> Result<Response, Problem> {
    stream(&service, None, &headers, query).await
}

async fn stream(
    service: &Service,
    company: Option<&CompanyId>,
    headers: &HeaderMap,
    query: StreamQuery,
) -> Result<Response, Problem> {
    let kinds = query.kinds.map(|kinds| kinds.split(',').map(str::to_owned).collect::<Vec<_>>());
    let unknown = kinds.iter().flatten().find(|kind| !HostEvent::KINDS.contains(&kind.as_str()));
    if let Some(unknown) = unknown {
        let detail = format!("`{unknown}` is none of {}", HostEvent::KINDS.join(", "));
        return Err(Problem::invalid(detail).at("kinds"));
    }
    let after = headers.get("last-event-id").map(|id| id.to_str().unwrap_or_default());
    let mut follower = service.follow(company, after).await?;
    // One event at a time: a slow client delays only itself, and gets a `reset` where it missed events.
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
            if is_wanted && sender.send(Ok::<_, Infallible>(event(&notice.id, &notice.happened))).await.is_err() {
                return;
            }
        }
    });
    let alive = KeepAlive::new().interval(KEEP_ALIVE);
    // Proxies must not buffer the stream.
    let headers = [("cache-control", "no-store"), ("x-accel-buffering", "no")];
    Ok((headers, Sse::new(ReceiverStream::new(receiver)).keep_alive(alive)).into_response())
}

fn event(id: &str, happened: &HostEvent) -> Event {
    let event = Event::default().id(id).event(happened.kind()).retry(RETRY);
    let told = match happened {
        HostEvent::Operation(operation) => event.json_data(operation),
        HostEvent::Job(job) => event.json_data(job),
        HostEvent::Budget(budget) => event.json_data(budget),
        HostEvent::Plugin(change) => event.json_data(change),
        HostEvent::Reset => {
            event.json_data(Reset { advice: "read the lists again; some of what happened is not told" })
        }
    };
    told.unwrap_or_else(|error| {
        tracing::error!(%error, kind = happened.kind(), "what happened cannot be told");
        Event::default().comment("something happened that cannot be told")
    })
}
