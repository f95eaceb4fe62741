//! What a reader is answered: the records that it may see and that a filter wants.

use super::{Owner, Reader, Records};
use memhost_executor::off_executor;
use memhost_store::StoreError;
use memhost_types::{Binding, RecordFilter, RecordId, RecordRow, Snippet, SourceRef};
use memhost_words::plain;

impl Records {
    /// Removes what the reader may not see and what the filter does not want.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn keep_visible(
        &self,
        binding: &Binding,
        reader: &Reader,
        filter: Option<&RecordFilter>,
        found: &mut Vec<Snippet>,
    ) -> Result<(), StoreError> {
        let filter = filter.filter(|filter| !filter.is_empty());
        let asks_rows = filter.is_some() || self.hides_from(binding.id, reader);
        if !asks_rows && found.iter().all(|snippet| is_of_partition(reader, snippet)) {
            return Ok(());
        }
        let mut shown = Vec::with_capacity(found.len());
        for mut snippet in found.drain(..) {
            let is_foreign = !is_of_partition(reader, &snippet);
            if !asks_rows && !is_foreign {
                shown.push(snippet);
                continue;
            }
            // First: a private write that ends in between has its rows by then.
            let made: Vec<_> =
                [snippet.created_at, snippet.updated_at].into_iter().flatten().collect();
            let may_be_private = self.may_be_private(binding, reader, &made);
            let row = self.row(binding, &snippet.handle.provider_record_id).await?;
            let may =
                row.as_ref().map_or(!may_be_private && !is_foreign, |row| reader.may_read(row));
            if may
                && filter.is_none_or(|filter| {
                    filter.matches(row.as_ref(), &snippet) && says(filter, &snippet)
                })
            {
                if let Some(row) = &row {
                    assert_source(&mut snippet, row);
                }
                shown.push(snippet);
            }
        }
        *found = shown;
        Ok(())
    }

    /// Whether a reader may know of a record, where only its name is known.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn may_read(
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

    /// Adds who asserts where records come from.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn assert_sources(
        &self,
        binding: &Binding,
        found: &mut [Snippet],
    ) -> Result<(), StoreError> {
        for snippet in found {
            if snippet.source.as_ref().is_some_and(|source| source.asserted_by.is_some()) {
                continue;
            }
            if let Some(row) = self.row(binding, &snippet.handle.provider_record_id).await? {
                assert_source(snippet, &row);
            }
        }
        Ok(())
    }
}

/// Adds who asserts where a record comes from: only the host knows that. What a provider says
/// otherwise of the source stays as it is.
pub fn assert_source(snippet: &mut Snippet, row: &RecordRow) {
    let Some(known) = &row.source else { return };
    let is_same = |said: &SourceRef| {
        SourceRef { asserted_by: known.asserted_by.clone(), ..said.clone() } == *known
    };
    if snippet.source.as_ref().is_none_or(is_same) {
        snippet.source = Some(known.clone());
    }
}

/// Whether the provider says that a record is for everybody, or for this reader.
fn is_of_partition(reader: &Reader, snippet: &Snippet) -> bool {
    let agent = snippet.scope.as_ref().and_then(|scope| scope.agent_id.clone());
    agent.is_none_or(|agent| reader.is(&Owner::Agent(agent)))
}

/// Whether a record has the text that is looked for, in whatever spelling.
fn says(filter: &RecordFilter, snippet: &Snippet) -> bool {
    let Some(wanted) = &filter.text else { return true };
    let summary = snippet.summary.as_deref().unwrap_or_default();
    off_executor(snippet.text.len() + summary.len(), || {
        let spelled = plain(wanted);
        // Nothing is left of an accent alone, and every text would have that.
        if spelled.is_empty() {
            return snippet.text.contains(wanted.as_str()) || summary.contains(wanted.as_str());
        }
        plain(&snippet.text).contains(&*spelled) || plain(summary).contains(&*spelled)
    })
}
