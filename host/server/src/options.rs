//! How the surfaces of a host are set up.

use super::ConnectionOptions;
use memhost_explorer::SourceLinks;
use memhost_integrations::IntegrationOptions;
use memhost_types::Origin;

/// How the surfaces of a host are set up.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// The memory routes of other systems, and whose memory they reach.
    pub integrations: IntegrationOptions,
    /// Where the explorer links issues and runs to.
    pub links: SourceLinks,
    /// The origins whose pages may show the explorer in a frame.
    pub frame_ancestors: Vec<Origin>,
    /// How many connections there may be, and how long the host waits for the other side.
    pub connections: ConnectionOptions,
}
