//! Secrets in requests: put in where they are named, found again in whatever comes back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use memhost_sandbox::{Secret, Secrets};

const VALUE: &str = "s3cr3t/\"value\\ 4711";

fn check(secrets: &Secrets, sent: &[u8]) {
    let scrubbed = secrets.scrub(sent);
    let is_left = scrubbed.windows(VALUE.len()).any(|window| window == VALUE.as_bytes());
    assert!(!is_left, "{:?}", String::from_utf8_lossy(&scrubbed));
}

fuzz_target!(|text: String| {
    let secrets = |used_as: &str| {
        Secrets::new(vec![(Secret::new("KEY", VALUE).unwrap(), used_as.parse().unwrap())]).unwrap()
    };
    let (header, query, body) = (secrets("header:x"), secrets("query:k"), secrets("body:/k"));
    // The fuzzer finds the braces by itself, and sooner with some help.
    let text = text.replace('\u{1}', "{{secret:KEY}}").replace('\u{2}', "{{secret:");
    if let Ok(sent) = header.in_header("x", &text) {
        assert!(!sent.contains("{{secret:KEY}}") || text.contains(VALUE));
        check(&header, sent.as_bytes());
    }
    if let Ok(sent) = query.in_query(&text) {
        check(&query, sent.as_bytes());
    }
    let Ok(sent) = body.in_json(text.as_bytes()) else { return };
    assert!(
        serde_json::from_str::<serde_json::Value>(&text).is_err()
            || serde_json::from_slice::<serde_json::Value>(&sent).is_ok()
    );
    check(&body, &sent);
});
