//! Where operations are recorded, with everything that counts or tells of them.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::Notify;

use crate::billing::{BillingError, Ledger, Sums, SumsQuery};
use crate::feed::Feed;
use crate::metrics::Metrics;
use crate::operation::OperationSink;
use crate::recent::Recent;
use crate::refusals::{Counted, Refusals};
use memhost_access::Attached;
use memhost_ports::Clock;
use memhost_records::Records;
use memhost_store::{CompactionMark, Store, StoreError, TableWrite};
use memhost_types::{CompanyId, Operation};

/// Whether the answer to a read waits until its operation is on disk. The answer to a write always
/// does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audit {
    /// It waits.
    #[default]
    Durable,
    /// It does not: a crash may lose the operations of the last reads that were answered.
    Relaxed,
}

/// What the logs of one process share: a company's is one of several where several hosts share a
/// database.
#[derive(Clone)]
pub struct Told {
    /// What followers are told.
    pub feed: Arc<Feed>,
    /// The counters of the host.
    pub metrics: Arc<Metrics>,
}

impl Told {
    /// Nothing yet. `has_company_label`: metrics have companies as a label.
    pub fn new(clock: Arc<dyn Clock>, has_company_label: bool) -> Self {
        let metrics = Arc::new(Metrics::new(has_company_label));
        Self { feed: Arc::new(Feed::new(clock)), metrics }
    }
}

/// How operations are recorded.
#[derive(Debug, Clone, Copy, Default)]
pub struct OplogOptions {
    /// Whether the answer to a read waits.
    pub audit: Audit,
    /// How long after the first removal the store is compacted.
    pub compact_after: Duration,
}

/// Where operations are recorded.
pub struct Oplog {
    /// What every company spends and may spend.
    pub ledger: Ledger,
    /// What followers are told.
    pub feed: Arc<Feed>,
    /// The refusals of the current minute.
    pub refusals: Refusals,
    /// The counters of the host.
    pub metrics: Arc<Metrics>,
    /// How the last hour was for each binding.
    pub recent: Recent,
    /// What was removed and is still in the store's files.
    pub compaction: CompactionMark,
    /// What says which events an operation leaves.
    pub sinks: Attached<dyn OperationSink>,
    /// The background work waits for this, and begins what is due.
    pub wake: Arc<Notify>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) audit: Audit,
    pub(crate) records: Arc<Records>,
}

impl Oplog {
    /// Reads the budgets and the mark of compaction.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn open(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        records: Arc<Records>,
        Told { feed, metrics }: Told,
        options: OplogOptions,
    ) -> Result<Arc<Self>, StoreError> {
        let OplogOptions { audit, compact_after } = options;
        Ok(Arc::new(Self {
            ledger: Ledger::open(Arc::clone(&store), Arc::clone(&clock)).await?,
            feed,
            refusals: Refusals::default(),
            metrics,
            recent: Recent::default(),
            compaction: CompactionMark::open(&*store, clock.now(), compact_after).await?,
            sinks: Attached::default(),
            wake: Arc::new(Notify::new()),
            store,
            clock,
            audit,
            records,
        }))
    }

    /// The row that says that something is removed, as [`CompactionMark::mark`] makes it. The
    /// background work is told, so that the compaction begins when it is due.
    ///
    /// # Errors
    /// Where the row cannot be encoded.
    pub fn mark_removal(&self) -> Result<Option<TableWrite>, StoreError> {
        let row = self.compaction.mark(self.clock.now())?;
        if row.is_some() {
            self.wake.notify_one();
        }
        Ok(row)
    }

    /// Writes the numbers of the minutes that have ended; with `also_this` those of the current
    /// minute, too. They are on disk when this returns.
    ///
    /// # Errors
    /// Where the store does not take them. They are kept for the next time.
    pub async fn write_refusals(&self, also_this: bool) -> Result<(), StoreError> {
        let _writing = self.refusals.hold_writes().await;
        self.write_counted(self.refusals.ended(self.clock.now(), also_this)).await
    }

    /// Sums over a company's operations, with the refusals whose number is not written yet.
    ///
    /// # Errors
    /// Where the days are not valid or the sums cannot be read.
    pub async fn sums(&self, company: &CompanyId, query: &SumsQuery) -> Result<Sums, BillingError> {
        let mut further = Vec::new();
        for (first, count) in self.refusals.pending(company) {
            if let Some(operation) = self.store.operation(company, first).await? {
                let more = count.saturating_sub(operation.count);
                further.push((operation, more));
            }
        }
        self.ledger.sums(company, query, &further).await
    }

    /// Writes numbers that a refusal of a later minute has displaced.
    pub(crate) async fn write_displaced(&self, counted: Vec<Counted>) -> Result<(), StoreError> {
        if counted.is_empty() {
            return Ok(());
        }
        let _writing = self.refusals.hold_writes().await;
        self.write_counted(counted).await
    }

    /// Writes numbers into the entries of their operations. A number may be written again: it is
    /// the whole count. What the store does not take is kept for the next minute.
    async fn write_counted(&self, mut counted: Vec<Counted>) -> Result<(), StoreError> {
        counted.retain(|counted| counted.count > 1);
        let written = self.try_write_counted(&counted).await;
        if written.is_err() {
            self.refusals.keep(counted);
        }
        written
    }

    /// An operation that is gone was too old, or its company was erased.
    async fn try_write_counted(&self, counted: &[Counted]) -> Result<(), StoreError> {
        let mut last = None;
        for Counted { company, first, count } in counted {
            let Some(operation) = self.store.operation(company, *first).await? else { continue };
            let operation = Arc::new(Operation { count: *count, ..operation });
            last = Some(self.store.write_operation(Arc::clone(&operation), Vec::new()));
            self.feed.operation(&operation);
        }
        match last {
            Some(commit) => commit.await,
            None => Ok(()),
        }
    }
}
