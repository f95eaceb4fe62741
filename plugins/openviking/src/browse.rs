//! OpenViking's directories as the contract's tree.

use memhost_sdk::remote::{Tag, offset};
use memhost_sdk::{Browse, types::*};
use serde_json::json;

use crate::api::{Entry, OpenViking, ROOTS, uri};
use crate::name::{id_of, partition};

/// The most characters of a label.
const LABEL: usize = 80;

impl Browse for OpenViking {
    /// The cursor counts OpenViking's entries. One that the scope may not see is left out, so a
    /// page can be short.
    fn list_children(
        &mut self,
        path: String,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<NodePage, Error> {
        let directory = |path: &str, label: &str| Node {
            path: path.to_owned(),
            label: label.chars().take(LABEL).collect(),
            has_children: true,
            record_id: None,
        };
        let gone = || Error::NotFound(format!("OpenViking has no directory {path}"));
        let offset = offset(cursor.as_deref())?;
        if path.is_empty() {
            let roots =
                ROOTS.iter().skip(offset).take(limit as usize).map(|root| directory(root, root));
            let nodes: Vec<_> = roots.collect();
            let read = offset + nodes.len();
            return Ok(NodePage {
                nodes,
                next_cursor: (read < ROOTS.len()).then(|| read.to_string()),
            });
        }
        let parts: Vec<_> = path.split('/').collect();
        if !ROOTS.contains(&parts[0])
            || parts.iter().any(|part| part.is_empty() || part.starts_with('.'))
        {
            return Err(gone());
        }
        let found = match self.entries("ls", &uri(&path), offset, limit.min(100))? {
            Some(found) => found,
            None if ROOTS.contains(&path.as_str()) => {
                return Ok(NodePage { nodes: Vec::new(), next_cursor: None });
            }
            None => return Err(gone()),
        };
        let files: Vec<_> =
            found.result.iter().filter(|entry| !entry.is_dir).map(|entry| &entry.uri).collect();
        let records = if files.is_empty() {
            Vec::new()
        } else {
            self.find_in("", &json!(files), &[], files.len())?
        };
        let node = |entry: &Entry| {
            let name = entry.uri.rsplit('/').next()?;
            let path = format!("{path}/{name}");
            if entry.is_dir {
                let scope_of = partition(&format!("{path}/"));
                let is_visible = scope_of.is_none_or(|of| Tag::of(&of).is_visible_in(&scope));
                return is_visible.then(|| directory(&path, name));
            }
            let record =
                records.iter().find(|record| Some(record.id.as_str()) == id_of(&entry.uri))?;
            record.tag.is_visible_in(&scope).then(|| record.node(path, false))
        };
        let next_cursor = found.has_more.then(|| (offset + found.result.len()).to_string());
        Ok(NodePage { nodes: found.result.iter().filter_map(node).collect(), next_cursor })
    }
}
