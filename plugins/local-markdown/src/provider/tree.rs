//! The directory as a tree of the records that the scope may see.

use std::collections::BTreeMap;

use memhost_sdk::Browse;
use memhost_sdk::types::{Error, Node, NodePage, Scope};

use super::LocalMarkdown;

/// The longest label that the contract allows, in bytes.
const LABEL_BYTES: usize = 512;

impl Browse for LocalMarkdown {
    fn list_children(
        &mut self,
        path: String,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<NodePage, Error> {
        self.library.refresh()?;
        let below = if path.is_empty() { String::new() } else { format!("{path}/") };
        let admits = self.admits(&scope, None);
        let index = &self.library.index;
        // By name, so that the next page can begin after a name although others were added or
        // removed. None: a folder.
        let mut children: BTreeMap<&str, Option<String>> = BTreeMap::new();
        for (_, doc) in index.behind(None).filter(|(number, _)| admits(index, *number)) {
            let Some(rest) = doc.path.strip_prefix(below.as_str()) else { continue };
            match rest.split_once('/') {
                Some((folder, _)) => children.insert(folder, None),
                None => children.insert(rest, Some(doc.id.to_string())),
            };
        }
        if children.is_empty() && !path.is_empty() {
            return Err(Error::NotFound(format!(
                "there is no folder `{path}` with records of this scope"
            )));
        }
        let mut found: Vec<Node> = children
            .into_iter()
            .filter(|(name, _)| cursor.as_deref().is_none_or(|cursor| *name > cursor))
            .take(limit as usize + 1)
            .map(|(name, record_id)| Node {
                path: format!("{below}{name}"),
                label: name[..name.floor_char_boundary(LABEL_BYTES)].to_owned(),
                has_children: record_id.is_none(),
                record_id,
            })
            .collect();
        let has_more = found.len() > limit as usize;
        found.truncate(limit as usize);
        let last = found.last().filter(|_| has_more);
        let next_cursor = last.map(|node| node.path[below.len()..].to_owned());
        self.library.save()?;
        Ok(NodePage { nodes: found, next_cursor })
    }
}
