//! How the surfaces of a host are set up.

use memhost_explorer::SourceLinks;
use memhost_integrations::CompatOptions;

/// How the surfaces of a host are set up.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// The memory routes of other systems, and whose memory they reach.
    pub compat: CompatOptions,
    /// Where the explorer links issues and runs to.
    pub links: SourceLinks,
}
