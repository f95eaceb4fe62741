//! Rows for records that came as lines of their provider: the answer to an import names none of
//! them.

use super::{Mark, Owner, Records};
use crate::operations::runner::Answered;
use memhost_store::{StoreError, TableWrite};
use memhost_types::{
    AgentId, BindingId, CompanyId, ListRequest, Pages, RecordRow, Scope, Snippet, Visibility,
};

/// The most records that get a row after an import. The provider's own word counts for a further
/// one.
const MOST: usize = 10_000;
/// Records of one page of them.
const PAGE: u32 = 200;

impl Records {
    /// The row that says that an agent has private records at a binding.
    fn owns(
        &self,
        company: &CompanyId,
        binding: BindingId,
        agent: &AgentId,
    ) -> Result<TableWrite, StoreError> {
        let owner = Owner::Agent(agent.clone());
        let row = Mark::owns(company, binding, owner.clone()).write()?;
        self.own(binding, owner);
        Ok(row)
    }
}

impl Answered<'_> {
    /// Gives a row to every record of the binding that has none. A record of an agent's partition
    /// is that agent's.
    pub(crate) async fn note_imported(&mut self) -> Result<(), StoreError> {
        let (host, serving) = (self.host, self.serving);
        let binding = &serving.binding;
        let request = ListRequest {
            binding_key: None,
            scope: Scope::company(binding.company_id.clone()),
            cursor: None,
            limit: Some(PAGE),
            metadata_filter: None,
            filter: None,
        };
        let (mut pages, mut seen, mut rows) = (Pages::default(), 0, Vec::new());
        // Until its rows are on disk nobody finds that an agent has no private records.
        let lock = host.records.lock(binding.id).await?;
        self.ending.hold(lock);
        while seen < MOST
            && let Some(cursor) = pages.next()
        {
            let page = match serving.instances.list(&request, cursor).await {
                Ok(answer) => {
                    self.ending.add_metered(answer.metered);
                    answer.value
                }
                Err(failure) => {
                    self.ending.add_metered(failure.metered);
                    tracing::warn!(error = %failure.error, binding = %binding.key, "the provider \
                        could not list what it imported; its own word says whose each record is");
                    break;
                }
            };
            self.ending.add_usage(page.usage);
            // An empty page counts, too: a list that never ends is left.
            seen += page.items.len().max(1);
            for snippet in &page.items {
                if host.records.row(binding, &snippet.handle.provider_record_id).await?.is_some() {
                    continue;
                }
                let row = self.row_of(snippet);
                if let (Visibility::Agent, Some(agent)) = (row.visibility, &row.scope.agent_id) {
                    rows.push(host.records.owns(&binding.company_id, binding.id, agent)?);
                }
                rows.extend(Records::write(&row, None)?);
            }
            pages.go_on(page.next);
        }
        self.ending.write_beside(rows);
        Ok(())
    }

    fn row_of(&self, snippet: &Snippet) -> RecordRow {
        let (binding, operation) = (&self.serving.binding, self.ending.operation());
        let scope =
            snippet.scope.clone().unwrap_or_else(|| Scope::company(binding.company_id.clone()));
        RecordRow {
            company_id: binding.company_id.clone(),
            binding_id: binding.id,
            handle: snippet.handle.clone(),
            visibility: if scope.agent_id.is_some() {
                Visibility::Agent
            } else {
                Visibility::Company
            },
            scope,
            source: snippet.source.clone(),
            hook_kind: None,
            written_by: operation.principal.clone(),
            operation_id: operation.id,
            created_at: snippet.created_at.unwrap_or(operation.started_at),
            expires_at: snippet.expires_at,
            received_at: None,
            replaces: None,
            corrected_by: None,
            corrected_via: None,
        }
    }
}
