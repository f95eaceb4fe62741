//! AWS Signature Version 4 of requests whose header `authorization` is `{{sigv4:NAME}}`. The secret
//! key stays here.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use http::{Method, Uri};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest as _, Sha256};

use super::{CLOSE, SecretError, Secrets, is_name_byte};
use memhost_types::SecretUse;

const OPEN: &str = "{{sigv4:";
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DATE: &str = "x-amz-date";
const TOKEN: &str = "x-amz-security-token";
/// What the parts of a path are encoded but for, which are encoded already: services other than S3
/// encode twice.
const PATH_ESCAPES: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The key that signs a request, and the service it is for.
pub(in crate::egress) struct SigningKey<'s> {
    id: &'s str,
    secret: &'s str,
    token: Option<&'s str>,
    service: &'s str,
    region: &'s str,
}

impl Secrets {
    /// What signs a request with this header. `None` if the header asks for no signature.
    ///
    /// # Errors
    /// Where the placeholder is not the whole value, or names a secret that is not granted or is
    /// not for signing.
    pub(in crate::egress) fn signing(
        &self,
        name: &str,
        text: &str,
    ) -> Result<Option<SigningKey<'_>>, SecretError> {
        if name != AUTHORIZATION || !text.contains(OPEN) {
            return Ok(None);
        }
        let asked = text.trim().strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE));
        let asked = asked
            .filter(|name| name.bytes().all(is_name_byte))
            .ok_or(SecretError::NotWhole("header"))?;
        let Some((secret, used_as)) = self.secrets.iter().find(|(secret, _)| secret.name == asked)
        else {
            return Err(SecretError::NotGranted(
                asked.chars().take(super::MAX_NAME_BYTES).collect(),
            ));
        };
        let mut parts = secret.value.split(':');
        match (used_as, parts.next(), parts.next()) {
            (SecretUse::SigV4 { service, region }, Some(id), Some(secret)) => {
                Ok(Some(SigningKey { id, secret, token: parts.next(), service, region }))
            }
            _ => Err(SecretError::Misplaced {
                name: asked.to_owned(),
                place: "a signature".to_owned(),
                used_as: used_as.clone(),
            }),
        }
    }
}

impl SigningKey<'_> {
    /// Signs a request that is complete but for this: `headers` get the time, the session token and
    /// the signature. What the guest wrote there is gone. Signed are the host, the type of the
    /// content and what begins with `x-amz-`.
    ///
    /// # Errors
    /// The header that cannot be sent.
    pub(in crate::egress) fn sign(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &mut HeaderMap,
        body: &[u8],
        at: Timestamp,
    ) -> Result<(), String> {
        let time = at.strftime("%Y%m%dT%H%M%SZ").to_string();
        headers.insert(DATE, HeaderValue::from_str(&time).map_err(|_| DATE.to_owned())?);
        headers.remove(TOKEN);
        if let Some(token) = self.token {
            headers.insert(TOKEN, sensitive(token).ok_or(TOKEN)?);
        }
        let (names, lines) = signed_headers(headers);
        let request = format!(
            "{method}\n{}\n{}\n{lines}\n{names}\n{}",
            canonical_path(uri.path()),
            canonical_query(uri.query().unwrap_or_default()),
            hex(&Sha256::digest(body))
        );
        let (day, service, region) = (&time[..8], self.service, self.region);
        let scope = format!("{day}/{region}/{service}/aws4_request");
        let text =
            format!("{ALGORITHM}\n{time}\n{scope}\n{}", hex(&Sha256::digest(request.as_bytes())));
        let first = format!("AWS4{}", self.secret).into_bytes();
        let key = [day, region, service, "aws4_request", &text]
            .iter()
            .fold(first, |key, part| mac(&key, part));
        let signature = hex(&key);
        let id = self.id;
        let value = format!(
            "{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        );
        headers.insert(AUTHORIZATION, sensitive(&value).ok_or("authorization")?);
        Ok(())
    }
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key)
        .unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The names of the headers that are signed, and a line for each.
fn signed_headers(headers: &HeaderMap) -> (String, String) {
    let is_signed = |name: &&str| {
        [HOST.as_str(), CONTENT_TYPE.as_str()].contains(name) || name.starts_with("x-amz-")
    };
    let mut names: Vec<&str> =
        headers.keys().map(http::HeaderName::as_str).filter(is_signed).collect();
    names.sort_unstable();
    let lines = names.iter().fold(String::new(), |mut lines, name| {
        let values = headers.get_all(*name).iter().map(|value| {
            String::from_utf8_lossy(value.as_bytes())
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        });
        let _ = writeln!(lines, "{name}:{}", values.collect::<Vec<_>>().join(","));
        lines
    });
    (names.join(";"), lines)
}

/// Without empty parts, `.` and `..`, and encoded once more.
fn canonical_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let end = if path.ends_with('/') && !parts.is_empty() { "/" } else { "" };
    let encoded: Vec<_> =
        parts.into_iter().map(|part| utf8_percent_encode(part, PATH_ESCAPES).to_string()).collect();
    format!("/{}{end}", encoded.join("/"))
}

/// The parameters in order, as they are encoded.
fn canonical_query(query: &str) -> String {
    let pair = |pair: &str| {
        pair.split_once('=')
            .map_or((pair.to_owned(), String::new()), |(a, b)| (a.to_owned(), b.to_owned()))
    };
    let mut pairs: Vec<_> = query.split('&').filter(|pair| !pair.is_empty()).map(pair).collect();
    pairs.sort_unstable();
    pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests;
