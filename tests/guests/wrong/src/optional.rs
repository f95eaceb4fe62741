//! The optional interfaces.

use memhost_sdk::types::*;
use memhost_sdk::{
    Browse, Correction, Erasure, Explain, Extraction, Health, Migration, Profile, Provider,
};

use crate::{Wrong, everywhere, write};

impl Correction for Wrong {
    fn correct(&mut self, mut request: CorrectRequest) -> Result<CorrectResponse, Error> {
        let scope = request.scope.clone();
        let old = request.id.clone();
        let answered = |record_id, superseded| {
            Ok(CorrectResponse { record_id, superseded, usage: Vec::new() })
        };
        match (self.breaks.as_str(), &request.patch) {
            ("COR-01", _) => return answered(old, None),
            ("COR-02", _) => drop(self.add(&scope, write("Somebody has corrected something"))?),
            ("COR-03", Patch::Replacement(record)) => {
                let new = self.add(&scope, RecordWrite { id: None, ..record.clone() })?;
                return answered(new, Some(old));
            }
            ("COR-04", Patch::Replacement(record)) if record.id.is_some() => {
                let new = self.add(&scope, record.clone())?;
                let (operation_id, ids) = (self.fresh(), vec![old.clone()]);
                self.reference.forget(ForgetRequest { operation_id, scope, ids })?;
                return answered(new, Some(old));
            }
            ("COR-06", _) => request.scope = everywhere(scope),
            _ => {}
        }
        match self.reference.correct(request) {
            Err(Error::NotFound(_)) if self.is("COR-05") => answered(old, None),
            outcome => outcome,
        }
    }
}

impl Profile for Wrong {
    fn get_profile(&mut self, mut scope: Scope) -> Result<ProfileResponse, Error> {
        let asked = scope.clone();
        match self.breaks.as_str() {
            "PRF-03" => scope.agent_id = None,
            "PRF-04" => scope.subject_id = None,
            "PRF-05" => scope.namespace = None,
            _ => {}
        }
        let mut answer = self.reference.get_profile(scope)?;
        match (self.breaks.as_str(), &mut answer.summary) {
            ("PRF-01", Some(_)) => drop(self.add(&asked, write("Somebody wanted a summary"))?),
            ("PRF-02", none @ None) => *none = Some("Nothing is known yet".to_owned()),
            ("PRF-06", none @ None) => {
                for ghost in self.marks.iter("") {
                    *none = Some(ghost?.1);
                }
            }
            ("PRF-07", Some(summary)) => *summary = summary.repeat(10_000),
            _ => {}
        }
        Ok(answer)
    }
}

impl Extraction for Wrong {
    fn run_job(&mut self, provider_job_id: String) -> Result<JobResult, Error> {
        let before = self.reference.get_job(provider_job_id.clone())?;
        let is_again = before.is_some_and(|told| told.job.status == JobStatus::Succeeded);
        let mut answer = self.reference.run_job(provider_job_id)?;
        match self.breaks.as_str() {
            "EXT-02" if is_again => {
                answer.records.push(self.add(&self.scope.clone(), write("It was run again"))?)
            }
            "EXT-03" => answer.records.push("no-such-record".to_owned()),
            "EXT-07" => answer.job.record_count = None,
            _ => {}
        }
        Ok(answer)
    }

    fn get_job(&mut self, provider_job_id: String) -> Result<Option<JobResult>, Error> {
        match self.breaks.as_str() {
            "EXT-01" => Ok(None),
            "EXT-04" => Ok(Some(self.reference.run_job(provider_job_id)?)),
            "EXT-09" => {
                let told = self.reference.get_job(provider_job_id)?;
                Ok(told.map(|told| JobResult { records: Vec::new(), ..told }))
            }
            _ => self.reference.get_job(provider_job_id),
        }
    }

    fn list_jobs(
        &mut self,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<JobPage, Error> {
        self.reference.list_jobs(scope, cursor, limit)
    }

    fn cancel_job(&mut self, provider_job_id: String) -> Result<ExtractionJob, Error> {
        let mut job = self.reference.cancel_job(provider_job_id)?;
        if self.is("EXT-05") {
            job.status = JobStatus::Cancelled;
        }
        Ok(job)
    }

    fn retry_job(&mut self, provider_job_id: String) -> Result<ExtractionJob, Error> {
        let job = self.reference.get_job(provider_job_id.clone())?;
        match job.filter(|_| self.is("EXT-08")) {
            Some(told) => Ok(told.job),
            None => self.reference.retry_job(provider_job_id),
        }
    }
}

impl Explain for Wrong {
    fn explain_query(&mut self, request: QueryRequest) -> Result<Explanation, Error> {
        if self.is("XPL-03") {
            self.add(&request.scope.clone(), write("Somebody wanted to know why"))?;
        }
        let mut explanation = self.reference.explain_query(request)?;
        match self.breaks.as_str() {
            "XPL-01" => explanation.hits.reverse(),
            "XPL-02" => {
                for hit in &mut explanation.hits {
                    hit.contributions
                        .push(Contribution { name: "luck".to_owned(), value: f64::INFINITY });
                }
            }
            _ => {}
        }
        Ok(explanation)
    }
}

impl Browse for Wrong {
    fn list_children(
        &mut self,
        path: String,
        mut scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<NodePage, Error> {
        if self.is("BRW-05") {
            scope = everywhere(scope);
        }
        let mut page = match self.reference.list_children(path, scope, cursor, limit) {
            Err(Error::NotFound(_)) if self.is("BRW-02") => {
                NodePage { nodes: Vec::new(), next_cursor: None }
            }
            outcome => outcome?,
        };
        self.count += 1;
        match self.breaks.as_str() {
            "BRW-01" if self.count.is_multiple_of(2) => page.nodes.reverse(),
            "BRW-03" => page.next_cursor = None,
            "BRW-04" => page
                .nodes
                .iter_mut()
                .for_each(|node| node.record_id = Some("no-such-record".to_owned())),
            "BRW-06" => page.nodes.iter_mut().for_each(|node| node.label = node.label.repeat(100)),
            _ => {}
        }
        Ok(page)
    }
}

impl Health for Wrong {
    fn check_health(&mut self) -> Result<Report, Error> {
        match self.breaks.as_str() {
            "HLT-01" => return Err(Error::internal("nobody knows")),
            "HLT-02" => {
                drop(self.add(&self.scope.clone(), write("Somebody wanted to know how it is"))?)
            }
            _ => {}
        }
        self.reference.check_health()
    }
}

impl Erasure for Wrong {
    fn forget_scope(
        &mut self,
        mut request: ForgetScopeRequest,
    ) -> Result<ForgetScopeResponse, Error> {
        match self.breaks.as_str() {
            "ERA-01" => {
                return Ok(ForgetScopeResponse {
                    extent: Extent::Hard,
                    count: None,
                    usage: Vec::new(),
                });
            }
            "ERA-02" => request.scope = everywhere(request.scope),
            _ => {}
        }
        if self.is("ERA-03") && self.everything(&request.scope)?.is_empty() {
            return Err(Error::NotFound("there is nothing".to_owned()));
        }
        self.reference.forget_scope(request)
    }
}

impl Migration for Wrong {
    fn migrate(&mut self, _: &str) -> Result<(), Error> {
        match self.breaks.as_str() {
            "MIG-01" => self.forget_all(&Scope::company("")),
            "MIG-02" if self.marks.get("migrated")?.is_some() => {
                Err(Error::internal("this was done before"))
            }
            _ => Ok(self.marks.put("migrated", &"yes".to_owned())?),
        }
    }
}

memhost_sdk::export_correction!(Wrong);
memhost_sdk::export_profile!(Wrong);
memhost_sdk::export_extraction!(Wrong);
memhost_sdk::export_explain!(Wrong);
memhost_sdk::export_browse!(Wrong);
memhost_sdk::export_review!(Wrong);
memhost_sdk::export_transfer!(Wrong);
memhost_sdk::export_migration!(Wrong);
memhost_sdk::export_health!(Wrong);
memhost_sdk::export_erasure!(Wrong);
