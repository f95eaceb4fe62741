//! Records of an import that wait until an operator has decided about the grants of their binding.
//! They are rows of a table of their own, in the order of the import. A mark names each binding
//! that has some. Once its grants are decided, background work gives the records to the provider,
//! and removes each row after the provider has taken it.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::Service;
use crate::error::ServiceError;
use memhost_records::{check_owner, visibility_in};
use memhost_store::{self as store, Change, LockKind, Store, StoreError, Table};
use memhost_types::{
    Binding, BindingId, CompanyId, RecordHandle, RecordId, RecordRow, RecordWrite, Scope, Snippet,
    UpsertRequest,
};

/// The prefix of the marks.
const WAITING: &[u8] = b"waiting\0";

/// How long a record waits that its provider could not take for a reason that passes.
const AGAIN: Duration = Duration::from_secs(10);

/// A row that waits.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Waiting {
    Record(Box<Snippet>),
    /// Lines in the provider's own format, as many as one call may have.
    Own(String),
}

/// The bindings that have records that wait.
#[derive(Default)]
pub(crate) struct WaitingRecords {
    bindings: Mutex<BTreeSet<(CompanyId, BindingId)>>,
    /// Whether some of them may go on by now.
    may_go_on: AtomicBool,
    /// When to try again what a provider could not take for a reason that passes.
    again: Mutex<Option<tokio::time::Instant>>,
}

impl WaitingRecords {
    pub(crate) async fn open(store: &dyn Store) -> Result<Self, StoreError> {
        let all = Self::default();
        let mut marks = store::scan_all(store, Table::Host, WAITING);
        while let Some((key, _)) = marks.next().await? {
            let rest = &key[WAITING.len()..];
            let id = rest.last_chunk::<16>().map(|id| BindingId(uuid::Uuid::from_bytes(*id)));
            if let (Some(company), Some(id)) = (store::company_of(rest), id) {
                all.bindings.lock().insert((company, id));
            }
        }
        all.may_go_on.store(true, Ordering::Relaxed);
        Ok(all)
    }

    /// Whether it is time to try again; once.
    pub(crate) fn is_time(&self) -> bool {
        let is_late = self.again.lock().take_if(|at| *at <= tokio::time::Instant::now()).is_some();
        (self.may_go_on.swap(false, Ordering::Relaxed) || is_late)
            && !self.bindings.lock().is_empty()
    }

    /// How long to wait for the next try.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let again = *self.again.lock();
        again.map(|at| at.saturating_duration_since(tokio::time::Instant::now()))
    }

    /// Whether records wait for a binding.
    pub(crate) fn has(&self, binding: &Binding) -> bool {
        self.bindings.lock().contains(&(binding.company_id.clone(), binding.id))
    }

    fn of(&self, company: &CompanyId) -> Vec<(CompanyId, BindingId)> {
        self.bindings.lock().iter().filter(|(of, _)| of == company).cloned().collect()
    }

    /// Forgets a company that was erased, or whose import was undone.
    pub(crate) fn forget(&self, company: &CompanyId) {
        self.bindings.lock().retain(|(of, _)| of != company);
    }
}

fn mark(company: &CompanyId, id: BindingId) -> Vec<u8> {
    [WAITING, &store::company_key(company, id.0.as_bytes())].concat()
}

fn prefix(company: &CompanyId, id: BindingId) -> Vec<u8> {
    store::company_key(company, id.0.as_bytes())
}

/// Removes what waits for a binding.
pub(crate) async fn remove(
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

/// Removes records that wait from the queue, one lock for each row: meanwhile nobody gives them to
/// the provider. Answers which were there.
pub(crate) async fn forget_records(
    store: &dyn Store,
    binding: &Binding,
    gone: &[RecordHandle],
) -> Result<HashSet<RecordId>, StoreError> {
    let (mut found, mut from) = (HashSet::new(), None::<Vec<u8>>);
    let prefix = prefix(&binding.company_id, binding.id);
    loop {
        let _lock = store.lock(LockKind::Waiting, binding.id.0.as_bytes()).await?;
        let page = store.scan(Table::Waiting, &prefix, from.as_deref(), 1).await?;
        let Some((key, value)) = page.entries.into_iter().next() else { return Ok(found) };
        let new = match store::decode("waiting record", &value)? {
            Waiting::Record(record) if gone.contains(&record.handle) => {
                found.insert(record.handle.provider_record_id);
                Some(None)
            }
            Waiting::Record(_) => None,
            Waiting::Own(lines) => without(&lines, gone, &mut found)
                .map(|lines| (!lines.is_empty()).then_some(Waiting::Own(lines))),
        };
        if let Some(new) = new {
            let new = new.map(|waiting| store::encode("waiting record", &waiting)).transpose()?;
            store::write(store, &[Change::always(Table::Waiting, key.clone(), new)]).await?;
        }
        from = Some([&key[..], b"\0"].concat());
    }
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
pub(crate) async fn remove_marks(store: &dyn Store, company: &CompanyId) -> Result<(), StoreError> {
    let mut marks =
        store::scan_all(store, Table::Host, &[WAITING, &store::company_key(company, b"")].concat());
    while let Some((key, _)) = marks.next().await? {
        store::write(store, &[Change::always(Table::Host, key, None)]).await?;
    }
    Ok(())
}

/// A record of another host as a request, for whom that host knew that it is. Where nobody knows,
/// it belongs to the whole company.
pub(crate) fn upsert_of(
    binding: &Binding,
    snippet: Snippet,
    row: Option<&RecordRow>,
) -> UpsertRequest {
    let (scope, visibility) = match (row, snippet.scope) {
        (Some(row), _) => (row.scope.clone(), row.visibility),
        (None, scope) => {
            let scope = scope.unwrap_or_else(|| Scope::company(binding.company_id.clone()));
            let visibility = visibility_in(&scope);
            (scope, visibility)
        }
    };
    UpsertRequest {
        binding_key: Some(binding.key.clone()),
        visibility: check_owner(&scope, visibility).is_ok().then_some(visibility),
        scope,
        source: snippet.source,
        records: vec![RecordWrite {
            id: Some(snippet.handle.provider_record_id),
            text: snippet.text,
            summary: snippet.summary,
            metadata: snippet.metadata,
            created_at: snippet.created_at,
            expires_at: snippet.expires_at,
            ..RecordWrite::default()
        }],
    }
}

impl Service {
    /// Something about a binding has changed: records that wait may go on.
    pub(crate) fn go_on_waiting(&self) {
        self.waiting.may_go_on.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Whether a binding came with an import and waits as a whole: its provider has nothing yet.
    ///
    /// # Errors
    /// Where it cannot be read which build serves the binding.
    pub(crate) async fn never_served(&self, binding: &Binding) -> Result<bool, ServiceError> {
        Ok(binding.requested.is_some() && self.serving.state(binding).await?.is_none())
    }

    /// Lets something wait; `number` orders it.
    pub(crate) async fn let_wait(
        &self,
        binding: &Binding,
        number: u64,
        what: &Waiting,
    ) -> Result<(), ServiceError> {
        let (company, id) = (&binding.company_id, binding.id);
        let key = [prefix(company, id), number.to_be_bytes().to_vec()].concat();
        let row = Change::always(Table::Waiting, key, Some(store::encode("waiting record", what)?));
        let mark = Change::always(Table::Host, mark(company, id), Some(Vec::new()));
        store::write(&*self.store, &[row, mark]).await?;
        self.waiting.bindings.lock().insert((company.clone(), id));
        Ok(())
    }

    /// What waits for a binding, one by one in its order: what comes after the key `after`.
    pub(crate) async fn next_waiting(
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

    /// Gives what waits to the providers of the bindings whose grants are decided. What a provider
    /// does not take stays, and is tried again when something about the binding changes, or at the
    /// next start; after a failure that passes, soon.
    pub(crate) async fn take_waiting(&self, company: &CompanyId) -> Result<(), ServiceError> {
        if self.closed(company).is_some() {
            return Ok(());
        }
        for (company, id) in self.waiting.of(company) {
            let Some(binding) =
                self.bindings.list(&company).into_iter().find(|binding| binding.id == id)
            else {
                continue;
            };
            if binding.requested.is_some() {
                continue;
            }
            if self.give(&binding).await? {
                let mark = Change::always(Table::Host, mark(&company, id), None);
                store::write(&*self.store, &[mark]).await?;
                self.waiting.bindings.lock().remove(&(company.clone(), id));
                tracing::info!(%company, binding = %binding.key, "all records of the import are \
                    with their provider");
            }
        }
        Ok(())
    }

    /// Whether nothing waits any more.
    async fn give(&self, binding: &Binding) -> Result<bool, ServiceError> {
        let (mut after, mut is_all): (Option<Vec<u8>>, bool) = (None, true);
        loop {
            // The second of two tasks finds nothing. One lock for each row: a record may be
            // forgotten in between.
            let _lock = self.store.lock(LockKind::Waiting, binding.id.0.as_bytes()).await?;
            if self.closed(&binding.company_id).is_some() {
                return Ok(false);
            }
            let Some((key, waiting)) = self.next_waiting(binding, after.as_deref()).await? else {
                return Ok(is_all);
            };
            let given = match waiting {
                Waiting::Own(lines) => {
                    let scope = Scope::company(binding.company_id.clone());
                    self.import_lines(scope, &binding.key, lines, true).await.map(drop)
                }
                Waiting::Record(snippet) => {
                    let row = self.records.row(binding, &snippet.handle.provider_record_id).await?;
                    self.import_upsert(upsert_of(binding, *snippet, row.as_ref()), row).await
                }
            };
            match given {
                Ok(()) => {
                    store::write(
                        &*self.store,
                        &[Change::always(Table::Waiting, key.clone(), None)],
                    )
                    .await?;
                }
                Err(error) => {
                    is_all = false;
                    let (company, binding) = (&binding.company_id, &binding.key);
                    tracing::warn!(%error, %company, %binding, "a record of the import waits on; \
                        its provider did not take it");
                    if !matches!(
                        &error,
                        ServiceError::Operation { error, .. } if !error.code.is_worth_another_try(),
                    ) {
                        *self.waiting.again.lock() = Some(tokio::time::Instant::now() + AGAIN);
                        self.wake.notify_one();
                        return Ok(false);
                    }
                }
            }
            after = Some(key);
        }
    }

    /// Removes what waits for a company's bindings. Nothing of it is given to a provider
    /// afterwards: the company is closed.
    pub(crate) async fn remove_waiting(&self, company: &CompanyId) -> Result<(), StoreError> {
        for (company, id) in self.waiting.of(company) {
            let _lock = self.store.lock(LockKind::Waiting, id.0.as_bytes()).await?;
            remove(&*self.store, &company, id).await?;
        }
        self.waiting.forget(company);
        Ok(())
    }

    /// Goes on with everything that waits and may go on. One company's failure does not stop the
    /// others.
    pub(crate) async fn take_all_waiting(&self) {
        let companies: BTreeSet<CompanyId> =
            self.waiting.bindings.lock().iter().map(|(company, _)| company.clone()).collect();
        for company in companies {
            if let Err(error) = self.take_waiting(&company).await {
                *self.waiting.again.lock() = Some(tokio::time::Instant::now() + AGAIN);
                tracing::error!(%error, %company, "records of an import wait on");
            }
        }
    }

    /// The sentence about what waits for a binding, if anything does.
    pub(crate) fn waiting_warning(&self, binding: &Binding) -> Option<String> {
        let key = &binding.key;
        if !self.waiting.has(binding) && binding.requested.is_none() {
            return None;
        }
        Some(match binding.requested {
            Some(_) => format!(
                "records of its import wait until an operator decides about the grants and limits \
                 that came with it; \
                 `memhost binding grant {key}` shows them, and `--requested` accepts them"
            ),
            None => "records of an import are on their way to the provider, or it does not take \
                     them: look at the \
                     operations of the kinds `import` and `record_upsert`"
                .to_owned(),
        })
    }
}
