//! What an operation leaves of the marks of those who have private records.

use super::Record;
use crate::records::Owner;
use memhost_store::Table;

impl Record {
    /// It removes a private record of this owner, or gives it to others.
    pub(crate) fn takes_from(&mut self, owner: Option<Owner>) {
        self.taken_from.extend(owner);
    }

    /// The operation is on disk. Who had private records and has none any more hides nothing from
    /// here on. A failure costs others a summary until the next sweep.
    pub(super) async fn settle(&mut self) {
        // A write that made no row leaves its owner as it was.
        if let Some(private) = &self.private
            && !self.beside.iter().any(|row| row.table == Table::Records && row.new.is_some())
        {
            self.taken_from.insert(private.owner.clone());
        }
        let Some(binding) = self.operation.binding_id.filter(|_| !self.taken_from.is_empty())
        else {
            return;
        };
        self.locks.clear();
        let owners = std::mem::take(&mut self.taken_from);
        if let Err(error) =
            self.recorder.records.settle(&self.operation.company_id, binding, owners).await
        {
            tracing::warn!(%error, "it could not be noted that somebody has no private records any \
                                    more");
        }
    }
}
