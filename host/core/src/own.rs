//! What belongs to one host and not to its parts.

use std::path::PathBuf;
use std::sync::Arc;

use uuid::Uuid;

use memhost_postgres::{Membership, Term};

pub(crate) struct Own {
    pub(crate) data_dir: PathBuf,
    /// Where the files of providers are.
    pub(crate) files_dir: Option<PathBuf>,
    pub(crate) store_id: Uuid,
    /// Its place among the hosts on one database, and its term.
    pub(crate) membership: Option<(Arc<Membership>, Term)>,
}
