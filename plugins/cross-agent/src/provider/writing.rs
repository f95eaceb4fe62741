//! Captures and upserts.

use std::collections::HashMap;

use memhost_sdk::types::*;
use serde_json::{Map, Value};

use super::{CrossAgent, now};
use crate::config::WriteBack;
use crate::item::{Item, Place, check, fill_residue, object};

impl CrossAgent {
    /// Stores what comes of a conversation, as the configuration says. Any other payload becomes
    /// one item.
    pub(super) fn write_capture(
        &mut self,
        request: CaptureRequest,
    ) -> Result<CaptureResponse, Error> {
        let mut metadata = object("payload.metadata", request.payload.metadata.as_deref())?;
        if let Some(over) = object("metadata", request.metadata.as_deref())? {
            metadata.get_or_insert_default().extend(over);
        }
        let is_conversation =
            request.mode == CaptureMode::CaptureResidue && !request.payload.turns.is_empty();
        if !is_conversation || self.config.write_back == WriteBack::Exchange {
            return self.write_whole(request, metadata);
        }
        check("metadata", metadata.as_ref().unwrap_or(&Map::new()))?;
        let mut records = self.write_back(&request, metadata.as_ref().unwrap_or(&Map::new()))?;
        if self.config.write_back == WriteBack::Both {
            let whole = self.write_whole(request, metadata)?;
            records.extend(whole.records);
            return Ok(CaptureResponse { records, ..whole });
        }
        let jobs = if records.is_empty() { Vec::new() } else { self.leave_job()? };
        Ok(CaptureResponse { records, jobs, usage: Vec::new() })
    }

    /// Stores the payload as one item.
    fn write_whole(
        &mut self,
        request: CaptureRequest,
        mut metadata: Option<Map<String, Value>>,
    ) -> Result<CaptureResponse, Error> {
        let (id, is_present) = self.own_id(&request.operation_id, None)?;
        if is_present {
            return Ok(vec![id].into());
        }
        let object = parsed(request.payload.object.as_deref())?;
        let content = match (request.payload.text_or_turns(), &object) {
            (Some(text), _) => text,
            (None, Some(object)) => serde_json::to_string_pretty(object).unwrap_or_default(),
            (None, None) => String::new(),
        };
        if request.mode == CaptureMode::CaptureResidue {
            if content.trim().is_empty() {
                return Ok(CaptureResponse::default());
            }
            fill_residue(metadata.get_or_insert_default());
        }
        check("metadata", metadata.as_ref().unwrap_or(&Map::new()))?;
        let now = now().to_string();
        let item = Item {
            id: id.clone(),
            content,
            summary: None,
            metadata,
            scope: Place::from(&request.scope),
            source_ref: Some(request.source.into()),
            created_at: now.clone(),
            updated_at: now,
            operation_id: Some(request.operation_id.clone()),
            expires_at: None,
            mime_type: request.payload.mime_type,
            object,
        };
        self.store.change(&[item], &[])?;
        let jobs = self.leave_job()?;
        Ok(CaptureResponse { records: vec![id], jobs, usage: Vec::new() })
    }

    /// Writes items unchanged.
    pub(super) fn write_all(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        let mut ids = Vec::with_capacity(request.records.len());
        let mut items: Vec<Item> = Vec::with_capacity(request.records.len());
        let mut places: HashMap<String, usize> = HashMap::new();
        let now = now().to_string();
        for (number, write) in request.records.into_iter().enumerate() {
            let id = match write.id {
                Some(id) => id,
                None => self.own_id(&request.operation_id, Some(number))?.0,
            };
            let field = format!("records.{number}.metadata");
            let metadata = object(&field, write.metadata.as_deref())?;
            check(&field, metadata.as_ref().unwrap_or(&Map::new()))?;
            let before = self.visible(&id, &request.scope)?;
            if before.is_none() && self.store.index.find(&id).is_some() {
                let message = format!(
                    "`{id}` is the id of a record that this scope may not see; choose another id"
                );
                return Err(Error::invalid(&format!("records.{number}.id"), message));
            }
            let item = Item {
                id: id.clone(),
                content: write.text,
                summary: write.summary,
                metadata,
                scope: Place::from(&request.scope),
                source_ref: write.source.or_else(|| request.source.clone()).map(Into::into),
                created_at: write
                    .created_at
                    .or_else(|| before.as_ref().map(|item| item.created_at.clone()))
                    .unwrap_or_else(|| now.clone()),
                updated_at: now.clone(),
                // That of the capture that made it: a repeated delivery of it would make a second
                // item otherwise.
                operation_id: before
                    .and_then(|item| item.operation_id)
                    .or_else(|| Some(request.operation_id.clone())),
                expires_at: write.expires_at,
                mime_type: None,
                object: None,
            };
            // If an id occurs twice, the later record wins.
            match places.get(&id) {
                Some(place) => items[*place] = item,
                None => {
                    places.insert(id.clone(), items.len());
                    items.push(item);
                }
            }
            ids.push(id);
        }
        self.write(&items)?;
        Ok(ids.into())
    }

    /// Writes items. If there is a model, a job embeds them.
    pub(super) fn write(&mut self, items: &[Item]) -> Result<(), Error> {
        if !items.is_empty() {
            self.store.change(items, &[])?;
            self.leave_job()?;
        }
        Ok(())
    }
}

fn parsed(object: Option<&str>) -> Result<Option<Value>, Error> {
    object
        .map(serde_json::from_str)
        .transpose()
        .map_err(|error| Error::invalid("payload.object", format!("is not JSON: {error}")))
}
