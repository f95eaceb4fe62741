//! Signatures beside those of botocore, and who may ask for one.

use serde_json::Value;

use super::*;
use crate::egress::secret::Secret;

const KEY: &str = "AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

fn secrets(value: &str, used_as: &str) -> Secrets {
    Secrets::new(vec![(Secret::new("AWS", value).unwrap(), used_as.parse().unwrap())]).unwrap()
}

fn signed(value: &str, line: &Value, at: Timestamp) -> HeaderMap {
    let uri: Uri = line["url"].as_str().unwrap().parse().unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(HOST, HeaderValue::from_str(uri.authority().unwrap().as_str()).unwrap());
    for (name, value) in line["headers"].as_object().unwrap() {
        let name: http::HeaderName = name.parse().unwrap();
        headers.insert(name, HeaderValue::from_str(value.as_str().unwrap()).unwrap());
    }
    // What the guest says of time and token is gone, and the rest of its headers is not signed.
    headers.insert(DATE, HeaderValue::from_static("20000101T000000Z"));
    headers.insert(TOKEN, HeaderValue::from_static("of the guest"));
    headers.insert("accept", HeaderValue::from_static("application/json"));
    let secrets = secrets(value, "sigv4:bedrock-agentcore:eu-central-1");
    let key = secrets.signing("authorization", "{{sigv4:AWS}}").unwrap().unwrap();
    let method: Method = line["method"].as_str().unwrap().parse().unwrap();
    key.sign(&method, &uri, &mut headers, line["body"].as_str().unwrap().as_bytes(), at).unwrap();
    headers
}

#[test]
fn a_signature_is_that_of_botocore() {
    let lines: Vec<Value> = include_str!("botocore.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let at: Timestamp = lines[0]["at"].as_str().unwrap().parse().unwrap();
    for line in &lines[1..] {
        let token = line["token"].as_str();
        let value = token.map_or_else(|| KEY.to_owned(), |token| format!("{KEY}:{token}"));
        let headers = signed(&value, line, at);
        assert_eq!(headers[AUTHORIZATION], line["authorization"].as_str().unwrap(), "{line}");
        assert_eq!(headers.get(TOKEN).map(|token| token.to_str().unwrap()), token);
        assert_eq!(headers[DATE], "20261123T180509Z");
        assert!(headers[AUTHORIZATION].is_sensitive());
        assert!(!format!("{headers:?}").contains("wJalr"));
    }
    assert_eq!(lines.len(), 6);
}

#[test]
fn only_a_secret_for_signing_signs_and_it_goes_nowhere_else() {
    let signing = secrets(KEY, "sigv4:s:r");
    assert!(signing.signing("x-note", "{{sigv4:AWS}}").unwrap().is_none());
    assert!(signing.signing("authorization", "Bearer x").unwrap().is_none());
    let error = |secrets: &Secrets, text: &str| {
        secrets.signing("authorization", text).err().unwrap().to_string()
    };
    assert!(error(&signing, "AWS {{sigv4:AWS}}").contains("whole value"));
    assert!(error(&signing, "{{sigv4:A B}}").contains("whole value"));
    assert!(error(&signing, "{{sigv4:OTHER}}").contains("OTHER"));
    assert!(error(&secrets(KEY, "basic"), "{{sigv4:AWS}}").contains("for `basic` only"));
    let plain =
        signing.in_header("authorization", "Bearer {{secret:AWS}}").unwrap_err().to_string();
    assert!(plain.contains("for `sigv4:s:r` only"), "{plain}");
}

#[test]
fn basic_is_encoded_and_every_secret_part_is_masked() {
    let basic = secrets("ada:correct horse", "basic");
    let header = basic.in_header("authorization", "Basic {{secret:AWS}}").unwrap();
    assert_eq!(header, "Basic YWRhOmNvcnJlY3QgaG9yc2U=");
    for (name, text) in [
        ("authorization", "Bearer {{secret:AWS}}"),
        ("authorization", "{{secret:AWS}}"),
        ("x", "Basic {{secret:AWS}}"),
    ] {
        assert!(
            basic.in_header(name, text).unwrap_err().to_string().contains("for `basic` only"),
            "{name}: {text}"
        );
    }
    assert_eq!(
        basic.scrub_text("ada said correct horse, YWRhOmNvcnJlY3QgaG9yc2U="),
        "ada said [secret AWS], [secret AWS]"
    );
    let signing = secrets(&format!("{KEY}:the-session-token"), "sigv4:s:r");
    let said = "AKIDEXAMPLE wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY the-session-token";
    assert_eq!(signing.scrub_text(said), "AKIDEXAMPLE [secret AWS] [secret AWS]");
}
