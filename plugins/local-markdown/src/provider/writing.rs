//! Captures and upserts.

use std::collections::HashMap;

use memhost_sdk::types::*;

use super::LocalMarkdown;
use super::request::{contents, merged, new_id, object};
use crate::index::hook;
use crate::record::{Front, Record, scope_fields, source_fields};

impl LocalMarkdown {
    /// Stores the payload as one record. Nothing is extracted, because there is no model.
    pub(super) fn take_in(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        if let Some(present) = self.captured_for(request.hook.as_ref())? {
            return Ok(vec![present].into());
        }
        let (id, is_present) = self.own_id(&request.operation_id, None)?;
        if is_present {
            return Ok(vec![id].into());
        }
        let metadata = merged(request.payload.metadata.as_deref(), request.metadata.as_deref())?;
        let (text, other) = contents(request.payload)?;
        if matches!(request.mode, CaptureMode::CaptureResidue) && text.trim().is_empty() {
            return Ok(CaptureResponse::default());
        }
        let now = self.library.now().to_string();
        let front = Front {
            id: Some(id.clone()),
            created_at: Some(now.clone()),
            updated_at: Some(now),
            occurred_at: request.hook.as_ref().map(|hook| hook.triggered_at.clone()),
            operation_id: Some(request.operation_id),
            hook_id: request.hook.map(|hook| hook.hook_id),
            scope: scope_fields(&request.scope),
            source: source_fields(&request.source),
            metadata,
            other,
            summary: None,
        };
        self.library.write(&[(id.clone(), Record { front, text })])?;
        Ok(CaptureResponse { records: vec![id], jobs: self.leave_job()?, usage: Vec::new() })
    }

    /// Writes records as they are.
    pub(super) fn write_all(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        let mut ids = Vec::with_capacity(request.records.len());
        let mut records: Vec<(String, Record)> = Vec::with_capacity(request.records.len());
        let mut places: HashMap<String, usize> = HashMap::new();
        for (number, write) in request.records.into_iter().enumerate() {
            let id = match write.id {
                Some(id) => id,
                None => self.own_id(&request.operation_id, Some(number))?.0,
            };
            let metadata = object(&format!("records.{number}.metadata"), write.metadata.as_deref())?;
            let before = match self.library.find(&id) {
                Some(_) => self.read_visible(&id, &request.scope, None)?.map(|record| record.front),
                None => None,
            };
            if before.is_none() && self.library.find(&id).is_some() {
                return Err(Error::invalid(
                    &format!("records.{number}.id"),
                    format!("`{id}` is the id of a record that this scope may not see; choose another id"),
                ));
            }
            let before = before.unwrap_or_default();
            let now = self.library.now().to_string();
            let front = Front {
                id: Some(id.clone()),
                created_at: Some(before.created_at.unwrap_or_else(|| now.clone())),
                updated_at: Some(now),
                occurred_at: before.occurred_at,
                summary: write.summary,
                operation_id: Some(request.operation_id.clone()),
                // Without it a repeated delivery of the event would make a second record.
                hook_id: before.hook_id,
                scope: scope_fields(&request.scope),
                source: request.source.as_ref().map(source_fields).unwrap_or_default(),
                metadata,
                other: before.other,
            };
            let record = (id.clone(), Record { front, text: write.text });
            // If an id occurs twice, the later record wins.
            match places.get(&id) {
                Some(place) => records[*place] = record,
                None => {
                    places.insert(id.clone(), records.len());
                    records.push(record);
                }
            }
            ids.push(id);
        }
        self.library.write(&records)?;
        self.leave_job()?;
        Ok(ids.into())
    }

    /// The record that an earlier delivery of this event made.
    fn captured_for(&mut self, event: Option<&HookContext>) -> Result<Option<String>, Error> {
        let Some(event) = event else { return Ok(None) };
        let found = self.library.index.by_hook(hook(&event.hook_id));
        let Some(id) = found.and_then(|doc| self.library.index.doc(doc)).map(|doc| doc.id.to_string()) else {
            return Ok(None);
        };
        // Two events may have one hash.
        let is_same = |record: &Record| record.front.hook_id.as_deref() == Some(&event.hook_id);
        Ok(self.library.read(&id)?.filter(is_same).map(|_| id))
    }

    /// The id of an operation's record, and whether the operation wrote it before.
    fn own_id(&mut self, operation_id: &str, number: Option<usize>) -> Result<(String, bool), Error> {
        let mut attempt = 0;
        loop {
            let id = new_id(operation_id, number, attempt);
            match self.library.read(&id)? {
                None => return Ok((id, false)),
                Some(record) if record.front.operation_id.as_deref() == Some(operation_id) => return Ok((id, true)),
                Some(_) => attempt += 1,
            }
        }
    }
}
