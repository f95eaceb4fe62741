//! A guest that hoards header fields and requests: each list has its bound, and all together have
//! one.

use memhost_types::{BindingLimits, OperationErrorCode as Code};

use super::hostile::{code, host_with, host_with_limits, tight};

/// One list has its bound, and so have all of them, and what is made of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hoards_headers() {
    let host = host_with("floods-headers").await;
    for how in ["lists", "copies", "methods"] {
        let error = host.query("hostile", how).await.unwrap_err();
        assert_eq!(code(&error).0, Code::Trapped, "{how}: {error}");
        assert!(
            error.to_string().contains("header fields, requests and responses"),
            "{how}: {error}"
        );
    }
    host.query("innocent", "hello").await.unwrap();
    // They are the guest's memory.
    let host =
        host_with_limits("floods-headers", BindingLimits { memory_bytes: 4 << 20, ..tight() })
            .await;
    let error = host.query("hostile", "lists").await.unwrap_err();
    assert_eq!(code(&error).0, Code::LimitExceeded, "{error}");
    assert!(error.to_string().contains("memoryBytes"), "{error}");
}
