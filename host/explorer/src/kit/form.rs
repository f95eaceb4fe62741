//! Forms that change something: each carries its session's token, and none is taken from another site.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use maud::{Markup, Render, html};
use serde::de::DeserializeOwned;

use super::filter::{join, pairs};
use super::view::View;
use crate::session::is_same;
use memhost_http::{Problem, ProblemCode};

/// The fields of a form that this session was shown.
pub(crate) struct Signed<T>(pub(crate) T);

impl<T: DeserializeOwned + 'static, S: Send + Sync> FromRequest<S> for Signed<T> {
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
        deserialize(&fields).await.map(Self)
    }
}

/// The token of a form, and its other fields. None is taken from another site.
pub(crate) async fn read<S: Send + Sync>(
    request: Request,
    state: &S,
) -> Result<(Option<String>, Vec<(String, String)>), Problem> {
    if !is_own(request.headers()) {
        return Err(forged());
    }
    let bytes = Bytes::from_request(request, state).await;
    let bytes = bytes.map_err(|rejection| Problem::unreadable(&rejection))?;
    let mut fields = pairs(&String::from_utf8_lossy(&bytes));
    let given = fields.iter().position(|(name, _)| name == "csrf").map(|at| fields.remove(at).1);
    Ok((given, fields))
}

/// Fields as a type.
pub(crate) async fn deserialize<T: DeserializeOwned + 'static>(fields: &[(String, String)]) -> Result<T, Problem> {
    let wrong = |detail: String| Problem::invalid(detail);
    let request = Request::post("/")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(join(fields)))
        .map_err(|error| wrong(error.to_string()))?;
    let form = axum::extract::Form::<T>::from_request(request, &()).await;
    form.map(|form| form.0).map_err(|rejection| wrong(rejection.body_text()))
}

pub(crate) fn forged() -> Problem {
    let detail =
        "this form is not of your session, or came from another site; open the page again and send it from there";
    Problem::new(ProblemCode::ForgedForm, detail)
}

/// Whether a browser says that a form came from here. One that says nothing has the form's token to show.
fn is_own(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(origin) = text(ORIGIN.as_str()) {
        let from = origin.split_once("://").map(|(_, host)| host);
        // Behind a proxy the host is another one. No other site's form can set either header.
        return from.is_some() && (from == text(HOST.as_str()) || from == text("x-forwarded-host"));
    }
    text("sec-fetch-site").is_none_or(|site| matches!(site, "same-origin" | "none"))
}

/// A form that does something.
pub(crate) fn form(view: &View, action: &str, body: &Markup) -> Markup {
    html! {
        form method="post" action=(action) {
            input type="hidden" name="csrf" value=(view.csrf);
            (body)
        }
    }
}

/// A page's question before something is done that cannot be undone.
pub(crate) fn confirm(view: &View, action: &str, does: &str, hidden: &[(&str, &str)], back: &str) -> Markup {
    let body = html! {
        @for (name, value) in hidden { input type="hidden" name=(name) value=(value); }
        div.actions { button.danger { (does) } a.quiet href=(back) { "Cancel" } }
    };
    form(view, action, &body)
}

/// A field of a form that does something.
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

    /// What it is for.
    pub(crate) fn help(mut self, help: &'a str) -> Self {
        self.help = Some(help);
        self
    }

    /// It must not be empty.
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
                    textarea #{ "in-" (self.name) } name=(self.name) rows=(self.rows) required[self.is_required] aria-describedby=[&described] { (self.value) }
                } @else {
                    input #{ "in-" (self.name) } name=(self.name) value=(self.value) required[self.is_required] aria-describedby=[&described];
                }
                @if let (Some(help), Some(id)) = (self.help, &described) { p.help #(id) { (help) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_of_another_site_is_not_ours() {
        let own = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            pairs.iter().for_each(|(name, value)| drop(headers.insert(*name, value.parse().unwrap())));
            is_own(&headers)
        };
        assert!(own(&[("host", "h:1"), ("origin", "http://h:1")]));
        assert!(own(&[("host", "inner"), ("x-forwarded-host", "h"), ("origin", "https://h")]));
        assert!(own(&[("host", "h")]) && own(&[("sec-fetch-site", "same-origin")]));
        assert!(!own(&[("host", "h"), ("origin", "https://evil.example")]));
        assert!(!own(&[("host", "h"), ("origin", "null")]));
        assert!(!own(&[("host", "h"), ("sec-fetch-site", "cross-site")]));
        assert!(!own(&[("host", "h"), ("sec-fetch-site", "same-site")]));
    }
}
