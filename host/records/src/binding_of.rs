//! The binding of a record: a handle names a provider and a record, and the rows say at which
//! binding of the company it is.

use std::sync::Arc;

use super::Records;
use memhost_types::{Binding, BindingKey, FieldError, RecordHandle, Refusal};

impl Records {
    /// The binding that has the records of a request without a binding key. `active` is the one
    /// that the request's scope resolves to, and is looked at first. `None`: no row says it, or it
    /// is clear without one.
    ///
    /// # Errors
    /// Where they are at several bindings, or the store fails.
    pub async fn binding_of(
        &self,
        all: &[Arc<Binding>],
        active: Option<&Arc<Binding>>,
        handles: &[RecordHandle],
    ) -> Result<Option<BindingKey>, Refusal> {
        // Most companies have one binding, and then there is nothing to look up.
        if all.len() < 2 && active.is_some() {
            return Ok(None);
        }
        let mut known: Option<&Arc<Binding>> = None;
        for handle in handles {
            let others =
                all.iter().filter(|other| active.is_none_or(|active| active.id != other.id));
            let mut found = None;
            for binding in active
                .into_iter()
                .chain(others)
                .filter(|one| one.provider_key == handle.provider_key)
            {
                if self.row(binding, &handle.provider_record_id).await?.is_some() {
                    found = Some(binding);
                    break;
                }
            }
            match (known, found) {
                (_, None) => {}
                (None, found) => known = found,
                (Some(known), Some(found)) if known.id == found.id => {}
                (Some(known), Some(found)) => {
                    let message = format!(
                        "are at several bindings, such as `{}` and `{}`; ask for those of one \
                         binding at a time",
                        known.key, found.key
                    );
                    return Err(FieldError::new("handles", message).into());
                }
            }
        }
        Ok(known.map(|binding| binding.key.clone()))
    }
}
