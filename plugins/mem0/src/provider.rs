//! The provider: captures, and what the SDK makes of mem0's routes.

use std::time::SystemTime;

use memhost_sdk::jobs::Job;
use memhost_sdk::remote::{Records, Service, Tag, Writes, without_recall};
use memhost_sdk::{Correction, Erasure, Health, Provider, types::*};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::Api;
use crate::config::{Config, Infer};
use crate::extraction::{jobs, shown};

/// The provider of a binding.
#[derive(Debug)]
pub struct Mem0 {
    pub(crate) records: Records<Api>,
}

/// What mem0 made of one capture, or the event in which it will.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Learnt {
    records: Vec<RecordId>,
    event: Option<String>,
}

impl Mem0 {
    /// The records of a company: of the one whose calls this instance gets.
    fn of(&self, scope: &Scope) -> &Records<Api> {
        self.records.service.belong_to(&scope.company_id);
        &self.records
    }

    /// Lets mem0's model extract.
    fn learn(&self, request: &CaptureRequest, text: &str, tag: &Tag) -> Result<CaptureResponse, Error> {
        let (api, key) = (&self.of(&request.scope).service, request.operation_id.as_str());
        let look = || {
            let records: Vec<_> = api.written(key, text)?.into_iter().map(|record| record.id).collect();
            let event = if records.is_empty() { api.event_of(key)? } else { None };
            Ok((!records.is_empty() || event.is_some()).then_some(Learnt { records, event }))
        };
        let write = || {
            let messages = match request.payload.turns.as_slice() {
                [] => json!([{"role": "user", "content": text}]),
                turns => turns.iter().map(message).collect(),
            };
            let added = api.learn(key, &messages, tag, true)?;
            Ok(Learnt { records: added.ids(), event: added.event_id.filter(|_| added.results.is_none()) })
        };
        let Learnt { records, event } = Writes::new("captures").once(key, request.hook.is_some(), look, write)?;
        let mut response = CaptureResponse { records, ..CaptureResponse::default() };
        if let Some(id) = event {
            let known = jobs().find(&id)?;
            let job = known.unwrap_or_else(|| Job::new(id, SystemTime::now(), request.scope.clone()));
            jobs().put(&job)?;
            response.jobs.push(shown(&job));
        }
        Ok(response)
    }
}

fn message(turn: &Turn) -> Value {
    let role = match turn.role.as_str() {
        role @ ("assistant" | "system") => role,
        _ => "user",
    };
    json!({"role": role, "content": without_recall(&turn.text)})
}

impl Provider for Mem0 {
    type Config = Config;

    fn describe() -> Description {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["url"], "properties": {
            "url": {"type": "string", "description": "https://api.mem0.ai, or where your server is"},
            "api": {"enum": ["hosted", "self-hosted"], "default": "hosted"},
            "userId": {"type": "string", "pattern": "^\\S+$", "description": "whose memories; else memhost-COMPANY"},
            "withoutKey": {"type": "boolean", "default": false, "description": "for a server without authentication"},
            "infer": {"enum": ["residue", "always", "never"], "default": "residue"},
            "threshold": {"type": "number", "minimum": 0, "maximum": 1},
            "addMicrocents": {"type": "integer", "minimum": 0}, "searchMicrocents": {"type": "integer", "minimum": 0},
        }});
        let base = Description::new("mem0", env!("CARGO_PKG_VERSION"), "Keeps records in mem0, hosted or self-hosted");
        Description {
            config_schema: Some(schema.to_string()),
            capabilities: Capabilities { provider_managed_extraction: true, async_extraction: true },
            max_concurrency: 8,
            declarations: Declarations {
                // A record takes up to four requests, and a call has 64.
                max_upsert: Some(15),
                max_forget: Some(15),
                exceptions: vec![Exception::AllOrNoneUpserts, Exception::ExactlyOnceLists],
                ..Declarations::default()
            },
            ..base
        }
        .require(Permission::Http(HttpPermission::to("{{config:/url}}")), "The memories are there")
        .require(Permission::Storage(64 << 20), "Notes what was written, so that nothing is written twice")
        .prefer(Permission::Secret("MEM0_API_KEY".to_owned()), "mem0's key, unless your server has no authentication")
    }

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Self { records: Records::new(Api::new(config)?) })
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        let tag = Tag::captured(&request)?;
        let text = request.payload.text_or_turns().or_else(|| request.payload.object.clone()).unwrap_or_default();
        let text = without_recall(&text);
        let infer = match self.records.service.config.infer {
            Infer::Residue => request.mode == CaptureMode::CaptureResidue,
            Infer::Always => true,
            Infer::Never => false,
        };
        if text.trim().is_empty() {
            return Ok(CaptureResponse::default());
        }
        if infer {
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

impl Correction for Mem0 {
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
        self.of(&request.scope).correct(request)
    }
}

impl Health for Mem0 {
    fn check_health(&mut self) -> Result<Report, Error> {
        self.records.service.ping()?;
        Ok(Report { summary: format!("mem0 answers at {}", self.records.service.config.url) })
    }
}

impl Erasure for Mem0 {
    fn forget_scope(&mut self, request: ForgetScopeRequest) -> Result<ForgetScopeResponse, Error> {
        if request.scope != Scope::company(&request.scope.company_id) {
            return Err(Error::unsupported("mem0 forgets a whole company at once, and no part of it"));
        }
        let api = &self.of(&request.scope).service;
        api.delete_all()?;
        // The histories of the memories stay at the open-source server; at the other nobody can look.
        Ok(ForgetScopeResponse { extent: Extent::HistoryKept, count: None, usage: Vec::new() })
    }
}
