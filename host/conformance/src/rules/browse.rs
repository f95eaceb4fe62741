//! Rules of `browse`. The suite walks the whole tree of a few records.

use super::query::several;
use crate::rule::{Rule, optional, rules, types};
use crate::subject::{Subject, answered};
use crate::verdict::{Stop, Verdict, failed, holds, skipped};
use memhost_sandbox::{CallError, OptionalInterface};
use memhost_types::{BrowseNode, HostWork, Pages, ProviderError, RecordHandle, Scope};

/// The most nodes that the suite walks.
const MOST_NODES: usize = 200;

pub(super) const RULES: &[Rule] = rules! { Some(OptionalInterface::Browse);
    "BRW-01" "The order of children is stable"
        "The suite lists the children of each node three times. The order is the same."
        optional(
            "list-children",
            "The children of a node, in a stable order; at most `limit`, 1 to 1,000.",
        )
        => binding(order);
    "BRW-02" "An unknown path is not found"
        "`list-children` of a path that the provider never gave answers `not-found`."
        optional("list-children", "`not-found` for a path that is gone.")
        => binding(gone);
    "BRW-03" "Each child is listed once"
        "The children of each node, in pages of one, are the same as on one page."
        optional(
            "list-children",
            "The children of a node, in a stable order; at most `limit`, 1 to 1,000.",
        )
        => binding(pages);
    "BRW-04" "The record of a node exists"
        "`get-record` returns each record that a node names."
        optional("node.record-id", "The record behind the node, if there is one.")
        => binding(records);
    "BRW-05" "A tree separates partitions"
        "No node of another agent's tree names a record of this agent."
        types("scope",
            "a record written with one of them set must not be returned to a scope that has that \
             field set to something \
             else.")
        => binding(partitions).left(&[HostWork::AgentPartition, HostWork::SubjectPartition]);
    "BRW-06" "Labels are short"
        "With a record of one long line, no label is longer than 512 bytes and no path longer than \
         4 KiB."
        optional("node.label", "At most 512 bytes.")
        => binding(labels);
};

async fn children(
    subject: &Subject,
    scope: Scope,
    path: &str,
    limit: u32,
) -> Result<Vec<BrowseNode>, Stop> {
    let (mut all, mut pages) = (Vec::new(), Pages::default());
    while let Some(cursor) = pages.next() {
        if all.len() > MOST_NODES {
            return failed(format!(
                "the list of children of {path:?} does not end: {} nodes",
                all.len()
            ));
        }
        let page = subject.browse(scope.clone(), path, cursor.as_deref(), limit).await;
        let page = answered("list-children", page)?;
        all.extend(page.nodes);
        pages.go_on(page.next);
    }
    Ok(all)
}

/// Every node of the tree, and the paths that have children.
async fn walked(subject: &Subject, scope: Scope) -> Result<(Vec<BrowseNode>, Vec<String>), Stop> {
    let (mut all, mut open, mut seen) = (Vec::new(), vec![String::new()], Vec::new());
    while let Some(path) = open.pop() {
        let found = children(subject, scope.clone(), &path, 100).await?;
        open.extend(found.iter().filter(|node| node.has_children).map(|node| node.path.clone()));
        all.extend(found);
        seen.push(path);
        if all.len() > MOST_NODES {
            return skipped(format!("the tree of a few records has more than {MOST_NODES} nodes"));
        }
    }
    Ok((all, seen))
}

async fn order(subject: &Subject) -> Verdict {
    several(subject, 4).await?;
    let (_, paths) = walked(subject, subject.scope()).await?;
    for path in paths {
        let first = children(subject, subject.scope(), &path, 100).await?;
        for _ in 0..2 {
            let again = children(subject, subject.scope(), &path, 100).await?;
            holds(first == again, || format!("the children of {path:?} come in another order"))?;
        }
    }
    Ok(())
}

async fn gone(subject: &Subject) -> Verdict {
    several(subject, 1).await?;
    match subject.browse(subject.scope(), "no-such-node/at-all", None, 10).await {
        Err(CallError::Provider(ProviderError::NotFound(_))) => Ok(()),
        Err(error) => failed(error.to_string()),
        Ok(page) => failed(format!("a page of {} nodes", page.nodes.len())),
    }
}

async fn pages(subject: &Subject) -> Verdict {
    several(subject, 4).await?;
    let (_, paths) = walked(subject, subject.scope()).await?;
    for path in paths {
        let all = children(subject, subject.scope(), &path, 100).await?;
        let one_by_one = children(subject, subject.scope(), &path, 1).await?;
        holds(all == one_by_one, || {
            format!(
                "{path:?} has {} children on one page, and {} one by one",
                all.len(),
                one_by_one.len()
            )
        })?;
    }
    Ok(())
}

async fn records(subject: &Subject) -> Verdict {
    several(subject, 3).await?;
    let (nodes, _) = walked(subject, subject.scope()).await?;
    let named: Vec<RecordHandle> = nodes.into_iter().filter_map(|node| node.record).collect();
    if named.is_empty() {
        return skipped("no node names a record");
    }
    for handle in named {
        let found = subject.get(subject.scope(), &handle).await?;
        holds(found.is_some(), || format!("`get-record` has no `{}`", handle.provider_record_id))?;
    }
    Ok(())
}

async fn partitions(subject: &Subject) -> Verdict {
    let (_, handles) = several(subject, 3).await?;
    let (nodes, _) = walked(subject, subject.other_agent()).await?;
    let strange = nodes
        .iter()
        .find(|node| node.record.as_ref().is_some_and(|record| handles.contains(record)));
    match strange {
        None => Ok(()),
        Some(node) => failed(format!("the node {:?} names a record of the first agent", node.path)),
    }
}

async fn labels(subject: &Subject) -> Verdict {
    // As long as providers with narrow limits accept it.
    let long = "incomprehensibilities ".repeat(9);
    subject.put(subject.scope(), long.trim_end()).await?;
    // The host has refused longer labels already.
    let (nodes, _) = walked(subject, subject.scope()).await?;
    if nodes.is_empty() { skipped("the tree is empty") } else { Ok(()) }
}
