//! Requests that do not fit their method. The library reads one with wrong `params` as a request of
//! an unknown method, and would say that the method does not exist; others it does not read at all.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CompleteRequestParams, ErrorCode, GetPromptRequestParams,
    InitializeRequestParams, PaginatedRequestParams, ReadResourceRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use memhost_types::cut_message;

/// What is wrong with the `params` of a request. `None`: the method does not exist here.
fn wrong(method: &str, params: Option<Value>) -> Option<String> {
    let why = match method {
        "initialize" => why::<InitializeRequestParams>,
        "tools/call" => why::<CallToolRequestParams>,
        "resources/read" => why::<ReadResourceRequestParams>,
        "prompts/get" => why::<GetPromptRequestParams>,
        "completion/complete" => why::<CompleteRequestParams>,
        "ping"
        | "server/discover"
        | "tools/list"
        | "prompts/list"
        | "resources/list"
        | "resources/templates/list" => why::<PaginatedRequestParams>,
        _ => return None,
    };
    Some(cut_message(why(params)))
}

/// The answer to a request that the library does not read. `None`: it has no id, so it is no
/// request.
pub(super) fn refusal(body: &[u8]) -> Option<Value> {
    let mut message: Value = serde_json::from_slice(body).ok()?;
    let id = message.get("id").filter(|id| id.is_string() || id.is_number())?.clone();
    let is_whole = id.is_string() || id.is_i64() || id.is_u64();
    let params = message.get_mut("params").map(Value::take);
    let method = message["method"].as_str().filter(|_| message["jsonrpc"] == "2.0");
    let error = match method {
        _ if !is_whole => {
            ErrorData::invalid_request("id: is neither a text nor a whole number", None)
        }
        None => ErrorData::invalid_request(
            "the message is no request: it has no `method`, or `jsonrpc` is not `2.0`",
            None,
        ),
        Some(method) => refused(method, params),
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

/// The error of a request that does not fit its method, or whose method does not exist.
pub(super) fn refused(method: &str, params: Option<Value>) -> ErrorData {
    match wrong(method, params) {
        Some(why) => ErrorData::invalid_params(why, None),
        None => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, cut_message(method.to_owned()), None),
    }
}

fn why<T: DeserializeOwned>(params: Option<Value>) -> String {
    match params {
        None | Some(Value::Null) => "params: is missing; send an object".to_owned(),
        Some(params @ Value::Object(_)) => match serde_path_to_error::deserialize::<_, T>(params) {
            Ok(_) => "params: does not fit this method".to_owned(),
            Err(error) => match error.path().to_string().as_str() {
                "." => format!("params: {}", error.inner()),
                path => format!("params.{path}: {}", error.inner()),
            },
        },
        Some(_) => "params: is not an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_request_is_answered_under_its_id() {
        let code = |body: &str| {
            let refusal = refusal(body.as_bytes())?;
            Some((refusal["id"].clone(), refusal["error"]["code"].as_i64()?))
        };
        for (body, id, expected) in [
            (r#"{"id":5}"#, json!(5), -32600),
            (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, json!("a"), -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, json!(1.5), -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#, json!(1), -32602),
            (r#"{"jsonrpc":"2.0","id":1,"method":"nosuch","params":[]}"#, json!(1), -32601),
        ] {
            assert_eq!(code(body), Some((id, expected)), "{body}");
        }
        for body in [r#"{"jsonrpc":"1.0"}"#, r#"{"id":null,"method":"ping"}"#, "[]", "{"] {
            assert_eq!(code(body), None, "{body}");
        }
    }

    #[test]
    fn params_that_do_not_fit_are_named() {
        for (method, params, expected) in [
            ("resources/read", json!({}), "params: missing field `uri`"),
            ("prompts/get", json!({"arguments": {}}), "params: missing field `name`"),
            ("initialize", json!({"capabilities": {}}), "params: missing field `protocolVersion`"),
            ("tools/call", json!([]), "params: is not an object"),
            ("tools/call", Value::Null, "params: is missing"),
            (
                "tools/call",
                json!({"name": "a", "arguments": "{}"}),
                "params.arguments: invalid type: string \"{}\", expected a map",
            ),
            ("tools/list", json!({"cursor": 7}), "params.cursor: invalid type: integer `7`"),
        ] {
            let found = wrong(method, Some(params)).unwrap();
            assert!(found.starts_with(expected), "{method}: {found}");
        }
        assert_eq!(wrong("none/such", Some(json!({}))), None);
        let long = json!({"name": "a", "arguments": "x".repeat(100_000)});
        assert!(wrong("tools/call", Some(long)).unwrap().len() < 10_000);
    }
}
