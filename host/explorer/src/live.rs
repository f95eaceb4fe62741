//! Tells a page that something of its kind changed, without any content. The page reloads its
//! parts, with the permissions of its caller.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use super::components::{CompanyView, QueryParams};
use memhost_core::{HostEvent, Notice};
use memhost_http::{Problem, permission};

/// Changes within this time are sent as one event.
const BATCH_WINDOW: Duration = Duration::from_millis(250);
/// How long a browser waits before it reconnects.
const RETRY: Duration = Duration::from_secs(2);
/// How often an idle connection gets a line, so that proxies keep it open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The longest connection. The browser then reconnects, which fails after a sign-out.
const MAX_CONNECTION: Duration = Duration::from_mins(5);

/// The kinds that a page can follow: the name in the address, and that of the notices.
const KINDS: [(&str, &str); 4] =
    [("operations", "operation"), ("jobs", "job"), ("budgets", "budget"), ("plugins", "plugin")];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveQuery {
    kinds: Option<String>,
}

/// The requested kinds, by the names of the notices.
fn wanted(kinds: Option<&str>) -> Result<BTreeSet<&'static str>, Problem> {
    let Some(kinds) = kinds else { return Ok(KINDS.iter().map(|(_, notice)| *notice).collect()) };
    let find = |name: &str| {
        let known = KINDS.iter().find(|(known, _)| *known == name).map(|(_, notice)| *notice);
        known.ok_or_else(|| {
            let detail =
                format!("`{name}` is not one of {}", KINDS.map(|(known, _)| known).join(", "));
            Problem::invalid(detail).at("kinds")
        })
    };
    kinds.split(',').map(find).collect()
}

pub(super) async fn follow(
    view: CompanyView<permission::View>,
    headers: HeaderMap,
    params: QueryParams<LiveQuery>,
) -> Result<Response, Problem> {
    let wanted = wanted(params.query.kinds.as_deref())?;
    let company = view.company.clone();
    // Plugins belong to the host. Only the fact that one changed is sent, not which one.
    let followed = (!wanted.contains("plugin")).then_some(&company);
    let after = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let mut follower = view.service.control().follow(&view.caller, followed, after).await?;
    let is_mine = move |notice: &Notice| {
        let here = notice.company_id.as_ref().is_none_or(|of| *of == company);
        here && (matches!(notice.happened, HostEvent::Reset)
            || wanted.contains(notice.happened.kind()))
    };
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let end = Instant::now() + MAX_CONNECTION;
    tokio::spawn(async move {
        loop {
            let first = tokio::select! {
                // The page is gone.
                () = sender.closed() => return,
                () = tokio::time::sleep_until(end) => return,
                notice = follower.next() => notice,
            };
            let Some(mut last) = first else { return };
            if !is_mine(&last) {
                continue;
            }
            let mut kinds = BTreeSet::from([name(&last.happened)]);
            let told = Instant::now() + BATCH_WINDOW;
            while let Ok(next) = tokio::time::timeout_at(told, follower.next()).await {
                let Some(next) = next else { return };
                if is_mine(&next) {
                    kinds.insert(name(&next.happened));
                    last = next;
                }
            }
            let kinds: Vec<_> = kinds.into_iter().collect();
            let event = Event::default().event("changed").id(follower.id(&last));
            let event = event.retry(RETRY).data(kinds.join(","));
            if sender.send(Ok::<_, Infallible>(event)).await.is_err() {
                return;
            }
        }
    });
    // Proxies must not buffer the stream.
    let headers = [("x-accel-buffering", "no")];
    let alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok((headers, Sse::new(ReceiverStream::new(receiver)).keep_alive(alive)).into_response())
}

/// The name of an event in the address.
fn name(happened: &HostEvent) -> &'static str {
    KINDS.iter().find(|(_, notice)| *notice == happened.kind()).map_or("all", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_those_of_the_notices() {
        let all: BTreeSet<_> = HostEvent::KINDS.into_iter().collect();
        assert_eq!(wanted(None).ok(), Some(all));
        assert_eq!(
            wanted(Some("jobs,operations")).ok(),
            Some(BTreeSet::from(["job", "operation"]))
        );
        assert!(wanted(Some("operation")).is_err());
    }
}
