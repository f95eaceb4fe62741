//! What the host does for a guest's requests counts as the guest's: computing on other threads, and
//! bodies on their way.

use memhost_types::BindingLimits;
use serde_json::json;

use super::egress::{LOOPBACK, Setup};

/// The guest does nearly nothing: the host looks through the answers for it, on other threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_host_computes_for_a_request_counts_as_the_calls() {
    let limits =
        BindingLimits { incoming_bytes: 128 << 20, call_cpu_ms: 300, ..BindingLimits::default() };
    let setup = Setup::new(&[], LOOPBACK, limits).await;
    let value = format!("{}b", "a".repeat(8_191));
    setup
        .set_value(&format!("http://localhost:{}", setup.port), "header:authorization", &value)
        .await;
    let answer = setup.send("acme", json!({"path": "/almost", "times": 60, "skips": true})).await;
    assert!(answer.contains("callCpuMs"), "{answer}");
    assert!(setup.requests() < 60);
}

/// The body of an answer is in the host's memory while it comes, and once more while it is looked
/// through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_on_their_way_count_as_the_guests_memory() {
    let limits = BindingLimits { memory_bytes: 6 << 20, ..BindingLimits::default() };
    let setup = Setup::new(&[], LOOPBACK, limits).await;
    let answer = setup.send("acme", json!({"path": "/almost", "skips": true})).await;
    assert_eq!(answer, "200");
    let answer = setup.send("acme", json!({"path": "/big", "skips": true})).await;
    assert!(answer.contains("memoryBytes"), "{answer}");
    // What was counted is gone with the request.
    let answer = setup.send("acme", json!({"path": "/almost", "skips": true})).await;
    assert_eq!(answer, "200");
}
