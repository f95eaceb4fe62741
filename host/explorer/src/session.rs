//! Sessions: a random id in a cookie, and its data in memory. A restart ends all sessions.
//!
//! A session holds no permission of its own: it refers to a token, and every page authenticates
//! that token again. So a revoked token ends its sessions, and there is no second model of
//! permissions.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cookie::{Cookie, SameSite};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// The session's cookie.
pub(super) const COOKIE: &str = "memhost_session";
/// The lifetime of a session.
const LIFETIME: SignedDuration = SignedDuration::from_hours(12);
/// The most sessions. Beyond it the one that would end first is removed.
const MAX_SESSIONS: usize = 4_096;
/// The most sessions of one token. Beyond it the oldest one of the token is removed.
const MAX_SESSIONS_OF_TOKEN: usize = 16;

/// The key of a session: the digest of the cookie, so that this map has no cookies.
pub(super) type SessionKey = blake3::Hash;

struct Session {
    /// Checked at every request: a revoked or expired token ends its sessions.
    token: String,
    csrf: String,
    until: Timestamp,
    flash: Option<String>,
}

/// All sessions.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<SessionKey, Session>>);

/// The session of a request.
pub(super) struct CurrentSession {
    pub(super) key: SessionKey,
    pub(super) token: String,
    pub(super) csrf: String,
}

/// 32 random bytes as text.
pub(super) fn secret() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

/// Compares secrets: takes the same time wherever they differ.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    blake3::hash(one.as_bytes()) == blake3::hash(other.as_bytes())
}

impl Sessions {
    /// Signs in. Returns the value of the cookie. None: the system has no randomness.
    pub(super) fn begin(&self, token: String, now: Timestamp) -> Option<String> {
        let (id, csrf) = (secret()?, secret()?);
        let until = now.checked_add(LIFETIME).ok()?;
        let mut sessions = self.0.lock();
        sessions.retain(|_, session| session.until > now);
        let of_token = || sessions.iter().filter(|(_, session)| session.token == token);
        let oldest = of_token().min_by_key(|(_, session)| session.until).map(|(key, _)| *key);
        if let Some(oldest) = oldest.filter(|_| of_token().count() >= MAX_SESSIONS_OF_TOKEN) {
            sessions.remove(&oldest);
        }
        if sessions.len() >= MAX_SESSIONS
            && let Some(first) =
                sessions.iter().min_by_key(|(_, session)| session.until).map(|(key, _)| *key)
        {
            sessions.remove(&first);
        }
        sessions.insert(blake3::hash(id.as_bytes()), Session { token, csrf, until, flash: None });
        Some(id)
    }

    /// The session of a cookie. None: it is unknown or has ended.
    pub(super) fn find(&self, id: &str, now: Timestamp) -> Option<CurrentSession> {
        let key = blake3::hash(id.as_bytes());
        let sessions = self.0.lock();
        let session = sessions.get(&key).filter(|session| session.until > now)?;
        Some(CurrentSession { key, token: session.token.clone(), csrf: session.csrf.clone() })
    }

    /// Signs out.
    pub(super) fn end(&self, key: SessionKey) {
        self.0.lock().remove(&key);
    }

    /// Sets the message of the next page.
    pub(super) fn set_flash(&self, key: SessionKey, text: String) {
        if let Some(session) = self.0.lock().get_mut(&key) {
            session.flash = Some(text);
        }
    }

    /// Takes the message for this page.
    pub(super) fn take_flash(&self, key: SessionKey) -> Option<String> {
        self.0.lock().get_mut(&key)?.flash.take()
    }
}

/// A cookie that no script reads and no other site sends.
pub(super) fn cookie(name: &'static str, value: String, is_secure: bool) -> String {
    Cookie::build((name, value))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Strict)
        .secure(is_secure)
        .to_string()
}

/// Removes a cookie.
pub(super) fn no_cookie(name: &'static str) -> String {
    format!("{name}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_signs_others_out_by_signing_in() {
        let (sessions, now) = (Sessions::default(), Timestamp::UNIX_EPOCH);
        let other = sessions.begin("another token".to_owned(), now).unwrap();
        let later = |n: usize| now + SignedDuration::from_secs(i64::try_from(n).unwrap());
        let all: Vec<_> = (1..=MAX_SESSIONS)
            .map(|n| sessions.begin("token".to_owned(), later(n)).unwrap())
            .collect();
        assert!(sessions.find(&other, now).is_some());
        let kept = all.iter().filter(|id| sessions.find(id, now).is_some()).count();
        assert_eq!(kept, MAX_SESSIONS_OF_TOKEN);
        assert!(sessions.find(all.last().unwrap(), now).is_some(), "the oldest goes");
    }

    #[test]
    fn a_session_is_told_by_its_id_and_ends() {
        let (sessions, now) = (Sessions::default(), Timestamp::UNIX_EPOCH);
        let id = sessions.begin("token".to_owned(), now).unwrap();
        let known = sessions.find(&id, now).unwrap();
        assert_eq!(known.token, "token");
        assert!(sessions.find("another", now).is_none());
        assert!(sessions.find(&id, now + LIFETIME).is_none());
        sessions.set_flash(known.key, "done".to_owned());
        assert_eq!(
            (sessions.take_flash(known.key).as_deref(), sessions.take_flash(known.key)),
            (Some("done"), None)
        );
        sessions.end(known.key);
        assert!(sessions.find(&id, now).is_none());
    }

    #[test]
    fn there_are_not_too_many_and_the_oldest_goes() {
        let (sessions, now) = (Sessions::default(), Timestamp::UNIX_EPOCH);
        let first = sessions.begin("first".to_owned(), now).unwrap();
        let later = now + SignedDuration::from_secs(1);
        for n in 0..MAX_SESSIONS {
            sessions.begin(format!("other {n}"), later).unwrap();
        }
        assert!(sessions.find(&first, later).is_none());
        assert_eq!(sessions.0.lock().len(), MAX_SESSIONS);
    }
}
