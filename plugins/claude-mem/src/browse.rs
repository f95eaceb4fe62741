//! claude-mem's timeline as the contract's tree: the observations, the newest first, and below each one what was seen
//! around it.

use memhost_sdk::remote::{Adapter, Record, Service};
use memhost_sdk::{Browse, types::*};

use crate::provider::ClaudeMem;

/// The most characters of a label.
const LABEL: usize = 80;
/// The most observations that are read at once.
const MOST: usize = 200;

impl Browse for ClaudeMem {
    /// A path is an observation's number, or two: one that was seen around the other. The cursor counts entries of
    /// claude-mem. One that the scope may not see is left out, so a page can be short.
    fn list_children(
        &mut self,
        path: String,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<NodePage, Error> {
        let records = Adapter::records(self, &scope);
        let service = &records.service;
        let offset = cursor.as_deref().unwrap_or("0").parse();
        let offset: usize = offset.map_err(|_| Error::invalid("cursor", "is no cursor of this tree; begin again"))?;
        let limit = (limit as usize).min(MOST);
        let (found, read, more): (Vec<Record>, usize, bool) = if path.is_empty() {
            let page = service.observations("", offset, limit)?;
            let (read, more) = (page.len(), page.len() == limit);
            (page.into_iter().map(Record::from).collect(), read, more)
        } else {
            let gone = || Error::NotFound(format!("claude-mem has no observation {path} to show the time around"));
            let anchor = service.is_id(&path).then(|| path.parse::<u64>().ok()).flatten().ok_or_else(gone)?;
            let is_visible = |record: &Record| record.tag.is_visible_in(&scope);
            service.find(&path)?.filter(is_visible).ok_or_else(gone)?;
            let around = service.timeline(anchor)?;
            let here: Vec<_> = around.iter().skip(offset).take(limit).copied().collect();
            let mut found = if here.is_empty() { Vec::new() } else { service.batch(&here)? };
            found.sort_by_key(|record| here.iter().position(|id| id.to_string() == record.id));
            (found, here.len(), offset + here.len() < around.len())
        };
        let node = |record: Record| Node {
            path: if path.is_empty() { record.id.clone() } else { format!("{path}/{}", record.id) },
            label: record.text.lines().next().unwrap_or_default().chars().take(LABEL).collect(),
            has_children: path.is_empty(),
            record_id: Some(record.known_as().to_owned()),
        };
        let visible = found.into_iter().filter(|record| records.shows(record, &scope));
        Ok(NodePage { nodes: visible.map(node).collect(), next_cursor: more.then(|| (offset + read).to_string()) })
    }
}
