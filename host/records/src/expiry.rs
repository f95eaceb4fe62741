//! What has expired. An expired record is in no answer, whatever its provider does, and its row
//! stays until the provider has forgotten it.

use jiff::{SignedDuration, Timestamp};

use super::expiry_index::{first_times, key_at, parse};
use super::keys::prefix;
use super::{Reader, Records};
use memhost_store::{self as store, Change, StoreError, Table, TableWrite};
use memhost_types::{Binding, BindingId, RecordId};

/// After this time a provider is asked again to forget what it did not forget.
const AGAIN: SignedDuration = SignedDuration::from_hours(24 * 30);

/// A record that has expired.
#[derive(Debug, Clone)]
pub struct Expired {
    /// Its name.
    pub record: RecordId,
    /// Its entry in the index.
    key: Vec<u8>,
}

impl Records {
    /// Whether a binding may have a record that has expired and that its provider has not been
    /// asked to forget.
    pub fn has_expired(&self, binding: BindingId, now: Timestamp) -> bool {
        self.expiring.read().get(&binding).is_some_and(|first| *first <= now)
    }

    /// Whether a reader is shown a record of which only the name is known: one that it may read and
    /// that has not expired.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn may_show(
        &self,
        binding: &Binding,
        reader: &Reader,
        record: &RecordId,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        if !self.may_read(binding, reader, record).await? {
            return Ok(false);
        }
        let row = self.row(binding, record).await?;
        Ok(row.and_then(|row| row.expires_at).is_none_or(|at| at > now))
    }

    /// At most so many records of a binding that have expired and that its provider has not been
    /// asked to forget, or not lately. Entries of records that expire no more, or later, are
    /// removed.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn expired(
        &self,
        binding: &Binding,
        now: Timestamp,
        most: usize,
    ) -> Result<Vec<Expired>, StoreError> {
        let (mut found, mut stale) = (Vec::new(), Vec::new());
        if !self.expiring.read().contains_key(&binding.id) {
            return Ok(found);
        }
        let prefix = prefix(&binding.company_id, binding.id);
        let mut entries = store::scan_all(&*self.store, Table::RecordExpiries, &prefix);
        while found.len() < most
            && let Some((key, _)) = entries.next().await?
        {
            let Some((_, at, record)) = parse(&key) else { continue };
            if at > now {
                break;
            }
            let row = self.row(binding, &record).await?;
            match row.and_then(|row| row.expires_at).is_some_and(|at| at <= now) {
                true => found.push(Expired { record, key }),
                false => stale.push(Change::always(Table::RecordExpiries, key, None)),
            }
        }
        drop(entries);
        self.write_many(&mut stale, 1).await?;
        Ok(found)
    }

    /// The provider was asked to forget these. `is_gone` says which it does not have any more;
    /// those lose their rows. It is asked again for the others after 30 days.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn asked_to_forget(
        &self,
        binding: &Binding,
        asked: Vec<Expired>,
        now: Timestamp,
        is_gone: impl Fn(&RecordId) -> bool,
    ) -> Result<(), StoreError> {
        let before = self.expiring.read().get(&binding.id).copied();
        let (mut writes, again) = (Vec::new(), now.saturating_add(AGAIN).unwrap_or(Timestamp::MAX));
        for Expired { record, key } in asked {
            writes.push(TableWrite::new(Table::RecordExpiries, key, None));
            if is_gone(&record) {
                writes.extend(self.remove(binding, std::iter::once(&record)).await?.writes);
            } else if self.row(binding, &record).await?.is_some() {
                let key = key_at(&binding.company_id, binding.id, again, &record);
                writes.push(TableWrite::new(Table::RecordExpiries, key, Some(Vec::new())));
            }
        }
        let mut changes: Vec<Change> = writes.into_iter().map(Change::from).collect();
        self.write_many(&mut changes, 1).await?;
        let prefix = prefix(&binding.company_id, binding.id);
        let first = first_times(&*self.store, &prefix).await?.remove(&binding.id);
        // A write that began meanwhile may have set an earlier time, and is not on disk yet.
        if let Some(known) =
            self.expiring.write().get_mut(&binding.id).filter(|at| before == Some(**at))
        {
            *known = first.unwrap_or(Timestamp::MAX);
        }
        Ok(())
    }
}
