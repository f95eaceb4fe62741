//! What an operation returned, what became of it since, and how the provider answers the same
//! request now.

use async_recursion::async_recursion as boxed;

use crate::Control;
use memhost_access::Caller;
use memhost_tenancy::ServiceError;
use memhost_types::{
    Binding, CompanyId, ExplainedOperation, Explanation, FieldError, Operation, OperationFilter,
    OperationId, OperationKind, Outcome, QueryRequest, RecordFate, RecordHandle, ReturnedRecord,
};

/// Operations about one record that are searched for the one that removed it.
const MOST_SEARCHED: usize = 200;

impl Control {
    /// Explains an operation of a company as [`Self::explained`] does. With `again` the provider is
    /// asked to explain the same request now, if the binding kept the request: that is an operation
    /// `explain` of the caller.
    ///
    /// # Errors
    /// Where the company has no such operation, or it returned no list of records.
    #[boxed]
    pub async fn explain_operation(
        &self,
        caller: &Caller,
        company: &CompanyId,
        id: OperationId,
        again: bool,
    ) -> Result<ExplainedOperation, ServiceError> {
        let operation = self.operation(company, id).await?;
        let explained = self.explained(&operation).await?;
        let (again, not_again) = match again {
            true => self.again(caller, &operation).await,
            false => (None, None),
        };
        Ok(ExplainedOperation { again, not_again, ..explained })
    }

    /// Explains a query or a list from what the host kept of it: the records in their order, and
    /// what became of each.
    ///
    /// # Errors
    /// Where it returned no list of records, or the store fails.
    #[boxed]
    pub async fn explained(
        &self,
        operation: &Operation,
    ) -> Result<ExplainedOperation, ServiceError> {
        if !matches!(operation.kind, OperationKind::Query | OperationKind::List)
            || operation.outcome != Outcome::Succeeded
        {
            let message = format!(
                "is {} of the kind `{}` that ended with `{}`; only a query or a list that \
                 succeeded can be explained",
                operation.id, operation.kind, operation.outcome
            );
            return Err(FieldError::new("id", message).into());
        }
        let bindings = self.bindings.list(&operation.company_id);
        let binding =
            bindings.into_iter().find(|binding| Some(binding.known_as()) == operation.binding_id);
        let omitted = self.omitted(operation).await?;
        let mut records = Vec::with_capacity(operation.records.len());
        for (rank, handle) in (1..).zip(&operation.records) {
            let (state, changed_by) = match &binding {
                Some(binding) => self.fate(binding, operation, handle).await?,
                None => (RecordFate::Gone, None),
            };
            let (handle, is_omitted) = (handle.clone(), omitted.contains(handle));
            records.push(ReturnedRecord { rank, handle, state, is_omitted, changed_by });
        }
        let is_complete = operation.record_count as usize <= records.len();
        Ok(ExplainedOperation {
            operation_id: operation.id,
            records,
            is_complete,
            again: None,
            not_again: None,
        })
    }

    /// The records of a recall that its token budget left out of the block, as far as the delivery
    /// still says so.
    async fn omitted(&self, operation: &Operation) -> Result<Vec<RecordHandle>, ServiceError> {
        let (Some(hook), Some(binding)) = (&operation.hook, operation.binding_id) else {
            return Ok(Vec::new());
        };
        let agent = operation.scope.agent_id.as_ref();
        let found =
            self.deliveries.of_hook(&operation.scope.company_id, hook, agent, binding).await?;
        let recall = found
            .filter(|delivery| delivery.last_operation_id == Some(operation.id))
            .and_then(|delivery| delivery.recall);
        Ok(recall.map(|recall| recall.omitted).unwrap_or_default())
    }

    /// What became of a record, and the operation that did it.
    async fn fate(
        &self,
        binding: &Binding,
        returned: &Operation,
        handle: &RecordHandle,
    ) -> Result<(RecordFate, Option<OperationId>), ServiceError> {
        let row = self.records.row(binding, &handle.provider_record_id).await?;
        let asked = returned.id.sequence();
        match &row {
            Some(row) if row.operation_id.sequence() > asked => {
                return Ok((RecordFate::Changed, Some(row.operation_id)));
            }
            Some(_) if binding.goes_on_as.is_none() => return Ok((RecordFate::Unchanged, None)),
            _ => {}
        }
        let filter = OperationFilter {
            binding_id: Some(binding.known_as()),
            provider_record_id: Some(handle.provider_record_id.clone()),
            ..OperationFilter::default()
        };
        let found =
            self.store.operations(&binding.company_id, &filter, None, MOST_SEARCHED).await?;
        let writes = found.operations.iter().filter(|one| one.kind.is_write());
        let written: Vec<OperationId> = writes.map(|one| one.id).collect();
        if let Some(row) = row {
            // A restore may have taken it back to what it was before.
            let undone = row.operation_id.sequence() + 1..asked;
            let is_undone = written.iter().any(|one| undone.contains(&one.sequence()));
            return Ok((if is_undone { RecordFate::Changed } else { RecordFate::Unchanged }, None));
        }
        let later = written.iter().find(|one| one.sequence() > asked).copied();
        // What the host saw written has a row as long as it is there.
        Ok((if written.is_empty() { RecordFate::Unknown } else { RecordFate::Gone }, later))
    }

    async fn again(
        &self,
        caller: &Caller,
        operation: &Operation,
    ) -> (Option<Explanation>, Option<String>) {
        let no = |why: &str| (None, Some(why.to_owned()));
        if operation.kind != OperationKind::Query {
            return no("only a query can be asked again");
        }
        let request = match &operation.payload {
            None => {
                return no("the text of the request was not kept; with the binding's policy \
                           `retention.snapshots` set to `full` it is");
            }
            Some(kept) if kept.text.is_empty() => {
                return no("what the request asked for was forgotten, and its text with it");
            }
            Some(kept) if kept.bytes > kept.text.len() as u64 => {
                return no(
                    "only the beginning of the request was kept; with the binding's policy \
                           `retention.snapshots` set to `full` all of it is",
                );
            }
            Some(kept) => serde_json::from_str::<QueryRequest>(&kept.text),
        };
        let request = match request {
            // Its binding answers, also where another one is the default by now.
            Ok(request) => QueryRequest { binding_key: operation.binding_key.clone(), ..request },
            Err(error) => return no(&format!("the kept request cannot be read: {error}")),
        };
        match self.operations.explain(caller, request).await {
            Ok(explanation) => (Some(explanation), None),
            Err(error) => no(&error.to_string()),
        }
    }
}
