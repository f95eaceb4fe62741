//! Who corrected a record, and from which one. The operation log says so where the provider keeps
//! the record before and names it. The log is read once for each binding; from then on corrections
//! are added in memory.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::Service;
use crate::operations::runner::Answered;
use memhost_sandbox::OptionalInterface;
use memhost_store::StoreError;
use memhost_types::{
    Binding, BindingId, Corrected, Operation, OperationFilter, OperationKind, Outcome, RecordId,
    Snippet,
};

/// Corrections of a binding that are read from the log: the newest.
const MOST: usize = 10_000;
/// Operations that are read at a time.
const PAGE: usize = 200;

/// What is known of a binding.
#[derive(Default)]
struct Known {
    is_read: bool,
    by_record: HashMap<RecordId, Corrected>,
}

/// What is known of the bindings whose records were read or corrected.
#[derive(Default)]
pub(crate) struct Corrections(Mutex<HashMap<BindingId, Known>>);

impl Corrections {
    /// Removes what is known of a binding that is erased.
    pub(crate) fn forget(&self, binding: BindingId) {
        self.0.lock().remove(&binding);
    }

    fn is_read(&self, binding: BindingId) -> bool {
        self.0.lock().get(&binding).is_some_and(|known| known.is_read)
    }

    /// Adds what the log has, newest first. What was added while it was read is newer.
    fn read(&self, binding: BindingId, found: Vec<(RecordId, Corrected)>) {
        let mut all = self.0.lock();
        let known = all.entry(binding).or_default();
        known.is_read = true;
        for (record, corrected) in found {
            known.by_record.entry(record).or_insert(corrected);
        }
    }

    fn add(&self, binding: BindingId, record: RecordId, corrected: Corrected) {
        let mut all = self.0.lock();
        let known = all.entry(binding).or_default();
        if known.by_record.len() >= 2 * MOST {
            // The newest of them are read again.
            *known = Known::default();
        }
        known.by_record.insert(record, corrected);
    }

    fn show(&self, binding: BindingId, found: &mut [Snippet]) {
        let all = self.0.lock();
        let Some(known) = all.get(&binding).filter(|known| !known.by_record.is_empty()) else {
            return;
        };
        for snippet in found {
            snippet.corrected = known.by_record.get(&snippet.handle.provider_record_id).cloned();
        }
    }
}

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

impl Service {
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
