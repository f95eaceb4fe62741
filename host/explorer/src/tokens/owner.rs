//! Whose tokens a page shows: a company's, or the host's.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::components::{Page, View};
use memhost_core::{Act, Caller, Service};
use memhost_http::{Authorized, HostAuthorized, Permission, Problem};
use memhost_types::CompanyId;

/// Whose tokens a page shows, and who asks. `P` is what the caller needs in the company of the address. The host's own
/// tokens are for operators only, whatever `P` is.
pub(crate) struct TokenOwner<P> {
    caller: Caller,
    /// None: the tokens are the host's.
    company: Option<CompanyId>,
    /// The address of the list.
    list: String,
    permission: PhantomData<P>,
}

impl<P: Permission> FromRequestParts<Arc<Service>> for TokenOwner<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Problem> {
        let view = View::from_request_parts(parts, service).await?;
        // By the path and not by `view.company`: an address with a bad company id is not one of the host.
        if view.path.starts_with("/c/") {
            let Authorized { caller, company, .. } = Authorized::<P>::from_request_parts(parts, service).await?;
            let list = View::company_at(&company, &["tokens"]);
            return Ok(Self { caller, company: Some(company), list, permission: PhantomData });
        }
        let HostAuthorized { caller, .. } = HostAuthorized::from_request_parts(parts, service).await?;
        Ok(Self { caller, company: None, list: "/tokens".to_owned(), permission: PhantomData })
    }
}

impl<P> TokenOwner<P> {
    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(super) fn company(&self) -> Option<&CompanyId> {
        self.company.as_ref()
    }

    /// Whether the caller may create, rotate and revoke these tokens. Used to hide buttons; each action checks again.
    pub(super) fn may_change(&self, view: &View) -> bool {
        view.allows(if self.company.is_some() { Act::Administer } else { Act::Host })
    }

    /// The title of the list.
    pub(super) fn title(&self) -> &'static str {
        if self.company.is_some() { "Tokens" } else { "Operator tokens" }
    }

    /// An address below the list. An empty `below` is the list itself.
    pub(super) fn path(&self, below: &str) -> String {
        if below.is_empty() { self.list.clone() } else { format!("{}/{below}", self.list) }
    }

    /// A page below the list.
    pub(super) fn page<'a>(&self, view: &'a View, title: &'a str, about: &'a str) -> Page<'a> {
        Page::new(view, title, about).crumb(self.title(), self.path(""))
    }
}
