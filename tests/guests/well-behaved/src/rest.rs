//! The interfaces that only `complete` exports: review, transfer and migration.

use memhost_sdk::storage::{Batch, Collection};
use memhost_sdk::types::*;
use memhost_sdk::{Migration, Review, Transfer};
use serde::{Deserialize, Serialize};

use crate::Keeper;
use crate::record::{Record, now};

/// The most bytes of an export's chunk.
const CHUNK_BYTES: usize = 1 << 20;

/// Records that wait for a person. They come with an import.
fn pending() -> Collection<Record> {
    Collection::new("pending")
}

/// One line of an export.
#[derive(Serialize, Deserialize)]
struct Line {
    id: RecordId,
    pending: bool,
    record: Record,
}

/// All that a scope may see of a collection, in the order of ids.
fn visible(records: &Collection<Record>, scope: &Scope) -> Result<Vec<(RecordId, Record)>, Error> {
    let mut all = Vec::new();
    for entry in records.iter("") {
        let (key, record) = entry?;
        if record.partition.is_visible_in(scope) {
            all.push((String::from_utf8_lossy(&key).into_owned(), record));
        }
    }
    Ok(all)
}

impl Review for Keeper {
    fn list_pending(&mut self, scope: Scope, cursor: Option<String>, limit: u32) -> Result<ListPage, Error> {
        let mut waiting = visible(&pending(), &scope)?;
        waiting.sort_by(|a, b| (&a.1.created_at, &a.0).cmp(&(&b.1.created_at, &b.0)));
        let place = |id: &str, record: &Record| format!("{} {id}", record.created_at);
        waiting.retain(|(id, record)| cursor.as_ref().is_none_or(|cursor| place(id, record) > *cursor));
        let more = waiting.len() > limit as usize;
        waiting.truncate(limit as usize);
        let continuation = match waiting.last() {
            Some((id, record)) if more => Continuation::Next(place(id, record)),
            _ => Continuation::End,
        };
        let items = waiting.into_iter().map(|(id, record)| record.snippet(id, Score::None)).collect();
        Ok(ListPage { items, continuation, ..ListPage::default() })
    }

    fn decide(&mut self, id: RecordId, scope: Scope, decision: Decision) -> Result<Option<Snippet>, Error> {
        let waiting = pending().get(&id)?.filter(|record| record.partition.is_visible_in(&scope));
        let Some(mut record) = waiting else {
            // Decided before: the same decision again answers the same.
            return match (self.find(&id, &scope)?, decision) {
                (Some(record), Decision::Approve) => Ok(Some(record.snippet(id, Score::None))),
                (None, Decision::Reject) => Ok(None),
                (Some(record), Decision::Edit(write)) if record.text == write.text => {
                    Ok(Some(record.snippet(id, Score::None)))
                }
                _ => Err(Error::invalid("decision", format!("the record {id} was decided otherwise"))),
            };
        };
        let mut batch = Batch::new();
        batch.delete(&pending(), &id);
        match decision {
            Decision::Reject => {
                batch.apply()?;
                return Ok(None);
            }
            Decision::Approve => {}
            Decision::Edit(write) => {
                record = Record {
                    text: write.text,
                    summary: write.summary,
                    metadata: write.metadata,
                    updated_at: now(),
                    ..record
                };
            }
        }
        batch.put(&self.records, &id, &record)?;
        batch.apply()?;
        Ok(Some(record.snippet(id, Score::None)))
    }
}

impl Transfer for Keeper {
    fn export_records(&mut self, scope: Scope, cursor: Option<String>) -> Result<Chunk, Error> {
        let (mut lines, mut last) = (String::new(), cursor);
        for (collection, is_pending) in [(&self.records, false), (&pending(), true)] {
            for (id, record) in visible(collection, &scope)? {
                let place = format!("{}{id}", u8::from(is_pending));
                if last.as_ref().is_some_and(|last| place <= *last) {
                    continue;
                }
                let line = Line { id, pending: is_pending, record };
                let line = serde_json::to_string(&line).map_err(|error| Error::internal(error.to_string()))?;
                if !lines.is_empty() && lines.len() + line.len() >= CHUNK_BYTES {
                    return Ok(Chunk { lines, next_cursor: last });
                }
                lines = lines + &line + "\n";
                last = Some(place);
            }
        }
        Ok(Chunk { lines, next_cursor: None })
    }

    fn import_records(&mut self, scope: Scope, lines: String) -> Result<ImportReport, Error> {
        let (mut batch, mut imported, mut unchanged) = (Batch::new(), 0, 0);
        for (n, text) in lines.lines().enumerate() {
            let field = format!("lines.{n}");
            let Line { id, pending: is_pending, record } =
                serde_json::from_str(text).map_err(|error| Error::invalid(&field, error.to_string()))?;
            if !record.partition.is_visible_in(&scope) {
                return Err(Error::invalid(&field, "the record belongs to another partition"));
            }
            let waiting = pending();
            let collection = if is_pending { &waiting } else { &self.records };
            if collection.get(&id)?.is_some() {
                unchanged += 1;
            } else {
                batch.put(collection, &id, &record)?;
                imported += 1;
            }
        }
        if !batch.is_empty() {
            batch.apply()?;
        }
        Ok(ImportReport { imported, unchanged })
    }
}

impl Migration for Keeper {
    /// Nothing has another form in another version; what came before is written down.
    fn migrate(&mut self, from_version: &str) -> Result<(), Error> {
        Ok(Collection::new("migrated").put("from", &from_version.to_owned())?)
    }
}
