//! Forms that change something. Each has the CSRF token of its session, and no form of another site
//! is accepted.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, Render, html};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::query::{fields, join};
use super::view::View;
use crate::session::is_same;
use memhost_executor::off_executor;
use memhost_http::{Problem, ProblemCode};

/// The fields of a form, after its CSRF token is checked.
pub(crate) struct CsrfForm<T>(pub(crate) T);

/// A form that has a CSRF token only.
#[derive(Deserialize)]
pub(crate) struct NoFields {}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for CsrfForm<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let view = request.extensions().get::<View>().map(|view| view.csrf.clone());
        let Some(csrf) = view else {
            return Err(Problem::new(ProblemCode::Unauthenticated, "sign in first"));
        };
        let (given, fields) = read(request, state).await?;
        if !given.is_some_and(|given| is_same(&given, &csrf)) {
            return Err(forged());
        }
        deserialize(&fields).map(Self)
    }
}

/// Reads the CSRF token and the other fields of a form. A form of another site is refused.
pub(crate) async fn read<S: Send + Sync>(
    request: Request,
    state: &S,
) -> Result<(Option<String>, Vec<(String, String)>), Problem> {
    check_own(request.headers())?;
    let bytes = Bytes::from_request(request, state).await;
    let bytes = bytes.map_err(|rejection| Problem::unreadable(&rejection))?;
    let mut fields = fields(&String::from_utf8_lossy(&bytes))?;
    let given = fields.iter().position(|(name, _)| name == "csrf").map(|at| fields.remove(at).1);
    Ok((given, fields))
}

/// Fields as a type.
pub(crate) fn deserialize<T: DeserializeOwned>(fields: &[(String, String)]) -> Result<T, Problem> {
    memhost_http::read_query(&off_executor(usize::MAX, || join(fields)))
}

pub(crate) fn forged() -> Problem {
    let detail = "the form belongs to another session or another site; reload the page and send \
                  the form again";
    Problem::new(ProblemCode::ForgedForm, detail)
}

/// Refuses a form of another site, as far as the browser says whose it is. Without such a header
/// only the CSRF token counts. A form of another site can set none of these headers.
fn check_own(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    // The browser compares the addresses that it sees itself, so that a proxy changes nothing.
    // Over plain HTTP it says so for this machine only.
    if let Some(site) = text("sec-fetch-site") {
        return matches!(site, "same-origin" | "none").then_some(()).ok_or_else(forged);
    }
    let Some(origin) = text(ORIGIN.as_str()) else { return Ok(()) };
    let from = origin.split_once("://").map(|(_, host)| host).ok_or_else(forged)?;
    let host = text(HOST.as_str()).unwrap_or_default();
    match text("x-forwarded-host") {
        _ if from == host => Ok(()),
        // Each proxy may add the name that it was asked for.
        Some(names) if names.split(',').any(|name| name.trim() == from) => Ok(()),
        Some(_) => Err(forged()),
        None => Err(behind_proxy(from, host)),
    }
}

/// A proxy that replaces `Host` looks like another site.
fn behind_proxy(from: &str, host: &str) -> Problem {
    let detail = format!(
        "the browser sent the form to {from:.100}, and it came here for {host:.100}: if a proxy is \
         in front, let it pass on the name it was asked for in X-Forwarded-Host (nginx: \
         `proxy_set_header X-Forwarded-Host $http_host;`); otherwise the form belongs to another \
         site"
    );
    Problem::new(ProblemCode::ForgedForm, detail)
}

/// A form that changes something.
pub(crate) fn form(view: &View, action: &str, body: &Markup) -> Markup {
    html! {
        form method="post" action=(action) {
            input type="hidden" name="csrf" value=(view.csrf);
            (body)
        }
    }
}

/// The buttons that confirm or cancel an action that cannot be undone.
pub(crate) fn confirm(
    view: &View,
    action: &str,
    does: &str,
    hidden: &[(&str, &str)],
    back: &str,
) -> Markup {
    let body = html! {
        @for (name, value) in hidden { input type="hidden" name=(name) value=(value); }
        div.actions { button.danger { (does) } a.quiet href=(back) { "Cancel" } }
    };
    form(view, action, &body)
}

/// The buttons at the end of a form: the one that sends it, and a link back.
pub(crate) fn submit_or_cancel(submit: &str, back: &str) -> Markup {
    html! { div.actions { button.primary { (submit) } a.quiet href=(back) { "Cancel" } } }
}

/// A text field.
pub(crate) struct Field<'a> {
    name: &'a str,
    label: &'a str,
    value: &'a str,
    help: Option<&'a str>,
    rows: u8,
    is_required: bool,
}

impl<'a> Field<'a> {
    /// One line.
    pub(crate) fn new(name: &'a str, label: &'a str, value: &'a str) -> Self {
        Self { name, label, value, help: None, rows: 0, is_required: false }
    }

    /// Several lines.
    pub(crate) fn lines(mut self, rows: u8) -> Self {
        self.rows = rows;
        self
    }

    /// The help text below the field.
    pub(crate) fn help(mut self, help: &'a str) -> Self {
        self.help = Some(help);
        self
    }

    /// Marks the field as required.
    pub(crate) fn required(mut self) -> Self {
        self.is_required = true;
        self
    }
}

impl Render for Field<'_> {
    fn render(&self) -> Markup {
        let described = self.help.map(|_| format!("{}-help", self.name));
        html! {
            div.field {
                label for={ "in-" (self.name) } { (self.label) }
                @if self.rows > 0 {
                    textarea #{ "in-" (self.name) }
                    name=(self.name) rows=(self.rows) required[self.is_required]
                        aria-describedby=[&described] { (self.value) }
                } @else {
                    input #{ "in-" (self.name) }
                    name=(self.name) value=(self.value) required[self.is_required]
                        aria-describedby=[&described];
                }
                @if let (Some(help), Some(id)) = (self.help, &described) { p.help #(id) { (help) } }
            }
        }
    }
}

/// A select. `options` are values and labels.
pub(crate) fn select_field<V: AsRef<str>, N: Render>(
    name: &str,
    label: &str,
    chosen: &str,
    options: impl IntoIterator<Item = (V, N)>,
) -> Markup {
    html! {
        div.field {
            label for={ "in-" (name) } { (label) }
            select #{ "in-" (name) } name=(name) {
                @for (value, called) in options {
                    option value=(value.as_ref()) selected[value.as_ref() == chosen] { (called) }
                }
            }
        }
    }
}

/// A checkbox.
pub(crate) fn checkbox(name: &str, label: &str, is_on: bool) -> Markup {
    html! {
        label.tick { input type="checkbox" name=(name) value="on" checked[is_on]; span { (label) } }
    }
}

/// Shows a refused form again, with status 422.
pub(crate) fn unprocessable(page: &Markup) -> Response {
    (StatusCode::UNPROCESSABLE_ENTITY, page.clone()).into_response()
}

/// The text of a text area with `\n` line ends. Browsers send `\r\n`.
pub(crate) fn unix_lines(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_of_another_site_is_not_ours() {
        let own = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            pairs
                .iter()
                .for_each(|(name, value)| drop(headers.insert(*name, value.parse().unwrap())));
            check_own(&headers).is_ok()
        };
        assert!(own(&[("host", "h:1"), ("origin", "http://h:1")]));
        assert!(own(&[("host", "inner"), ("x-forwarded-host", "h"), ("origin", "https://h")]));
        // Behind a proxy that keeps neither name, over TLS.
        assert!(own(&[
            ("host", "inner"),
            ("origin", "https://h"),
            ("sec-fetch-site", "same-origin")
        ]));
        assert!(own(&[("host", "i"), ("x-forwarded-host", "a, h"), ("origin", "http://h")]));
        assert!(!own(&[("host", "h"), ("origin", "http://h"), ("sec-fetch-site", "cross-site")]));
        assert!(!own(&[("host", "i"), ("x-forwarded-host", "h"), ("origin", "http://evil")]));
        assert!(own(&[("host", "h")]) && own(&[("sec-fetch-site", "same-origin")]));
        assert!(!own(&[("host", "h"), ("origin", "https://evil.example")]));
        assert!(!own(&[("host", "h"), ("origin", "null")]));
        assert!(!own(&[("host", "h"), ("sec-fetch-site", "cross-site")]));
        assert!(!own(&[("host", "h"), ("sec-fetch-site", "same-site")]));
    }
}
