//! The provider: captures, and what the SDK makes of mem0's routes.

use memhost_sdk::remote::{Adapter, Records, Service, Tag, Writes, begun, without_recall};
use memhost_sdk::{Erasure, Health, types::*};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::Api;
use crate::config::Config;

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

fn message(turn: &Turn) -> Value {
    let role = match turn.role.as_str() {
        role @ ("assistant" | "system") => role,
        _ => "user",
    };
    json!({"role": role, "content": without_recall(&turn.text)})
}

impl Adapter for Mem0 {
    type Config = Config;
    type Service = Api;

    fn describe() -> Description {
        let base = Description::new("mem0", env!("CARGO_PKG_VERSION"), "Keeps records in mem0, hosted or self-hosted");
        Description {
            config_schema: Some(memhost_sdk::schema::of::<Config>()),
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

    fn records(&self, scope: &Scope) -> &Records<Api> {
        self.records.service.belong_to(&scope.company_id);
        &self.records
    }

    fn learns(&self, mode: CaptureMode) -> bool {
        self.records.service.config.infer.is_for(mode)
    }

    fn learn(&self, request: &CaptureRequest, text: &str, tag: &Tag) -> Result<CaptureResponse, Error> {
        let (api, key) = (&self.records(&request.scope).service, request.operation_id.as_str());
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
        match event {
            Some(id) => Ok(CaptureResponse { records, ..begun(id, &request.scope)? }),
            None => Ok(records.into()),
        }
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
        let api = &self.records(&request.scope).service;
        api.delete_all()?;
        // The histories of the memories stay at the open-source server; at the other nobody can look.
        Ok(ForgetScopeResponse { extent: Extent::HistoryKept, count: None, usage: Vec::new() })
    }
}
