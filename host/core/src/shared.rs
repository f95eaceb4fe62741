//! What the services of one host share. A host on a database has one service for each group of
//! companies whose home it is.

use std::sync::Arc;

use crate::monitor::Beside;
use memhost_embeddings::Embeddings;
use memhost_oplog::Told;
use memhost_ports::Clock;
use memhost_postgres::Database;
use memhost_registry::plugins::Plugins;
use memhost_sandbox::Sandbox;

/// What the services of one host share.
pub struct SharedParts {
    pub(crate) database: Arc<Database>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sandbox: Sandbox,
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) embeddings: Arc<Embeddings>,
    pub(crate) told: Told,
    pub(crate) beside: Arc<Beside>,
}

impl SharedParts {
    /// The connections to the database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Nobody is told anything any more: the host is about to stop, and open connections would
    /// delay it.
    pub fn stop_following(&self) {
        self.told.feed.close();
    }
}
