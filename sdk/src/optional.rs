//! One trait for each optional interface. Implement it and write its export line; without the line the component does
//! not have the interface.

use crate::Provider;
use crate::types::{
    Chunk, CorrectRequest, CorrectResponse, Decision, Error, Explanation, ExtractionJob, ImportReport, JobPage,
    JobResult, ListPage, NodePage, ProfileResponse, QueryRequest, RecordId, Scope, Snippet,
};

/// Changing a record because somebody said that it is wrong. Exported by `export_correction!`.
pub trait Correction: Provider {
    /// Applies a correction, in place or by a superseding record.
    ///
    /// # Errors
    /// As the contract says of `correction.correct`.
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error>;
}

/// A summary of what is known about a scope. Exported by `export_profile!`.
pub trait Profile: Provider {
    /// The summary, if anything is known.
    ///
    /// # Errors
    /// As the contract says of `profile.get-profile`.
    fn get_profile(&mut self, scope: Scope) -> Result<ProfileResponse, Error>;
}

/// Jobs that the host gives time to. Exported by `export_extraction!`.
pub trait Extraction: Provider {
    /// Runs a job to its end, or as far as the call's deadline allows.
    ///
    /// # Errors
    /// As the contract says of `extraction.run-job`.
    fn run_job(&mut self, provider_job_id: String) -> Result<JobResult, Error>;

    /// The job as it stands.
    ///
    /// # Errors
    /// As the contract says of `extraction.get-job`.
    fn get_job(&mut self, provider_job_id: String) -> Result<Option<ExtractionJob>, Error>;

    /// Jobs of the scope, newest first.
    ///
    /// # Errors
    /// As the contract says of `extraction.list-jobs`.
    fn list_jobs(&mut self, scope: Scope, cursor: Option<String>, limit: u32) -> Result<JobPage, Error>;

    /// Stops a job that has not ended.
    ///
    /// # Errors
    /// As the contract says of `extraction.cancel-job`.
    fn cancel_job(&mut self, provider_job_id: String) -> Result<ExtractionJob, Error>;
}

/// Why a query answers what it answers. Exported by `export_explain!`.
pub trait Explain: Provider {
    /// Runs the query again and tells how.
    ///
    /// # Errors
    /// As the contract says of `explain.explain-query`.
    fn explain_query(&mut self, request: QueryRequest) -> Result<Explanation, Error>;
}

/// The provider's own tree. Exported by `export_browse!`.
pub trait Browse: Provider {
    /// The children of a node; the root is the empty path.
    ///
    /// # Errors
    /// As the contract says of `browse.list-children`.
    fn list_children(
        &mut self,
        path: String,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<NodePage, Error>;
}

/// Records that wait for a person. Exported by `export_review!`.
pub trait Review: Provider {
    /// What waits, oldest first.
    ///
    /// # Errors
    /// As the contract says of `review.list-pending`.
    fn list_pending(&mut self, scope: Scope, cursor: Option<String>, limit: u32) -> Result<ListPage, Error>;

    /// Applies a person's decision.
    ///
    /// # Errors
    /// As the contract says of `review.decide`.
    fn decide(&mut self, id: RecordId, scope: Scope, decision: Decision) -> Result<Option<Snippet>, Error>;
}

/// Everything out and in as JSON Lines. Exported by `export_transfer!`.
pub trait Transfer: Provider {
    /// Whole lines from the cursor on.
    ///
    /// # Errors
    /// As the contract says of `transfer.export-records`.
    fn export_records(&mut self, scope: Scope, cursor: Option<String>) -> Result<Chunk, Error>;

    /// Takes whole lines of an export.
    ///
    /// # Errors
    /// As the contract says of `transfer.import-records`.
    fn import_records(&mut self, scope: Scope, lines: String) -> Result<ImportReport, Error>;
}

/// Bringing what another version stored into the form that this version reads. Exported by `export_migration!`.
pub trait Migration: Provider {
    /// Reads what `from_version` wrote and writes it anew; all of it counts at once when this answers ok, or nothing.
    ///
    /// # Errors
    /// As the contract says of `migration.migrate`: the binding stays on the other version.
    fn migrate(&mut self, from_version: &str) -> Result<(), Error>;
}
