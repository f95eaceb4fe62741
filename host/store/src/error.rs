//! Errors of the store.

use memhost_types::{CompanyId, OperationErrorCode, Refusal, STORE_UNAVAILABLE};

/// Why a call of the store failed.
#[derive(Debug, Clone, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum StoreError {
    #[error(
        "{path} is not a memhost data directory: {found}; choose an empty directory or one that \
         memhost made"
    )]
    NotOurs { path: String, found: String },
    #[error(
        "{path} has format {found}, and this version of memhost reads up to {known}; run a newer \
         memhost"
    )]
    TooNew { path: String, found: u32, known: u32 },
    #[error(
        "{path} is in use by another process; stop that one, or talk to it over HTTP with --url"
    )]
    InUse { path: String },
    #[error(
        "{action} failed: {message}; nothing was acknowledged, check disk space and permissions"
    )]
    Io { action: &'static str, message: String },
    #[error(
        "the disk of the data directory is almost full: {} MiB are free, and new data needs {} \
         MiB; free disk space, or \
         forget or erase something; reads and deletions go on as long as they can",
        free >> 20, reserve >> 20
    )]
    DiskFull { free: u64, reserve: u64 },
    /// Numbers in bytes.
    #[error(
        "the host keeps {held} bytes of this company, and its quota `company_max_bytes` is \
         {quota}: new data is refused, and a \
         quarter above it reads and new idempotency keys, too; set a shorter retention, or ask the \
         operator for a higher \
         quota; deletions without a key go on up to twice the quota"
    )]
    CompanyFull { held: u64, quota: u64 },
    /// Something of a company was to be written after [`crate::Maintenance::close_company`].
    #[error("the company {company} was erased meanwhile; nothing was written")]
    Erased { company: CompanyId },
    /// The store takes no more calls.
    #[error(
        "{action} failed: {message}; nothing was acknowledged, and the store takes no more calls: \
         check the disk's free \
         space and its device, and start the host again"
    )]
    Fatal { action: &'static str, message: String },
    /// Another host serves the company by now.
    #[error(
        "the company {company} is served by another host; nothing was written, ask that host or \
         send the request again"
    )]
    NotHome { company: CompanyId },
    /// The database cannot be reached, or does not write, for longer than the store waits.
    #[error(
        "{action} failed: {message}; nothing was acknowledged, try again, and check the database \
         if it goes on"
    )]
    Unavailable { action: &'static str, message: String },
    /// The store cannot do this at all, or the database does not take it.
    #[error("{action} was refused: {message}; nothing was written")]
    Refused { action: &'static str, message: String },
    #[error("the stored {what} cannot be read: {message}")]
    Corrupt { what: String, message: String },
}

/// The store failed: the operation is refused before its provider is called, and failed after that.
impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::DiskFull { .. } => {
                Self::new(OperationErrorCode::DiskFull, error.to_string())
            }
            StoreError::CompanyFull { .. } => {
                Self::new(OperationErrorCode::QuotaExceeded, error.to_string())
            }
            StoreError::Erased { .. } => {
                Self::new(OperationErrorCode::CompanyErased, error.to_string())
            }
            StoreError::NotHome { .. } | StoreError::Unavailable { .. } => {
                Self::new(OperationErrorCode::StoreUnavailable, error.to_string())
                    .retry_after(STORE_UNAVAILABLE)
            }
            error => Self::host(error),
        }
    }
}

/// An error of the system or of the database in an action, such as `reading`.
pub(crate) fn failed<E: std::fmt::Display>(action: &'static str) -> impl FnOnce(E) -> StoreError {
    move |error| StoreError::Io { action, message: error.to_string() }
}
