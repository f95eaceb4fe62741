//! The provider: captures, forgetting everything, and what the SDK makes of AgentCore's routes.

mod extraction;

use std::cell::Cell;
use std::time::SystemTime;

use memhost_sdk::http::{self, segment};
use memhost_sdk::jobs::Job;
use memhost_sdk::remote::{Adapter, Records, Tag, Writes, without_recall};
use memhost_sdk::{Erasure, Health, types::*};
use serde::Deserialize;
use serde_json::{Value, json};

use self::extraction::{Event, jobs, shown};
use crate::api::{Api, now, odd};
use crate::config::Config;
use crate::place;

/// The most requests of forgetting a company; a call has 64.
const BUDGET: u32 = 48;
/// The longest turn, in characters, and the most of one event.
const LONGEST_TURN: usize = 100_000;
const TURNS: usize = 100;

/// The provider of a binding.
#[derive(Debug)]
pub struct AgentCore {
    records: Records<Api>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    actor_id: Option<String>,
    session_id: Option<String>,
    event_id: Option<String>,
}

impl AgentCore {
    pub(crate) fn api_of(&self, scope: &Scope) -> &Api {
        &self.records(scope).service
    }

    /// Deletes the events of a company. Whether that is all of them.
    fn delete_events(&self, api: &Api, company: &str, spend: &dyn Fn() -> bool) -> Result<bool, http::Error> {
        let ours = format!("{}/", place::escaped(company));
        let page = || json!({"maxResults": 100});
        let (actors, mut is_all) = api.pages::<Named>("actors", page(), "actorSummaries", spend)?;
        for actor in actors.into_iter().filter_map(|named| named.actor_id).filter(|actor| actor.starts_with(&ours)) {
            let sessions = format!("actor/{}/sessions", segment(&actor));
            let (found, all) = api.pages::<Named>(&sessions, page(), "sessionSummaries", spend)?;
            is_all &= all;
            for session in found.into_iter().filter_map(|named| named.session_id) {
                let session = format!("{sessions}/{}", segment(&session));
                let body = json!({"maxResults": 100, "includePayloads": false});
                let (events, all) = api.pages::<Named>(&session, body, "events", spend)?;
                is_all &= all;
                for event in events.into_iter().filter_map(|named| named.event_id) {
                    if !spend() {
                        return Ok(false);
                    }
                    api.delete_at(&format!("{session}/events/{}", segment(&event)))?;
                }
            }
        }
        Ok(is_all)
    }
}

fn message(turn: &Turn) -> Value {
    let role = match turn.role.as_str() {
        "user" => "USER",
        "assistant" => "ASSISTANT",
        "tool" => "TOOL",
        _ => "OTHER",
    };
    said(role, &without_recall(&turn.text))
}

fn said(role: &str, text: &str) -> Value {
    let text: String = text.chars().take(LONGEST_TURN).collect();
    json!({"conversational": {"content": {"text": text}, "role": role}})
}

impl Adapter for AgentCore {
    type Config = Config;
    type Service = Api;

    fn describe() -> Description {
        let base = Description::new("agentcore", env!("CARGO_PKG_VERSION"), "Keeps records in AWS AgentCore Memory");
        Description {
            config_schema: Some(memhost_sdk::schema::of::<Config>()),
            capabilities: Capabilities { provider_managed_extraction: true, async_extraction: true },
            max_concurrency: 8,
            declarations: Declarations {
                // A record takes up to five requests, and a call has 64.
                max_upsert: Some(12),
                max_forget: Some(16),
                exceptions: vec![Exception::AllOrNoneUpserts, Exception::ReadAfterWrite],
                ..Declarations::default()
            },
            ..base
        }
        .require(Permission::Http(HttpPermission::to("{{config:/url}}")), "The memories are there")
        .require(Permission::Storage(64 << 20), "Notes what was written, so that nothing is written twice")
        .require(Permission::Secret("AWS_KEY".to_owned()), "The host signs each request with it")
    }

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Self { records: Records::new(Api::new(config)?) })
    }

    fn records(&self, scope: &Scope) -> &Records<Api> {
        self.records.service.belong_to(&scope.company_id);
        &self.records
    }

    fn learns(&self, mode: CaptureMode) -> bool {
        self.records.service.config.extract.is_for(mode)
    }

    fn learn(&self, request: &CaptureRequest, text: &str, _: &Tag) -> Result<CaptureResponse, Error> {
        let (api, key) = (self.api_of(&request.scope), request.operation_id.as_str());
        let mut payload: Vec<Value> = request.payload.turns.iter().rev().take(TURNS).rev().map(message).collect();
        payload.retain(|turn| {
            turn["conversational"]["content"]["text"].as_str().is_some_and(|text| !text.trim().is_empty())
        });
        if payload.is_empty() {
            payload.push(said("USER", text));
        }
        let session = request.scope.session_key.as_deref().map(place::escaped);
        let session = session.filter(|session| session.len() <= 100).unwrap_or_else(|| place::escaped(key));
        let asked = now();
        let body = json!({"actorId": place::actor(&request.scope), "sessionId": session, "eventTimestamp": asked,
            "payload": payload, "clientToken": key});
        let write = || {
            let made: Value = api.post("events", &body).answer()?;
            let id = made["event"]["eventId"].as_str().ok_or_else(|| odd("events", "it names no event"))?.to_owned();
            let actor = segment(&place::actor(&request.scope));
            let path = format!("actor/{actor}/sessions/{}/events/{}", segment(&session), segment(&id));
            let found: Value = api.get(&path)?.unwrap_or_default();
            match found["event"]["eventTimestamp"].as_f64().filter(|_| found["event"]["eventId"] == *id) {
                Some(since) => Ok((id, since)),
                None => Err(odd("events", &format!("no event is there as {id}"))),
            }
        };
        // The same token again is the same event.
        let (id, since) = Writes::new("captures").once(key, false, || Ok(None), write)?;
        let event = || Event { scope: request.scope.clone(), session, tries: 0, since, asked };
        let job = jobs().find(&id)?.unwrap_or_else(|| Job::new(id, SystemTime::now(), event()));
        jobs().put(&job)?;
        Ok(CaptureResponse { jobs: vec![shown(&job)], ..CaptureResponse::default() })
    }
}

impl Health for AgentCore {
    fn check_health(&mut self) -> Result<Report, Error> {
        let api = &self.records.service;
        api.ping()?;
        Ok(Report { summary: format!("AgentCore answers at {} for {}", api.config.url, api.config.memory_id) })
    }
}

impl Erasure for AgentCore {
    fn forget_scope(&mut self, request: ForgetScopeRequest) -> Result<ForgetScopeResponse, Error> {
        let company = &request.scope.company_id;
        if request.scope != Scope::company(company) {
            return Err(Error::unsupported("only a whole company is forgotten at once"));
        }
        let (api, left, mut count) = (self.api_of(&request.scope), Cell::new(BUDGET), 0);
        let spend = || left.replace(left.get().saturating_sub(1)) > 0;
        let again = || {
            Error::Unavailable(RetryLater {
                message: "a part of the company's memory is deleted; the next call deletes more".to_owned(),
                retry_after_ms: Some(1_000),
            })
        };
        if !self.delete_events(api, company, &spend)? {
            return Err(again());
        }
        let body = json!({"namespacePath": place::path(company), "maxResults": 100});
        loop {
            let only = Cell::new(true);
            let (found, _) = api.pages::<Value>("memoryRecords", body.clone(), "memoryRecordSummaries", || {
                only.replace(false) && spend()
            })?;
            let ids: Vec<_> = found.iter().map(|record| json!({"memoryRecordId": record["memoryRecordId"]})).collect();
            if ids.is_empty() && left.get() > 0 {
                return Ok(ForgetScopeResponse { extent: Extent::Hard, count: Some(count), usage: Vec::new() });
            }
            if !spend() {
                return Err(again());
            }
            let done: Value = api.post("memoryRecords/batchDelete", &json!({"records": ids})).answer()?;
            count += done["successfulRecords"].as_array().map_or(0, Vec::len) as u64;
        }
    }
}
