//! Authentication: the operator's token (from the environment, or made at the first start, shown once and stored as a
//! digest), and the layer that requires a token.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::problem::{Problem, ProblemCode};
use memhost_core::{Authentication, Caller, Service, ServiceError};

const FILE: &str = "admin-token";
/// The least length of a token that a person chose, in characters.
const MIN_LENGTH: usize = 16;

/// Why the operator's token could not be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The token given is too easy to guess.
    #[error(
        "the operator token given with --token or MEMHOST_OPERATOR_TOKEN has {found} characters; at least {MIN_LENGTH} are needed; \
         leave it out and the host makes one"
    )]
    TooShort {
        /// Its length.
        found: usize,
    },
    /// The token's file could not be read or written.
    #[error("the token's file {path} could not be used: {message}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
}

/// The digest of the operator's token.
#[derive(Clone)]
pub struct AdminToken(blake3::Hash);

impl AdminToken {
    /// A token that the operator chose.
    ///
    /// # Errors
    /// If it is too short.
    pub fn known(token: &str) -> Result<Self, AuthError> {
        if token.len() < MIN_LENGTH {
            return Err(AuthError::TooShort { found: token.len() });
        }
        Ok(Self::of(token))
    }

    /// The digest of a token.
    pub fn of(token: &str) -> Self {
        Self(blake3::hash(token.as_bytes()))
    }

    /// The token of a data directory. If it has none, or with `renew`, a new token is made and returned in clear this
    /// one time.
    ///
    /// # Errors
    /// If its file cannot be read or written.
    pub fn of_data_dir(data_dir: &Path, renew: bool) -> Result<(Self, Option<String>), AuthError> {
        let path = data_dir.join(FILE);
        let failed = |message: String| AuthError::Io { path: path.clone(), message };
        if !renew && path.exists() {
            let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
            let digest = blake3::Hash::from_hex(text.trim()).map_err(|_| {
                failed("it does not have a digest; start with --new-token to make another token".to_owned())
            })?;
            return Ok((Self(digest), None));
        }
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| failed(error.to_string()))?;
        let token = format!("mh_{}", URL_SAFE_NO_PAD.encode(bytes));
        let digest = blake3::hash(token.as_bytes());
        write_private(&path, &format!("{digest}\n")).map_err(|error| failed(error.to_string()))?;
        Ok((Self(digest), Some(token)))
    }

    /// Whether this is the token. The comparison takes constant time.
    fn accepts(&self, token: &str) -> bool {
        blake3::hash(token.as_bytes()) == self.0
    }
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file = memhost_files::private::create(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

/// The caller of a token. None: the token is unknown, expired or revoked.
///
/// # Errors
/// If the refusal of an expired or revoked token cannot be recorded.
pub async fn authenticate(admin: &AdminToken, service: &Service, token: &str) -> Result<Option<Caller>, ServiceError> {
    if admin.accepts(token) {
        return Ok(Some(Caller::operator()));
    }
    Ok(match service.authenticate(token).await? {
        Authentication::Caller(caller) => Some(caller),
        Authentication::Refused => None,
    })
}

/// The layer that refuses requests without a valid token, and sets the caller of the others.
pub async fn require_token(
    State((admin, service)): State<(AdminToken, Arc<Service>)>,
    mut request: Request,
    next: Next,
) -> Response {
    let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = given.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let caller = match bearer {
        Some(given) => match authenticate(&admin, &service, given).await {
            Ok(caller) => caller,
            Err(error) => return Problem::from(error).into_response(),
        },
        None => None,
    };
    let detail = match (caller, bearer) {
        (Some(caller), _) => {
            request.extensions_mut().insert(caller);
            return next.run(request).await;
        }
        (None, Some(_)) => {
            "the token is not accepted: it is unknown, has expired or was revoked; make one with `memhost token \
             create`, or a new one for the operator with `memhost serve --new-token`"
        }
        (None, None) => "send a token as `authorization: Bearer …`",
    };
    let mut response = Problem::new(ProblemCode::Unauthenticated, detail).into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
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
    fn a_short_token_is_refused() {
        assert!(AdminToken::known("short").is_err());
    }
}
