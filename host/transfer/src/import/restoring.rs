//! What a restore in place knows beside what an import knows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;

use memhost_store::Table;
use memhost_types::{Binding, BindingKey, RecordId};

/// What a restore knows beside what an import knows.
#[derive(Default)]
pub(super) struct Restoring {
    /// The bindings as they were, with the ones that are filled in their place.
    pub(super) staged: BTreeMap<BindingKey, (Arc<Binding>, Arc<Binding>)>,
    /// Why a binding of the file stays as it is.
    pub(super) not_restored: BTreeMap<BindingKey, String>,
    /// Bindings whose provider got its own lines, which the host cannot read.
    pub(super) with_lines: HashSet<BindingKey>,
    /// When records were forgotten here.
    pub(super) forgotten: HashMap<(BindingKey, RecordId), Timestamp>,
    /// Where the company's log begins, if it does not begin with the first operation.
    pub(super) log_from: Option<Timestamp>,
    pub(super) left_out: u64,
}

impl Restoring {
    /// The tables whose rows belong to records.
    pub(super) const TABLES: [Table; 4] =
        [Table::Bindings, Table::Reviews, Table::Records, Table::PrivateWrites];

    /// Whether a binding of the file stays as it is.
    pub(super) fn leaves(&self, key: &BindingKey) -> bool {
        self.not_restored.contains_key(key)
    }
}
