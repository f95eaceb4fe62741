//! The explorer's page of operations over a million of them: the host's time and the bytes sent.
//!
//! `MEMHOST_OPERATIONS` sets how many there are; the default is 1,000,000.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use http::{Request, StatusCode};
use memhost_core::{Service, ServiceOptions};
use memhost_server::{AdminToken, router};
use memhost_store::{SledOptions, SledStore};
use memhost_tests::measure::{Timings, ratio, show, table};
use memhost_tests::operations::{FIRST_MS, fill};
use memhost_tests::parse;
use memhost_types::{CompanyId, OperationFilter};
use tower::ServiceExt;

const TOKEN: &str = "a-token-of-sixteen-characters-or-more";
const SAMPLES: usize = 200;

/// Sends a request through the whole router and reads the answer to its end.
async fn send(router: &Router, request: Request<Body>) -> (http::response::Parts, Vec<u8>) {
    let (parts, body) = router.clone().oneshot(request).await.unwrap().into_parts();
    (parts, to_bytes(body, usize::MAX).await.unwrap().to_vec())
}

/// Signs in as a person does, and answers the cookies that a browser would send from then on.
async fn sign_in(router: &Router) -> String {
    let page = Request::get("/sign-in").header("host", "localhost").body(Body::empty()).unwrap();
    let (parts, page) = send(router, page).await;
    let cookies = |parts: &http::response::Parts| -> Vec<String> {
        let set = parts.headers.get_all("set-cookie").iter();
        set.map(|cookie| cookie.to_str().unwrap().split(';').next().unwrap().to_owned()).collect()
    };
    let mut all = cookies(&parts);
    let page = String::from_utf8(page).unwrap();
    let hidden = page.split("<input").filter(|input| input.contains("type=\"hidden\""));
    let value = |input: &str, name: &str| {
        let rest = input.split(&format!("{name}=\"")).nth(1)?;
        Some(rest.split('"').next()?.to_owned())
    };
    let mut fields = vec![format!("token={TOKEN}")];
    fields.extend(
        hidden.filter_map(|input| {
            Some(format!("{}={}", value(input, "name")?, value(input, "value")?))
        }),
    );
    let form = Request::post("/sign-in")
        .header("host", "localhost")
        .header("origin", "http://localhost")
        .header("cookie", all.join("; "))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from(fields.join("&")))
        .unwrap();
    let (parts, body) = send(router, form).await;
    assert!(parts.status.is_redirection(), "{} {}", parts.status, String::from_utf8_lossy(&body));
    all.extend(cookies(&parts));
    all.join("; ")
}

#[tokio::main]
async fn main() {
    let count: u64 =
        std::env::var("MEMHOST_OPERATIONS").map_or(1_000_000, |count| count.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let written = tokio::task::spawn_blocking(move || {
        let store = SledStore::open(&path, SledOptions::default()).unwrap();
        fill(&store, count).unwrap();
    });
    written.await.unwrap();
    let service = Service::open(ServiceOptions::new(directory.path())).await.unwrap();
    let router = router(
        Arc::clone(&service),
        AdminToken::known(TOKEN).unwrap(),
        &memhost_server::ServerOptions::default(),
    );
    let cookies = sign_in(&router).await;
    let company: CompanyId = parse("acme");
    let mut floor = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let started = Instant::now();
        let page = service
            .control()
            .operations(&company, &OperationFilter::default(), None, 50)
            .await
            .unwrap();
        floor.push(started.elapsed());
        assert_eq!(page.items.len(), 50);
    }
    let floor = Timings::new(floor);
    let day = |share: u64| {
        let ms = i64::try_from(FIRST_MS + count * share).unwrap();
        jiff::Timestamp::from_millisecond(ms).unwrap().strftime("%Y-%m-%d").to_string()
    };
    let filters = [
        ("no filter", String::new()),
        ("agent", "?agentId=agent-7".to_owned()),
        ("issue", "?issueId=issue-77".to_owned()),
        ("run (16 operations)", "?runId=run-12345".to_owned()),
        ("operation and outcome", "?kind=capture&outcome=succeeded".to_owned()),
        ("date", format!("?since={}&until={}", day(20), day(80))),
    ];
    let mut rows = vec![vec![
        "the same 50 from the service (floor)".to_owned(),
        show(floor.p50()),
        show(floor.p99()),
        "1.00×".to_owned(),
        "-".to_owned(),
    ]];
    for (name, query) in filters {
        let (mut all, mut bytes) = (Vec::with_capacity(SAMPLES), 0);
        for _ in 0..SAMPLES {
            let request = Request::get(format!("/c/acme/operations{query}"))
                .header("host", "localhost")
                .header("cookie", &cookies)
                .header("accept-encoding", "gzip")
                .body(Body::empty())
                .unwrap();
            let started = Instant::now();
            let (parts, body) = send(&router, request).await;
            all.push(started.elapsed());
            assert_eq!(parts.status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
            assert_eq!(parts.headers["content-encoding"], "gzip");
            bytes = bytes.max(body.len());
        }
        let timings = Timings::new(all);
        let size = format!("{:.1} kB", bytes as f64 / 1_000.0);
        rows.push(vec![
            name.to_owned(),
            show(timings.p50()),
            show(timings.p99()),
            ratio(timings.p50(), floor.p50()),
            size,
        ]);
    }
    let title = format!(
        "The explorer's page of operations over {count} of them: 50 a page, packed, through the \
         whole router"
    );
    table(&title, &["filter", "p50", "p99", "over the floor", "on the wire"], &rows);
}
