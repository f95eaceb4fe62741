//! What operations do with the rows of records: they keep from an answer what its reader may not
//! see, and write the rows of what an operation made.

use async_recursion::async_recursion as boxed;
use jiff::Timestamp;

use crate::Operations;
use crate::runner::Answered;
use memhost_access::Caller;
use memhost_oplog::operation::Ending;
use memhost_records::{HostPartitions, Made, Ownership};
use memhost_store::StoreError;
use memhost_tenancy::ServiceError;
use memhost_types::{
    Binding, BindingKey, ListRequest, Pages, RecordFilter, RecordHandle, RecordRow, Refusal, Scope,
    Snippet,
};

/// The most records that get a row after an import. The provider's own word counts for a further
/// one.
const MOST: usize = 10_000;
/// Records of one page of them.
const PAGE: u32 = 200;

impl Operations {
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

    /// Removes what the reader of the operation may not see, what the filter does not want, and
    /// what has expired.
    pub(crate) async fn keep_visible(
        &self,
        filter: Option<&RecordFilter>,
        found: &mut Vec<Snippet>,
    ) -> Result<(), StoreError> {
        self.keep_visible_at(Some(self.host.clock.now()), filter, found).await
    }

    /// The same at a time; `None`: with what has expired.
    pub(crate) async fn keep_visible_at(
        &self,
        now: Option<Timestamp>,
        filter: Option<&RecordFilter>,
        found: &mut Vec<Snippet>,
    ) -> Result<(), StoreError> {
        let (records, reader) = (&self.host.records, self.ending.reader());
        records.keep_visible(&self.serving.binding, reader, filter, now, found).await
    }
}
