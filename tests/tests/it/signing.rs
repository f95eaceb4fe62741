//! Requests that the host signs: the keys reach neither the sandbox nor the server.

use std::time::Duration;

use memhost_core::SetSecret;
use memhost_tests::{caller, parse};
use memhost_types::BindingLimits;
use serde_json::json;

use super::egress::{LOOPBACK, Setup};

const KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

fn line(head: &str, name: &str) -> String {
    let found = head
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned));
    found.unwrap_or_else(|| panic!("no {name} in {head}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_signed_for_the_service_of_the_secret() {
    let setup = Setup::new(&[], LOOPBACK, BindingLimits::default()).await;
    let origin = format!("http://localhost:{}", setup.port);
    setup
        .set_value(
            &origin,
            "sigv4:bedrock-agentcore:eu-central-1",
            &format!("AKIDEXAMPLE:{KEY}:the-session"),
        )
        .await;
    let headers = json!({"authorization": "{{sigv4:KEY}}", "x-amz-date": "20000101T000000Z"});
    let request =
        json!({"method": "POST", "path": "/memories/m/events", "headers": headers, "body": "{}"});
    let answer = setup.send("acme", request).await;
    let got = setup.got.recv_timeout(Duration::from_secs(5)).unwrap();
    let (time, signature) = (line(&got.head, "x-amz-date"), line(&got.head, "authorization"));
    let scope = format!("AKIDEXAMPLE/{}/eu-central-1/bedrock-agentcore/aws4_request", &time[..8]);
    let begin = format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=");
    assert!(
        signature.starts_with(&begin) && signature.contains("host;x-amz-date;x-amz-security-token"),
        "{signature}"
    );
    assert_ne!(time, "20000101T000000Z");
    assert_eq!(line(&got.head, "x-amz-security-token"), "the-session");
    assert!(!got.head.contains(KEY));
    // The server repeats what it got: the guest sees the signature and not the session token.
    assert!(
        answer.contains(&scope)
            && !answer.contains("the-session")
            && answer.contains("[secret KEY]"),
        "{answer}"
    );
    for headers in [
        json!({"authorization": "Bearer {{secret:KEY}}"}),
        json!({"authorization": "{{sigv4:OTHER}}"}),
    ] {
        assert!(
            setup.send("acme", json!({"headers": headers})).await.starts_with("refused"),
            "{headers}"
        );
    }
    assert_eq!(setup.requests(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_and_password_are_encoded_by_the_host() {
    let setup = Setup::new(&[], LOOPBACK, BindingLimits::default()).await;
    let origin = format!("http://localhost:{}", setup.port);
    setup.set_value(&origin, "basic", "ada:correct horse").await;
    let answer =
        setup.send("acme", json!({"headers": {"authorization": "Basic {{secret:KEY}}"}})).await;
    let got = setup.got.recv_timeout(Duration::from_secs(5)).unwrap();
    assert_eq!(line(&got.head, "authorization"), "Basic YWRhOmNvcnJlY3QgaG9yc2U=");
    assert!(answer.contains("Basic [secret KEY]") && !answer.contains("YWRhOm"), "{answer}");
    let plain = setup.send("acme", json!({"headers": {"authorization": "{{secret:KEY}}"}})).await;
    assert!(plain.starts_with("refused") && plain.contains("for `basic` only"), "{plain}");
    for (used_as, value) in
        [("basic", "no-colon-in-it"), ("basic", "ada:short"), ("sigv4:s:r", "AKIDEXAMPLE")]
    {
        let (origins, used_as) = (vec![origin.parse().unwrap()], used_as.parse().unwrap());
        let request = SetSecret { value: value.to_owned(), origins, used_as };
        let refused = setup
            .host
            .service()
            .control()
            .set_secret(&caller(), &parse("acme"), "KEY", request)
            .await
            .unwrap_err();
        assert!(refused.to_string().contains("write it in this form"), "{refused}");
    }
}
