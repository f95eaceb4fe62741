//! What all pages share.

use memhost_http::AdminToken;
use memhost_integrations::PageSpaceOptions;

use crate::link_template::SourceLinks;
use crate::session::{Messages, SignInLinks};

/// The state that all pages share.
pub(crate) struct Explorer {
    pub(crate) admin: AdminToken,
    pub(crate) messages: Messages,
    pub(crate) sign_in_links: SignInLinks,
    pub(crate) links: SourceLinks,
    /// The company of these options has a page of its facts.
    pub(crate) pagespace: Option<PageSpaceOptions>,
}
