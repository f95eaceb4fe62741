//! The calls of the optional interfaces: as the others, where the component exports them.

use tokio::time::timeout_at;

use super::Instances;
use crate::answer::{
    Answer, BrowseAnswer, ChunkAnswer, Correction, ExplainAnswer, ImportAnswer, JobAnswer, ListAnswer, ProfileAnswer,
};
use crate::convert;
use crate::error::Failure;
use crate::instance::Instance;
use memhost_types::{
    BrowseRequest, CorrectRequest, Decision, ExtractionJob, OperationId, QueryRequest, RecordId, RecordWrite, Scope,
    Snippet, limits,
};

impl Instances {
    /// Corrects a record, if the provider can.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says; [`CallError::NoInterface`] where the component does not export `correction`.
    pub async fn correct(&self, id: OperationId, request: &CorrectRequest) -> Result<Answer<Correction>, Failure> {
        let request = convert::correct(id, request);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(correction) = &exports.correction else {
            return Err(self.no_interface(call, "correction"));
        };
        let called =
            timeout_at(call.deadline, correction.paperclip_memory_correction().call_correct(store, &request)).await;
        self.finish(call, called, |answer| self.normalize.correct(answer))
    }

    /// Runs a query again and asks how it came to its answer, if the provider can tell.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says; [`CallError::NoInterface`] where the component does not export `explain`.
    pub async fn explain(&self, request: &QueryRequest) -> Result<Answer<ExplainAnswer>, Failure> {
        let wire = convert::query(request);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(explain) = &exports.explain else {
            return Err(self.no_interface(call, "explain"));
        };
        let called =
            timeout_at(call.deadline, explain.paperclip_memory_explain().call_explain_query(store, &wire)).await;
        self.finish(call, called, |answer| self.normalize.explain(answer, wire.top_k))
    }

    /// The children of a node of the provider's own tree, if it has one. `cursor` is the provider's own.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says; [`CallError::NoInterface`] where the component does not export `browse`.
    pub async fn browse(&self, request: &BrowseRequest, cursor: Option<&str>) -> Result<Answer<BrowseAnswer>, Failure> {
        let scope = convert::scope(&request.scope);
        let limit = request.limit.unwrap_or(limits::DEFAULT_LIMIT);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(browse) = &exports.browse else {
            return Err(self.no_interface(call, "browse"));
        };
        let listing = browse.paperclip_memory_browse().call_list_children(store, &request.path, &scope, cursor, limit);
        let called = timeout_at(call.deadline, listing).await;
        self.finish(call, called, |answer| self.normalize.browse(answer, limit))
    }

    /// Works on a job, as far as one call gets, if the provider can.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says; [`CallError::NoInterface`] where the component does not export `extraction`.
    pub async fn run_job(&self, provider_job_id: &str) -> Result<Answer<JobAnswer>, Failure> {
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(extraction) = &exports.extraction else {
            return Err(self.no_interface(call, "extraction"));
        };
        let called =
            timeout_at(call.deadline, extraction.paperclip_memory_extraction().call_run_job(store, provider_job_id))
                .await;
        self.finish(call, called, |answer| self.normalize.ran_job(answer, provider_job_id))
    }

    /// Asks how far a job is, without working on it.
    ///
    /// # Errors
    /// As [`Instances::run_job`].
    pub async fn get_job(&self, provider_job_id: &str) -> Result<Answer<JobAnswer>, Failure> {
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(extraction) = &exports.extraction else {
            return Err(self.no_interface(call, "extraction"));
        };
        let called =
            timeout_at(call.deadline, extraction.paperclip_memory_extraction().call_get_job(store, provider_job_id))
                .await;
        self.finish(call, called, |answer| self.normalize.job(answer, provider_job_id))
    }

    /// The newest jobs of a scope, at most `limit`, 1 to 1,000.
    ///
    /// # Errors
    /// As [`Instances::run_job`].
    pub async fn list_jobs(&self, scope: &Scope, limit: u32) -> Result<Answer<Vec<ExtractionJob>>, Failure> {
        let scope = convert::scope(scope);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(extraction) = &exports.extraction else {
            return Err(self.no_interface(call, "extraction"));
        };
        let listing = extraction.paperclip_memory_extraction().call_list_jobs(store, &scope, None, limit);
        let called = timeout_at(call.deadline, listing).await;
        self.finish(call, called, |answer| self.normalize.jobs(answer, limit))
    }

    /// Tells the provider that nobody wants a job any more.
    ///
    /// # Errors
    /// As [`Instances::run_job`].
    pub async fn cancel_job(&self, provider_job_id: &str) -> Result<Answer<JobAnswer>, Failure> {
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(extraction) = &exports.extraction else {
            return Err(self.no_interface(call, "extraction"));
        };
        let called =
            timeout_at(call.deadline, extraction.paperclip_memory_extraction().call_cancel_job(store, provider_job_id))
                .await;
        self.finish(call, called, |answer| self.normalize.job(Some(answer), provider_job_id))
    }

    /// Brings what another version stored forward. Meant for instances whose storage keeps its writes back.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says; [`CallError::NoInterface`] where the component does not export `migration`.
    pub async fn migrate(&self, from_version: &str) -> Result<(), Failure> {
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(migration) = &exports.migration else {
            return Err(self.no_interface(call, "migration"));
        };
        let called =
            timeout_at(call.deadline, migration.paperclip_memory_migration().call_migrate(store, from_version)).await;
        self.finish(call, called, Ok).map(drop)
    }

    /// A summary of what is known about a scope, if the provider makes one.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says; [`CallError::NoInterface`] where the component does not export `profile`.
    pub async fn profile(&self, scope: &Scope) -> Result<Answer<ProfileAnswer>, Failure> {
        let scope = convert::scope(scope);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(profile) = &exports.profile else {
            return Err(self.no_interface(call, "profile"));
        };
        let called =
            timeout_at(call.deadline, profile.paperclip_memory_profile().call_get_profile(store, &scope)).await;
        self.finish(call, called, |answer| self.normalize.profile(answer))
    }

    /// One page of what waits at the provider for a person, oldest first. `cursor` is the provider's own.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says; [`CallError::NoInterface`] where the component does not export `review`.
    pub async fn pending(
        &self,
        scope: &Scope,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Answer<ListAnswer>, Failure> {
        let wire = convert::scope(scope);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(review) = &exports.review else {
            return Err(self.no_interface(call, "review"));
        };
        let listing = review.paperclip_memory_review().call_list_pending(store, &wire, cursor, limit);
        let called = timeout_at(call.deadline, listing).await;
        self.finish(call, called, |answer| self.normalize.list(answer, limit, &scope.company_id))
    }

    /// Tells the provider what a person decided. Answers the record as it now is.
    ///
    /// # Errors
    /// As [`Instances::pending`].
    pub async fn decide(
        &self,
        scope: &Scope,
        id: &RecordId,
        decision: Decision,
        edited: Option<&RecordWrite>,
    ) -> Result<Answer<Option<Snippet>>, Failure> {
        let (wire, id, decision) = (convert::scope(scope), id.as_str().to_owned(), convert::decision(decision, edited));
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(review) = &exports.review else {
            return Err(self.no_interface(call, "review"));
        };
        let deciding = review.paperclip_memory_review().call_decide(store, &id, &wire, &decision);
        let called = timeout_at(call.deadline, deciding).await;
        self.finish(call, called, |answer| self.normalize.decided(answer, &id, &scope.company_id))
    }

    /// A part of everything that the binding holds. `cursor` is the provider's own.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says; [`CallError::NoInterface`] where the component does not export `transfer`.
    pub async fn export(&self, scope: &Scope, cursor: Option<&str>) -> Result<Answer<ChunkAnswer>, Failure> {
        let scope = convert::scope(scope);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(transfer) = &exports.transfer else {
            return Err(self.no_interface(call, "transfer"));
        };
        let exporting = transfer.paperclip_memory_transfer().call_export_records(store, &scope, cursor);
        let called = timeout_at(call.deadline, exporting).await;
        self.finish(call, called, |answer| self.normalize.exported(answer))
    }

    /// Takes whole lines of an export in, all of them or none.
    ///
    /// # Errors
    /// As [`Instances::export`].
    pub async fn import(&self, scope: &Scope, lines: &str) -> Result<Answer<ImportAnswer>, Failure> {
        let (wire, count) = (convert::scope(scope), lines.lines().count());
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(transfer) = &exports.transfer else {
            return Err(self.no_interface(call, "transfer"));
        };
        let importing = transfer.paperclip_memory_transfer().call_import_records(store, &wire, lines);
        let called = timeout_at(call.deadline, importing).await;
        self.finish(call, called, |answer| self.normalize.imported(&answer, count))
    }
}
