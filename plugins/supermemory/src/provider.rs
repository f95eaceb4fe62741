//! The provider: captures, and what the SDK makes of supermemory's routes.

use std::time::SystemTime;

use memhost_sdk::jobs::Job;
use memhost_sdk::remote::{Records, Tag, Writes, without_recall};
use memhost_sdk::{Correction, Erasure, Health, Profile, Provider, types::*};
use serde_json::json;

use crate::api::Api;
use crate::config::{Config, Extract};
use crate::extraction::{jobs, shown};

/// The most bytes of a profile.
const PROFILE: usize = 60 << 10;

/// The provider of a binding.
#[derive(Debug)]
pub struct Supermemory {
    records: Records<Api>,
}

impl Supermemory {
    /// The records of a company: of the one whose calls this instance gets.
    pub(crate) fn of(&self, scope: &Scope) -> &Records<Api> {
        self.records.service.belong_to(&scope.company_id);
        &self.records
    }

    /// Gives a capture to supermemory as a document. A repeated one is the same document there.
    fn learn(&self, request: &CaptureRequest, text: &str, tag: &Tag) -> Result<CaptureResponse, Error> {
        let (api, key) = (&self.of(&request.scope).service, request.operation_id.as_str());
        let id = Writes::new("captures").once(key, false, || Ok(None), || api.learn(key, text, tag))?;
        let known = jobs().find(&id)?;
        let job = known.unwrap_or_else(|| Job::new(id, SystemTime::now(), request.scope.clone()));
        jobs().put(&job)?;
        Ok(CaptureResponse { jobs: vec![shown(&job)], ..CaptureResponse::default() })
    }
}

impl Provider for Supermemory {
    type Config = Config;

    fn describe() -> Description {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["url"], "properties": {
            "url": {"type": "string", "description": "https://api.supermemory.ai, or where your server is"},
            "containerTag": {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,100}$",
                "description": "the container of the memories; else memhost-COMPANY"},
            "extract": {"enum": ["residue", "always", "never"], "default": "residue"},
            "threshold": {"type": "number", "minimum": 0, "maximum": 1},
            "addMicrocents": {"type": "integer", "minimum": 0}, "searchMicrocents": {"type": "integer", "minimum": 0},
        }});
        let base = Description::new("supermemory", env!("CARGO_PKG_VERSION"), "Keeps records in supermemory");
        Description {
            config_schema: Some(schema.to_string()),
            capabilities: Capabilities { provider_managed_extraction: true, async_extraction: true },
            max_concurrency: 8,
            declarations: Declarations {
                // A record takes up to five requests, and a call has 64.
                max_upsert: Some(12),
                max_forget: Some(12),
                exceptions: vec![Exception::AllOrNoneUpserts, Exception::ExactlyOnceLists],
                ..Declarations::default()
            },
            ..base
        }
        .require(Permission::Http(HttpPermission::to("{{config:/url}}")), "The memories are there")
        .require(Permission::Storage(64 << 20), "Notes what was written, and which scope a document is of")
        .require(Permission::Secret("SUPERMEMORY_API_KEY".to_owned()), "supermemory's key")
    }

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Self { records: Records::new(Api::new(config)?) })
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        let tag = Tag::captured(&request)?;
        let text = request.payload.text_or_turns().or_else(|| request.payload.object.clone()).unwrap_or_default();
        let text = without_recall(&text);
        if text.trim().is_empty() {
            return Ok(CaptureResponse::default());
        }
        let extract = match self.records.service.config.extract {
            Extract::Residue => request.mode == CaptureMode::CaptureResidue,
            Extract::Always => true,
            Extract::Never => false,
        };
        if extract {
            return self.learn(&request, &text, &tag);
        }
        let records = self.of(&request.scope);
        Ok(vec![records.add(&request.operation_id, request.hook.is_some(), &text, &tag)?].into())
    }

    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        self.of(&request.scope).upsert(&request)
    }

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        self.of(&request.scope).query(&request)
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        self.of(&request.scope).list(&request)
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        self.of(&scope).get(&id, &scope)
    }

    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        self.of(&request.scope).forget(request)
    }
}

impl Correction for Supermemory {
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
        self.of(&request.scope).correct(request)
    }
}

impl Profile for Supermemory {
    fn get_profile(&mut self, scope: Scope) -> Result<ProfileResponse, Error> {
        let mut summary = String::new();
        for line in self.of(&scope).service.profile(&scope)? {
            if summary.len() + line.len() > PROFILE {
                break;
            }
            summary.push_str(&format!("- {line}\n"));
        }
        Ok(ProfileResponse { summary: (!summary.is_empty()).then_some(summary), usage: Vec::new() })
    }
}

impl Health for Supermemory {
    fn check_health(&mut self) -> Result<Report, Error> {
        let documents = self.records.service.ping()?;
        let summary = format!("supermemory answers at {}, {documents} documents", self.records.service.config.url);
        Ok(Report { summary })
    }
}

impl Erasure for Supermemory {
    fn forget_scope(&mut self, request: ForgetScopeRequest) -> Result<ForgetScopeResponse, Error> {
        if request.scope != Scope::company(&request.scope.company_id) {
            return Err(Error::unsupported("supermemory forgets a whole company at once, and no part of it"));
        }
        self.of(&request.scope).service.delete_all()?;
        // It says that documents are gone for good, and nothing of memories that were hidden before.
        Ok(ForgetScopeResponse { extent: Extent::Soft, count: None, usage: Vec::new() })
    }
}
