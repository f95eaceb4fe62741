//! The context of a request: the caller, the company and the theme.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::Timestamp;
use maud::{Markup, html};

use super::format::{exact, time};
use crate::escape::escape;
use crate::session::SessionKey;
use crate::state::Explorer;
use memhost_core::{Act, Caller, Service};
use memhost_http::{Authorized, Permission, Problem, ProblemCode};
use memhost_integrations::PageSpaceOptions;
use memhost_types::CompanyId;

/// Light or dark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Theme {
    /// As the system is set.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

impl Theme {
    /// The theme of a cookie.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::System,
        }
    }

    /// The value of the cookie.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// The context of a request. Every handler behind the sign-in takes it as an argument.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) service: Arc<Service>,
    pub(crate) explorer: Arc<Explorer>,
    pub(crate) caller: Caller,
    /// The company of the address.
    pub(crate) company: Option<CompanyId>,
    /// The address without its query.
    pub(crate) path: String,
    pub(crate) theme: Theme,
    pub(crate) now: Timestamp,
    pub(crate) csrf: String,
    pub(crate) session: SessionKey,
}

impl<S: Sync> FromRequestParts<S> for View {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let missing = || Problem::new(ProblemCode::Unauthenticated, "sign in first");
        parts.extensions.get::<Self>().cloned().ok_or_else(missing)
    }
}

impl View {
    /// An address in the company of this page: `view.at(&["operations", id])`. Each part is
    /// escaped.
    pub(crate) fn at(&self, parts: &[&str]) -> String {
        match &self.company {
            Some(company) => Self::company_at(company, parts),
            None => "/".to_owned(),
        }
    }

    /// An address in a company.
    pub(crate) fn company_at(company: &CompanyId, parts: &[&str]) -> String {
        let mut path = "/c".to_owned();
        for part in std::iter::once(company.as_str()).chain(parts.iter().copied()) {
            path.push('/');
            path.push_str(&escape(part));
        }
        path
    }

    /// The first page of a caller who belongs to a company.
    pub(crate) fn home(service: &Service, caller: &Caller) -> Option<String> {
        let company = caller.company()?;
        let page: &[&str] =
            if service.tenancy().allows(caller, Act::View, company) { &[] } else { &["query"] };
        Some(Self::company_at(company, page))
    }

    /// Whether the caller may do this here. Used to hide buttons; each action checks again.
    pub(crate) fn allows(&self, act: Act) -> bool {
        self.caller.may(act, self.company.as_ref()).is_ok()
    }

    /// The options of PageSpace's integration, if it is for this company.
    pub(crate) fn pagespace(&self) -> Option<&PageSpaceOptions> {
        self.explorer
            .pagespace
            .as_ref()
            .filter(|options| Some(&options.company) == self.company.as_ref())
    }

    /// Shows a message on the next page.
    pub(crate) fn flash(&self, text: impl Into<String>) {
        self.explorer.messages.set(self.session, text.into(), self.now);
    }

    /// A time as its age, and exactly.
    pub(crate) fn moment(&self, at: Timestamp) -> Markup {
        html! { (time(at, self.now)) " " span.soft { (exact(at)) } }
    }
}

/// The context of a request whose caller has the permission `P` in the company of the address.
pub(crate) struct CompanyView<P> {
    /// The company of the address.
    pub(crate) company: CompanyId,
    view: View,
    permission: PhantomData<P>,
}

impl<P: Permission> FromRequestParts<Arc<Service>> for CompanyView<P> {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<Service>,
    ) -> Result<Self, Problem> {
        let view = View::from_request_parts(parts, service).await?;
        let Authorized { company, .. } =
            Authorized::<P>::from_request_parts(parts, service).await?;
        Ok(Self { company, view, permission: PhantomData })
    }
}

impl<P> Deref for CompanyView<P> {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}
