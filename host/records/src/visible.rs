//! What a reader is answered: the records that it may see and that a filter wants.

use std::collections::HashSet;
use std::mem;

use super::{Owner, Reader, Records};
use jiff::Timestamp;
use memhost_executor::off_executor;
use memhost_store::StoreError;
use memhost_types::{Binding, Corrected, RecordFilter, RecordId, RecordRow, Snippet, SourceRef};
use memhost_words::{plain, words};

impl Records {
    /// Adds what the host knows of each record: where it came from and who corrected it. Removes
    /// what the reader may not see, what the filter does not want, and what had expired by `now`.
    /// `now` is `None`: nothing has, for whoever must forget it.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn keep_visible(
        &self,
        binding: &Binding,
        reader: &Reader,
        filter: Option<&RecordFilter>,
        now: Option<Timestamp>,
        found: &mut Vec<Snippet>,
    ) -> Result<(), StoreError> {
        let filter = filter.filter(|filter| !filter.is_empty());
        let has_expired = |at: Option<Timestamp>| at.zip(now).is_some_and(|(at, now)| at <= now);
        found.retain(|snippet| !has_expired(snippet.expires_at));
        let asks_rows = filter.is_some()
            || self.hides_from(binding.id, reader)
            || self.has_rows(binding).await?;
        if !asks_rows && found.iter().all(|snippet| is_of_partition(reader, snippet)) {
            found.iter_mut().for_each(disown);
            return Ok(());
        }
        let mut shown = Vec::with_capacity(found.len());
        for mut snippet in found.drain(..) {
            let is_foreign = !is_of_partition(reader, &snippet);
            if !asks_rows && !is_foreign {
                disown(&mut snippet);
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
            let is_over = has_expired(row.as_ref().and_then(|row| row.expires_at));
            if may
                && !is_over
                && filter.is_none_or(|filter| {
                    filter.matches(row.as_ref(), &snippet) && says(filter, &snippet)
                })
            {
                match &row {
                    Some(row) => show_provenance(&mut snippet, row),
                    None => disown(&mut snippet),
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
}

/// Makes the source of a record that the host did not see written what it is: a claim of its
/// provider.
fn disown(snippet: &mut Snippet) {
    snippet.claimed_source = snippet.source.take().map(Box::new);
}

/// Adds where a record came from, who wrote and who corrected it, as the host knows it. What its
/// provider says otherwise of the source is a claim, and is shown as one.
pub fn show_provenance(snippet: &mut Snippet, row: &RecordRow) {
    let said = mem::replace(&mut snippet.source, row.source.clone());
    let claimed = said.filter(|said| {
        row.source.as_ref().is_none_or(|known| {
            SourceRef { asserted_by: known.asserted_by.clone(), ..said.clone() } != *known
        })
    });
    snippet.claimed_source = claimed.map(Box::new);
    snippet.written_by = Some(row.written_by.clone());
    snippet.happened_at = row.happened_at;
    if let (Some(by), None) = (&row.corrected_by, &snippet.corrected) {
        snippet.corrected = Some(Corrected {
            by: by.clone(),
            from: row.handle.clone(),
            operation_id: row.operation_id,
            at: row.operation_id.began_at(),
        });
    }
}

/// The words of a question, in the spelling that [`has_one_of`] compares.
pub fn words_of(question: &str) -> HashSet<String> {
    words(question).map(|word| word.text).collect()
}

/// Whether a record has one of these words.
pub fn has_one_of(wanted: &HashSet<String>, snippet: &Snippet) -> bool {
    off_executor(snippet.text.len(), || {
        let summary = snippet.summary.as_deref().unwrap_or_default();
        words(&snippet.text).chain(words(summary)).any(|word| wanted.contains(&word.text))
    })
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
