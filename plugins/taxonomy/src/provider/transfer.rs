//! Export and import: one item on each line, with its status and its decision.

use memhost_sdk::Transfer;
use memhost_sdk::storage::Batch;
use memhost_sdk::types::*;
use serde::{Deserialize, Serialize};

use super::Taxonomy;
use crate::id;
use crate::item::{Item, Status, Use};

/// A line of an export: the item, and how often it was used.
#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    item: Item,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uses: Option<Use>,
}

/// A chunk's lines, in bytes, as the contract limits them.
const CHUNK: usize = 1 << 20;

impl Transfer for Taxonomy {
    fn export_records(&mut self, scope: Scope, cursor: Option<String>) -> Result<Chunk, Error> {
        self.store.refresh()?;
        let last = cursor.as_deref().map(|cursor| {
            id::read_cursor(cursor).ok_or_else(|| {
                Error::invalid(
                    "cursor",
                    format!("`{cursor}` is not a cursor of taxonomy's export; start without one"),
                )
            })
        });
        let (mut lines, mut last) = (String::new(), last.transpose()?.map(str::to_owned));
        for held in self.store.behind(last.clone().as_deref()) {
            if !held.item.is_visible(&scope) {
                continue;
            }
            let line = serde_json::to_string(&Line { item: held.item.clone(), uses: held.used })
                .map_err(|error| {
                    Error::internal(format!("`{}` cannot be written: {error}", held.item.id))
                })?;
            if lines.len() + line.len() >= CHUNK && !lines.is_empty() {
                return Ok(Chunk { lines, next_cursor: last.map(|last| id::cursor(&last)) });
            }
            lines.push_str(&line);
            lines.push('\n');
            last = Some(held.item.id.clone());
        }
        Ok(Chunk { lines, next_cursor: None })
    }

    fn import_records(&mut self, request: ImportRequest) -> Result<ImportReport, Error> {
        self.store.refresh()?;
        let ImportRequest { scope, lines, .. } = request;
        let (mut items, mut unchanged): (Vec<Item>, u32) = (Vec::new(), 0);
        let mut counted = Vec::new();
        for (number, line) in lines.lines().enumerate() {
            let wrong = |message: String| Error::invalid(&format!("lines.{number}"), message);
            let Line { mut item, uses } = serde_json::from_str(line)
                .map_err(|error| wrong(format!("is not an item of taxonomy's export: {error}")))?;
            if !item.is_visible(&scope) {
                return Err(wrong(format!(
                    "`{}` is of another scope than the one that it is imported into",
                    item.id
                )));
            }
            let known = self.store.held(&item.id);
            if let Some(used) = uses
                && known.and_then(|held| held.used).is_none_or(|known| known.count < used.count)
            {
                counted.push((item.id.clone(), used));
            } else if known.is_some_and(|held| held.item == item) {
                unchanged += 1;
                continue;
            }
            // Anybody can write such a line, so its content is judged again.
            item.judge_pii();
            if item.pii_risk == 2 && item.status == Status::Approved {
                item.status = Status::Pending;
            }
            match self.store.get(&item.id) {
                Some(present)
                    if *present == item && !counted.iter().any(|(id, _)| *id == item.id) =>
                {
                    unchanged += 1;
                }
                Some(present) if !present.is_visible(&scope) => {
                    return Err(wrong(format!(
                        "`{}` is the id of a record that this scope may not see",
                        item.id
                    )));
                }
                _ => items.push(item),
            }
        }
        let imported = u32::try_from(items.len()).unwrap_or(u32::MAX);
        items.iter().for_each(|item| {
            if let Some((_, used)) = counted.iter().find(|(id, _)| *id == item.id) {
                self.store.take_over_uses(&item.id, *used);
            }
        });
        if !items.is_empty() {
            self.store.write(Batch::new(), items, &[])?;
        }
        Ok(ImportReport { imported, unchanged })
    }
}
