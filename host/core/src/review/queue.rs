//! The review queue: records and captures that wait for a person, and the decisions about them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use memhost_store::{self as store, Change, Expected, Found, Store, StoreError, Table, Transacted};
use memhost_types::{
    BindingId, CompanyId, RecordId, ReviewFilter, ReviewHolder, ReviewId, ReviewItem, ReviewStatus, ReviewSubject,
};

/// Why a call about reviews failed.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// There is no such item.
    #[error("the company has no review {id}; `memhost review list` shows what waits")]
    NotFound {
        /// Which.
        id: String,
    },
    /// Somebody decided it differently.
    #[error("the review {id} was {status} already; decide about something that is pending")]
    Decided {
        /// Which.
        id: String,
        /// The decision.
        status: ReviewStatus,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The standing of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The decision.
    pub status: ReviewStatus,
    /// The digest of the text that it is about.
    pub digest: String,
    /// Who holds it.
    pub holder: ReviewHolder,
}

/// The standings of one binding's records, with the counts that every query needs.
#[derive(Debug, Default)]
struct Standings {
    by_record: HashMap<RecordId, Standing>,
    /// Held by the host and not approved.
    hidden: usize,
    /// Held by the provider and not approved.
    held: usize,
}

impl Standings {
    fn put(&mut self, record: RecordId, standing: Standing, goes_over: bool) {
        if !goes_over && self.by_record.contains_key(&record) {
            return;
        }
        *self.count(&standing) += usize::from(standing.status != ReviewStatus::Approved);
        if let Some(before) = self.by_record.insert(record, standing) {
            *self.count(&before) -= usize::from(before.status != ReviewStatus::Approved);
        }
    }

    fn count(&mut self, standing: &Standing) -> &mut usize {
        match standing.holder {
            ReviewHolder::Host => &mut self.hidden,
            ReviewHolder::Provider => &mut self.held,
        }
    }
}

/// Every review item; the standings of records are cached in memory.
pub struct Reviews {
    store: Arc<dyn Store>,
    standings: RwLock<HashMap<BindingId, Standings>>,
}

impl Reviews {
    /// Reads the standing of every record that ever waited.
    ///
    /// # Errors
    /// Where an item cannot be read.
    pub async fn open(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let reviews = Self { store: Arc::clone(&store), standings: RwLock::default() };
        let mut rows = store::scan_all(&*store, Table::Reviews, b"");
        while let Some((_, item)) = rows.next_row::<ReviewItem>("review").await? {
            // Newest first: the latest decision about a record counts.
            reviews.stand(&item, false);
        }
        drop(rows);
        Ok(reviews)
    }

    fn stand(&self, item: &ReviewItem, goes_over: bool) {
        let ReviewSubject::Record(handle) = &item.subject else { return };
        let standing = Standing { status: item.status, digest: item.digest.clone(), holder: item.holder };
        let mut all = self.standings.write();
        all.entry(item.binding_id).or_default().put(handle.provider_record_id.clone(), standing, goes_over);
    }

    /// The standing of a record that waited at some time.
    pub fn standing(&self, binding: BindingId, record: &RecordId) -> Option<Standing> {
        self.standings.read().get(&binding)?.by_record.get(record).cloned()
    }

    /// How many records of a binding the host must hide although the provider returns them.
    pub fn hidden(&self, binding: BindingId) -> usize {
        self.standings.read().get(&binding).map_or(0, |of_binding| of_binding.hidden)
    }

    /// Whether any record of a binding waits or was rejected, whoever holds it.
    pub fn withholds(&self, binding: BindingId) -> bool {
        self.standings.read().get(&binding).is_some_and(|of_binding| of_binding.hidden + of_binding.held > 0)
    }

    /// Updates the cache with an item that somebody else wrote.
    ///
    /// # Errors
    /// Where the value is not an item.
    pub fn reload(&self, value: &[u8]) -> Result<(), StoreError> {
        self.stand(&store::decode("review", value)?, false);
        Ok(())
    }

    /// The change that writes an item.
    ///
    /// # Errors
    /// Where it cannot be encoded.
    pub fn change(item: &ReviewItem) -> Result<Change, StoreError> {
        Ok(Change {
            table: Table::Reviews,
            key: key(&item.company_id, item.id),
            expected: Expected::Anything,
            new: Some(store::encode("review", item)?),
        })
    }

    /// The change that replaces an item, if it is still as it was in `before`.
    ///
    /// # Errors
    /// Where it cannot be read or encoded.
    pub async fn replace(&self, before: &ReviewItem, after: &ReviewItem) -> Result<Change, StoreError> {
        let change = Self::change(after)?;
        let expected = store::unchanged(&*self.store, Table::Reviews, &change.key, "review", before).await?;
        Ok(Change { expected, ..change })
    }

    /// Updates the cache with an item that was written.
    pub fn apply(&self, item: &ReviewItem) {
        self.stand(item, true);
    }

    /// Puts an item into the queue, durably.
    ///
    /// # Errors
    /// Where the disk fails.
    pub async fn put(&self, item: &ReviewItem) -> Result<(), StoreError> {
        // From here on the record is hidden, even if the queue cannot be written.
        self.apply(item);
        match self.store.transact(&[Self::change(item)?]).await? {
            Transacted::Done(commit) => commit.await,
            Transacted::Conflict(_) => Ok(()),
        }
    }

    /// One item.
    ///
    /// # Errors
    /// Where the company has none of this id.
    pub async fn get(&self, company: &CompanyId, id: ReviewId) -> Result<ReviewItem, ReviewError> {
        let stored = self.store.get(Table::Reviews, &key(company, id)).await?;
        let stored = stored.ok_or_else(|| ReviewError::NotFound { id: id.0.to_string() })?;
        Ok(store::decode("review", &stored)?)
    }

    /// One page of a company's items, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn list(
        &self,
        company: &CompanyId,
        filter: &ReviewFilter,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<ReviewItem>, StoreError> {
        let prefix = store::company_key(company, b"");
        store::matching(&*self.store, (Table::Reviews, "review"), &prefix, from, limit, |item| filter.matches(item))
            .await
    }

    /// Removes a deleted binding from the cache.
    pub fn forget(&self, binding: BindingId) {
        self.standings.write().remove(&binding);
    }
}

fn key(company: &CompanyId, id: ReviewId) -> Vec<u8> {
    store::newest_first(company, id.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_not_be_returned_is_counted_by_who_holds_it() {
        let mut all = Standings::default();
        let mut put = |name: &str, holder, status, goes_over| {
            let standing = Standing { status, digest: String::new(), holder };
            all.put(name.parse::<RecordId>().unwrap(), standing, goes_over);
            (all.hidden, all.held)
        };
        assert_eq!(put("a", ReviewHolder::Host, ReviewStatus::Pending, true), (1, 0));
        assert_eq!(put("b", ReviewHolder::Provider, ReviewStatus::Pending, true), (1, 1));
        assert_eq!(put("b", ReviewHolder::Provider, ReviewStatus::Approved, false), (1, 1), "the newer one is known");
        assert_eq!(put("b", ReviewHolder::Provider, ReviewStatus::Rejected, true), (1, 1));
        assert_eq!(put("a", ReviewHolder::Provider, ReviewStatus::Pending, true), (0, 2));
        assert_eq!(put("a", ReviewHolder::Provider, ReviewStatus::Approved, true), (0, 1));
    }
}
