//! claude-mem's timeline as the contract's tree: the observations, the newest first, and below each
//! one what was seen around it.

use memhost_sdk::remote::{Record, Records, Service, offset};
use memhost_sdk::{Browse, types::*};

use crate::api::ClaudeMem;

impl Browse for ClaudeMem {
    /// A path is an observation's number, or two: one that was seen around the other. The cursor
    /// counts entries of claude-mem. One that the scope may not see is left out, so a page can be
    /// short.
    fn list_children(
        &mut self,
        path: String,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<NodePage, Error> {
        self.serve(&scope.company_id);
        let (offset, limit) = (offset(cursor.as_deref())?, (limit as usize).min(Self::MOST_HITS));
        let (found, more): (Vec<Record>, bool) = if path.is_empty() {
            let page = self.observations("", offset, limit)?;
            let is_full = page.len() == limit;
            (page.into_iter().map(Record::from).collect(), is_full)
        } else {
            let gone = || {
                Error::NotFound(format!(
                    "claude-mem has no observation {path} to show the time around"
                ))
            };
            let anchor =
                self.is_id(&path).then(|| path.parse::<u64>().ok()).flatten().ok_or_else(gone)?;
            self.find(&path)?.filter(|record| record.tag.is_visible_in(&scope)).ok_or_else(gone)?;
            let around = self.timeline(anchor)?;
            let here: Vec<_> = around.iter().skip(offset).take(limit).copied().collect();
            let mut found = if here.is_empty() { Vec::new() } else { self.batch(&here)? };
            found.sort_by_key(|record| here.iter().position(|id| id.to_string() == record.id));
            (found, offset + limit < around.len())
        };
        let place = |id: &str| if path.is_empty() { id.to_owned() } else { format!("{path}/{id}") };
        let records = Records::of(self);
        let visible = found.iter().filter(|record| records.shows(record, &scope));
        let nodes = visible.map(|record| record.node(place(&record.id), path.is_empty())).collect();
        Ok(NodePage { nodes, next_cursor: more.then(|| (offset + limit).to_string()) })
    }
}
