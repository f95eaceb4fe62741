//! The review queue: records and captures that wait for a person, and the decisions about them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::RwLock;
use uuid::Uuid;

use memhost_store::{
    self as store, Change, Found, Lease, LockKind, Old, Scan, Store, StoreError, Table, TableWrite,
};
use memhost_types::{
    BindingId, CompanyId, RecordId, ReviewFilter, ReviewHolder, ReviewId, ReviewItem, ReviewStatus,
    ReviewSubject,
};

/// Why a call about reviews failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ReviewError {
    #[error("the company has no review {id}; `memhost review list` shows what waits")]
    NotFound { id: Uuid },
    #[error("the review {id} was {status} already; decide about something that is pending")]
    Decided { id: Uuid, status: ReviewStatus },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The decision about a record that waited at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The item that says it.
    pub id: ReviewId,
    /// What was decided, if anything.
    pub status: ReviewStatus,
    /// The digest of the text that it is about.
    pub digest: String,
    holder: ReviewHolder,
}

impl Standing {
    /// Whether the provider holds the record and waits for a decision.
    pub fn waits_at_provider(&self) -> bool {
        self.holder == ReviewHolder::Provider && self.status == ReviewStatus::Pending
    }
}

/// The standings of one binding's records, with the counts that every query needs.
#[derive(Default)]
struct Standings {
    by_record: HashMap<RecordId, Standing>,
    /// Records of which a change waits, or waited since the start.
    changes: HashSet<RecordId>,
    /// Held by the host and not approved.
    hidden: usize,
    /// Held by the provider and not approved.
    held: usize,
}

impl Standings {
    fn put(&mut self, record: RecordId, standing: Standing, replaces: bool) {
        if !replaces && self.by_record.contains_key(&record) {
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

/// Items that still have a text.
pub struct Texts<'a>(Scan<'a>);

impl Texts<'_> {
    /// The next one.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn next(&mut self) -> Result<Option<ReviewItem>, StoreError> {
        while let Some((_, item)) = self.0.next_row::<ReviewItem>("review").await? {
            if !item.is_without_text() {
                return Ok(Some(item));
            }
        }
        Ok(None)
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
    /// Where the items cannot be read.
    pub async fn open(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let reviews = Self { store: Arc::clone(&store), standings: RwLock::default() };
        let mut rows = store::scan_all(&*store, Table::Reviews, b"");
        while let Some((_, item)) = rows.next_row::<ReviewItem>("review").await? {
            reviews.apply_older(&item);
        }
        drop(rows);
        Ok(reviews)
    }

    fn stand(&self, item: &ReviewItem, replaces: bool) {
        let ReviewSubject::Record(handle) = &item.subject else { return };
        let mut all = self.standings.write();
        let of_binding = all.entry(item.binding_id).or_default();
        let record = handle.provider_record_id.clone();
        if item.change.is_some() && !item.is_without_text() {
            of_binding.changes.insert(record.clone());
        }
        if item.stands() {
            let standing = Standing {
                id: item.id,
                status: item.status,
                digest: item.digest.clone(),
                holder: item.holder,
            };
            of_binding.put(record, standing, replaces);
        }
    }

    /// Updates the cache with an item that was written.
    pub fn apply(&self, item: &ReviewItem) {
        self.stand(item, true);
    }

    /// Updates the cache with a stored item, where items are read newest first: the latest about a
    /// record counts.
    pub fn apply_older(&self, item: &ReviewItem) {
        self.stand(item, false);
    }

    /// The standing of a record that waited at some time.
    pub fn standing(&self, binding: BindingId, record: &RecordId) -> Option<Standing> {
        self.standings.read().get(&binding)?.by_record.get(record).cloned()
    }

    /// Whether the queue has, or may have, a text about one of these records, or a change that came
    /// from a source.
    pub fn may_be_about(
        &self,
        binding: BindingId,
        records: &HashSet<&RecordId>,
        of_source: bool,
    ) -> bool {
        let all = self.standings.read();
        all.get(&binding).is_some_and(|of_binding| {
            let knows = |id: &RecordId| {
                of_binding.by_record.contains_key(id) || of_binding.changes.contains(id)
            };
            of_source && !of_binding.changes.is_empty() || records.iter().any(|id| knows(id))
        })
    }

    /// Whether a record waits for a person, or was rejected.
    pub fn waits(&self, binding: BindingId, record: &RecordId) -> bool {
        self.standing(binding, record)
            .is_some_and(|standing| standing.status != ReviewStatus::Approved)
    }

    /// How many records of a binding the host must hide although the provider returns them.
    pub fn hidden(&self, binding: BindingId) -> usize {
        self.standings.read().get(&binding).map_or(0, |of_binding| of_binding.hidden)
    }

    /// Whether any record of a binding waits or was rejected, whoever holds it.
    pub fn withholds(&self, binding: BindingId) -> bool {
        self.standings
            .read()
            .get(&binding)
            .is_some_and(|of_binding| of_binding.hidden + of_binding.held > 0)
    }

    /// The row of an item.
    ///
    /// # Errors
    /// Where it cannot be encoded.
    pub fn row(item: &ReviewItem) -> Result<TableWrite, StoreError> {
        let value = store::encode("review", item)?;
        Ok(TableWrite::new(Table::Reviews, key(&item.company_id, item.id), Some(value)))
    }

    /// The change that replaces an item, if it is still as it was in `before`.
    ///
    /// # Errors
    /// Where it cannot be read or encoded.
    pub async fn replace(
        &self,
        before: &ReviewItem,
        after: &ReviewItem,
    ) -> Result<Change, StoreError> {
        let change = Change::from(Self::row(after)?);
        let expected =
            store::unchanged(&*self.store, Table::Reviews, &change.key, "review", before).await?;
        Ok(Change { expected, ..change })
    }

    /// Hold this while you look at a record's standing and put an item about it into the queue: of
    /// two reads that find the same record, one queues it.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn lock(&self, binding: BindingId, record: &RecordId) -> Result<Lease, StoreError> {
        let key = [binding.0.as_bytes(), record.as_str().as_bytes()].concat();
        self.store.lock(LockKind::Review, &key).await
    }

    /// Hold this while you decide about an item: of two decisions, the second one sees the first.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn lock_item(&self, id: ReviewId) -> Result<Lease, StoreError> {
        self.store.lock(LockKind::Review, id.0.as_bytes()).await
    }

    /// The rows of items that are written in one step with their operation. It is known from now on
    /// that there may be a text about their records.
    ///
    /// # Errors
    /// Where one cannot be encoded.
    pub fn plan(&self, items: &[ReviewItem]) -> Result<Vec<TableWrite>, StoreError> {
        items
            .iter()
            .map(|item| {
                let row = Self::row(item)?;
                self.apply(item);
                Ok(row)
            })
            .collect()
    }

    /// Puts an item into the queue, durably. If this fails, nothing has changed, and the next read
    /// of the record tries again. The caller holds the record's lock.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn put(&self, item: &ReviewItem) -> Result<(), StoreError> {
        store::write(&*self.store, &[Self::row(item)?.into()]).await?;
        self.apply(item);
        Ok(())
    }

    /// One item of a company.
    ///
    /// # Errors
    /// Where the company has none of this id.
    pub async fn get(&self, company: &CompanyId, id: ReviewId) -> Result<ReviewItem, ReviewError> {
        self.find(company, id).await?.ok_or(ReviewError::NotFound { id: id.0 })
    }

    /// An item, if there is one of this id.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn find(
        &self,
        company: &CompanyId,
        id: ReviewId,
    ) -> Result<Option<ReviewItem>, StoreError> {
        let stored = self.store.get(Table::Reviews, &key(company, id)).await?;
        stored.map(|stored| store::decode("review", &stored)).transpose()
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
        let (prefix, table) = (store::company_key(company, b""), (Table::Reviews, "review"));
        store::matching(&*self.store, table, &prefix, from, limit, |item| filter.matches(item))
            .await
    }

    /// Items of a company that still have a text, newest first.
    pub fn texts(&self, company: &CompanyId) -> Texts<'_> {
        let prefix = store::company_key(company, b"");
        Texts(store::scan_all(&*self.store, Table::Reviews, &prefix))
    }

    /// Removes the texts of a company's items that were decided and put before `cutoff`. The
    /// decision stays, because it says whether the record is returned. Answers how many went.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn sweep(&self, company: &CompanyId, cutoff: Timestamp) -> Result<u64, StoreError> {
        let old = |value: &[u8]| {
            let item: ReviewItem = store::decode("review", value)?;
            if item.status == ReviewStatus::Pending || item.is_without_text() {
                return Ok(Old::Stays);
            }
            Ok(Old::Replaced(store::encode("review", &item.without_text())?))
        };
        store::sweep(&*self.store, (Table::Reviews, b""), company, cutoff, old).await
    }

    /// Removes a binding from the cache, where its rows go with the company's.
    pub fn forget(&self, binding: BindingId) {
        self.standings.write().remove(&binding);
    }

    /// Removes the rows of a deleted binding, whose texts must not outlive it.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn remove(
        store: &dyn Store,
        company: &CompanyId,
        binding: BindingId,
    ) -> Result<(), StoreError> {
        let mut rows = store::scan_all(store, Table::Reviews, &store::company_key(company, b""));
        let mut removed = Vec::new();
        while let Some((key, item)) = rows.next_row::<ReviewItem>("review").await? {
            if item.binding_id == binding {
                removed.push(Change::always(Table::Reviews, key, None));
            }
        }
        for page in removed.chunks(1_000) {
            store::write(store, page).await?;
        }
        Ok(())
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
        let mut put = |name: &str, holder, status, replaces| {
            let standing =
                Standing { id: ReviewId(Uuid::nil()), status, digest: String::new(), holder };
            all.put(name.parse::<RecordId>().unwrap(), standing, replaces);
            (all.hidden, all.held)
        };
        assert_eq!(put("a", ReviewHolder::Host, ReviewStatus::Pending, true), (1, 0));
        assert_eq!(put("b", ReviewHolder::Provider, ReviewStatus::Pending, true), (1, 1));
        assert_eq!(
            put("b", ReviewHolder::Provider, ReviewStatus::Approved, false),
            (1, 1),
            "the newer one is known"
        );
        assert_eq!(put("b", ReviewHolder::Provider, ReviewStatus::Rejected, true), (1, 1));
        assert_eq!(put("a", ReviewHolder::Provider, ReviewStatus::Pending, true), (0, 2));
        assert_eq!(put("a", ReviewHolder::Provider, ReviewStatus::Approved, true), (0, 1));
    }
}
