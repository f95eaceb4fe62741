//! Captures: raw material becomes a job, a record is stored unchanged.

use memhost_sdk::storage::Batch;
use memhost_sdk::types::*;
use serde_json::{Map, Value};

use super::jobs::{Job, Reading, shown};
use super::{Said, Taxonomy};
use crate::bound::is_bound;
use crate::clock::now;
use crate::excluded::{Offered, excluded};
use crate::extract::{candidates, is_machine, sentences};
use crate::id;
use crate::place::{Place, Source, hook_name};
use crate::write::object;

impl Taxonomy {
    /// Raw material: it is stored as the text of a job, which the host runs later.
    pub(super) fn queue(&mut self, request: &CaptureRequest) -> Result<CaptureResponse, Error> {
        let id = id::job(request);
        if let Some(job) = self.jobs.find(&id)? {
            return Ok(answer(shown(&job, &request.scope.company_id)));
        }
        let mut metadata = merged(request)?;
        let place = Place::from(&request.scope);
        let is_bound = metadata.as_mut().map(|members| is_bound(members, &place, "payload"));
        let is_bound = is_bound.transpose()?.unwrap_or_default();
        let text = contents(&request.payload, metadata.as_ref(), false)?;
        if text.trim().is_empty() {
            return Ok(CaptureResponse::default());
        }
        let submitted = now();
        let hook = request.hook.as_ref();
        // `by Friday` means the Friday after the day on which it was said.
        let said_at = hook.and_then(|hook| hook.triggered_at.parse().ok()).unwrap_or(submitted);
        let mut reading = Reading::new(place, Source::from(&request.source), said_at);
        reading.is_bound = is_bound;
        reading.is_told_when = hook.is_some();
        reading.hook_kind = hook.map(|hook| hook_name(&hook.hook_kind));
        let job = Job::new(id, submitted.into(), reading);
        let mut batch = Batch::new();
        self.jobs.write(&mut batch, &job, Some(&text))?;
        batch.apply()?;
        Ok(answer(shown(&job, &request.scope.company_id)))
    }

    /// The payload is itself the record. Its kind is the one that its metadata names, else that of
    /// the rule that matches.
    pub(super) fn keep(&mut self, request: &CaptureRequest) -> Result<CaptureResponse, Error> {
        let metadata = merged(request)?;
        let text = contents(&request.payload, metadata.as_ref(), true)?;
        let mut metadata = metadata.unwrap_or_default();
        if !metadata.contains_key("kind")
            && let [only] = candidates(&sentences(&text)).as_slice()
            && only.confidence >= self.config.threshold(only.kind)
        {
            metadata.insert("kind".to_owned(), only.kind.name().into());
        }
        let metadata = (!metadata.is_empty()).then(|| Value::Object(metadata).to_string());
        let record = RecordWrite { text, metadata, ..RecordWrite::default() };
        let source = Source::from(&request.source);
        let at = request.hook.as_ref().and_then(|hook| hook.triggered_at.parse().ok());
        let said = Said { source: Some(&source), at };
        self.write_all(&request.operation_id, &request.scope, said, vec![record], "payload")
            .map(CaptureResponse::from)
    }
}

fn answer(job: ExtractionJob) -> CaptureResponse {
    CaptureResponse { jobs: vec![job], ..CaptureResponse::default() }
}

/// The payload's own metadata and the request's, which wins.
fn merged(request: &CaptureRequest) -> Result<Option<Map<String, Value>>, Error> {
    let payload = object("payload.metadata", request.payload.metadata.as_deref())?;
    let own = object("metadata", request.metadata.as_deref())?;
    Ok(match (payload, own) {
        (Some(mut payload), Some(own)) => {
            payload.extend(own);
            Some(payload)
        }
        (payload, own) => payload.or(own),
    })
}

/// The text of a payload, unless it is something that is not memory.
fn contents(
    payload: &SourcePayload,
    metadata: Option<&Map<String, Value>>,
    as_record: bool,
) -> Result<String, Error> {
    let object: Option<Value> = payload
        .object
        .as_deref()
        .map(serde_json::from_str)
        .transpose()
        .map_err(|error| Error::invalid("payload.object", format!("is not JSON: {error}")))?;
    let turns = conversation(&payload.turns);
    let text = payload.text.as_deref().or(turns.as_deref()).unwrap_or_default();
    let offered = Offered {
        metadata,
        mime: payload.mime_type.as_deref(),
        text,
        object: object.as_ref(),
        as_record,
    };
    if let Some((row, at)) = excluded(&offered) {
        return Err(Error::invalid(&format!("payload.{at}"), row.message()));
    }
    if payload.text.is_some() {
        // A log of messages may come as its JSON.
        let read = serde_json::from_str(text).ok().and_then(|value| readable(&value));
        return Ok(read.unwrap_or_else(|| text.to_owned()));
    }
    if let Some(turns) = turns {
        return Ok(turns);
    }
    object.as_ref().and_then(readable).ok_or_else(|| {
        Error::unsupported(
            "taxonomy reads text; send payload.text or payload.turns, or an object \
                            with `messages`, `text` or `content`",
        )
    })
}

/// A conversation by who says what. `None` if it is none.
fn conversation(turns: &[Turn]) -> Option<String> {
    let line = |turn: &Turn| format!("{}: {}\n", speaker(Some(&turn.role)), turn.text);
    (!turns.is_empty()).then(|| turns.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn speaker(role: Option<&str>) -> &'static str {
    match role {
        Some(role) if is_machine(role) => "assistant",
        _ => "user",
    }
}

/// The text of an object: its messages by who says them, or its text.
fn readable(object: &Value) -> Option<String> {
    let messages = object.get("messages").unwrap_or(object).as_array();
    if let Some(messages) = messages {
        let line = |message: &Value| {
            let said = message.get("content").or_else(|| message.get("text"))?;
            let said = match said.as_str() {
                Some(text) => text.to_owned(),
                // Parts, as some models' clients have them.
                None => said
                    .as_array()?
                    .iter()
                    .filter_map(|part| part.get("text")?.as_str())
                    .collect::<Vec<_>>()
                    .join("\n"),
            };
            let who = speaker(message.get("role").and_then(Value::as_str));
            Some(format!("{who}: {said}\n"))
        };
        let lines: Vec<String> = messages.iter().filter_map(line).collect();
        return (!lines.is_empty()).then(|| lines.join("\n"));
    }
    ["text", "content", "body"]
        .iter()
        .find_map(|name| object.get(*name)?.as_str().map(str::to_owned))
}
