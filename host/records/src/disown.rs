//! Taking somebody's name out of the rows of records that stay.

use super::Records;
use super::records::AT_ONCE;
use memhost_store::{Change, StoreError};
use memhost_types::Binding;

impl Records {
    /// Takes the name of an agent or a person out of the rows of a binding's records that are the
    /// company's. It can be repeated.
    ///
    /// # Errors
    /// Where the store fails. Some of it is done then.
    pub async fn disown(&self, binding: &Binding, id: &str) -> Result<(), StoreError> {
        let mut rows = self.rows(&binding.company_id, binding.id);
        let mut changes = Vec::new();
        while let Some(row) = rows.next().await? {
            let Some(without) = row.without(id).filter(|_| !row.is_private()) else { continue };
            changes.extend(self.write(&without, Some(&row))?.into_iter().map(Change::from));
            self.write_many(&mut changes, AT_ONCE).await?;
        }
        self.write_many(&mut changes, 1).await
    }
}
