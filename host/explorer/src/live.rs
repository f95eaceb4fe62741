//! Tells a page that something of its kind changed, and no more than that: the page asks again and gets what its viewer
//! may see.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

use super::kit::Asked;
use memhost_core::{HostEvent, Notice, Service};
use memhost_http::{Authorized, Problem, permission};

/// What happens within this time is told once: four times a second at most.
const TOGETHER: Duration = Duration::from_millis(250);
/// How long a browser waits before it comes back.
const RETRY: Duration = Duration::from_secs(2);
/// A line without news, so that whoever is between knows that somebody is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A connection ends after this long and the browser comes back: who signed out meanwhile does not get in again.
const LONGEST: Duration = Duration::from_mins(5);

/// What a page can follow: its name here, and that of the notices.
const KINDS: [(&str, &str); 4] =
    [("operations", "operation"), ("jobs", "job"), ("budgets", "budget"), ("plugins", "plugin")];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveQuery {
    kinds: Option<String>,
}

/// The kinds that were asked for, as notices call them.
fn wanted(kinds: Option<&str>) -> Result<BTreeSet<&'static str>, Problem> {
    let Some(kinds) = kinds else { return Ok(KINDS.iter().map(|(_, notice)| *notice).collect()) };
    let find = |name: &str| {
        let known = KINDS.iter().find(|(known, _)| *known == name).map(|(_, notice)| *notice);
        known.ok_or_else(|| {
            let detail = format!("`{name}` is none of {}", KINDS.map(|(known, _)| known).join(", "));
            Problem::invalid(detail).at("kinds")
        })
    };
    kinds.split(',').map(find).collect()
}

pub(super) async fn follow(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    headers: HeaderMap,
    asked: Asked<LiveQuery>,
) -> Result<Response, Problem> {
    let wanted = wanted(asked.query.kinds.as_deref())?;
    let company = allowed.company;
    // Plugins are the host's. That one changed is nobody's secret; which one is not told here.
    let followed = (!wanted.contains("plugin")).then_some(&company);
    let after = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let mut follower = service.follow(followed, after).await?;
    let is_mine = move |notice: &Notice| {
        let here = notice.company_id.as_ref().is_none_or(|of| *of == company);
        here && (matches!(notice.happened, HostEvent::Reset) || wanted.contains(notice.happened.kind()))
    };
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let end = Instant::now() + LONGEST;
    tokio::spawn(async move {
        loop {
            let first = tokio::select! {
                // The page is gone.
                () = sender.closed() => return,
                () = tokio::time::sleep_until(end) => return,
                notice = follower.next() => notice,
            };
            let Some(first) = first else { return };
            if !is_mine(&first) {
                continue;
            }
            let mut last = first.id.clone();
            let mut kinds = BTreeSet::from([name(&first.happened)]);
            let told = Instant::now() + TOGETHER;
            while let Ok(next) = tokio::time::timeout_at(told, follower.next()).await {
                let Some(next) = next else { return };
                if is_mine(&next) {
                    kinds.insert(name(&next.happened));
                    last.clone_from(&next.id);
                }
            }
            let kinds: Vec<_> = kinds.into_iter().collect();
            let event = Event::default().event("changed").id(last).retry(RETRY).data(kinds.join(","));
            if sender.send(Ok::<_, Infallible>(event)).await.is_err() {
                return;
            }
        }
    });
    // What stands between must not keep it back.
    let headers = [("x-accel-buffering", "no")];
    let alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok((headers, Sse::new(ReceiverStream::new(receiver)).keep_alive(alive)).into_response())
}

/// As pages call it.
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
        assert_eq!(wanted(Some("jobs,operations")).ok(), Some(BTreeSet::from(["job", "operation"])));
        assert!(wanted(Some("operation")).is_err());
    }
}
