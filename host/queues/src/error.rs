//! Why calls about deliveries and jobs fail.

use memhost_store::StoreError;
use memhost_types::{DeliveryStatus, JobStatus};
use uuid::Uuid;

/// Why a call about deliveries or jobs failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum BackgroundError {
    #[error("the company has no delivery {id}; `memhost hook list` shows those that it has")]
    NoDelivery { id: Uuid },
    #[error("the delivery {id} is {status}; {advice}")]
    DeliveryStatus { id: Uuid, status: DeliveryStatus, advice: &'static str },
    #[error("the company has no job {id}; `memhost job list` shows those that it has")]
    NoJob { id: Uuid },
    #[error("the job {id} is {}; {advice}", status.as_str())]
    JobStatus { id: Uuid, status: JobStatus, advice: &'static str },
    #[error(transparent)]
    Store(#[from] StoreError),
}
