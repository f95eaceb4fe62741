//! What the explorer keeps in memory: sessions, and links that sign in once. A restart ends all.
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

use memhost_http::{Problem, ProblemCode};

/// The session's cookie.
pub(super) const COOKIE: &str = "memhost_session";
/// The lifetime of a session.
const LIFETIME: SignedDuration = SignedDuration::from_hours(12);
/// The most sessions. Beyond it the one that would end first is removed.
const MAX_SESSIONS: usize = 4_096;
/// The most sessions of one token. Beyond it the oldest one of the token is removed.
const MAX_SESSIONS_OF_TOKEN: usize = 16;
/// How long a link signs in.
const LINK_LIFETIME: SignedDuration = SignedDuration::from_mins(1);
/// The most links that wait. Beyond it the one that would end first is removed.
const MAX_LINKS: usize = 256;

/// The key of a session or a link: the digest of its secret, so that the maps have no secrets.
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
///
/// # Errors
/// If the system has no randomness.
pub(super) fn secret() -> Result<String, Problem> {
    let mut bytes = [0; 32];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|_| Problem::new(ProblemCode::Host, "the system has no randomness"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Compares secrets: takes the same time wherever they differ.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    blake3::hash(one.as_bytes()) == blake3::hash(other.as_bytes())
}

/// Removes what has ended, and what would end first where there are as many as there may be.
fn make_room<T>(
    kept: &mut HashMap<SessionKey, T>,
    most: usize,
    now: Timestamp,
    until: fn(&T) -> Timestamp,
) {
    kept.retain(|_, one| until(one) > now);
    let first = kept.iter().min_by_key(|(_, one)| until(one)).map(|(key, _)| *key);
    if let Some(first) = first.filter(|_| kept.len() >= most) {
        kept.remove(&first);
    }
}

impl Sessions {
    /// Signs in. Returns the value of the cookie.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub(super) fn begin(&self, token: String, now: Timestamp) -> Result<String, Problem> {
        let (id, csrf) = (secret()?, secret()?);
        let until = now.checked_add(LIFETIME).unwrap_or(now);
        let mut sessions = self.0.lock();
        let of_token = || sessions.iter().filter(|(_, session)| session.token == token);
        let oldest = of_token().min_by_key(|(_, session)| session.until).map(|(key, _)| *key);
        if let Some(oldest) = oldest.filter(|_| of_token().count() >= MAX_SESSIONS_OF_TOKEN) {
            sessions.remove(&oldest);
        }
        make_room(&mut sessions, MAX_SESSIONS, now, |session| session.until);
        sessions.insert(blake3::hash(id.as_bytes()), Session { token, csrf, until, flash: None });
        Ok(id)
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

/// Links that sign in once and that nobody has used yet: the token of each, and its end.
#[derive(Default)]
pub(super) struct SignInLinks(Mutex<HashMap<SessionKey, (String, Timestamp)>>);

impl SignInLinks {
    /// The code of a new link.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub(super) fn make(&self, token: String, now: Timestamp) -> Result<String, Problem> {
        let code = secret()?;
        let until = now.checked_add(LINK_LIFETIME).unwrap_or(now);
        let mut links = self.0.lock();
        make_room(&mut links, MAX_LINKS, now, |(_, until)| *until);
        links.insert(blake3::hash(code.as_bytes()), (token, until));
        Ok(code)
    }

    /// The token that a link signs in with, the first time that its code is given.
    pub(super) fn take(&self, code: &str, now: Timestamp) -> Option<String> {
        let (token, until) = self.0.lock().remove(&blake3::hash(code.as_bytes()))?;
        (now < until).then_some(token)
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

    #[test]
    fn a_link_signs_in_once_within_a_minute_and_they_do_not_pile_up() {
        let (links, now) = (SignInLinks::default(), Timestamp::UNIX_EPOCH);
        let code = links.make("token".to_owned(), now).unwrap();
        assert_eq!(links.take("another", now), None);
        assert_eq!(links.take(&code, now).as_deref(), Some("token"));
        assert_eq!(links.take(&code, now), None, "once");
        let late = links.make("token".to_owned(), now).unwrap();
        assert_eq!(links.take(&late, now + LINK_LIFETIME), None);
        let all: Vec<_> =
            (0..=MAX_LINKS).map(|_| links.make("token".to_owned(), now).unwrap()).collect();
        assert_eq!(all.iter().filter(|code| links.take(code, now).is_some()).count(), MAX_LINKS);
    }
}
