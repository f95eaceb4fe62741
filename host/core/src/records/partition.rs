//! Partitions that a provider leaves to the host: what was written for one agent, subject or
//! namespace is not answered to another.

use super::Records;
use crate::operations::runner::Answered;
use memhost_store::StoreError;
use memhost_types::{
    AgentId, Binding, Declarations, HostWork, RecordId, RecordRow, Scope, Snippet, Visibility,
};

/// What a scope names of the partitions that the host keeps.
#[derive(Debug, Default)]
pub(crate) struct OwnPartitions<'a> {
    agent: Option<&'a AgentId>,
    subject: Option<&'a str>,
    namespace: Option<&'a str>,
}

impl<'a> OwnPartitions<'a> {
    pub(crate) fn of(declarations: &Declarations, scope: &'a Scope) -> Self {
        Self {
            agent: scope
                .agent_id
                .as_ref()
                .filter(|_| declarations.leaves(HostWork::AgentPartition)),
            subject: scope
                .subject_id
                .as_deref()
                .filter(|_| declarations.leaves(HostWork::SubjectPartition)),
            namespace: scope
                .namespace
                .as_deref()
                .filter(|_| declarations.leaves(HostWork::NamespacePartition)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.agent.is_none() && self.subject.is_none() && self.namespace.is_none()
    }

    /// Whether a record is of these partitions. One whose scope nobody knows is of none.
    fn has(&self, row: Option<&RecordRow>, snippet: Option<&Snippet>) -> bool {
        // The agent of a row is a partition only where the record is the agent's own.
        let of_row = row.map(|row| (&row.scope, row.visibility == Visibility::Agent));
        let of_snippet =
            snippet.and_then(|snippet| snippet.scope.as_ref()).map(|scope| (scope, true));
        let Some((scope, is_agents)) = of_row.or(of_snippet) else { return false };
        fits(self.agent, scope.agent_id.as_ref().filter(|_| is_agents))
            && fits(self.subject, scope.subject_id.as_deref())
            && fits(self.namespace, scope.namespace.as_deref())
    }
}

/// What was written without one is everybody's.
fn fits<T: PartialEq>(asked: Option<T>, found: Option<T>) -> bool {
    match (asked, found) {
        (Some(asked), Some(found)) => asked == found,
        _ => true,
    }
}

impl Records {
    /// Whether a record of which only the name is known is of these partitions.
    pub(crate) async fn is_of(
        &self,
        binding: &Binding,
        own: &OwnPartitions<'_>,
        record: &RecordId,
    ) -> Result<bool, StoreError> {
        Ok(own.is_empty() || own.has(self.row(binding, record).await?.as_ref(), None))
    }
}

impl Answered<'_> {
    /// Takes out the records of other partitions, where the provider cannot.
    pub(crate) async fn keep_partition(
        &self,
        scope: &Scope,
        found: &mut Vec<Snippet>,
    ) -> Result<(), StoreError> {
        let own =
            OwnPartitions::of(&self.serving.plugin.component.description().declarations, scope);
        if own.is_empty() {
            return Ok(());
        }
        let mut kept = Vec::with_capacity(found.len());
        for snippet in found.drain(..) {
            let row = self
                .host
                .records
                .row(&self.serving.binding, &snippet.handle.provider_record_id)
                .await?;
            if own.has(row.as_ref(), Some(&snippet)) {
                kept.push(snippet);
            }
        }
        *found = kept;
        Ok(())
    }
}
