//! What operations do with the rows of records: whose records a caller is answered, and the rows of
//! what an operation wrote.

use async_recursion::async_recursion as boxed;

use crate::Service;
use crate::access::Caller;
use crate::error::ServiceError;
use crate::operations::runner::Answered;
use memhost_oplog::operation::Ending;
use memhost_records::{HostPartitions, Made, Ownership, Reader, Viewer};
use memhost_store::StoreError;
use memhost_types::{
    Binding, BindingKey, ListRequest, Pages, RecordFilter, RecordHandle, RecordRow, Refusal, Scope,
    Snippet,
};

/// The most records that get a row after an import. The provider's own word counts for a further
/// one.
const MOST: usize = 10_000;
/// Records of one page of them.
const PAGE: u32 = 200;

/// The reader that a caller is in a scope, which is confined to what the caller may name.
pub(crate) fn reader_of(caller: &Caller, scope: &Scope) -> Reader {
    let sees_private = caller.sees_private(&scope.company_id);
    Reader::of(&Viewer { person: caller.person(), sees_private }, scope)
}

/// The reader whose records are forgotten: everybody, or the one that a caller is in a scope.
pub(crate) fn forgetter_of(of_everybody: bool, caller: &Caller, scope: &Scope) -> Reader {
    if of_everybody { Reader::All } else { reader_of(caller, scope) }
}

impl Service {
    /// The rows of records that an operation of this caller and scope has answered, in their order.
    /// `None`: the host knows nothing of a record.
    ///
    /// # Errors
    /// Where the scope is not the caller's, no binding answers for it, or the store fails.
    #[boxed]
    pub async fn rows_of(
        &self,
        caller: &Caller,
        scope: &Scope,
        named: Option<&BindingKey>,
        found: &[Snippet],
    ) -> Result<Vec<Option<RecordRow>>, ServiceError> {
        let mut scope = scope.clone();
        caller.confine(&mut scope).map_err(ServiceError::Denied)?;
        let binding =
            self.bindings.resolve(&scope.company_id, scope.agent_id.as_ref(), named)?.binding;
        let mut rows = Vec::with_capacity(found.len());
        for record in found {
            rows.push(self.records.row(&binding, &record.handle.provider_record_id).await?);
        }
        Ok(rows)
    }

    /// The binding that has the records of a request without a binding key. `None`: no row says it,
    /// or it is the one that the scope resolves to.
    ///
    /// # Errors
    /// Where they are at several bindings, or the store fails.
    pub(crate) async fn binding_of(
        &self,
        scope: &Scope,
        handles: &[RecordHandle],
    ) -> Result<Option<BindingKey>, Refusal> {
        let company = &scope.company_id;
        let active = self.bindings.resolve(company, scope.agent_id.as_ref(), None).ok();
        let active = active.map(|resolution| resolution.binding);
        let all = self.bindings.list(company);
        self.records.binding_of(&all, active.as_ref(), handles).await
    }

    /// Adds the rows of records to what is written in one step with an operation's completion.
    pub(crate) async fn note_rows(
        &self,
        ending: &mut Ending,
        binding: &Binding,
        ownership: &Ownership,
        made: &[Made<'_>],
    ) -> Result<(), StoreError> {
        let guard = self.policies.guard(&ending.operation().principal, binding);
        let is_kept = |row: &RecordRow| guard.may_change(row).is_err();
        let changes = self
            .records
            .written(
                ending.operation(),
                binding,
                (ending.reader(), ownership),
                made,
                (ending.is_systems(), is_kept),
            )
            .await?;
        ending.change_rows(changes);
        Ok(())
    }
}

impl Answered<'_> {
    /// Gives a row to every record of the binding that has none.
    pub(crate) async fn note_imported(&mut self) -> Result<(), StoreError> {
        let (records, serving) = (&self.host.records, self.serving);
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
        self.ending.hold(records.lock(binding.id).await?);
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
            rows.extend(records.imported(self.ending.operation(), binding, &page.items).await?);
            pages.go_on(page.next);
        }
        self.ending.write_beside(rows);
        Ok(())
    }

    /// Removes the records of other partitions, where the provider cannot.
    pub(crate) async fn keep_partitions(
        &self,
        scope: &Scope,
        found: &mut Vec<Snippet>,
    ) -> Result<(), StoreError> {
        let declarations = &self.serving.plugin.component.description().declarations;
        let partitions = HostPartitions::of(declarations, scope);
        self.host.records.keep_partitions(&self.serving.binding, &partitions, found).await
    }

    /// Adds who asserts where records come from.
    pub(crate) async fn assert_sources(&self, found: &mut [Snippet]) -> Result<(), StoreError> {
        self.host.records.assert_sources(&self.serving.binding, found).await
    }

    /// Removes what the reader of the operation may not see and what the filter does not want.
    pub(crate) async fn keep_visible(
        &self,
        filter: Option<&RecordFilter>,
        found: &mut Vec<Snippet>,
    ) -> Result<(), StoreError> {
        let (records, reader) = (&self.host.records, self.ending.reader());
        records.keep_visible(&self.serving.binding, reader, filter, found).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_narrows_what_an_operator_reads() {
        let scope = |agent: Option<&str>, person: Option<&str>| Scope {
            agent_id: agent.map(|id| id.parse().unwrap()),
            subject_id: person.map(str::to_owned),
            ..Scope::company("acme".parse().unwrap())
        };
        let of = |agent, person| reader_of(&Caller::operator(), &scope(agent, person));
        assert_eq!(of(None, None), Reader::All);
        assert_eq!(of(Some("ada"), None), Reader::Agent("ada".parse().unwrap()));
        assert_eq!(
            of(Some("ada"), Some("u1")),
            Reader::Agent("ada".parse().unwrap()),
            "an agent claims no person"
        );
        assert_eq!(of(None, Some("u1")), Reader::Person("u1".to_owned()));
        // The host works for whom the scope names: it may not see more than they do.
        assert_eq!(reader_of(&Caller::worker(), &scope(None, None)), Reader::Nobody);
        assert_eq!(
            reader_of(&Caller::operator().through("mcp:x"), &scope(None, None)),
            Reader::Nobody
        );
        assert_eq!(reader_of(&Caller::system(), &scope(None, None)), Reader::All);
    }
}
