//! The HTTP of a registry: tokens, redirects, uploads. Credentials and tokens go to the registry
//! that they are for, and every body that is read has a bound.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use docker_credential::DockerCredential;
use parking_lot::Mutex;
use serde::Deserialize;
use ureq::http::{HeaderMap, Request, Response, Uri};
use ureq::tls::TlsConfig;
use ureq::{Agent, Body};

use crate::credentials;
use crate::error::OciError;
use crate::reference::{Reference, hostname, is_loopback};

/// How often a download is sent elsewhere.
const REDIRECTS: usize = 5;
/// The longest answer with a token, and the longest one that says what is wrong, in bytes.
const MAX_TOKEN: u64 = 64 << 10;
const MAX_ERROR: u64 = 8 << 10;
/// How much of an answer that says what is wrong is shown, in characters.
const SHOWN: usize = 300;
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(60);
/// A request as a whole: 64 MiB at two megabits per second.
const WHOLE: Duration = Duration::from_secs(300);

/// How a registry is reached.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether a registry on another machine may be asked without TLS.
    pub allows_plain_http: bool,
    /// Certificate authorities to trust in place of the well-known ones. `None`: those.
    pub tls: Option<TlsConfig>,
}

/// A repository of a registry.
pub(crate) struct Client {
    agent: Agent,
    /// The scheme and the authority.
    base: String,
    host: String,
    name: String,
    may_push: bool,
    /// The header `authorization`, once the registry has asked for one.
    authorization: Mutex<Option<String>>,
}

/// A request.
pub(crate) struct Call<'a> {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) headers: &'a [(&'static str, &'a str)],
    pub(crate) body: Option<&'a [u8]>,
}

impl<'a> Call<'a> {
    pub(crate) fn get(url: String) -> Self {
        Self { method: "GET", url, headers: &[], body: None }
    }

    pub(crate) fn accepting(url: String, headers: &'a [(&'static str, &'a str)]) -> Self {
        Self { headers, ..Self::get(url) }
    }
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Client {
    pub(crate) fn new(reference: &Reference, options: &Options, may_push: bool) -> Self {
        let is_local = is_loopback(reference.hostname()) && options.tls.is_none();
        let scheme = if is_local || options.allows_plain_http { "http" } else { "https" };
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // Redirects are followed below, where it is known who may see what.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(ANSWER))
            .timeout_per_call(Some(WHOLE));
        if is_local {
            config = config.proxy(None);
        }
        if let Some(tls) = &options.tls {
            config = config.tls_config(tls.clone());
        }
        let base = format!("{scheme}://{}", reference.host);
        Self {
            agent: config.build().into(),
            base: origin(&base).unwrap_or(base),
            host: reference.host.clone(),
            name: reference.name.clone(),
            may_push,
            authorization: Mutex::default(),
        }
    }

    /// The URL of something in the repository.
    pub(crate) fn url(&self, rest: &str) -> String {
        format!("{}/v2/{}/{rest}", self.base, self.name)
    }

    /// Sends a request, with credentials where the registry asks for some. Answers every status
    /// but 401, 403 and those of redirects of a GET.
    pub(crate) fn send(&self, call: &Call<'_>) -> Result<Response<Body>, OciError> {
        let (mut url, mut has_asked, mut redirects) = (call.url.clone(), false, 0);
        loop {
            let mut response = self.once(call, &url)?;
            let (status, is_own) = (response.status().as_u16(), self.is_own(&url));
            match status {
                401 if is_own && !has_asked => {
                    has_asked = true;
                    let header = self.authorized(response.headers())?;
                    *self.authorization.lock() = Some(header);
                }
                401 | 403 => {
                    let said = said(&mut response);
                    return Err(OciError::Denied { registry: self.host.clone(), status, said });
                }
                301 | 302 | 303 | 307 | 308 if call.body.is_none() => {
                    redirects += 1;
                    if redirects > REDIRECTS {
                        return Err(OciError::malformed(
                            call.url.as_str(),
                            "it is sent on for ever",
                        ));
                    }
                    url = self.location(&url, response.headers())?;
                }
                _ => return Ok(response),
            }
        }
    }

    /// Sends a request whose answer must be one of success.
    pub(crate) fn expect(&self, call: &Call<'_>) -> Result<Response<Body>, OciError> {
        let mut response = self.send(call)?;
        match response.status().as_u16() {
            200..300 => Ok(response),
            404 => {
                let what = call.url.trim_start_matches(&self.base).trim_start_matches("/v2/");
                Err(OciError::NotFound { registry: self.host.clone(), what: what.to_owned() })
            }
            status => {
                let said = said(&mut response);
                Err(OciError::Status { url: call.url.clone(), status, said })
            }
        }
    }

    /// The body of an answer, if it has at most `max` bytes.
    pub(crate) fn read(
        &self,
        what: &str,
        response: &mut Response<Body>,
        max: u64,
    ) -> Result<Vec<u8>, OciError> {
        // The library says `too large` of a body that has exactly the limit.
        let read = response.body_mut().with_config().limit(max + 1).read_to_vec();
        match read {
            Ok(bytes) if bytes.len() as u64 <= max => Ok(bytes),
            Ok(_) | Err(ureq::Error::BodyExceedsLimit(_)) => {
                Err(OciError::TooLarge { what: what.to_owned(), max })
            }
            Err(error) => Err(OciError::Unreachable {
                url: self.base.clone(),
                message: format!("{what} was cut off: {error}"),
            }),
        }
    }

    /// Where an answer redirects to. A location without a host is on the host that says it.
    pub(crate) fn location(&self, from: &str, headers: &HeaderMap) -> Result<String, OciError> {
        let wrong = || OciError::malformed(from, "it says that it redirects, but not where to");
        let location = headers.get("location").and_then(|value| value.to_str().ok());
        let location = location.ok_or_else(wrong)?;
        let base = origin(from).ok_or_else(wrong)?;
        let url = match location.starts_with('/') && !location.starts_with("//") {
            true => format!("{base}{location}"),
            false => location.to_owned(),
        };
        let to = origin(&url).ok_or_else(wrong)?;
        if to.starts_with("http://") && base.starts_with("https://") {
            return Err(OciError::Plain { url });
        }
        Ok(url)
    }

    fn once(&self, call: &Call<'_>, url: &str) -> Result<Response<Body>, OciError> {
        let mut request = Request::builder().method(call.method).uri(url);
        for (name, value) in call.headers {
            request = request.header(*name, *value);
        }
        if self.is_own(url)
            && let Some(header) = self.authorization.lock().as_ref()
        {
            request = request.header("authorization", header);
        }
        self.run(request, url, call.body)
    }

    fn run(
        &self,
        request: ureq::http::request::Builder,
        url: &str,
        body: Option<&[u8]>,
    ) -> Result<Response<Body>, OciError> {
        let sent = match body {
            Some(body) => request.body(body).map(|request| self.agent.run(request)),
            None => request.body(()).map(|request| self.agent.run(request)),
        };
        sent.map_err(ureq::Error::from).flatten().map_err(|error| OciError::Unreachable {
            // What follows a question mark may be a signature.
            url: url.split('?').next().unwrap_or_default().to_owned(),
            message: error.to_string(),
        })
    }

    /// Whether a URL is the registry's own.
    fn is_own(&self, url: &str) -> bool {
        origin(url).as_deref() == Some(self.base.as_str())
    }

    /// The header that the registry asks for with these headers of a 401.
    fn authorized(&self, headers: &HeaderMap) -> Result<String, OciError> {
        let wrong = |why: &str| OciError::malformed(format!("the 401 of {}", self.host), why);
        let asked = headers.get("www-authenticate").and_then(|value| value.to_str().ok());
        let asked = asked.ok_or_else(|| wrong("it does not say what it wants"))?;
        let asked =
            http_auth::parse_challenges(asked).map_err(|error| wrong(&error.to_string()))?;
        let is = |scheme: &str| {
            asked.iter().find(|challenge| challenge.scheme.eq_ignore_ascii_case(scheme))
        };
        if let Some(bearer) = is("bearer") {
            let parameter = |name: &str| {
                let found = bearer.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.to_unescaped())
            };
            let realm = parameter("realm").ok_or_else(|| wrong("it names no realm"))?;
            let service = parameter("service").unwrap_or_default();
            return self.token(&realm, &service).map(|token| format!("Bearer {token}"));
        }
        if is("basic").is_some() {
            return match credentials::of(&self.host)? {
                Some(DockerCredential::UsernamePassword(user, password)) => {
                    Ok(basic(&user, &password))
                }
                _ => Err(self.without()),
            };
        }
        Err(wrong("it wants neither `Bearer` nor `Basic`"))
    }

    fn without(&self) -> OciError {
        let said = "it wants a user and a password".to_owned();
        OciError::Denied { registry: self.host.clone(), status: 401, said }
    }

    /// A token for this repository from where the registry sends its users.
    fn token(&self, realm: &str, service: &str) -> Result<String, OciError> {
        let what = || format!("the token for {}", self.host);
        let from = realm.parse::<Uri>().ok().and_then(|uri| uri.authority().cloned());
        let authority = from.ok_or_else(|| OciError::malformed(what(), "its realm is no URL"))?;
        let authority = authority.as_str();
        let is_plain = !realm.starts_with("https://");
        if is_plain && (self.base.starts_with("https://") || !realm.starts_with("http://")) {
            return Err(OciError::Plain { url: realm.to_owned() });
        }
        let are_related = are_related(hostname(&self.host), hostname(authority), is_plain);
        let own = credentials::of(&self.host)?;
        let has_own = own.is_some();
        let credentials = match own.filter(|_| are_related) {
            Some(own) => Some(own),
            None => credentials::of(authority)?,
        };
        let scope = if self.may_push { "pull,push" } else { "pull" };
        let scope = format!("repository:{}:{scope}", self.name);
        let mut form = form_urlencoded::Serializer::new(String::new());
        if !service.is_empty() {
            form.append_pair("service", service);
        }
        form.append_pair("scope", &scope);
        let mut response = match &credentials {
            Some(DockerCredential::IdentityToken(token)) => {
                form.append_pair("grant_type", "refresh_token");
                form.append_pair("client_id", "memhost").append_pair("refresh_token", token);
                let request = Request::builder()
                    .method("POST")
                    .uri(realm)
                    .header("content-type", "application/x-www-form-urlencoded");
                self.run(request, realm, Some(form.finish().as_bytes()))?
            }
            other => {
                let joint = if realm.contains('?') { '&' } else { '?' };
                let url = format!("{realm}{joint}{}", form.finish());
                let mut request = Request::builder().uri(&url);
                if let Some(DockerCredential::UsernamePassword(user, password)) = other {
                    request = request.header("authorization", basic(user, password));
                }
                self.run(request, &url, None)?
            }
        };
        let status = response.status().as_u16();
        if status == 401 || status == 403 {
            return Err(match (are_related || !has_own, &credentials) {
                (false, None) => OciError::OtherRealm {
                    registry: self.host.clone(),
                    realm: authority.to_owned(),
                },
                _ => OciError::Denied {
                    registry: self.host.clone(),
                    status,
                    said: said(&mut response),
                },
            });
        }
        let bytes = self.read(&what(), &mut response, MAX_TOKEN)?;
        let token: Token = serde_json::from_slice(&bytes)
            .map_err(|_| OciError::malformed(what(), format!("{status} without a token")))?;
        let token = token.token.or(token.access_token).filter(|token| !token.is_empty());
        token.ok_or_else(|| OciError::malformed(what(), "the answer has no token"))
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// The scheme and the authority of an http or https URL.
fn origin(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme))?;
    // No URL of this program has a user in it.
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let usual = if scheme == "https" { ":443" } else { ":80" };
    let authority = authority.as_str();
    Some(format!("{scheme}://{}", authority.strip_suffix(usual).unwrap_or(authority)))
}

/// Whether a realm gets the password for a registry: the same host, and with TLS one of the same
/// domain, such as `auth.example.com` for `registry.example.com` or `example.com`.
fn are_related(registry: &str, realm: &str, is_plain: bool) -> bool {
    let (registry, realm) = (registry.to_ascii_lowercase(), realm.to_ascii_lowercase());
    if registry == realm {
        return true;
    }
    let is_name = |host: &str| host.bytes().any(|byte| byte.is_ascii_alphabetic());
    if is_plain || !is_name(&registry) || !is_name(&realm) {
        return false;
    }
    let above = |host: &str| {
        let rest = host.split_once('.').map(|(_, rest)| rest.to_owned());
        rest.filter(|rest| rest.contains('.'))
    };
    let is_below = |host: &str, of: &str| above(host).is_some_and(|domain| domain == of);
    is_below(&registry, &realm)
        || is_below(&realm, &registry)
        || above(&registry).is_some_and(|domain| above(&realm) == Some(domain))
}

/// What a registry says is wrong, on one line.
fn said(response: &mut Response<Body>) -> String {
    #[derive(Deserialize)]
    struct Errors {
        errors: Vec<Said>,
    }
    #[derive(Deserialize)]
    struct Said {
        #[serde(default)]
        code: String,
        #[serde(default)]
        message: String,
    }
    let body = response.body_mut().with_config().limit(MAX_ERROR).read_to_vec();
    let body = body.unwrap_or_default();
    let text = match serde_json::from_slice::<Errors>(&body) {
        Ok(Errors { errors }) => {
            let all = errors.iter().map(|said| format!("{} {}", said.code, said.message));
            all.collect::<Vec<_>>().join("; ")
        }
        Err(_) => String::from_utf8_lossy(&body).into_owned(),
    };
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.is_empty() {
        true => "it does not say why".to_owned(),
        false => line.escape_debug().take(SHOWN).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_goes_to_the_same_domain_only() {
        for (registry, realm) in [
            ("registry.example.com", "registry.example.com"),
            ("registry.example.com", "auth.example.com"),
            ("registry.example.com", "example.com"),
            ("example.com", "auth.example.com"),
        ] {
            assert!(are_related(registry, realm, false), "{registry} {realm}");
        }
        for (registry, realm) in [
            ("registry.example.com", "registry.example.net"),
            ("registry.example.com", "example.com.evil.net"),
            ("registry.example", "evil.example"),
            ("example.com", "other.com"),
            ("10.0.0.1", "11.0.0.1"),
            ("127.0.0.1", "127.0.0.2"),
            ("registry.example.com", "a.b.example.com"),
        ] {
            assert!(!are_related(registry, realm, false), "{registry} {realm}");
        }
        assert!(!are_related("registry.example.com", "auth.example.com", true));
    }

    #[test]
    fn an_origin_is_of_http_and_has_no_user() {
        assert_eq!(origin("https://a.example:5000/v2/").unwrap(), "https://a.example:5000");
        assert_eq!(origin("https://a.example:443/v2/").unwrap(), "https://a.example");
        for url in ["ftp://a.example/", "//a.example/", "/v2/", "https://u@a.example/", ""] {
            assert_eq!(origin(url), None, "{url}");
        }
    }
}
