//! What belongs to one host and not to its parts.

use std::path::PathBuf;
use std::sync::Arc;

use uuid::Uuid;

use memhost_postgres::Membership;

pub(crate) struct Own {
    pub(crate) data_dir: PathBuf,
    /// Where the files of providers are.
    pub(crate) files_dir: Option<PathBuf>,
    pub(crate) store_id: Uuid,
    pub(crate) membership: Option<Arc<Membership>>,
}
