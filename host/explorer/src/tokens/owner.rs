//! Whose tokens a page shows: a company's, or the host's.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::components::{CompanyView, Page, View};
use memhost_core::{Act, Service};
use memhost_http::{HostAuthorized, Permission, Problem};

/// The context of a page of tokens: those of the company in the address, or the host's own if there
/// is none. `P` is what the caller needs in the company. The host's own tokens are for operators
/// only, whatever `P` is.
pub(crate) struct TokenOwner<P> {
    view: View,
    permission: PhantomData<P>,
}

impl<P: Permission> FromRequestParts<Arc<Service>> for TokenOwner<P> {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<Service>,
    ) -> Result<Self, Problem> {
        let view = View::from_request_parts(parts, service).await?;
        // By the path and not by `view.company`: an address with a bad company id is not one of the
        // host.
        if view.path.starts_with("/c/") {
            CompanyView::<P>::from_request_parts(parts, service).await?;
        } else {
            <HostAuthorized>::from_request_parts(parts, service).await?;
        }
        Ok(Self { view, permission: PhantomData })
    }
}

impl<P> Deref for TokenOwner<P> {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}

impl<P> TokenOwner<P> {
    /// Whether the caller may create, rotate and revoke these tokens. Used to hide buttons; each
    /// action checks again.
    pub(super) fn may_change(&self) -> bool {
        self.allows(if self.company.is_some() { Act::Administer } else { Act::Host })
    }

    /// The title of the list.
    pub(super) fn title(&self) -> &'static str {
        if self.company.is_some() { "Tokens" } else { "Operator tokens" }
    }

    /// An address below the list. An empty `below` is the list itself.
    pub(super) fn path(&self, below: &str) -> String {
        let list =
            self.company.as_ref().map_or_else(|| "/tokens".to_owned(), |_| self.at(&["tokens"]));
        if below.is_empty() { list } else { format!("{list}/{below}") }
    }

    /// A page below the list.
    pub(super) fn page<'a>(&'a self, title: &'a str, about: &'a str) -> Page<'a> {
        Page::new(self, title, about).crumb(self.title(), self.path(""))
    }
}
