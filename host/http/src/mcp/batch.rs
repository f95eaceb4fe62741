//! Batches: several messages in one array. A server must take them in revision 2025-03-26; the
//! revisions after it have none. Each message is answered as if it had come alone.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use crate::Problem;

/// The most messages of a batch: together they may be as long as one message, and each of them is a
/// call.
const MAX_MESSAGES: usize = 20;
/// The revisions with batches. A request without the header counts as one of 2025-03-26.
const REVISIONS: [&str; 2] = ["2024-11-05", "2025-03-26"];
/// The code of a message that is no request of the protocol (JSON-RPC 2.0).
const INVALID_REQUEST: i64 = -32600;

/// Whether a body is a batch.
pub(super) fn is_batch(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'[')
}

/// The messages of a body: of a batch, or the one that it is.
pub(super) fn messages(body: &[u8]) -> Vec<Value> {
    match serde_json::from_slice(body) {
        Ok(Value::Array(messages)) => messages,
        Ok(message) => vec![message],
        Err(_) => Vec::new(),
    }
}

/// The messages of a batch.
///
/// # Errors
/// If it has none or too many, is no JSON, or the client speaks a revision without batches.
pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Vec<Value>, Problem> {
    let revision = headers.get("mcp-protocol-version").and_then(|value| value.to_str().ok());
    if let Some(revision) = revision.filter(|revision| !REVISIONS.contains(revision)) {
        return Err(Problem::invalid(format!(
            "revision {revision} of the protocol has no batches; send each message by itself"
        )));
    }
    let messages: Vec<Value> = serde_json::from_slice(body)
        .map_err(|error| Problem::invalid(format!("the batch is not JSON: {error}")))?;
    match messages.len() {
        1..=MAX_MESSAGES => Ok(messages),
        count => Err(Problem::invalid(format!(
            "the batch has {count} messages; send 1 to {MAX_MESSAGES}"
        ))),
    }
}

/// Why a message cannot be a part of a batch.
pub(super) fn wrong(message: &Value) -> Option<&'static str> {
    match message {
        Value::Object(_) if message["method"] == "initialize" => {
            Some("`initialize` cannot be part of a batch; send it by itself")
        }
        Value::Object(_) => None,
        _ => Some("this element of the batch is no message of the protocol"),
    }
}

/// The answer to a message that is refused.
pub(super) fn refusal(message: &Value, why: &str) -> Value {
    let error = json!({ "code": INVALID_REQUEST, "message": why });
    json!({ "jsonrpc": "2.0", "id": message.get("id"), "error": error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_batch_has_its_revision_and_its_size() {
        let reads = |revision: Option<&'static str>, body: &str| {
            let mut headers = HeaderMap::new();
            if let Some(revision) = revision {
                headers.insert("mcp-protocol-version", HeaderValue::from_static(revision));
            }
            read(&headers, body.as_bytes()).map(|messages| messages.len()).map_err(drop)
        };
        assert_eq!(reads(None, "[{},{}]"), Ok(2));
        assert_eq!(reads(Some("2025-03-26"), "[{}]"), Ok(1));
        assert_eq!(reads(Some("2025-06-18"), "[{}]"), Err(()));
        for wrong in ["[]", "[1,]", &format!("[{}1]", "1,".repeat(MAX_MESSAGES))] {
            assert_eq!(reads(None, wrong), Err(()), "{wrong}");
        }
        assert!(is_batch(b" \n[") && !is_batch(b"{}") && !is_batch(b""));
    }
}
