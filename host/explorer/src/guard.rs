//! Authentication and security headers for every page.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::html;
use percent_encoding::percent_decode_str;

use super::components::{self, Theme, View};
use super::session;
use super::shown::shown;
use super::state::Explorer;
use memhost_core::Service;
use memhost_http::Problem;
use memhost_types::Origin;

/// The theme's cookie.
pub(super) const THEME: &str = "memhost_theme";

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' \
                      data:; connect-src \
                      'self'; form-action 'self'; base-uri 'none'; frame-ancestors";

/// The content security policy of pages that these origins may show in a frame; with none, nobody
/// may.
pub(super) fn policy(frame_ancestors: &[Origin]) -> HeaderValue {
    let origins = frame_ancestors.iter().map(Origin::to_string).collect::<Vec<_>>().join(" ");
    let allowed = if origins.is_empty() { "'none'" } else { &origins };
    // The text of an origin has the characters of a host name only.
    HeaderValue::from_str(&format!("{POLICY} {allowed}"))
        .unwrap_or(HeaderValue::from_static("frame-ancestors 'none'"))
}

/// Lets a request pass if its session has a valid token. Others are redirected to the sign-in.
pub(super) async fn require(
    State((explorer, service)): State<(Arc<Explorer>, Arc<Service>)>,
    mut request: Request,
    next: Next,
) -> Response {
    if request.method() == Method::GET
        && is_from_elsewhere(&request)
        && calls_provider(request.uri().path())
    {
        return ask_first(&request);
    }
    let headers = request.headers();
    let now = service.control().now();
    let Some(id) = cookie(headers, session::COOKIE) else { return ask(&request) };
    let known = match service.tenancy().sessions().find(&id, now).await {
        Ok(Some(known)) => known,
        Ok(None) => return ask(&request),
        Err(error) => return Problem::from(error).into_response(),
    };
    let caller = match memhost_http::authenticate(&explorer.admin, &service, &known.token).await {
        Ok(Some(caller)) => caller,
        Ok(None) => {
            return match service.tenancy().sessions().end(known.key).await {
                Ok(()) => ask(&request),
                Err(error) => Problem::from(error).into_response(),
            };
        }
        Err(error) => return Problem::from(error).into_response(),
    };
    let path = request.uri().path().to_owned();
    let company = path.strip_prefix("/c/").and_then(|rest| rest.split('/').next());
    let company =
        company.and_then(|company| percent_decode_str(company).decode_utf8().ok()?.parse().ok());
    let theme = Theme::of(&cookie(headers, THEME).unwrap_or_default());
    let view = View {
        service,
        explorer,
        caller,
        company,
        path,
        theme,
        now,
        csrf: known.csrf,
        session: known.key,
    };
    // The extractors of the API read the caller from here.
    request.extensions_mut().insert(view.caller.clone());
    request.extensions_mut().insert(view);
    next.run(request).await
}

/// Redirects to the sign-in, which then leads back to the wanted page.
fn ask(request: &Request) -> Response {
    // A browser sends no cookie with a link on another site. A refresh from this page sends it.
    if request.method() == Method::GET && is_from_elsewhere(request) {
        let body = html! { p { "One moment." } meta http-equiv="refresh" content="0"; };
        return components::bare("Opening", &body).into_response();
    }
    let wanted = request.uri().path_and_query().map_or("/", |wanted| wanted.as_str());
    let to = match request.method() {
        &Method::GET if wanted != "/" => format!("/sign-in?next={}", components::escape(wanted)),
        _ => "/sign-in".to_owned(),
    };
    redirect(&to)
}

/// Whether a page of another site made the browser send the request.
fn is_from_elsewhere(request: &Request) -> bool {
    let site = request.headers().get("sec-fetch-site");
    site.is_some_and(|site| matches!(site.as_bytes(), b"cross-site" | b"same-site"))
}

/// Whether opening a page calls a provider, which is recorded and may cost something.
fn calls_provider(path: &str) -> bool {
    let page = path.strip_prefix("/c/").and_then(|rest| rest.split('/').nth(1));
    matches!(page, Some("records" | "facts" | "correct" | "forget" | "query" | "browse"))
}

/// A link to the page. Another site can bring people here, and cannot follow the link for them.
fn ask_first(request: &Request) -> Response {
    let wanted = request.uri().path_and_query().map_or("/", |wanted| wanted.as_str());
    let body = html! {
        p { "A link of another site leads to this page. Opening it asks a memory provider, which \
             is recorded and may cost something." }
        p { a.button.primary href=(wanted) { "Open the page" } }
    };
    components::bare("Open the page?", &body).into_response()
}

/// Redirects to another page.
pub(super) fn redirect(to: &str) -> Response {
    let location = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}

/// The same with cookies.
pub(super) fn redirect_with_cookies(to: &str, cookies: &[String]) -> Response {
    let mut response = redirect(to);
    for cookie in cookies.iter().filter_map(|cookie| HeaderValue::from_str(cookie).ok()) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// The value of a cookie.
pub(super) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut all = all.flat_map(|value| cookie::Cookie::split_parse(value.to_owned()).flatten());
    all.find(|cookie| cookie.name() == name).map(|cookie| cookie.value().to_owned())
}

/// Whether the request came over TLS, as far as a proxy in front says so, or the browser with a
/// form.
pub(super) fn is_secure(headers: &HeaderMap) -> bool {
    let is = |name: &str, matches: fn(&[u8]) -> bool| {
        headers.get(name).is_some_and(|value| matches(value.as_bytes()))
    };
    is("x-forwarded-proto", |proto| proto.eq_ignore_ascii_case(b"https"))
        || is("origin", |origin| origin.starts_with(b"https://"))
}

/// Shows what hides in a page, and sets the security headers: a page may load and do nothing that
/// does not come from this host.
pub(crate) async fn headers(
    State(policy): State<HeaderValue>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = shown(next.run(request).await).await;
    secure(response.headers_mut(), policy);
    response
}

fn secure(headers: &mut HeaderMap, policy: HeaderValue) {
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        // Not `no-referrer`: a browser would then also omit the origin of a form.
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    // No cache keeps a page, so it is gone after signing out.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// The answer to a browser for an unknown address or method.
pub async fn missing(request: Request, next: Next) -> Response {
    // Clients of these paths are programs, whatever they accept.
    let is_for_programs =
        ["/runtime/", "/control/", "/mcp", "/api/", "/sign-in/link", "/.well-known/"]
            .iter()
            .any(|at| request.uri().path().starts_with(at));
    if is_for_programs || !components::wants_page(request.headers()) {
        return next.run(request).await;
    }
    let mut response = shown(Box::pin(components::as_page(request, next)).await).await;
    secure(response.headers_mut(), policy(&[]));
    response
}
