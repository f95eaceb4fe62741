//! What is changed of a request on its way out and of a response on its way back.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName,
    HeaderValue, IF_RANGE, RANGE, TRANSFER_ENCODING,
};
use http_body_util::Full;
use jiff::Timestamp;

use super::EgressError;
use super::secret::{MAX_GROWTH, SecretError, Secrets};
use memhost_types::HttpTarget;

/// Bytes that are unpacked at once.
const PART: usize = 64 << 10;

/// The codings that an error names. Another word of the server is not repeated: it may be a secret.
const CODINGS: [&str; 9] =
    ["aes128gcm", "br", "chunked", "compress", "dcb", "deflate", "gzip", "x-gzip", "zstd"];

/// Headers that are between two neighbours on the way and mean nothing to a guest (RFC 9110,
/// 7.6.1).
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
pub(super) struct Outgoing {
    pub(super) target: HttpTarget,
    pub(super) parts: http::request::Parts,
    pub(super) body: Bytes,
}

impl Outgoing {
    /// How many bytes are looked through.
    pub(super) fn length(&self) -> usize {
        let headers = self.parts.headers.values().map(HeaderValue::len).sum::<usize>();
        let path = self.parts.uri.path_and_query().map_or(0, |path| path.as_str().len());
        self.body.len() + headers + path
    }
}

/// The request as it is sent: with secrets in the places that name them, to the server that was
/// granted.
pub(super) fn rewrite(
    outgoing: Outgoing,
    secrets: &Secrets,
    now: Timestamp,
) -> Result<http::Request<Full<Bytes>>, EgressError> {
    let Outgoing { target, parts, body } = outgoing;
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = secrets.in_query(if path.is_empty() { "/" } else { path })?;
    let body = match secrets.in_json(&body)? {
        std::borrow::Cow::Borrowed(_) => body,
        std::borrow::Cow::Owned(written) => written.into(),
    };
    let uri: http::Uri = path.parse().map_err(|_| EgressError::Header("the path".to_owned()))?;
    let mut headers = HeaderMap::with_capacity(parts.headers.len());
    let (mut key, mut grown) = (None, 0);
    for (name, value) in parts.headers.iter().filter(|(name, _)| is_kept(name)) {
        match secrets.signing(name.as_str(), value.to_str().unwrap_or_default())? {
            Some(signing) => key = Some(signing),
            None => {
                let filled = filled(secrets, name, value)?;
                grown += filled.len().saturating_sub(value.len());
                if grown > MAX_GROWTH {
                    return Err(SecretError::TooMuch.into());
                }
                headers.append(name, filled);
            }
        }
    }
    headers.insert(
        HOST,
        HeaderValue::from_str(&target.authority())
            .map_err(|_| EgressError::Header("host".to_owned()))?,
    );
    // The one form that the host unpacks: a secret in an answer in another form would not be found.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    if let Some(key) = key {
        key.sign(&parts.method, &uri, &mut headers, &body, now).map_err(EgressError::Header)?;
    }
    let mut request = http::Request::new(Full::new(body));
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) =
        (parts.method, uri, headers);
    Ok(request)
}

fn is_kept(name: &HeaderName) -> bool {
    // A part of an answer could begin in the middle of a secret that the server repeats.
    let is_ours = [HOST, ACCEPT_ENCODING, CONTENT_LENGTH, EXPECT, RANGE, IF_RANGE].contains(name);
    !is_ours && !HOP_BY_HOP.contains(&name.as_str())
}

fn filled(
    secrets: &Secrets,
    name: &HeaderName,
    value: &HeaderValue,
) -> Result<HeaderValue, EgressError> {
    // What is no text has no placeholder.
    let Ok(text) = value.to_str() else { return Ok(value.clone()) };
    let mut filled = HeaderValue::from_str(&secrets.in_header(name.as_str(), text)?)
        .map_err(|_| EgressError::Header(name.to_string()))?;
    filled.set_sensitive(true);
    Ok(filled)
}

/// Whether the answer says that its content is packed.
pub(super) fn is_packed(headers: &HeaderMap) -> bool {
    headers.contains_key(CONTENT_ENCODING)
}

/// Whether an answer is in gzip form. Refuses one that is encoded in any other way, but the one
/// that the connection itself has undone. All lines count, and all members of their lists.
fn is_gzip(headers: &HeaderMap) -> Result<bool, EgressError> {
    let members = |name: HeaderName| {
        let lines: Vec<String> = headers
            .get_all(name)
            .iter()
            .map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned())
            .collect();
        let members: Vec<String> = lines
            .iter()
            .flat_map(|line| line.split(','))
            .map(|one| one.trim().to_ascii_lowercase())
            .collect();
        members.into_iter().filter(|one| !one.is_empty() && one != "identity")
    };
    // The connection has put chunks together once.
    let transfer =
        members(TRANSFER_ENCODING).enumerate().find(|(at, one)| *at > 0 || one != "chunked");
    let mut content = members(CONTENT_ENCODING).enumerate();
    let is_one_gzip = |(at, one): &(usize, String)| *at == 0 && (one == "gzip" || one == "x-gzip");
    let is_gzip = content.clone().next().is_some_and(|first| is_one_gzip(&first));
    match content.find(|each| !is_one_gzip(each)).or(transfer) {
        Some((_, coding)) => {
            let known = CODINGS.into_iter().find(|known| *known == coding);
            Err(EgressError::Encoded(known.unwrap_or("another coding").to_owned()))
        }
        None => Ok(is_gzip),
    }
}

/// What was packed. `take` lets each part of it through.
fn unpacked(
    body: &[u8],
    take: impl Fn(u64) -> Result<(), EgressError>,
) -> Result<Bytes, EgressError> {
    let (mut all, mut part, mut packed) = (Vec::new(), vec![0; PART], MultiGzDecoder::new(body));
    loop {
        let read = packed.read(&mut part);
        match read.map_err(|error| {
            EgressError::Exchange(format!("the answer is not valid gzip: {error}"))
        })? {
            0 => return Ok(all.into()),
            length => {
                take(length as u64)?;
                all.extend_from_slice(&part[..length]);
            }
        }
    }
}

/// The response as the guest gets it: unpacked, as far as `take` lets it through, and without
/// secrets.
pub(super) fn read_response(
    head: &http::response::Parts,
    body: Bytes,
    secrets: &Secrets,
    take: impl Fn(u64) -> Result<(), EgressError>,
) -> Result<http::Response<Bytes>, EgressError> {
    // An answer to HEAD has the header and no content.
    let body = match is_gzip(&head.headers)? && !body.is_empty() {
        true => unpacked(&body, take)?,
        false => body,
    };
    let body = match secrets.scrub(&body) {
        std::borrow::Cow::Borrowed(_) => body,
        std::borrow::Cow::Owned(scrubbed) => scrubbed.into(),
    };
    let mut headers = HeaderMap::with_capacity(head.headers.len());
    for (name, value) in &head.headers {
        if HOP_BY_HOP.contains(&name.as_str()) || [CONTENT_LENGTH, CONTENT_ENCODING].contains(name)
        {
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
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::super::secret::Secret;
    use super::super::tally::Tally;
    use super::*;
    use memhost_types::SecretUse;

    fn secrets_as(used_as: &str) -> Secrets {
        let (secret, used_as) =
            (Secret::new("KEY", "s3cr3t-value").unwrap(), used_as.parse::<SecretUse>().unwrap());
        Secrets::new(vec![(secret, used_as)]).unwrap()
    }

    fn secrets() -> Secrets {
        secrets_as("header:authorization:Bearer")
    }

    fn sent(
        headers: &[(&str, &str)],
        path: &str,
        body: &str,
        used_as: &str,
    ) -> Result<(HeaderMap, String), EgressError> {
        let mut request =
            http::Request::builder().method("POST").uri(format!("https://api.example{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let target = HttpTarget::parse(Some("https"), "api.example").unwrap();
        let outgoing = Outgoing { target, parts, body: body.to_owned().into() };
        let request = rewrite(outgoing, &secrets_as(used_as), Timestamp::UNIX_EPOCH)?;
        Ok((request.headers().clone(), format!("{} {:?}", request.uri(), request.body())))
    }

    #[test]
    fn a_secret_goes_where_it_is_pinned_and_nowhere_else() {
        let body = r#"{"key":"{{secret:KEY}}","note":"{{secret:KEY}}"}"#;
        let headers = [("authorization", "Bearer {{secret:KEY}}")];
        let (sent_headers, rest) =
            sent(&headers, "/v1?k=1", body, "header:authorization:Bearer").unwrap();
        assert_eq!(sent_headers["authorization"], "Bearer s3cr3t-value");
        assert!(sent_headers["authorization"].is_sensitive());
        assert!(!rest.contains("s3cr3t"), "{rest}");
        let (_, rest) = sent(&[], "/v1?k={{secret:KEY}}", body, "query:k").unwrap();
        assert!(
            rest.contains("/v1?k=s3cr3t-value") && rest.matches("s3cr3t").count() == 1,
            "{rest}"
        );
        let (_, rest) = sent(&[], "/v1", body, "body:/key").unwrap();
        assert!(rest.contains(r#"\"key\":\"s3cr3t-value\",\"note\":\"{{secret:KEY}}\""#), "{rest}");
        for (headers, path, used_as) in [
            (&[("x-note", "Bearer {{secret:KEY}}")], "/", "header:authorization:Bearer"),
            (&[("authorization", "{{secret:KEY}}")], "/", "header:authorization:Bearer"),
            (&[("authorization", "Basic {{secret:KEY}}")], "/", "header:authorization:Bearer"),
            (&headers, "/", "header:authorization"),
            (&headers, "/", "query:k"),
            (&headers, "/", "body:/key"),
            (&[("x", "y")], "/?k={{secret:KEY}}", "header:authorization:Bearer"),
            (&[("x", "y")], "/?note={{secret:KEY}}", "query:k"),
            (&[("x", "y")], "/?{{secret:KEY}}", "query:k"),
            (&[("x", "y")], "/?k={{secret:KEY}}&note={{secret:KEY}}", "query:k"),
        ] {
            let error = sent(headers, path, body, used_as).unwrap_err().to_string();
            assert!(
                error.contains("memhost secret update KEY --as") && error.contains(used_as),
                "{used_as}: {error}"
            );
        }
        let unknown =
            sent(&[("x", "{{secret:OTHER}}")], "/", "", "query:k").unwrap_err().to_string();
        assert!(unknown.contains("OTHER"), "{unknown}");
    }

    #[test]
    fn secrets_do_not_make_a_small_request_a_large_one() {
        let (secret, value) = ("KEY", "v".repeat(8_192));
        let send = |used_as: &str, headers: &[(&str, &str)], path: &str| {
            let secret = (
                Secret::new(secret, value.as_str()).unwrap(),
                used_as.parse::<SecretUse>().unwrap(),
            );
            let mut request = http::Request::builder().uri(format!("https://api.example{path}"));
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            let target = HttpTarget::parse(Some("https"), "api.example").unwrap();
            let outgoing = Outgoing { target, parts, body: Bytes::new() };
            rewrite(outgoing, &Secrets::new(vec![secret]).unwrap(), Timestamp::UNIX_EPOCH).map(drop)
        };
        let is_too_much = |sent| matches!(sent, Err(EgressError::Secret(SecretError::TooMuch)));
        assert!(is_too_much(send(
            "query:k",
            &[],
            &format!("/?{}", "k={{secret:KEY}}&".repeat(1_000))
        )));
        assert!(is_too_much(send("header:x-key", &[("x-key", "{{secret:KEY}}"); 9], "/")));
        assert!(send("header:x-key", &[("x-key", "{{secret:KEY}}"); 2], "/").is_ok());
    }

    #[test]
    fn the_server_is_named_by_the_host_and_the_connection_is_its_own() {
        let given = [
            ("host", "evil.example"),
            ("accept-encoding", "br"),
            ("te", "trailers"),
            ("expect", "100-continue"),
            ("range", "bytes=3-"),
        ];
        let (headers, _) = sent(&given, "/", "", "query:k").unwrap();
        assert_eq!(headers[HOST], "api.example");
        assert_eq!(headers[ACCEPT_ENCODING], "gzip");
        assert_eq!(headers.len(), 2, "{headers:?}");
    }

    #[test]
    fn an_answer_is_scrubbed_in_head_and_body() {
        let response = http::Response::builder()
            .header("x-echo", "s3cr3t-value")
            .header("content-length", "99")
            .body(());
        let (head, ()) = response.unwrap().into_parts();
        let answer =
            read_response(&head, Bytes::from_static(b"you sent s3cr3t-value"), &secrets(), |_| {
                Ok(())
            })
            .unwrap();
        assert_eq!(answer.headers()["x-echo"], "[secret KEY]");
        assert_eq!(answer.headers()[CONTENT_LENGTH], answer.body().len().to_string());
        assert_eq!(answer.body(), "you sent [secret KEY]");
    }

    fn packed(text: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap().into()
    }

    #[test]
    fn a_packed_answer_is_unpacked_scrubbed_and_bounded() {
        let (head, ()) = http::Response::builder()
            .header("content-encoding", "gzip")
            .body(())
            .unwrap()
            .into_parts();
        let read = |body| {
            let tally = Tally::default();
            read_response(&head, body, &secrets(), |bytes| tally.take_received(bytes, 1_000))
        };
        let answer = read(packed(b"you sent s3cr3t-value")).unwrap();
        assert_eq!(answer.body(), "you sent [secret KEY]");
        assert_eq!(answer.headers()[CONTENT_LENGTH], answer.body().len().to_string());
        assert!(!answer.headers().contains_key(CONTENT_ENCODING));
        assert!(read(packed(&[b'a'; 1_000])).is_ok());
        let bomb = read(packed(&[b'a'; 1_001])).unwrap_err().to_string();
        assert!(bomb.contains("incomingBytes"), "{bomb}");
        let cut = packed(b"you sent").slice(..12);
        assert!(matches!(read(cut), Err(EgressError::Exchange(_))));
        // An answer to HEAD.
        assert!(read(Bytes::new()).unwrap().body().is_empty());
    }

    #[test]
    fn an_answer_that_is_encoded_in_another_way_is_refused() {
        let answer = |lines: &[(&str, &str)]| {
            let mut response = http::Response::builder();
            for (name, value) in lines {
                response = response.header(*name, *value);
            }
            let (head, ()) = response.body(()).unwrap().into_parts();
            read_response(&head, Bytes::new(), &secrets(), |_| Ok(())).map(drop)
        };
        let (content, transfer) = ("content-encoding", "transfer-encoding");
        for lines in [
            &[(content, "gzip, gzip")][..],
            &[(content, "gzip"), (content, "gzip")],
            &[(content, "identity"), (content, "br")],
            &[(content, "identity, deflate")],
            &[(content, ""), (content, "X-Own")],
            &[(transfer, "gzip")],
            &[(transfer, "gzip, chunked")],
            &[(transfer, "gzip"), (transfer, "chunked")],
            &[(transfer, "chunked, chunked")],
        ] {
            assert!(matches!(answer(lines), Err(EgressError::Encoded(_))), "{lines:?}");
        }
        // The server may repeat a secret there, in small letters.
        let Err(error) = answer(&[(content, "S3cr3t-Value")]) else { panic!("it is refused") };
        assert!(
            !error.to_string().contains("s3cr3t")
                && !format!("{:?}", error.for_guest()).contains("s3cr3t")
        );
        for lines in [
            &[(content, "Identity")][..],
            &[(transfer, "chunked")],
            &[(content, " , identity"), (transfer, "Chunked")],
        ] {
            assert!(answer(lines).is_ok(), "{lines:?}");
        }
    }
}
