//! A provider made of a service's routes: what every one of them has in common.

use super::capture::{Capture, turns};
use super::elsewhere::begun;
use super::{Records, Service, Tag, Writes, without_recall};
use crate::types::{
    CaptureRequest, CaptureResponse, ContextBundle, CorrectRequest, CorrectResponse, Description,
    Error, ForgetRequest, ForgetResponse, ForgetScopeRequest, ForgetScopeResponse, GetResponse,
    ListPage, ListRequest, QueryRequest, RecordId, Scope, UpsertRequest, UpsertResponse,
};
use crate::{Correction, Erasure, Provider, http};

/// The records of the company that a call is about.
fn of<'a, S: Service>(service: &'a mut S, scope: &Scope) -> Records<'a, S> {
    service.serve(&scope.company_id);
    Records::of(service)
}

impl<S: Service> Provider for S {
    type Config = S::Config;

    fn describe() -> Description {
        S::describe()
    }

    fn open(config: S::Config) -> Result<Self, Error> {
        let mut service = S::open(config)?;
        service.serve("");
        Ok(service)
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        let tag = Tag::captured(&request)?;
        let (scope, key, may_repeat) =
            (&request.scope, request.operation_id.as_str(), request.hook.is_some());
        let text = request
            .payload
            .text_or_turns()
            .or_else(|| request.payload.object.clone())
            .unwrap_or_default();
        let text = without_recall(&text);
        if text.trim().is_empty() {
            return Ok(CaptureResponse::default());
        }
        let records = of(self, scope);
        if S::KEEPS_TEXTS && !records.service.learns(request.mode) {
            return Ok(vec![records.add(key, may_repeat, &text, &tag)?].into());
        }
        let turns = turns(&request.payload, &text);
        if turns.is_empty() {
            return Ok(CaptureResponse::default());
        }
        let capture = Capture { key, scope, text: &text, turns: &turns, tag: &tag };
        let look = || records.service.learnt(&capture);
        let learnt = Writes::new("captures")
            .once(key, may_repeat, look, || records.service.learn(&capture))?;
        let jobs = learnt
            .job
            .map(|id| begun::<S>(id, scope, learnt.details))
            .transpose()?
            .into_iter()
            .collect();
        Ok(CaptureResponse { records: learnt.records, jobs, usage: Vec::new() })
    }

    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        if !S::KEEPS_TEXTS {
            let only =
                "the service keeps no text as it is, only what it makes of one; capture the text";
            return Err(Error::unsupported(only));
        }
        of(self, &request.scope).upsert(&request)
    }

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        of(self, &request.scope).query(&request)
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        of(self, &request.scope).list(&request)
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        of(self, &scope).get(&id, &scope)
    }

    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        of(self, &request.scope).forget(request)
    }
}

impl<S: Service> Correction for S {
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
        let scope = request.scope.clone();
        of(self, &scope).correct(request)
    }
}

/// A service that forgets everything of a company at once, and no part of it: it is [`Erasure`].
pub trait Wipes: Service {
    /// Forgets everything of the company that is served, and answers how far; an `Extent` is an
    /// answer by `into`.
    ///
    /// # Errors
    /// The error of the service.
    fn wipe(&self) -> Result<ForgetScopeResponse, http::Error>;
}

impl<S: Wipes> Erasure for S {
    fn forget_scope(&mut self, request: ForgetScopeRequest) -> Result<ForgetScopeResponse, Error> {
        let company = request.scope.company_id.as_str();
        if request.scope != Scope::company(company) {
            return Err(Error::unsupported(
                "the service forgets a whole company at once, and no part of it",
            ));
        }
        self.serve(company);
        Ok(self.wipe()?)
    }
}
