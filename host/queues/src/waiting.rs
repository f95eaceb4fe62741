//! Records of an import that wait until an operator has decided about the grants of their binding.
//! They are rows of a table of their own, in the order of the import. A mark names each binding
//! that has some. Once its grants are decided, background work gives the records to the provider,
//! and removes each row after the provider has taken it.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use memhost_store::{self as store, Change, Lease, LockKind, Store, StoreError, Table};
use memhost_types::{Binding, BindingId, CompanyId, RecordHandle, RecordId, Snippet};

/// The prefix of the marks.
const WAITING: &[u8] = b"waiting\0";

/// How long a record waits that its provider could not take for a reason that passes.
const AGAIN: Duration = Duration::from_secs(10);

/// A row that waits.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// A record.
    Record(Box<Snippet>),
    /// Lines in the provider's own format, as many as one call may have.
    Own(String),
}

/// The records that wait, and the bindings that have some.
pub struct WaitingRecords {
    store: Arc<dyn Store>,
    bindings: Mutex<BTreeSet<(CompanyId, BindingId)>>,
    /// Whether some of them may go on by now.
    may_go_on: AtomicBool,
    /// When to try again what a provider could not take for a reason that passes.
    again: Mutex<Option<tokio::time::Instant>>,
}

impl WaitingRecords {
    /// Reads the marks of a store.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn open(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let mut bindings = BTreeSet::new();
        let mut marks = store::scan_all(&*store, Table::Host, WAITING);
        while let Some((key, _)) = marks.next().await? {
            let rest = &key[WAITING.len()..];
            let id = rest.last_chunk::<16>().map(|id| BindingId(uuid::Uuid::from_bytes(*id)));
            let company = store::company_of(rest).filter(|company| store.is_home(company));
            if let (Some(company), Some(id)) = (company, id) {
                bindings.insert((company, id));
            }
        }
        drop(marks);
        let (bindings, may_go_on) = (Mutex::new(bindings), AtomicBool::new(true));
        Ok(Self { store, bindings, may_go_on, again: Mutex::default() })
    }

    /// Something about a binding has changed: records that wait may go on.
    pub fn go_on(&self) {
        self.may_go_on.store(true, Ordering::Relaxed);
    }

    /// What could not be given for a reason that passes is tried again soon.
    pub fn try_again(&self) {
        *self.again.lock() = Some(tokio::time::Instant::now() + AGAIN);
    }

    /// Whether it is time to try again; once.
    pub fn is_time(&self) -> bool {
        let is_late = self.again.lock().take_if(|at| *at <= tokio::time::Instant::now()).is_some();
        (self.may_go_on.swap(false, Ordering::Relaxed) || is_late)
            && !self.bindings.lock().is_empty()
    }

    /// How long to wait for the next try.
    pub fn wait(&self) -> Option<Duration> {
        let again = *self.again.lock();
        again.map(|at| at.saturating_duration_since(tokio::time::Instant::now()))
    }

    /// Whether records wait for a binding.
    pub fn has(&self, binding: &Binding) -> bool {
        self.bindings.lock().contains(&(binding.company_id.clone(), binding.id))
    }

    /// The companies that have records that wait.
    pub fn companies(&self) -> BTreeSet<CompanyId> {
        self.bindings.lock().iter().map(|(company, _)| company.clone()).collect()
    }

    /// The bindings of a company that have records that wait.
    pub fn bindings_of(&self, company: &CompanyId) -> Vec<BindingId> {
        let all = self.bindings.lock();
        all.iter().filter(|(of, _)| of == company).map(|(_, id)| *id).collect()
    }

    /// Forgets a company that was erased, or whose import was undone.
    pub fn forget(&self, company: &CompanyId) {
        self.bindings.lock().retain(|(of, _)| of != company);
    }

    /// Hold this while you give a record to the provider, or take it out of the queue.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn lock(&self, binding: BindingId) -> Result<Lease, StoreError> {
        self.store.lock(LockKind::Waiting, binding.0.as_bytes()).await
    }

    /// Lets something wait; `number` orders it.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn put(
        &self,
        binding: &Binding,
        number: u64,
        what: &Waiting,
    ) -> Result<(), StoreError> {
        let (company, id) = (&binding.company_id, binding.id);
        let key = [prefix(company, id), number.to_be_bytes().to_vec()].concat();
        let row = Change::always(Table::Waiting, key, Some(store::encode("waiting record", what)?));
        let mark = Change::always(Table::Host, mark(company, id), Some(Vec::new()));
        store::write(&*self.store, &[row, mark]).await?;
        self.bindings.lock().insert((company.clone(), id));
        Ok(())
    }

    /// What waits for a binding, one by one in its order: what comes after the key `after`.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn next(
        &self,
        binding: &Binding,
        after: Option<&[u8]>,
    ) -> Result<Option<(Vec<u8>, Waiting)>, StoreError> {
        // One row at a time: a row may have a megabyte.
        let from = after.map(|after| [after, b"\0"].concat());
        let prefix = prefix(&binding.company_id, binding.id);
        let page = self.store.scan(Table::Waiting, &prefix, from.as_deref(), 1).await?;
        let decoded =
            |(key, value): (Vec<u8>, Vec<u8>)| Ok((key, store::decode("waiting record", &value)?));
        page.entries.into_iter().next().map(decoded).transpose()
    }

    /// Removes a row that [`WaitingRecords::next`] answered and that the provider has taken.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn taken(&self, key: Vec<u8>) -> Result<(), StoreError> {
        store::write(&*self.store, &[Change::always(Table::Waiting, key, None)]).await.map(drop)
    }

    /// Removes the mark of a binding for which nothing waits any more.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn all_taken(&self, company: &CompanyId, id: BindingId) -> Result<(), StoreError> {
        let mark = Change::always(Table::Host, mark(company, id), None);
        store::write(&*self.store, &[mark]).await?;
        self.bindings.lock().remove(&(company.clone(), id));
        Ok(())
    }

    /// Removes what waits for a company's bindings. Nothing of it is given to a provider
    /// afterwards, if the company is closed.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn remove_company(&self, company: &CompanyId) -> Result<(), StoreError> {
        for id in self.bindings_of(company) {
            let _lock = self.lock(id).await?;
            remove(&*self.store, company, id).await?;
        }
        self.forget(company);
        Ok(())
    }

    /// Removes records that wait from the queue, one lock for each row: meanwhile nobody gives them
    /// to the provider. Answers which were there.
    ///
    /// # Errors
    /// Where it cannot be read or written.
    pub async fn forget_records(
        &self,
        binding: &Binding,
        gone: &[RecordHandle],
    ) -> Result<HashSet<RecordId>, StoreError> {
        let (mut found, mut after) = (HashSet::new(), None::<Vec<u8>>);
        loop {
            let _lock = self.lock(binding.id).await?;
            let next = self.next(binding, after.as_deref()).await?;
            let Some((key, waiting)) = next else { return Ok(found) };
            let new = match waiting {
                Waiting::Record(record) if gone.contains(&record.handle) => {
                    found.insert(record.handle.provider_record_id);
                    Some(None)
                }
                Waiting::Record(_) => None,
                Waiting::Own(lines) => without(&lines, gone, &mut found)
                    .map(|lines| (!lines.is_empty()).then_some(Waiting::Own(lines))),
            };
            if let Some(new) = new {
                let encoded = |waiting| store::encode("waiting record", &waiting);
                let new = new.map(encoded).transpose()?;
                let change = Change::always(Table::Waiting, key.clone(), new);
                store::write(&*self.store, &[change]).await?;
            }
            after = Some(key);
        }
    }
}

fn mark(company: &CompanyId, id: BindingId) -> Vec<u8> {
    [WAITING, &store::company_key(company, id.0.as_bytes())].concat()
}

fn prefix(company: &CompanyId, id: BindingId) -> Vec<u8> {
    store::company_key(company, id.0.as_bytes())
}

/// Removes what waits for a binding.
///
/// # Errors
/// Where it cannot be written.
pub async fn remove(
    store: &dyn Store,
    company: &CompanyId,
    id: BindingId,
) -> Result<(), StoreError> {
    let mut rows = store::scan_all(store, Table::Waiting, &prefix(company, id));
    while let Some((key, _)) = rows.next().await? {
        store::write(store, &[Change::always(Table::Waiting, key, None)]).await?;
    }
    store::write(store, &[Change::always(Table::Host, mark(company, id), None)]).await?;
    Ok(())
}

/// Lines of a provider without those that name one of the records. `None` if no line does.
fn without(lines: &str, gone: &[RecordHandle], found: &mut HashSet<RecordId>) -> Option<String> {
    let mut is_changed = false;
    let stays = |line: &&str| {
        let named = gone.iter().find(|handle| {
            serde_json::to_string(&handle.provider_record_id).is_ok_and(|id| line.contains(&id))
        });
        found.extend(named.map(|handle| handle.provider_record_id.clone()));
        is_changed |= named.is_some();
        named.is_none()
    };
    let kept: String = lines.lines().filter(stays).flat_map(|line| [line, "\n"]).collect();
    is_changed.then_some(kept)
}

/// Removes the marks of a company. Its rows go with the company's others.
///
/// # Errors
/// Where they cannot be written.
pub async fn remove_marks(store: &dyn Store, company: &CompanyId) -> Result<(), StoreError> {
    let mut marks =
        store::scan_all(store, Table::Host, &[WAITING, &store::company_key(company, b"")].concat());
    while let Some((key, _)) = marks.next().await? {
        store::write(store, &[Change::always(Table::Host, key, None)]).await?;
    }
    Ok(())
}
