//! The queue of what waits, and what was decided about what waited.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use memhost_store::{self as store, Change, Expected, Found, Store, StoreError, Table, Transacted};
use memhost_types::{
    BindingId, CompanyId, RecordId, ReviewFilter, ReviewHolder, ReviewId, ReviewItem, ReviewStatus, ReviewSubject,
};

/// What this room fails with.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// There is no such item.
    #[error("the company has no review {id}; `memhost review list` shows what waits")]
    NotFound {
        /// Which.
        id: String,
    },
    /// It was decided otherwise.
    #[error("the review {id} was {status} already; decide about something that is pending")]
    Decided {
        /// Which.
        id: String,
        /// How.
        status: ReviewStatus,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How a record stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// What was decided.
    pub status: ReviewStatus,
    /// About which text.
    pub digest: String,
    /// Who holds it.
    pub holder: ReviewHolder,
}

/// How one binding's records stand, with what every query must know of them counted.
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

/// Everything that waits or waited.
pub struct Reviews {
    store: Arc<dyn Store>,
    standings: RwLock<HashMap<BindingId, Standings>>,
}

impl Reviews {
    /// Reads how every record stands that waited once.
    ///
    /// # Errors
    /// Where an item cannot be read.
    pub fn open(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let reviews = Self { store, standings: RwLock::default() };
        let mut from = None;
        loop {
            let page = reviews.store.scan(Table::Reviews, b"", from.as_deref(), 1_000)?;
            for (_, value) in &page.entries {
                let item: ReviewItem = store::decode("review", value)?;
                // Newest first: what was decided last about a record holds.
                reviews.stand(&item, false);
            }
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok(reviews),
            }
        }
    }

    fn stand(&self, item: &ReviewItem, goes_over: bool) {
        let ReviewSubject::Record(handle) = &item.subject else { return };
        let standing = Standing { status: item.status, digest: item.digest.clone(), holder: item.holder };
        let mut all = self.standings.write();
        all.entry(item.binding_id).or_default().put(handle.provider_record_id.clone(), standing, goes_over);
    }

    /// How a record stands, if it ever waited.
    pub fn standing(&self, binding: BindingId, record: &RecordId) -> Option<Standing> {
        self.standings.read().get(&binding)?.by_record.get(record).cloned()
    }

    /// How many records of a binding the host must not return although the provider does.
    pub fn hidden(&self, binding: BindingId) -> usize {
        self.standings.read().get(&binding).map_or(0, |of_binding| of_binding.hidden)
    }

    /// Whether any record of a binding waits or was rejected, whoever holds it.
    pub fn withholds(&self, binding: BindingId) -> bool {
        self.standings.read().get(&binding).is_some_and(|of_binding| of_binding.hidden + of_binding.held > 0)
    }

    /// Takes an item that came in from elsewhere into account.
    ///
    /// # Errors
    /// Where it is none.
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

    /// The change that writes an item in the place of what it was, if it still is that.
    ///
    /// # Errors
    /// Where it cannot be read or encoded.
    pub fn replace(&self, before: &ReviewItem, after: &ReviewItem) -> Result<Change, StoreError> {
        let change = Self::change(after)?;
        let expected = store::unchanged(&*self.store, Table::Reviews, &change.key, "review", before)?;
        Ok(Change { expected, ..change })
    }

    /// Takes an item that was written into account.
    pub fn apply(&self, item: &ReviewItem) {
        self.stand(item, true);
    }

    /// Puts an item into the queue, durably.
    ///
    /// # Errors
    /// Where the disk fails.
    pub async fn put(&self, item: &ReviewItem) -> Result<(), StoreError> {
        // From here on it is not returned, whether or not the queue can be written.
        self.apply(item);
        match self.store.transact(&[Self::change(item)?])? {
            Transacted::Done(commit) => commit.await,
            Transacted::Conflict(_) => Ok(()),
        }
    }

    /// One item.
    ///
    /// # Errors
    /// Where the company has none of this id.
    pub fn get(&self, company: &CompanyId, id: ReviewId) -> Result<ReviewItem, ReviewError> {
        let stored = self.store.get(Table::Reviews, &key(company, id))?;
        let stored = stored.ok_or_else(|| ReviewError::NotFound { id: id.0.to_string() })?;
        Ok(store::decode("review", &stored)?)
    }

    /// One page of a company's items, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn list(
        &self,
        company: &CompanyId,
        filter: &ReviewFilter,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<ReviewItem>, StoreError> {
        let prefix = store::company_key(company, b"");
        store::matching(&*self.store, (Table::Reviews, "review"), &prefix, from, limit, |item| filter.matches(item))
    }

    /// Forgets how a deleted binding's records stand.
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
