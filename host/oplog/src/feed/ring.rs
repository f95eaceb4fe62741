//! The last notices of the feed, bounded in count and in memory.
//!
//! Operations of all companies publish here, so nothing is locked for all of them. A notice gets
//! its number from an atomic counter and goes into the slot of that number; a slot is shared by
//! numbers that are [`KEPT`] apart. This is exact: a number is given once, a reader goes number by
//! number, and it waits at one that is given and not yet stored. So it reads each notice once and
//! in order, or learns that notices are gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use parking_lot::Mutex;

use super::notice::{HostEvent, Notice};
use memhost_types::{CompanyId, Job, Operation, RecordHandle, Usage};

/// Notices that are kept.
pub(super) const KEPT: u64 = 1_024;
/// How much memory they may keep, in bytes.
pub(super) const MAX_KEPT_BYTES: usize = 8 * 1024 * 1024;
/// The memory of an event whatever is in it, in bytes. Ids and times are in it.
const BASE: usize = 2 * 1024;

/// A notice with its number.
type Slot = Mutex<Option<(u64, Arc<Notice>)>>;

/// The notices that are kept, by number.
pub(super) struct Ring {
    slots: Box<[Slot]>,
    /// The number of the next notice.
    next: AtomicU64,
    /// Notices below this number were removed to save memory.
    first: AtomicU64,
    /// The memory that the notices keep.
    bytes: AtomicUsize,
}

/// The entry at a number.
#[derive(Debug, PartialEq)]
pub(super) enum Found {
    Notice(Arc<Notice>),
    /// It is no longer kept.
    Gone,
    /// It was not published yet.
    NotYet,
}

impl Default for Ring {
    fn default() -> Self {
        let slots = (0..KEPT).map(|_| Mutex::default()).collect();
        let (next, first) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { slots, next, first, bytes: AtomicUsize::new(0) }
    }
}

impl Ring {
    /// The number of the next notice.
    pub(super) fn end(&self) -> u64 {
        self.next.load(SeqCst)
    }

    /// The number of the first notice that is kept.
    pub(super) fn first(&self) -> u64 {
        self.first.load(SeqCst).max(self.end().saturating_sub(KEPT))
    }

    fn slot(&self, number: u64) -> &Mutex<Option<(u64, Arc<Notice>)>> {
        // The remainder is below the number of slots, which is an usize.
        &self.slots[usize::try_from(number % KEPT).unwrap_or(0)]
    }

    /// Adds a notice, which is made for its number.
    pub(super) fn push(&self, make: impl FnOnce(u64) -> Notice) {
        let number = self.next.fetch_add(1, SeqCst);
        let notice = Arc::new(make(number));
        self.bytes.fetch_add(weight(&notice.happened), SeqCst);
        let mut slot = self.slot(number).lock();
        let is_late = slot.as_ref().is_some_and(|(other, _)| *other > number);
        let gone = match is_late {
            // So many notices came meanwhile that this one is no longer kept.
            true => Some((number, notice)),
            false => slot.replace((number, notice)),
        };
        drop(slot);
        self.subtract(gone);
        if number < self.first.load(SeqCst) {
            self.remove(number);
        }
        while self.bytes.load(SeqCst) > MAX_KEPT_BYTES {
            let first = self.first();
            if first + 1 >= self.end() {
                break;
            }
            self.first.fetch_max(first + 1, SeqCst);
            self.remove(first);
        }
    }

    fn remove(&self, number: u64) {
        let mut slot = self.slot(number).lock();
        let gone = slot.take_if(|(found, _)| *found == number);
        drop(slot);
        self.subtract(gone);
    }

    fn subtract(&self, gone: Option<(u64, Arc<Notice>)>) {
        if let Some((_, notice)) = gone {
            self.bytes.fetch_sub(weight(&notice.happened), SeqCst);
        }
    }

    /// The entry at a number.
    pub(super) fn read(&self, number: u64) -> Found {
        if number < self.first() {
            return Found::Gone;
        }
        match &*self.slot(number).lock() {
            Some((found, notice)) if *found == number => Found::Notice(Arc::clone(notice)),
            Some((found, _)) if *found > number => Found::Gone,
            // It may have been removed since `first` was read.
            _ if number < self.first() => Found::Gone,
            _ => Found::NotYet,
        }
    }

    /// Puts a reset in the place of each notice of an erased company: the numbers of the others
    /// stay.
    pub(super) fn forget(&self, company: &CompanyId) {
        for slot in &self.slots {
            let mut slot = slot.lock();
            let Some((_, notice)) =
                slot.as_mut().filter(|(_, notice)| notice.company_id.as_ref() == Some(company))
            else {
                continue;
            };
            let reset =
                Notice { place: notice.place, company_id: None, happened: HostEvent::Reset };
            self.bytes.fetch_add(weight(&reset.happened), SeqCst);
            self.bytes.fetch_sub(weight(&notice.happened), SeqCst);
            *notice = Arc::new(reset);
        }
    }

    /// The notices that are kept, with their numbers, and the memory that is counted for them.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (Vec<(u64, Arc<Notice>)>, usize) {
        let numbers = self.first()..self.end();
        let kept = numbers.filter_map(|number| match self.read(number) {
            Found::Notice(notice) => Some((number, notice)),
            Found::Gone | Found::NotYet => None,
        });
        (kept.collect(), self.bytes.load(SeqCst))
    }
}

/// How much memory an event keeps while it is in the feed, about.
pub(super) fn weight(happened: &HostEvent) -> usize {
    BASE + match happened {
        HostEvent::Operation(operation) => of_operation(operation),
        HostEvent::Job(job) => of_job(job),
        HostEvent::Budget(_) | HostEvent::Plugin(_) | HostEvent::Reset => 0,
    }
}

fn of_operation(operation: &Operation) -> usize {
    let handles = operation.records.iter().chain(&operation.cited).map(of_handle);
    let jobs = operation
        .jobs
        .iter()
        .map(|job| 256 + job.provider_job_id.len() + job.error.as_ref().map_or(0, String::len));
    let texts = [
        operation.error.as_ref().map(|error| &error.message),
        operation.source.as_ref().and_then(|source| source.external_ref.as_ref()),
        operation.source.as_ref().and_then(|source| source.document_key.as_ref()),
    ];
    handles.sum::<usize>()
        + jobs.sum::<usize>()
        + operation.usage.len() * (size_of::<Usage>() + 256)
        + operation.cost_event_ids.len() * 16
        + texts.into_iter().flatten().map(String::len).sum::<usize>()
}

fn of_job(job: &Job) -> usize {
    let handles: usize = job.records.iter().map(of_handle).sum();
    job.provider_job_id.len() + job.error.as_ref().map_or(0, String::len) + handles
}

fn of_handle(handle: &RecordHandle) -> usize {
    size_of::<RecordHandle>()
        + handle.provider_record_id.as_str().len()
        + handle.provider_key.as_str().len()
}
