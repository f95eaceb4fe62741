//! What a store says about its disk, and what a test may put between the two.

use std::io;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::StoreError;

/// How much room the disk has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiskLevel {
    /// More than the reserve is free.
    #[default]
    Plenty,
    /// Less than the reserve is free: new data is refused. Reads go on and are recorded from the
    /// reserve.
    Low,
    /// Less than a quarter of the reserve is free: reads are refused, too. Deletions go on.
    Spent,
}

/// The room on the disk, as it was last measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskState {
    /// How much room there is.
    pub level: DiskLevel,
    /// Bytes that are free for this user. `None` if the store's disk is not this machine's.
    pub free_bytes: Option<u64>,
    /// Bytes that must be free for new data.
    pub reserve_bytes: u64,
}

/// A step on the way from a write to its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskStep {
    /// Records are handed to the database.
    Write,
    /// The database hands them to the system.
    Flush,
    /// The system hands them to the disk.
    Sync,
    /// Somebody is told that they are on disk.
    Answer,
}

/// A seam that a test puts between the embedded store and its disk.
pub trait DiskSeam: Send + Sync {
    /// The bytes that are free. `None` asks the system.
    fn free(&self) -> Option<u64> {
        None
    }

    /// Called before each step.
    ///
    /// # Errors
    /// One stands for an error of the system in this step. The result of [`DiskStep::Answer`] is
    /// ignored.
    fn step(&self, step: DiskStep) -> io::Result<()> {
        let _ = step;
        Ok(())
    }
}

/// Called once, with the reason, when the store can take no more calls. From then on every call
/// answers with this error. A host's own process ends here, so that it is started again; a program
/// that embeds the library decides.
pub type OnFatal = Arc<dyn Fn(&StoreError) + Send + Sync>;
