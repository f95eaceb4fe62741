//! OpenViking's directories as the contract's tree.

use memhost_sdk::remote::Tag;
use memhost_sdk::{Browse, types::*};
use serde_json::json;

use crate::api::{ROOTS, uri};
use crate::name::{id_of, partition};
use crate::provider::OpenViking;

/// The most characters of a label.
const LABEL: usize = 80;

impl Browse for OpenViking {
    /// The cursor counts OpenViking's entries. One that the scope may not see is left out, so a page can be short.
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
        let offset = cursor.as_deref().unwrap_or("0").parse();
        let offset: u32 = offset.map_err(|_| Error::invalid("cursor", "is no cursor of this tree; begin again"))?;
        if path.is_empty() {
            let roots: Vec<_> = ROOTS.iter().skip(offset as usize).take(limit as usize).collect();
            let read = offset as usize + roots.len();
            let next_cursor = (read < ROOTS.len()).then(|| read.to_string());
            return Ok(NodePage { nodes: roots.into_iter().map(|root| directory(root, root)).collect(), next_cursor });
        }
        let parts: Vec<_> = path.split('/').collect();
        if !ROOTS.contains(&parts[0]) || parts.iter().any(|part| part.is_empty() || part.starts_with('.')) {
            return Err(gone());
        }
        let service = &self.records.service;
        let found = match service.entries("ls", &uri(&path), offset, limit.min(100))? {
            Some(found) => found,
            None if ROOTS.contains(&path.as_str()) => return Ok(NodePage { nodes: Vec::new(), next_cursor: None }),
            None => return Err(gone()),
        };
        let read = u32::try_from(found.result.len()).unwrap_or(u32::MAX);
        let files: Vec<_> = found.result.iter().filter(|entry| !entry.is_dir).map(|entry| &entry.uri).collect();
        let records =
            if files.is_empty() { Vec::new() } else { service.find_in("", &json!(files), &[], files.len())? };
        let node = |entry: &crate::api::Entry| {
            let name = entry.uri.rsplit('/').next()?;
            let path = format!("{path}/{name}");
            if entry.is_dir {
                let scope_of = partition(&format!("{path}/"));
                let is_visible = scope_of.is_none_or(|of| Tag::of(&of).is_visible_in(&scope));
                return is_visible.then(|| directory(&path, name));
            }
            let record = records.iter().find(|record| Some(record.id.as_str()) == id_of(&entry.uri))?;
            let label = record.text.lines().next().unwrap_or_default().chars().take(LABEL).collect();
            let record_id = Some(record.known_as().to_owned());
            record.tag.is_visible_in(&scope).then_some(Node { path, label, has_children: false, record_id })
        };
        let next_cursor = found.has_more.then(|| (offset + read).to_string());
        Ok(NodePage { nodes: found.result.iter().filter_map(node).collect(), next_cursor })
    }
}
