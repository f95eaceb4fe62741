//! The provider: captures, corrections, and what the SDK makes of MemOS's routes.

use std::time::SystemTime;

use memhost_sdk::jobs::Job;
use memhost_sdk::remote::{Elsewhere, Records, Service, Tag, Work, Writes, begun, without_recall};
use memhost_sdk::{Correction, Erasure, Health, Provider, types::*};
use serde_json::{Value, json};

use crate::api::{Api, Learnt, OURS, as_it_is, captures};
use crate::config::Config;

/// The longest name of a conversation, in characters.
const LONGEST: usize = 100;

/// The provider of a binding.
#[derive(Debug)]
pub struct Memos {
    records: Records<Api>,
}

impl Memos {
    /// The records of the company that a call is about.
    fn of(&self, scope: &Scope) -> &Records<Api> {
        self.records.service.serve(scope);
        &self.records
    }
}

/// What was said, or the text as one message, without what was recalled.
fn messages(payload: &SourcePayload) -> Vec<Value> {
    let message = |role: &str, text: &str, at: Option<&String>| {
        let text = without_recall(text);
        let role = if role == "assistant" { role } else { "user" };
        let mut message = json!({"role": role, "content": text});
        if let Some(at) = at {
            message["chat_time"] = at.as_str().into();
        }
        (!text.trim().is_empty()).then_some(message)
    };
    if payload.turns.is_empty() {
        let text = payload.text.as_ref().or(payload.object.as_ref());
        return text.and_then(|text| message("user", text, None)).into_iter().collect();
    }
    payload.turns.iter().filter_map(|turn| message(&turn.role, &turn.text, turn.at.as_ref())).collect()
}

/// The conversation of a capture, which is also its job here.
fn conversation(operation_id: &str) -> Result<String, Error> {
    let plain = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => char::from(byte).to_string(),
        _ => format!("_{byte:02x}"),
    };
    let name = format!("{OURS}{}", operation_id.bytes().map(plain).collect::<String>());
    let too_long = || Error::invalid("operationId", "is too long for the name of a conversation of MemOS");
    (name.len() <= LONGEST).then_some(name).ok_or_else(too_long)
}

impl Provider for Memos {
    type Config = Config;

    fn describe() -> Description {
        let base = Description::new("memos", env!("CARGO_PKG_VERSION"), "Lets MemOS's cloud make and find memories");
        Description {
            config_schema: Some(memhost_sdk::schema::of::<Config>()),
            capabilities: Capabilities { provider_managed_extraction: true, async_extraction: true },
            max_concurrency: 8,
            declarations: Declarations {
                // A record that is forgotten takes up to seven requests, and a call has 64.
                max_forget: Some(8),
                exceptions: vec![Exception::ReadAfterWrite, Exception::ExactlyOnceLists],
                ..Declarations::default()
            },
            ..base
        }
        .require(Permission::Http(HttpPermission::to("{{config:/url}}")), "The memories are there")
        .require(Permission::Storage(64 << 20), "Notes what was captured, of which scope, and which task works on it")
        .require(Permission::Secret("MEMOS_API_KEY".to_owned()), "MemOS's key")
    }

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Self { records: Records::new(Api::new(config)?) })
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        let (tag, messages) = (Tag::captured(&request)?, messages(&request.payload));
        if messages.is_empty() {
            return Ok(CaptureResponse::default());
        }
        let (conversation, api) = (conversation(&request.operation_id)?, &self.of(&request.scope).service);
        let look = || Ok(api.has(&conversation)?.then(|| Learnt { task: None, tag: tag.clone() }));
        let write = || api.learn(&conversation, &messages, &tag);
        captures().once(&conversation, request.hook.is_some(), look, write)?;
        begun(conversation, &request.scope)
    }

    fn upsert_records(&mut self, _: UpsertRequest) -> Result<UpsertResponse, Error> {
        Err(as_it_is())
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

impl Correction for Memos {
    /// An instruction is feedback, which MemOS works on later. Of a replacement it takes the text.
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
        let (id, api) = (request.id, &self.of(&request.scope).service);
        let found = if api.is_id(&id) { api.find(&id)? } else { None };
        let visible = found.filter(|record| record.tag.is_visible_in(&request.scope));
        let old = visible.ok_or_else(|| Error::NotFound(format!("there is no record {id}")))?;
        match request.patch {
            Patch::Instruction(said) => {
                let conversation = old.key.filter(|key| !key.is_empty()).unwrap_or_else(|| format!("{OURS}feedback"));
                let said = format!("{said}\n\nThis is about: {}", old.text);
                let give = || api.feedback(&conversation, &said).map(|()| true);
                Writes::new("feedback").once(&request.operation_id, false, || Ok(None), give)?;
            }
            Patch::Replacement(new) => {
                if new.summary.is_some() || new.metadata.is_some() || new.expires_at.is_some() {
                    return Err(Error::unsupported(
                        "MemOS changes the text of a memory, not summary, metadata or expiry",
                    ));
                }
                match api.rewrite(&id, &new.text) {
                    Err(error) if error.may_have_acted() => {
                        let now = api.find(&id)?;
                        now.filter(|now| now.text == new.text).ok_or(error)?;
                    }
                    done => done?,
                }
            }
        }
        Ok(CorrectResponse { record_id: id, superseded: None, usage: Vec::new() })
    }
}

impl Elsewhere for Memos {
    fn ask(&self, job: &mut Job<Work>) -> Result<(), Error> {
        let (now, api) = (SystemTime::now(), &self.of(&job.work.scope).service);
        let task = captures().find(&job.id)?.and_then(|learnt| learnt.task);
        let status = task.map_or(Ok(None), |task| api.status(&task))?;
        match status.as_deref() {
            Some("completed") => {
                job.records = api.made_of(&job.id)?;
                job.succeed(now);
            }
            Some("failed") => job.fail("MemOS could not process the messages", now),
            Some(_) => job.go_on(now),
            // The task is not known: what there is of the conversation tells.
            None => {
                job.records = api.made_of(&job.id)?;
                if !job.records.is_empty() {
                    job.succeed(now);
                } else if api.has(&job.id)? {
                    job.go_on(now);
                } else {
                    job.fail("MemOS does not have the messages", now);
                }
            }
        }
        Ok(())
    }
}

impl Health for Memos {
    fn check_health(&mut self) -> Result<Report, Error> {
        let api = &self.records.service;
        let many = api.ping()?.map(|total| format!(", {total} memories")).unwrap_or_default();
        Ok(Report { summary: format!("MemOS answers at {}{many}", api.config.url) })
    }
}

impl Erasure for Memos {
    fn forget_scope(&mut self, request: ForgetScopeRequest) -> Result<ForgetScopeResponse, Error> {
        if request.scope != Scope::company(&request.scope.company_id) {
            return Err(Error::unsupported("MemOS forgets a whole user at once, and no part of one"));
        }
        self.of(&request.scope).service.delete_all()?;
        // What was said stays in its conversations.
        Ok(ForgetScopeResponse { extent: Extent::HistoryKept, count: None, usage: Vec::new() })
    }
}
