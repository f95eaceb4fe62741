//! What is changed of a request on its way out and of a response on its way back.

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, IF_RANGE,
    RANGE,
};
use http_body_util::Full;

use super::EgressError;
use super::secret::Secrets;
use memhost_types::HttpTarget;

/// Headers that are between two neighbours on the way and mean nothing to a guest (RFC 9110, 7.6.1).
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A request as the guest made it.
pub(super) struct Outgoing<'a> {
    pub(super) target: &'a HttpTarget,
    pub(super) parts: &'a http::request::Parts,
    pub(super) body: Bytes,
}

/// The request as it is sent: with secrets in the places that name them, to the server that was granted.
pub(super) fn rewrite(
    outgoing: Outgoing<'_>,
    secrets: &Secrets,
    body_secrets: &Secrets,
) -> Result<http::Request<Full<Bytes>>, EgressError> {
    let Outgoing { target, parts, body } = outgoing;
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = secrets.in_query(if path.is_empty() { "/" } else { path })?;
    let body = match body_secrets.in_json(&body)? {
        std::borrow::Cow::Borrowed(_) => body,
        std::borrow::Cow::Owned(written) => written.into(),
    };
    let uri: http::Uri = path.parse().map_err(|_| EgressError::Header("the path".to_owned()))?;
    let mut request = http::Request::new(Full::new(body));
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    for (name, value) in &parts.headers {
        if is_kept(name) {
            headers.append(name, filled(secrets, name, value)?);
        }
    }
    headers
        .insert(HOST, HeaderValue::from_str(&target.authority()).map_err(|_| EgressError::Header("host".to_owned()))?);
    // A secret in a compressed answer would not be found.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    Ok(request)
}

fn is_kept(name: &HeaderName) -> bool {
    // A part of an answer could begin in the middle of a secret that the server repeats.
    let is_ours = [HOST, ACCEPT_ENCODING, CONTENT_LENGTH, EXPECT, RANGE, IF_RANGE].contains(name);
    !is_ours && !HOP_BY_HOP.contains(&name.as_str())
}

fn filled(secrets: &Secrets, name: &HeaderName, value: &HeaderValue) -> Result<HeaderValue, EgressError> {
    // What is no text has no placeholder.
    let Ok(text) = value.to_str() else { return Ok(value.clone()) };
    let mut filled =
        HeaderValue::from_str(&secrets.in_header(text)?).map_err(|_| EgressError::Header(name.to_string()))?;
    filled.set_sensitive(true);
    Ok(filled)
}

/// The response as the guest gets it.
pub(super) fn read_response(
    head: &http::response::Parts,
    body: Bytes,
    secrets: &Secrets,
) -> Result<http::Response<Bytes>, EgressError> {
    if let Some(coding) = head.headers.get(CONTENT_ENCODING).filter(|coding| *coding != "identity") {
        return Err(EgressError::Encoded(String::from_utf8_lossy(coding.as_bytes()).into_owned()));
    }
    let body = match secrets.scrub(&body) {
        std::borrow::Cow::Borrowed(_) => body,
        std::borrow::Cow::Owned(scrubbed) => scrubbed.into(),
    };
    let mut headers = HeaderMap::with_capacity(head.headers.len());
    for (name, value) in &head.headers {
        if HOP_BY_HOP.contains(&name.as_str()) || name == CONTENT_LENGTH {
            continue;
        }
        let scrubbed = HeaderValue::from_bytes(&secrets.scrub(value.as_bytes()));
        headers.append(name, scrubbed.map_err(|_| EgressError::Header(name.to_string()))?);
    }
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    let mut response = http::Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = headers;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::super::secret::Secret;
    use super::*;

    fn secrets() -> Secrets {
        Secrets::new(vec![Secret::new("KEY", "s3cr3t-value").unwrap()]).unwrap()
    }

    fn sent(
        headers: &[(&str, &str)],
        path: &str,
        body: &str,
        in_body: bool,
    ) -> Result<(HeaderMap, String), EgressError> {
        let mut request = http::Request::builder().method("POST").uri(format!("https://api.example{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let target = HttpTarget::parse(Some("https"), "api.example").unwrap();
        let outgoing = Outgoing { target: &target, parts: &parts, body: body.to_owned().into() };
        let in_body = if in_body { secrets() } else { Secrets::default() };
        let request = rewrite(outgoing, &secrets(), &in_body)?;
        Ok((request.headers().clone(), format!("{} {:?}", request.uri(), request.body())))
    }

    #[test]
    fn secrets_go_where_they_are_named_and_into_bodies_only_where_allowed() {
        let body = r#"{"key":"{{secret:KEY}}","note":"{{secret:OTHER}}"}"#;
        let (headers, rest) =
            sent(&[("authorization", "Bearer {{secret:KEY}}")], "/v1?k={{secret:KEY}}", body, true).unwrap();
        assert_eq!(headers["authorization"], "Bearer s3cr3t-value");
        assert!(headers["authorization"].is_sensitive());
        assert!(rest.contains("/v1?k=s3cr3t-value") && rest.contains(r#"\"key\":\"s3cr3t-value\""#), "{rest}");
        assert!(rest.contains("{{secret:OTHER}}"), "what people write about placeholders is left alone: {rest}");
        let (_, rest) = sent(&[], "/", body, false).unwrap();
        assert!(!rest.contains("s3cr3t"), "{rest}");
        assert!(sent(&[("x", "{{secret:OTHER}}")], "/", "", false).unwrap_err().to_string().contains("OTHER"));
    }

    #[test]
    fn the_server_is_named_by_the_host_and_the_connection_is_its_own() {
        let given = [
            ("host", "evil.example"),
            ("accept-encoding", "gzip"),
            ("te", "trailers"),
            ("expect", "100-continue"),
            ("range", "bytes=3-"),
        ];
        let (headers, _) = sent(&given, "/", "", false).unwrap();
        assert_eq!(headers[HOST], "api.example");
        assert_eq!(headers[ACCEPT_ENCODING], "identity");
        assert_eq!(headers.len(), 2, "{headers:?}");
    }

    #[test]
    fn an_answer_is_scrubbed_in_head_and_body() {
        let response =
            http::Response::builder().header("x-echo", "s3cr3t-value").header("content-length", "99").body(());
        let (head, ()) = response.unwrap().into_parts();
        let answer = read_response(&head, Bytes::from_static(b"you sent s3cr3t-value"), &secrets()).unwrap();
        assert_eq!(answer.headers()["x-echo"], "[secret KEY]");
        assert_eq!(answer.headers()[CONTENT_LENGTH], answer.body().len().to_string());
        assert_eq!(answer.body(), "you sent [secret KEY]");
        let (head, ()) = http::Response::builder().header("content-encoding", "gzip").body(()).unwrap().into_parts();
        assert!(matches!(read_response(&head, Bytes::new(), &secrets()), Err(EgressError::Encoded(_))));
    }
}
