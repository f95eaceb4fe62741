//! What a reader is answered: records that it may see, and of those the ones that a filter wants.

use super::{Owner, Reader, Records};
use crate::operations::runner::Answered;
use memhost_ports::off_executor;
use memhost_store::StoreError;
use memhost_types::{Binding, RecordFilter, RecordId, Snippet};

impl Records {
    /// Removes what the reader may not see and what the filter does not want.
    pub(crate) async fn only(
        &self,
        binding: &Binding,
        reader: &Reader,
        filter: Option<&RecordFilter>,
        found: &mut Vec<Snippet>,
    ) -> Result<(), StoreError> {
        let filter = filter.filter(|filter| !filter.is_empty());
        let asks_rows = filter.is_some() || self.hides_from(binding.id, reader);
        let mut shown = Vec::with_capacity(found.len());
        for snippet in found.drain(..) {
            let is_foreign = !is_of_partition(reader, &snippet);
            if !asks_rows && !is_foreign {
                shown.push(snippet);
                continue;
            }
            // First: a private write that ends in between has its rows by then.
            let made: Vec<_> = [snippet.created_at, snippet.updated_at].into_iter().flatten().collect();
            let may_be_private = self.may_be_private(binding, reader, &made);
            let row = self.row(binding, &snippet.handle.provider_record_id).await?;
            let may = row.as_ref().map_or(!may_be_private && !is_foreign, |row| reader.may_read(row));
            if may && filter.is_none_or(|filter| filter.matches(row.as_ref(), &snippet) && says(filter, &snippet)) {
                shown.push(snippet);
            }
        }
        *found = shown;
        Ok(())
    }

    /// Whether a reader may know of a record, where only its name is known.
    pub(crate) async fn may_read(
        &self,
        binding: &Binding,
        reader: &Reader,
        record: &RecordId,
    ) -> Result<bool, StoreError> {
        if !self.hides_from(binding.id, reader) {
            return Ok(true);
        }
        let may_be_private = self.may_be_private(binding, reader, &[]);
        let row = self.row(binding, record).await?;
        Ok(row.map_or(!may_be_private, |row| reader.may_read(&row)))
    }
}

/// Whether the provider says that a record is for everybody, or for this reader.
fn is_of_partition(reader: &Reader, snippet: &Snippet) -> bool {
    let agent = snippet.scope.as_ref().and_then(|scope| scope.agent_id.clone());
    agent.is_none_or(|agent| reader.is(&Owner::Agent(agent)))
}

/// Whether a record has the text that is looked for.
fn says(filter: &RecordFilter, snippet: &Snippet) -> bool {
    let Some(wanted) = &filter.text else { return true };
    let summary = snippet.summary.as_deref().unwrap_or_default();
    off_executor(snippet.text.len() + summary.len(), || {
        let wanted = wanted.to_lowercase();
        snippet.text.to_lowercase().contains(&wanted) || summary.to_lowercase().contains(&wanted)
    })
}

impl Answered<'_> {
    /// Removes what the reader may not see and what the filter does not want.
    pub(crate) async fn only(
        &self,
        reader: &Reader,
        filter: Option<&RecordFilter>,
        found: &mut Vec<Snippet>,
    ) -> Result<(), StoreError> {
        self.host.records.only(&self.serving.binding, reader, filter, found).await
    }
}
