//! What the explorer keeps in memory: messages for the next page, and links that sign in once. A
//! restart ends them. Sessions are rows ([`memhost_core::Sessions`]).

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cookie::{Cookie, SameSite};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use memhost_http::{Problem, ProblemCode};

/// The session's cookie.
pub(super) const COOKIE: &str = "memhost_session";
/// How long a message waits for its page.
const MESSAGE_LIFETIME: SignedDuration = SignedDuration::from_mins(10);
/// The most messages that wait. Beyond it the one that would end first is removed.
const MAX_MESSAGES: usize = 4_096;
/// How long a link signs in.
const LINK_LIFETIME: SignedDuration = SignedDuration::from_mins(1);
/// The most links that wait. Beyond it the one that would end first is removed.
const MAX_LINKS: usize = 256;

/// The key of a link: the digest of its secret, so that the map has no secrets.
type LinkKey = blake3::Hash;

/// The key of a session: the digest of its id.
pub(super) type SessionKey = [u8; 32];

/// Messages for the next page of a session.
#[derive(Default)]
pub(super) struct Messages(Mutex<HashMap<SessionKey, (String, Timestamp)>>);

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
fn make_room<K: std::hash::Hash + Eq + Copy>(
    kept: &mut HashMap<K, (String, Timestamp)>,
    most: usize,
    now: Timestamp,
) {
    kept.retain(|_, (_, until)| *until > now);
    let first = kept.iter().min_by_key(|(_, (_, until))| *until).map(|(key, _)| *key);
    if let Some(first) = first.filter(|_| kept.len() >= most) {
        kept.remove(&first);
    }
}

impl Messages {
    /// Sets the message of the next page.
    pub(super) fn set(&self, key: SessionKey, text: String, now: Timestamp) {
        let mut messages = self.0.lock();
        make_room(&mut messages, MAX_MESSAGES, now);
        messages.insert(key, (text, now.checked_add(MESSAGE_LIFETIME).unwrap_or(now)));
    }

    /// Takes the message for this page.
    pub(super) fn take(&self, key: SessionKey) -> Option<String> {
        self.0.lock().remove(&key).map(|(text, _)| text)
    }
}

/// Links that sign in once and that nobody has used yet: the token of each, and its end.
#[derive(Default)]
pub(super) struct SignInLinks(Mutex<HashMap<LinkKey, (String, Timestamp)>>);

impl SignInLinks {
    /// The code of a new link.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub(super) fn make(&self, token: String, now: Timestamp) -> Result<String, Problem> {
        let code = secret()?;
        let until = now.checked_add(LINK_LIFETIME).unwrap_or(now);
        let mut links = self.0.lock();
        make_room(&mut links, MAX_LINKS, now);
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
    fn a_message_is_shown_once_and_they_do_not_pile_up() {
        let (messages, now) = (Messages::default(), Timestamp::UNIX_EPOCH);
        messages.set([1; 32], "done".to_owned(), now);
        assert_eq!(messages.take([2; 32]), None);
        assert_eq!(messages.take([1; 32]).as_deref(), Some("done"));
        assert_eq!(messages.take([1; 32]), None, "once");
        for number in 0..=u32::try_from(MAX_MESSAGES).unwrap() {
            let mut key = [0; 32];
            key[..4].copy_from_slice(&number.to_be_bytes());
            messages.set(key, String::new(), now);
        }
        assert_eq!(messages.0.lock().len(), MAX_MESSAGES);
        messages.set([9; 32], String::new(), now + MESSAGE_LIFETIME);
        assert_eq!(messages.0.lock().len(), 1, "others have ended");
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
