//! Who corrected a record, and from which one. The operation log says so where the provider keeps
//! the record before and names it. The log is read once for each binding; from then on corrections
//! are added in memory.

use std::collections::HashMap;

use parking_lot::Mutex;

use memhost_types::{BindingId, Corrected, RecordId, Snippet};

/// Corrections of a binding that are read from the log: the newest.
pub(crate) const MOST: usize = 10_000;

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

    pub(crate) fn is_read(&self, binding: BindingId) -> bool {
        self.0.lock().get(&binding).is_some_and(|known| known.is_read)
    }

    /// Adds what the log has, newest first. What was added while it was read is newer.
    pub(crate) fn read(&self, binding: BindingId, found: Vec<(RecordId, Corrected)>) {
        let mut all = self.0.lock();
        let known = all.entry(binding).or_default();
        known.is_read = true;
        for (record, corrected) in found {
            known.by_record.entry(record).or_insert(corrected);
        }
    }

    pub(crate) fn add(&self, binding: BindingId, record: RecordId, corrected: Corrected) {
        let mut all = self.0.lock();
        let known = all.entry(binding).or_default();
        if known.by_record.len() >= 2 * MOST {
            // The newest of them are read again.
            *known = Known::default();
        }
        known.by_record.insert(record, corrected);
    }

    pub(crate) fn show(&self, binding: BindingId, found: &mut [Snippet]) {
        let all = self.0.lock();
        let Some(known) = all.get(&binding).filter(|known| !known.by_record.is_empty()) else {
            return;
        };
        for snippet in found {
            if let Some(corrected) = known.by_record.get(&snippet.handle.provider_record_id) {
                snippet.corrected = Some(corrected.clone());
            }
        }
    }
}
