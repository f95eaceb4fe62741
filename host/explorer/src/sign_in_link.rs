//! Links that sign in once: a program that has a token opens the explorer for a person, who never
//! sees the token.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde::Deserialize;

use super::Explorer;
use super::session::secret;
use memhost_core::Service;
use memhost_http::{Body, Problem, ProblemCode};
use memhost_types::Role;

/// How long a link signs in.
const LIFETIME: SignedDuration = SignedDuration::from_mins(1);
/// The most links that wait. Beyond it the one that would end first is removed.
const MOST: usize = 256;

struct Waiting {
    token: String,
    until: Timestamp,
}

/// Links that nobody has used yet, by the digests of their codes.
#[derive(Default)]
pub(super) struct SignInLinks(Mutex<HashMap<blake3::Hash, Waiting>>);

impl SignInLinks {
    /// The code of a new link. None: the system has no randomness.
    fn make(&self, token: String, now: Timestamp) -> Option<String> {
        let code = secret()?;
        let until = now.checked_add(LIFETIME).ok()?;
        let mut links = self.0.lock();
        links.retain(|_, link| link.until > now);
        let first = links.iter().min_by_key(|(_, link)| link.until).map(|(key, _)| *key);
        if let Some(first) = first.filter(|_| links.len() >= MOST) {
            links.remove(&first);
        }
        links.insert(blake3::hash(code.as_bytes()), Waiting { token, until });
        Some(code)
    }

    /// The token that a link signs in with, the first time that its code is given.
    pub(super) fn take(&self, code: &str, now: Timestamp) -> Option<String> {
        let link = self.0.lock().remove(&blake3::hash(code.as_bytes()))?;
        (now < link.until).then_some(link.token)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkRequest {
    /// The token that the link signs in with.
    token: String,
}

/// `POST /sign-in/link` with the operator's token: answers the path of a link that signs in once,
/// within a minute. Only the operator makes links: with anybody's, another site could sign people
/// in as somebody else.
pub(super) async fn make(
    State(service): State<Arc<Service>>,
    Extension(explorer): Extension<Arc<Explorer>>,
    headers: HeaderMap,
    Body(request): Body<LinkRequest>,
) -> Result<Response, Problem> {
    let token =
        headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let missing =
        || Problem::new(ProblemCode::Unauthenticated, "a link needs the operator's token");
    let of = async |token: &str| memhost_http::authenticate(&explorer.admin, &service, token).await;
    let caller = of(token.ok_or_else(missing)?).await?.ok_or_else(missing)?;
    if caller.role() != Role::Operator {
        return Err(Problem::new(
            ProblemCode::Forbidden,
            "only the operator makes links that sign in",
        ));
    }
    let unknown = || {
        Problem::invalid(
            "token: is unknown, expired or revoked, or of a role that the explorer has no page for",
        )
    };
    let named = of(&request.token)
        .await?
        .filter(|named| !matches!(named.role(), Role::Monitor | Role::Integration));
    named.ok_or_else(|| unknown().at("token"))?;
    let code = explorer.sign_in_links.make(request.token, service.control().now());
    let code =
        code.ok_or_else(|| Problem::new(ProblemCode::Host, "the system has no randomness"))?;
    Ok(axum::Json(serde_json::json!({ "path": format!("/sign-in?link={code}") })).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_signs_in_once_within_a_minute_and_they_do_not_pile_up() {
        let (links, now) = (SignInLinks::default(), Timestamp::UNIX_EPOCH);
        let code = links.make("token".to_owned(), now).unwrap();
        assert_eq!(links.take("another", now), None);
        assert_eq!(links.take(&code, now).as_deref(), Some("token"));
        assert_eq!(links.take(&code, now), None, "once");
        let late = links.make("token".to_owned(), now).unwrap();
        assert_eq!(links.take(&late, now + LIFETIME), None);
        let all: Vec<_> =
            (0..=MOST).map(|_| links.make("token".to_owned(), now).unwrap()).collect();
        assert_eq!(all.iter().filter(|code| links.take(code, now).is_some()).count(), MOST);
    }
}
