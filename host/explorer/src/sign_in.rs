//! Signing in with a token or a link, signing out, making links, and choosing the theme.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HeaderValue, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::components::{
    CsrfForm, NoFields, QueryParams, Theme, View, bare, deserialize, forged, read,
};
use super::guard::{THEME, cookie, is_secure, redirect_with_cookies};
use super::session::{self, COOKIE, is_same, no_cookie, secret};
use super::state::Explorer;
use memhost_core::{Caller, Service};
use memhost_http::{Body, Problem, ProblemCode};
use memhost_types::Role;

/// The cookie that ties the form to its browser, so that the form of another site cannot sign
/// anybody in.
const FORM: &str = "memhost_sign_in";

#[derive(Deserialize)]
pub(super) struct SignInQuery {
    next: Option<String>,
    /// The code of a link that signs in once.
    link: Option<String>,
}

#[derive(Deserialize)]
struct SignInFields {
    token: String,
    next: Option<String>,
}

pub(super) async fn page(
    State(service): State<Arc<Service>>,
    Extension(explorer): Extension<Arc<Explorer>>,
    headers: HeaderMap,
    params: QueryParams<SignInQuery>,
) -> Result<Response, Problem> {
    let Some(code) = &params.query.link else {
        return sign_in_page(&headers, params.query.next.as_deref(), None);
    };
    let now = service.control().now();
    let Some(token) =
        explorer.admin.use_link(code, now).or_else(|| explorer.sign_in_links.take(code, now))
    else {
        let wrong = "This link was used already or is too old. Sign in with a token.";
        return sign_in_page(&headers, None, Some(wrong));
    };
    let id = service.tenancy().sessions().begin(&token, now).await?;
    let to = params.query.next.as_deref().filter(|next| is_own(next)).unwrap_or("/");
    Ok(signed_in(to, id, &headers))
}

/// Leads on with the cookie of a session.
fn signed_in(to: &str, id: String, headers: &HeaderMap) -> Response {
    let cookies = [session::cookie(COOKIE, id, is_secure(headers)), no_cookie(FORM)];
    redirect_with_cookies(to, &cookies)
}

fn sign_in_page(
    headers: &HeaderMap,
    next: Option<&str>,
    wrong: Option<&str>,
) -> Result<Response, Problem> {
    let tie = secret()?;
    let status = if wrong.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::OK };
    let mut response = (status, form(&tie, next, wrong)).into_response();
    if let Ok(value) = HeaderValue::from_str(&session::cookie(FORM, tie, is_secure(headers))) {
        response.headers_mut().append(SET_COOKIE, value);
    }
    Ok(response)
}

fn form(tie: &str, next: Option<&str>, wrong: Option<&str>) -> Markup {
    bare(
        "Sign in",
        &html! {
            p.about { "Inspect your agents' memory, its cost and pending reviews." }
            @if let Some(wrong) = wrong { p.wrong role="alert" { (wrong) } }
            form method="post" action="/sign-in" {
                input type="hidden" name="csrf" value=(tie);
                @if let Some(next) = next { input type="hidden" name="next" value=(next); }
                div.field {
                    label for="in-token" { "Token" }
                    input #in-token name="token" type="password" required
                        autocomplete="current-password"
                        spellcheck="false" autofocus aria-describedby="token-help";
                    p.help #token-help {
                        "The host printed the operator's token when it first started. "
                        code { "memhost token create" } " creates others."
                    }
                }
                button.primary { "Sign in" }
            }
        },
    )
}

pub(super) async fn sign_in(
    State(service): State<Arc<Service>>,
    Extension(explorer): Extension<Arc<Explorer>>,
    request: Request,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let tie = cookie(&headers, FORM);
    let (given, fields) = read(request, &()).await?;
    match (given, tie) {
        (Some(given), Some(tie)) if is_same(&given, &tie) => {}
        _ => return Err(forged()),
    }
    let SignInFields { token, next } = deserialize(&fields)?;
    let token = token.trim().to_owned();
    let Some(caller) = memhost_http::authenticate(&explorer.admin, &service, &token).await? else {
        let wrong = "This token is unknown, expired or revoked. Check it, or create another one.";
        return sign_in_page(&headers, next.as_deref(), Some(wrong));
    };
    if is_for_programs(&caller) {
        let wrong = "Tokens of this role are for programs: the explorer has no page for them.";
        return sign_in_page(&headers, next.as_deref(), Some(wrong));
    }
    let (sessions, now) = (service.tenancy().sessions(), service.control().now());
    let id = sessions.begin(&token, now).await?;
    // End the previous session of this browser.
    if let Some(before) = cookie(&headers, COOKIE)
        && let Some(before) = sessions.find(&before, now).await?
    {
        sessions.end(before.key).await?;
    }
    let home = || View::home(&service, &caller).unwrap_or_else(|| "/".to_owned());
    let to = next.filter(|next| is_own(next)).unwrap_or_else(home);
    Ok(signed_in(&to, id, &headers))
}

/// Whether the explorer has no page for the role of a caller.
fn is_for_programs(caller: &Caller) -> bool {
    matches!(caller.role(), Role::Monitor | Role::Integration)
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
pub(super) async fn make_link(
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
    if of(&request.token).await?.is_none_or(|named| is_for_programs(&named)) {
        let wrong =
            "token: is unknown, expired or revoked, or of a role that the explorer has no page for";
        return Err(Problem::invalid(wrong).at("token"));
    }
    let code = explorer.sign_in_links.make(request.token, service.control().now())?;
    Ok(axum::Json(serde_json::json!({ "path": format!("/sign-in?link={code}") })).into_response())
}

/// Whether a path stays on this host in every browser.
fn is_own(path: &str) -> bool {
    path.starts_with('/')
        && !path.starts_with("//")
        && !path.contains('\\')
        && path.chars().all(|c| !c.is_control())
}

pub(super) async fn sign_out(view: View, _: CsrfForm<NoFields>) -> Result<Response, Problem> {
    view.service.tenancy().sessions().end(view.session).await?;
    Ok(redirect_with_cookies("/sign-in", &[no_cookie(COOKIE)]))
}

#[derive(Deserialize)]
pub(super) struct ThemeFields {
    theme: String,
    back: Option<String>,
}

pub(super) async fn theme(headers: HeaderMap, CsrfForm(fields): CsrfForm<ThemeFields>) -> Response {
    let theme = Theme::of(&fields.theme).as_str();
    let secure = if is_secure(&headers) { "; Secure" } else { "" };
    let kept = format!("{THEME}={theme}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax{secure}");
    let back = fields.back.filter(|back| is_own(back)).unwrap_or_else(|| "/".to_owned());
    redirect_with_cookies(&back, &[kept])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_away() {
        assert!(is_own("/c/acme?x=1"));
        for away in ["//evil.example", "https://evil.example", "/\\evil.example", "c/acme", "/a\nb"]
        {
            assert!(!is_own(away), "{away}");
        }
    }
}
