//! Authentication: the operator's token (from the environment, or made at the first start, handed
//! over once and stored as a digest), and the layer that requires a token.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use percent_encoding::percent_decode;

use super::extract::parse;
use super::problem::{Problem, ProblemCode};
use memhost_core::{ACT_AS_HEADERS, ActAs, Authentication, Caller, Service, ServiceError};

const FILE: &str = "admin-token";
/// The least length of a token that a person chose, in characters.
const MIN_LENGTH: usize = 16;

/// Why the operator's token could not be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The token given is too easy to guess.
    #[error("the operator token has {found} characters; at least {MIN_LENGTH} are needed")]
    TooShort {
        /// Its length.
        found: usize,
    },
    /// A header cannot carry it.
    #[error(
        "the operator token has the character {character:?}, which a header does not carry; use \
         ASCII letters and digits"
    )]
    Character {
        /// The first one.
        character: char,
    },
    /// The system gives no random bytes.
    #[error("no token can be made: the system gives no random bytes: {0}; try again")]
    NoRandomness(String),
    /// The token's file could not be read or written.
    #[error("the token's file {path} could not be used: {message}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's message.
        message: String,
    },
}

/// The digest of the operator's token, and a link that signs a person in once.
#[derive(Clone)]
pub struct AdminToken(blake3::Hash, Option<Arc<SignInLink>>);

/// How long a link signs in.
const LINK_LIFETIME: SignedDuration = SignedDuration::from_mins(10);

/// A link that signs in to the explorer once.
struct SignInLink {
    /// The digest of the code in the link, until it was used.
    code: Mutex<Option<blake3::Hash>>,
    until: Timestamp,
    /// The token of the session that it begins. It is in this process only.
    session: String,
}

impl AdminToken {
    /// A token that the operator chose.
    ///
    /// # Errors
    /// If it is too short, or has a character that no header carries.
    pub fn known(token: &str) -> Result<Self, AuthError> {
        let is_carried = |c: char| c.is_ascii_graphic() || c == ' ';
        // What is around the value is no part of it.
        let outer = [token.chars().next(), token.chars().next_back()]
            .into_iter()
            .flatten()
            .find(|c| *c == ' ');
        if let Some(character) = token.chars().find(|c| !is_carried(*c)).or(outer) {
            return Err(AuthError::Character { character });
        }
        if token.len() < MIN_LENGTH {
            return Err(AuthError::TooShort { found: token.len() });
        }
        Ok(Self::of(token))
    }

    /// The digest of a token.
    pub fn of(token: &str) -> Self {
        Self(blake3::hash(token.as_bytes()), None)
    }

    /// The same with a link that signs in once, within ten minutes. Answers the link's code.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn with_link(self, now: Timestamp) -> Result<(Self, String), AuthError> {
        let (code, session) = (secret()?, secret()?);
        let until = now.checked_add(LINK_LIFETIME).unwrap_or(now);
        let link =
            SignInLink { code: Mutex::new(Some(blake3::hash(code.as_bytes()))), until, session };
        Ok((Self(self.0, Some(Arc::new(link))), code))
    }

    /// The token of the session that a link begins, the first time that its code is given.
    pub fn use_link(&self, code: &str, now: Timestamp) -> Option<String> {
        let link = self.1.as_ref().filter(|link| now < link.until)?;
        let mut known = link.code.lock().unwrap_or_else(PoisonError::into_inner);
        let given = blake3::hash(code.as_bytes());
        known.take_if(|known| *known == given).map(|_| link.session.clone())
    }

    /// The token of a data directory. If it has none, or with `renew`, a new token is made and
    /// returned in clear this one time.
    ///
    /// # Errors
    /// If its file cannot be read or written.
    pub fn of_data_dir(data_dir: &Path, renew: bool) -> Result<(Self, Option<String>), AuthError> {
        let path = data_dir.join(FILE);
        let failed = |message: String| AuthError::Io { path: path.clone(), message };
        if !renew && path.exists() {
            let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
            let digest = blake3::Hash::from_hex(text.trim()).map_err(|_| {
                failed(
                    "it does not have a digest; start with --new-token to make another token"
                        .to_owned(),
                )
            })?;
            return Ok((Self(digest, None), None));
        }
        let token = format!("mh_{}", secret()?);
        let digest = blake3::hash(token.as_bytes());
        memhost_files::durable::write(&path, format!("{digest}\n").as_bytes(), 0o600)
            .map_err(|error| failed(error.to_string()))?;
        Ok((Self(digest, None), Some(token)))
    }

    /// The digest of the token, to compare it with that of another host.
    pub fn digest(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Whether this is the token. The comparison takes constant time.
    fn accepts(&self, token: &str) -> bool {
        let is_session = |link: &Arc<SignInLink>| {
            blake3::hash(link.session.as_bytes()) == blake3::hash(token.as_bytes())
        };
        blake3::hash(token.as_bytes()) == self.0 || self.1.as_ref().is_some_and(is_session)
    }
}

/// 32 random bytes as text.
fn secret() -> Result<String, AuthError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| AuthError::NoRandomness(error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The caller of a token. None: the token is unknown, expired or revoked.
///
/// # Errors
/// If the refusal of an expired or revoked token cannot be recorded.
pub async fn authenticate(
    admin: &AdminToken,
    service: &Service,
    token: &str,
) -> Result<Option<Caller>, ServiceError> {
    if admin.accepts(token) {
        return Ok(Some(Caller::operator()));
    }
    Ok(match service.tenancy().authenticate(token).await? {
        Authentication::Caller(caller) => Some(caller),
        Authentication::Refused => None,
    })
}

/// The caller of a request to the API, from its token and its headers.
///
/// # Errors
/// The answer to a request without a valid token, or with headers that the token may not send.
pub async fn caller_of(
    admin: &AdminToken,
    service: &Service,
    headers: &HeaderMap,
) -> Result<Caller, Box<Response>> {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = given.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let refused = |problem: Problem| Box::new(problem.into_response());
    let caller = match bearer {
        Some(given) => authenticate(admin, service, given)
            .await
            .map_err(|error| refused(Problem::from(error)))?,
        None => None,
    };
    let detail = match (caller, bearer) {
        (Some(caller), _) => {
            let whom = act_as(headers, &caller).map_err(refused)?;
            let caller = service.tenancy().act_for(caller, whom).await;
            return caller.map_err(|error| refused(Problem::from(error)));
        }
        (None, Some(_)) => {
            "the token is not accepted: it is unknown, has expired or was revoked; make one with \
             `memhost token \
             create`, or, for the operator, stop the host and type `memhost serve \
             --new-token`"
        }
        (None, None) => "send a token as `authorization: Bearer …`",
    };
    let mut response = Problem::new(ProblemCode::Unauthenticated, detail).into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    Err(Box::new(response))
}

/// For whom a request acts, as its headers say. A gateway whose variable is not set names nobody by
/// mistake, and a request for nobody is confined to nobody: that one is refused.
fn act_as(headers: &HeaderMap, caller: &Caller) -> Result<ActAs, Problem> {
    let [agent, run, person, role] = ACT_AS_HEADERS;
    let text = |name| {
        header_text(headers, name)
            .map_err(|message| Problem::invalid(format!("{name} {message}")).at(name))
    };
    let whom = ActAs {
        agent_id: text(agent)?.map(|id| parse(agent, &id)).transpose()?,
        run_id: text(run)?,
        person_id: text(person)?,
        role: text(role)?.map(|name| parse(role, &name)).transpose()?,
    };
    let names_nobody =
        caller.is_integration() && whom.agent_id.is_none() && whom.person_id.is_none();
    match [person, agent].into_iter().find(|name| names_nobody && headers.contains_key(*name)) {
        Some(empty) => {
            let detail =
                format!("{empty} is empty; name for whom the request is, or leave the header out");
            Err(Problem::invalid(detail).at(empty))
        }
        None => Ok(whom),
    }
}

/// A header's text. Percent signs are decoded: a header carries ASCII only, an id any characters.
/// Clients fill in their configuration from variables, and a variable that is not set leaves an
/// empty text: that is no header.
///
/// # Errors
/// The error.
pub fn header_text(headers: &HeaderMap, name: &str) -> Result<Option<String>, &'static str> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    if headers.get_all(name).iter().count() > 1 {
        return Err("is sent twice; send it once");
    }
    let decoded = percent_decode(value.as_bytes()).decode_utf8();
    let text = decoded.map_err(|_| "is not UTF-8; percent-encode characters that are not ASCII")?;
    // Not trimmed: an id with a blank at its end is another one, and is refused as such.
    Ok(Some(text.into_owned()).filter(|text| !text.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_token_is_shown_once_and_kept_as_a_digest() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let (first, shown) = AdminToken::of_data_dir(directory.path(), false).unwrap();
        let shown = shown.unwrap();
        assert!(first.accepts(&shown) && !first.accepts("mh_other"));
        let file = directory.path().join(FILE);
        assert!(!fs::read_to_string(&file).unwrap().contains(&shown));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let (again, nothing) = AdminToken::of_data_dir(directory.path(), false).unwrap();
        assert!(again.accepts(&shown) && nothing.is_none());
        let (renewed, other) = AdminToken::of_data_dir(directory.path(), true).unwrap();
        assert!(renewed.accepts(&other.unwrap()) && !renewed.accepts(&shown));
        fs::write(&file, "junk").unwrap();
        assert!(AdminToken::of_data_dir(directory.path(), false).is_err());
    }

    #[test]
    fn a_link_signs_in_once_and_for_ten_minutes() {
        let now = Timestamp::UNIX_EPOCH;
        let (admin, code) = AdminToken::of("the-operators-token").with_link(now).unwrap();
        assert!(admin.use_link("another", now).is_none());
        let session = admin.use_link(&code, now).unwrap();
        assert!(
            admin.accepts(&session)
                && admin.accepts("the-operators-token")
                && !admin.accepts(&code)
        );
        assert!(admin.use_link(&code, now).is_none(), "once");
        let (late, code) = AdminToken::of("the-operators-token").with_link(now).unwrap();
        assert!(late.use_link(&code, now + LINK_LIFETIME).is_none());
        assert!(!late.accepts(&session), "that of another process");
    }

    /// `blake3::Hash` compares in constant time. And if it did not, it would tell of digests only:
    /// however much of a token a guess has right, its digest has nothing more in common with that
    /// of the token.
    #[test]
    fn how_long_a_comparison_takes_tells_nothing_of_the_token() {
        let token = "mh_0123456789abcdefghijklmnopqrstuvwxyzABCDEF";
        let compared: &blake3::Hash = &AdminToken::of(token).0;
        let in_common = |guess: &str| {
            let guess = blake3::hash(guess.as_bytes());
            compared
                .as_bytes()
                .iter()
                .zip(guess.as_bytes())
                .take_while(|(one, other)| one == other)
                .count()
        };
        for right in 0..token.len() {
            let guesses = (0..256).map(|number| format!("{}{number:-<46}", &token[..right]));
            let bytes: usize =
                guesses.filter(|guess| guess != token).map(|guess| in_common(&guess)).sum();
            assert!(
                bytes <= 10,
                "{right} right characters: {bytes} bytes in common in 256 guesses, and 1 by chance"
            );
        }
    }

    #[test]
    fn a_token_that_is_short_or_that_no_header_carries_is_refused() {
        for wrong in [
            "short",
            " long-enough-in-spaces",
            "long-enough-with-\u{e9}",
            "long-enough-with-\u{7}",
            "",
        ] {
            assert!(AdminToken::known(wrong).is_err(), "{wrong:?}");
        }
        assert!(AdminToken::known("long enough:~!0123").is_ok());
    }
}
