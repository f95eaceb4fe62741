//! Errors of the store.

/// Why a call of the store failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The directory contains files that memhost did not write.
    #[error("{path} is not a memhost data directory: {found}; choose an empty directory or one that memhost made")]
    NotOurs {
        /// The directory.
        path: String,
        /// What it contains.
        found: String,
    },
    /// The data directory was written by a newer version.
    #[error("{path} has format {found}, and this version of memhost reads up to {known}; run a newer memhost")]
    TooNew {
        /// The directory.
        path: String,
        /// Its format version.
        found: u32,
        /// The newest format that this version reads.
        known: u32,
    },
    /// Another process uses the data directory.
    #[error("{path} is in use by another process; stop that one, or talk to it over HTTP with --url")]
    InUse {
        /// The directory.
        path: String,
    },
    /// The disk or the database failed.
    #[error("{action} failed: {message}; nothing was acknowledged, check disk space and permissions")]
    Io {
        /// What the store was doing.
        action: &'static str,
        /// The system's own message.
        message: String,
    },
    /// A stored value cannot be read.
    #[error("the stored {what} cannot be read: {message}")]
    Corrupt {
        /// Which kind of record.
        what: String,
        /// What is wrong with it.
        message: String,
    },
}
