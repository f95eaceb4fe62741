//! Captures and upserts.

use std::collections::HashMap;

use memhost_sdk::types::*;

use super::request::{contents, merged, new_id, object};
use super::{LocalMarkdown, unread_front};
use crate::record::{Front, Record, scope_fields, source_fields};

impl LocalMarkdown {
    /// Stores the payload as one record. Nothing is extracted, because there is no model.
    pub(super) fn write_capture(
        &mut self,
        request: CaptureRequest,
    ) -> Result<CaptureResponse, Error> {
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
            scope: scope_fields(&request.scope),
            source: source_fields(&request.source),
            metadata,
            other,
            ..Front::default()
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
            let metadata =
                object(&format!("records.{number}.metadata"), write.metadata.as_deref())?;
            let before = match self.library.find(&id) {
                Some(_) => self.read_visible(&id, &request.scope, None)?.map(|record| record.front),
                None => None,
            };
            if before.is_none() && self.library.find(&id).is_some() {
                return Err(Error::invalid(
                    &format!("records.{number}.id"),
                    format!(
                        "`{id}` is the id of a record that this scope may not see; choose another \
                         id"
                    ),
                ));
            }
            let before = before.unwrap_or_default();
            if let Some(unread) = &before.unread {
                let field = format!("records.{number}");
                return Err(unread_front(&field, &self.library.path(&id), unread));
            }
            let now = self.library.now().to_string();
            let front = Front {
                id: Some(id.clone()),
                created_at: write.created_at.or(before.created_at).or_else(|| Some(now.clone())),
                updated_at: Some(now),
                occurred_at: before.occurred_at,
                summary: write.summary,
                // That of the capture that made it: a repeated delivery of it would make a second
                // record otherwise.
                operation_id: before.operation_id.or_else(|| Some(request.operation_id.clone())),
                expires_at: write.expires_at,
                scope: scope_fields(&request.scope),
                source: write
                    .source
                    .as_ref()
                    .or(request.source.as_ref())
                    .map(source_fields)
                    .unwrap_or_default(),
                metadata,
                other: before.other,
                lines: before.lines,
                unread: None,
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

    /// The id of an operation's record, and whether the operation wrote it before.
    fn own_id(
        &mut self,
        operation_id: &str,
        number: Option<usize>,
    ) -> Result<(String, bool), Error> {
        let mut attempt = 0;
        loop {
            let id = new_id(operation_id, number, attempt);
            match self.library.read(&id)? {
                None => return Ok((id, false)),
                Some(record) if record.front.operation_id.as_deref() == Some(operation_id) => {
                    return Ok((id, true));
                }
                Some(_) => attempt += 1,
            }
        }
    }
}
