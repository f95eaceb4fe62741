//! Shows who corrected a record, and from which one, as the operation log says.

use crate::Operations;
use crate::corrections::MOST;
use crate::runner::Answered;
use memhost_sandbox::OptionalInterface;
use memhost_store::StoreError;
use memhost_types::{
    Binding, Corrected, Operation, OperationFilter, OperationKind, Outcome, RecordId, Snippet,
};

/// Operations that are read at a time.
const PAGE: usize = 200;

/// The record that a correction made, and from which one. The record of such an operation names
/// both.
fn correction(operation: &Operation) -> Option<(RecordId, Corrected)> {
    let [record, from] = operation.records.as_slice() else { return None };
    let corrected = Corrected {
        by: operation.principal.clone(),
        from: from.clone(),
        operation_id: operation.id,
        at: operation.started_at,
    };
    Some((record.provider_record_id.clone(), corrected))
}

impl Answered<'_> {
    /// Remembers the correction that this operation is, where its provider keeps the record before.
    pub(crate) fn note_correction(&self) {
        if let Some((record, corrected)) = correction(self.ending.operation()) {
            self.host.corrections.add(self.serving.binding.id, record, corrected);
        }
    }

    /// Adds to records who corrected them, and from which ones.
    pub(crate) async fn show_corrections(&self, found: &mut [Snippet]) -> Result<(), StoreError> {
        let (host, binding) = (self.host, &self.serving.binding);
        if found.is_empty() || !self.serving.plugin.component.exports(OptionalInterface::Correction)
        {
            return Ok(());
        }
        if !host.corrections.is_read(binding.id) {
            host.corrections.read(binding.id, host.corrections_of(binding).await?);
        }
        host.corrections.show(binding.id, found);
        Ok(())
    }
}

impl Operations {
    /// The corrections of a binding in the log, newest first.
    async fn corrections_of(
        &self,
        binding: &Binding,
    ) -> Result<Vec<(RecordId, Corrected)>, StoreError> {
        let filter = OperationFilter {
            kind: Some(OperationKind::Correct),
            outcome: Some(Outcome::Succeeded),
            binding_key: Some(binding.key.clone()),
            // Another binding may have had the key before.
            since: Some(binding.created_at),
            ..OperationFilter::default()
        };
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = self.store.operations(&binding.company_id, &filter, before, PAGE).await?;
            found.extend(page.operations.iter().filter_map(correction));
            match page.next_before {
                Some(next) if found.len() < MOST => before = Some(next),
                _ => return Ok(found),
            }
        }
    }
}
