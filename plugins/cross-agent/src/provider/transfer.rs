//! Export and import: one item on each line, as it is stored.

use std::collections::HashMap;

use memhost_sdk::Transfer;
use memhost_sdk::types::*;
use serde_json::Map;

use super::CrossAgent;
use crate::index::Asked;
use crate::item::{Item, check};
use crate::store::CHANGE_ITEMS;

/// Bytes of a chunk, and of an id.
const CHUNK_BYTES: usize = 1 << 20;
const ID_BYTES: usize = 512;

impl Transfer for CrossAgent {
    fn export_records(&mut self, scope: Scope, cursor: Option<String>) -> Result<Chunk, Error> {
        self.store.refresh()?;
        let index = &self.store.index;
        let seen = index.places.seen(&Asked::looking(&scope));
        let admitted =
            index.behind(cursor.as_deref()).filter(|(_, known)| seen[known.place as usize]);
        let (mut lines, mut count, mut last) = (String::new(), 0, None);
        for (_, known) in admitted {
            let Some(item) = self.store.item(&known.id)? else { continue };
            let line =
                serde_json::to_string(&item).map_err(|error| Error::internal(error.to_string()))?;
            // An item's text may be as long as a chunk. A longer line is a chunk of its own.
            if count == CHANGE_ITEMS || count > 0 && lines.len() + line.len() >= CHUNK_BYTES {
                return Ok(Chunk { lines, next_cursor: last });
            }
            lines = lines + &line + "\n";
            count += 1;
            last = Some(item.id);
        }
        Ok(Chunk { lines, next_cursor: None })
    }

    fn import_records(&mut self, request: ImportRequest) -> Result<ImportReport, Error> {
        self.store.refresh()?;
        let ImportRequest { scope, lines, .. } = request;
        let (mut items, mut places): (Vec<Item>, HashMap<String, usize>) =
            (Vec::new(), HashMap::new());
        let mut unchanged = 0;
        for (number, line) in lines.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let field = format!("lines.{number}");
            let item = read(&field, line)?;
            fits(&field, &item, &scope)?;
            let before = self.visible(&item.id, &scope)?;
            if before.is_none() && self.store.index.find(&item.id).is_some() {
                let message =
                    format!("has the id `{}` of a record that this scope may not see", item.id);
                return Err(Error::invalid(&field, message));
            }
            match places.get(&item.id) {
                Some(place) => items[*place] = item,
                None if before.as_ref() == Some(&item) => unchanged += 1,
                None => {
                    places.insert(item.id.clone(), items.len());
                    items.push(item);
                }
            }
        }
        if items.len() > CHANGE_ITEMS {
            let message = format!(
                "are {} new or changed items; send at most {CHANGE_ITEMS} at once",
                items.len()
            );
            return Err(Error::invalid("lines", message));
        }
        let imported = u32::try_from(items.len()).unwrap_or(u32::MAX);
        self.write(&items)?;
        Ok(ImportReport { imported, unchanged })
    }
}

fn read(field: &str, line: &str) -> Result<Item, Error> {
    let wrong = |message: String| Error::invalid(field, message);
    let item: Item = serde_json::from_str(line)
        .map_err(|error| wrong(format!("is not a line of an export of cross-agent: {error}")))?;
    if !(1..=ID_BYTES).contains(&item.id.len()) {
        return Err(wrong(format!(
            "has an `id` of {} bytes; 1 to {ID_BYTES} are allowed",
            item.id.len()
        )));
    }
    for (name, time) in [("createdAt", &item.created_at), ("updatedAt", &item.updated_at)] {
        if let Err(error) = time.parse::<jiff::Timestamp>() {
            return Err(wrong(format!(
                "has `{time}` as its `{name}`, which is not a time: {error}"
            )));
        }
    }
    check(field, item.metadata.as_ref().unwrap_or(&Map::new()))?;
    Ok(item)
}

/// Refuses an item of another scope.
fn fits(field: &str, item: &Item, scope: &Scope) -> Result<(), Error> {
    let place = &item.scope;
    for (name, of_item, of_scope) in [
        ("agentId", &place.agent_id, &scope.agent_id),
        ("projectId", &place.project_id, &scope.project_id),
        ("subjectId", &place.subject_id, &scope.subject_id),
        ("namespace", &place.namespace, &scope.namespace),
    ] {
        if let Some(asked) = of_scope
            && of_item.as_ref() != Some(asked)
        {
            let has = of_item.as_deref().unwrap_or("none");
            let message = format!(
                "is of the {name} `{has}`, and the import is into `{asked}`; leave the {name} out"
            );
            return Err(Error::invalid(field, message));
        }
    }
    Ok(())
}
