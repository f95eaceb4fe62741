//! Who asks, and the event that an operation leaves of a project's memory.

use super::Record;
use memhost_types::{JsonObject, OperationId};

impl Record {
    /// Who asks, as the metadata of an item say it.
    pub(crate) fn note_teller(&mut self, metadata: Option<&JsonObject>) {
        self.teller.note(metadata);
    }

    /// The operation that the provider is told: the same for every attempt.
    pub(crate) fn set_told(&mut self, told: OperationId) {
        self.teller.told = Some(told.uuid());
    }

    /// Adds the event of a project's memory, if this operation leaves one.
    pub(super) fn add_event(&mut self) {
        let projects = self.recorder.projects.read().clone();
        let Some(projects) = projects else { return };
        match projects.rows(&self.operation, &self.teller, self.recorder.clock.now()) {
            Ok(rows) => self.beside.extend(rows),
            Err(error) => {
                tracing::error!(%error, "the event of a project's memory could not be written");
            }
        }
    }
}
