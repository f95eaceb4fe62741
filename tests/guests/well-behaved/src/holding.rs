//! The interfaces `review` and `transfer`. Only `reference` and `complete` export them.

use memhost_sdk::storage::Batch;
use memhost_sdk::types::*;
use memhost_sdk::{Review, Transfer};
use serde::{Deserialize, Serialize};

use crate::Reference;
use crate::record::{Record, Standing, now};

/// A part of an export, in bytes: small, so that a few records make several parts.
const PART: usize = 1_024;

impl Review for Reference {
    fn list_pending(
        &mut self,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<ListPage, Error> {
        let mut pending = Vec::new();
        for entry in self.all(&scope) {
            let (id, record) = entry?;
            let place = format!("{} {id}", record.created_at);
            let is_next = cursor.as_ref().is_none_or(|cursor| place > *cursor);
            if record.standing == Standing::Pending && is_next {
                pending.push((place, record.snippet(id, Score::None)));
            }
        }
        // A provider with a fault: each page is empty, and another follows.
        if pending.iter().any(|(_, item)| item.text == "an endless list") {
            let continuation = Continuation::Next("again".to_owned());
            return Ok(ListPage { items: Vec::new(), continuation, usage: Vec::new() });
        }
        pending.sort_by(|a, b| a.0.cmp(&b.0));
        let more = pending.len() > limit as usize;
        pending.truncate(limit as usize);
        let last = pending.last().filter(|_| more).map(|(place, _)| place.clone());
        let continuation = last.map_or(Continuation::End, Continuation::Next);
        Ok(ListPage {
            items: pending.into_iter().map(|(_, item)| item).collect(),
            continuation,
            usage: Vec::new(),
        })
    }

    fn decide(
        &mut self,
        id: RecordId,
        scope: Scope,
        decision: Decision,
    ) -> Result<Option<Snippet>, Error> {
        let Some(mut record) =
            self.find(&id, &scope)?.filter(|record| record.standing != Standing::Free)
        else {
            return Err(Error::NotFound(format!("there is no record {id} that waits or waited")));
        };
        let after = match decision {
            Decision::Approve => Standing::Approved,
            Decision::Reject => Standing::Rejected,
            Decision::Edit(_) => Standing::Edited,
        };
        if record.standing == Standing::Pending {
            if let Decision::Edit(edited) = decision {
                (record.text, record.summary, record.metadata) =
                    (edited.text, edited.summary, edited.metadata);
            }
            (record.standing, record.updated_at) = (after, now());
            self.records.put(&id, &record)?;
        } else if record.standing != after
            || matches!(decision, Decision::Edit(edited) if edited.text != record.text)
        {
            return Err(Error::invalid(
                "decision",
                format!("another decision about {id} was made before"),
            ));
        }
        Ok(after.counts().then(|| record.snippet(id, Score::None)))
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    id: RecordId,
    record: Record,
}

impl Transfer for Reference {
    fn export_records(&mut self, scope: Scope, cursor: Option<String>) -> Result<Chunk, Error> {
        let (mut lines, mut last) = (String::new(), cursor);
        for entry in self.all(&scope) {
            let (id, record) = entry?;
            if last.as_ref().is_some_and(|last| id <= *last) {
                continue;
            }
            let line = serde_json::to_string(&Line { id: id.clone(), record });
            let line = line.map_err(|error| Error::internal(error.to_string()))?;
            if !lines.is_empty() && lines.len() + line.len() >= PART {
                return Ok(Chunk { lines, next_cursor: last });
            }
            lines = lines + &line + "\n";
            last = Some(id);
        }
        Ok(Chunk { lines, next_cursor: None })
    }

    fn import_records(
        &mut self,
        ImportRequest { scope, lines, .. }: ImportRequest,
    ) -> Result<ImportReport, Error> {
        let (mut batch, mut report) = (Batch::new(), ImportReport { imported: 0, unchanged: 0 });
        for (number, line) in lines.lines().enumerate() {
            let wrong = |message: String| Error::invalid(&format!("lines.{number}"), message);
            let Line { id, mut record } =
                serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
            if !record.partition.is_visible_in(&scope) {
                return Err(wrong("belongs to another partition than the scope".to_owned()));
            }
            // The source belongs to the importing company.
            if let Some(source) = &mut record.source {
                source.0.company_id = scope.company_id.clone();
            }
            if self.records.get(&id)?.as_ref() == Some(&record) {
                report.unchanged += 1;
            } else {
                batch.put(&self.records, &id, &record)?;
                report.imported += 1;
            }
        }
        batch.apply()?;
        Ok(report)
    }
}
