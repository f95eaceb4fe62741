//! The interface `browse`: the provider's own tree.

use crate::answer::Answer;
use crate::contract::browse as wire;
use crate::convert;
use crate::error::Failure;
use crate::instances::{Instances, call};
use crate::normalize::{Checked, Normalize, count, name, text_size};
use memhost_types::{BrowseNode, BrowseRequest, limits};

/// The answer of `list-children`.
#[derive(Debug)]
pub struct BrowseAnswer {
    /// At most as many as asked for.
    pub nodes: Vec<BrowseNode>,
    /// The provider's own cursor.
    pub next: Option<String>,
}

impl Instances {
    /// The children of a node of the provider's own tree. `cursor` is the provider's own.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says.
    pub async fn browse(
        &self, request: &BrowseRequest, cursor: Option<&str>,
    ) -> Result<Answer<BrowseAnswer>, Failure> {
        let (path, scope) = (&request.path, convert::scope(&request.scope));
        let limit = request.limit.unwrap_or(limits::DEFAULT_LIMIT);
        let check = |checks: &Normalize, answer| page(checks, answer, limit);
        call!(self, wire.call_list_children(path, &scope, cursor, limit), check).await
    }
}

fn page(normalize: &Normalize, answer: wire::NodePage, limit: u32) -> Checked<BrowseAnswer> {
    count("nodes", answer.nodes.len(), limit as usize)?;
    if let Some(cursor) = &answer.next_cursor {
        text_size("nextCursor", cursor, limits::MAX_PROVIDER_CURSOR_BYTES)?;
    }
    let node = |node: wire::Node| {
        text_size("path", &node.path, limits::MAX_NODE_PATH_BYTES)?;
        Ok(BrowseNode {
            path: node.path,
            label: name("label", node.label)?,
            has_children: node.has_children,
            record: node.record_id.map(|id| normalize.handle(id)).transpose()?,
        })
    };
    Ok(BrowseAnswer {
        nodes: normalize.sound(|node| format!("node {:?}", node.path), answer.nodes, node),
        next: answer.next_cursor
    })
}
