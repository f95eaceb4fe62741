//! Where a request is computed: what turns out to be long goes on beside other long requests.

use memhost_core::spawn_short;
use memhost_tests::{TestHost, caller, list, query, upsert};
use serde_json::json;

/// The thread on which a task goes on after this work.
async fn thread_after(work: impl Future<Output = ()> + Send + 'static) -> Option<String> {
    let then = || std::thread::current().name().map(str::to_owned);
    spawn_short(async move {
        work.await;
        then()
    })
    .await
    .unwrap()
}

async fn is_long(host: &TestHost, limit: u32) -> [bool; 2] {
    let service = host.service().clone();
    let listed = thread_after(async move {
        drop(service.list(&caller(), list("acme", limit, None)).await.unwrap());
    })
    .await;
    let service = host.service().clone();
    let asked = memhost_types::QueryRequest { top_k: Some(limit), ..query("acme", "bell") };
    let found =
        thread_after(async move { drop(service.query(&caller(), asked).await.unwrap()) }).await;
    [listed, found].map(|thread| thread.as_deref() == Some("memhost-long"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_pages_and_long_records_are_worked_on_beside_long_requests() {
    let host = TestHost::new(&[]).await.unwrap();
    host.write("acme", "the bell rings at nine").await.unwrap();
    assert_eq!(is_long(&host, 100).await, [false; 2]);
    assert_eq!(is_long(&host, 101).await, [true; 2], "a long page");
    let texts: Vec<String> =
        (0..60).map(|n| format!("{n} {}", "the bell rings ".repeat(100))).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    host.service().upsert(&caller(), upsert("acme", &texts)).await.unwrap();
    assert_eq!(is_long(&host, 20).await, [false; 2], "30 KB");
    assert_eq!(is_long(&host, 60).await, [true; 2], "90 KB");
    let mut metadata = upsert("beta", &["the bell"]);
    metadata.records[0].metadata = json!({"notes": vec!["x".repeat(50_000)]}).as_object().cloned();
    host.service().upsert(&caller(), metadata.clone()).await.unwrap();
    let service = host.service().clone();
    let page = || list("beta", 2, None);
    let (first, second) = (service.clone(), service.clone());
    assert_ne!(
        thread_after(async move { drop(first.list(&caller(), page()).await.unwrap()) })
            .await
            .as_deref(),
        Some("memhost-long")
    );
    service.upsert(&caller(), metadata).await.unwrap();
    assert_eq!(
        thread_after(async move { drop(second.list(&caller(), page()).await.unwrap()) })
            .await
            .as_deref(),
        Some("memhost-long"),
        "much metadata"
    );
}
