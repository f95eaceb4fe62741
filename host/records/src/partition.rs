//! Partitions that a provider leaves to the host: what was written for one agent, subject or
//! namespace is not answered to another.

use super::Records;
use memhost_store::StoreError;
use memhost_types::{
    AgentId, Binding, Declarations, HostWork, RecordId, RecordRow, Scope, Snippet, Visibility,
};

/// The partitions of a scope that the host keeps for a provider.
#[derive(Debug, Default)]
pub struct HostPartitions<'a> {
    agent: Option<&'a AgentId>,
    subject: Option<&'a str>,
    namespace: Option<&'a str>,
}

impl<'a> HostPartitions<'a> {
    /// Those of this scope that a provider with these declarations leaves to the host.
    pub fn of(declarations: &Declarations, scope: &'a Scope) -> Self {
        let leaves = |work: HostWork| declarations.leaves(work);
        Self {
            agent: scope.agent_id.as_ref().filter(|_| leaves(HostWork::AgentPartition)),
            subject: scope.subject_id.as_deref().filter(|_| leaves(HostWork::SubjectPartition)),
            namespace: scope.namespace.as_deref().filter(|_| leaves(HostWork::NamespacePartition)),
        }
    }

    /// Whether the host keeps none.
    pub fn is_empty(&self) -> bool {
        self.agent.is_none() && self.subject.is_none() && self.namespace.is_none()
    }

    /// Whether a record is in these partitions. One whose scope nobody knows is in none.
    fn has(&self, row: Option<&RecordRow>, snippet: Option<&Snippet>) -> bool {
        // The agent of a row is a partition only if the record belongs to the agent.
        let of_row = row.map(|row| (&row.scope, row.visibility == Visibility::Agent));
        let of_snippet =
            snippet.and_then(|snippet| snippet.scope.as_ref()).map(|scope| (scope, true));
        let Some((scope, is_agents)) = of_row.or(of_snippet) else { return false };
        fits(self.agent, scope.agent_id.as_ref().filter(|_| is_agents))
            && fits(self.subject, scope.subject_id.as_deref())
            && fits(self.namespace, scope.namespace.as_deref())
    }
}

/// A record that was written without one is everybody's.
fn fits<T: PartialEq>(asked: Option<T>, found: Option<T>) -> bool {
    match (asked, found) {
        (Some(asked), Some(found)) => asked == found,
        _ => true,
    }
}

impl Records {
    /// Whether a record of which only the name is known is in these partitions.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn is_in(
        &self,
        binding: &Binding,
        partitions: &HostPartitions<'_>,
        record: &RecordId,
    ) -> Result<bool, StoreError> {
        Ok(partitions.is_empty() || partitions.has(self.row(binding, record).await?.as_ref(), None))
    }

    /// Removes the records of other partitions.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn keep_partitions(
        &self,
        binding: &Binding,
        partitions: &HostPartitions<'_>,
        found: &mut Vec<Snippet>,
    ) -> Result<(), StoreError> {
        if partitions.is_empty() {
            return Ok(());
        }
        let mut kept = Vec::with_capacity(found.len());
        for snippet in found.drain(..) {
            let row = self.row(binding, &snippet.handle.provider_record_id).await?;
            if partitions.has(row.as_ref(), Some(&snippet)) {
                kept.push(snippet);
            }
        }
        *found = kept;
        Ok(())
    }
}
