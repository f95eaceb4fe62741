//! Refusals, counted: one operation for each token and minute, and for everything that a filter or
//! a sum can tell apart. The first refusal of a minute is written like every operation. Later ones
//! are counted here, and the number is written into the first one's entry when the minute has
//! ended, or when the host stops. A caller that floods the host with refused calls thus writes two
//! small entries in a minute and not one for each call.
//!
//! Each company's counters have a lock of their own, so no refusal waits for another company's. The
//! numbers stay exact: a counter is changed and taken away under its company's lock only.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};

use memhost_access::Caller;
use memhost_types::{Alike, CompanyId, Operation, OperationErrorCode, OperationId, Outcome};

/// Different refusals of a company that are counted apart in a minute. Further ones are counted
/// together, by their kind and code.
const MOST_OF_A_COMPANY: usize = 256;
/// Counters of all companies. With more, all of them are written and the counting begins again.
const MOST: usize = 16_384;
/// Numbers that could not be written and are kept for another try. Further ones are lost.
const MOST_FAILED: usize = 4_096;
const MINUTE_MS: i64 = 60_000;

/// What makes the refusal of an operation countable: that it has no intent on disk. An operation
/// has it from its opening until its intent is written, and counting it takes it away. There is no
/// other way to count, and nothing makes a second one for an operation that has begun.
pub(crate) struct Countable {
    token: String,
}

impl Countable {
    /// For a caller's operation that begins. `None`: those of the host itself are not counted.
    pub(crate) fn of(caller: &Caller) -> Option<Self> {
        (!caller.is_host()).then(|| Self { token: caller.key().to_owned() })
    }
}

/// The key of refusals that are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Reason {
    /// The caller's key. `None`: all further refusals of a kind and code together.
    token: Option<String>,
    /// Why it was refused.
    code: OperationErrorCode,
    /// Everything that a filter or a sum looks at.
    alike: Alike,
}

impl Reason {
    /// Why this operation was refused. `None`: it was not.
    fn of(countable: &Countable, operation: &Operation) -> Option<Self> {
        let code = operation.error.as_ref()?.code;
        (operation.outcome == Outcome::Refused).then(|| Self {
            token: Some(countable.token.clone()),
            code,
            alike: Alike::of(operation),
        })
    }

    fn of_others(&self) -> Self {
        let alike = Alike::any(self.alike.kind, self.alike.outcome);
        Self { token: None, code: self.code, alike }
    }
}

/// An operation that stands for several refusals.
#[derive(Debug, Clone, Copy)]
struct Counter {
    minute: i64,
    first: OperationId,
    count: u64,
}

/// A number that is to be written into the entry of an operation.
#[derive(Debug, Clone)]
pub struct Counted {
    /// The company of the operation.
    pub company: CompanyId,
    /// The operation.
    pub first: OperationId,
    /// How many refusals it stands for.
    pub count: u64,
}

/// The result of counting a refusal.
pub(crate) enum Taken {
    /// It is the first one of its minute, and it is to be written.
    First {
        /// Whether it stands for all further refusals of its kind and code.
        is_of_others: bool,
        /// Numbers that it has displaced, and that are to be written before it.
        ended: Vec<Counted>,
    },
    /// It is counted in this operation.
    Again(OperationId),
}

type Counters = HashMap<Reason, Counter>;

/// The refusals of the current minute.
#[derive(Default)]
pub struct Refusals {
    /// The lock of the map is taken exclusively only where a company gets its first counters, and
    /// where companies without counters are removed.
    companies: RwLock<HashMap<CompanyId, Arc<Mutex<Counters>>>>,
    /// The counters of all companies.
    len: AtomicUsize,
    /// Numbers that the store did not take, for example because the disk is full.
    failed: Mutex<Vec<Counted>>,
    /// Held while numbers are written: an erasure must not come between reading an entry and
    /// writing it.
    writing: tokio::sync::Mutex<()>,
}

fn minute(now: Timestamp) -> i64 {
    now.as_millisecond().div_euclid(MINUTE_MS)
}

impl Refusals {
    fn known(&self, company: &CompanyId) -> Option<Arc<Mutex<Counters>>> {
        self.companies.read().get(company).cloned()
    }

    fn counters(&self, company: &CompanyId) -> Arc<Mutex<Counters>> {
        let known = self.known(company);
        known.unwrap_or_else(|| {
            Arc::clone(self.companies.write().entry(company.clone()).or_default())
        })
    }

    /// Counts a refused operation if one like it was recorded in this minute already. Answers the
    /// operation in which it is counted.
    pub(crate) fn again(
        &self,
        countable: &Countable,
        refused: &Operation,
        now: Timestamp,
    ) -> Option<OperationId> {
        self.count(&refused.company_id, &Reason::of(countable, refused)?, now)
    }

    fn count(&self, company: &CompanyId, reason: &Reason, now: Timestamp) -> Option<OperationId> {
        let counters = self.known(company)?;
        let mut counters = counters.lock();
        let counter = match counters.contains_key(reason) {
            true => counters.get_mut(reason),
            false if counters.len() >= MOST_OF_A_COMPANY => counters.get_mut(&reason.of_others()),
            false => None,
        }?;
        if counter.minute != minute(now) {
            return None;
        }
        counter.count += 1;
        Some(counter.first)
    }

    /// Counts a refused operation.
    #[allow(clippy::needless_pass_by_value, reason = "counting takes it away")]
    pub(crate) fn take(&self, countable: Countable, refused: &Operation, now: Timestamp) -> Taken {
        match Reason::of(&countable, refused) {
            Some(reason) => self.take_for(&refused.company_id, reason, refused.id, now),
            None => Taken::First { is_of_others: false, ended: Vec::new() },
        }
    }

    fn take_for(
        &self,
        company: &CompanyId,
        reason: Reason,
        id: OperationId,
        now: Timestamp,
    ) -> Taken {
        if let Some(first) = self.count(company, &reason, now) {
            return Taken::Again(first);
        }
        let mut ended = Vec::new();
        if self.len.load(Ordering::SeqCst) >= MOST {
            ended = self.drain(|_| true);
        }
        let counters = self.counters(company);
        let mut counters = counters.lock();
        let is_known = counters.contains_key(&reason) || counters.len() < MOST_OF_A_COMPANY;
        let reason = if is_known { reason } else { reason.of_others() };
        let is_of_others = !is_known;
        let new = Counter { minute: minute(now), first: id, count: 1 };
        match counters.get_mut(&reason) {
            // Another task was first, since `count`.
            Some(counter) if counter.minute == new.minute => {
                counter.count += 1;
                return Taken::Again(counter.first);
            }
            Some(counter) => {
                let before = std::mem::replace(counter, new);
                ended.push(Counted {
                    company: company.clone(),
                    first: before.first,
                    count: before.count,
                });
            }
            None => {
                counters.insert(reason, new);
                self.len.fetch_add(1, Ordering::SeqCst);
            }
        }
        Taken::First { is_of_others, ended }
    }

    /// Forgets a counter whose first refusal could not be written: the next one is written.
    pub(crate) fn not_written(&self, company: &CompanyId, id: OperationId) {
        if let Some(counters) = self.known(company) {
            let mut counters = counters.lock();
            let before = counters.len();
            counters.retain(|_, counter| counter.first != id);
            self.len.fetch_sub(before - counters.len(), Ordering::SeqCst);
        }
    }

    /// Waits until no numbers are written, and keeps others from being written until the guard is
    /// dropped.
    pub async fn hold_writes(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.writing.lock().await
    }

    /// Forgets an erased company. The caller has the guard of [`Refusals::hold_writes`].
    pub fn forget(&self, company: &CompanyId) {
        if let Some(counters) = self.known(company) {
            let mut counters = counters.lock();
            self.len.fetch_sub(counters.len(), Ordering::SeqCst);
            counters.clear();
        }
        self.failed.lock().retain(|counted| counted.company != *company);
    }

    /// The numbers of the minutes that have ended; with `also_this` those of the current minute,
    /// too.
    pub(crate) fn ended(&self, now: Timestamp, also_this: bool) -> Vec<Counted> {
        let this = minute(now);
        let mut ended = std::mem::take(&mut *self.failed.lock());
        ended.extend(self.drain(|counter| also_this || counter.minute != this));
        ended
    }

    fn drain(&self, is_wanted: impl Fn(&Counter) -> bool) -> Vec<Counted> {
        let mut drained = Vec::new();
        let all: Vec<_> =
            self.companies.read().iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        for (company, counters) in all {
            for (_, counter) in counters.lock().extract_if(|_, counter| is_wanted(counter)) {
                self.len.fetch_sub(1, Ordering::SeqCst);
                let (first, count) = (counter.first, counter.count);
                drained.push(Counted { company: company.clone(), first, count });
            }
        }
        // Who is about to count shares its company's counters, so those stay.
        let is_in_use = |counters: &mut Arc<Mutex<Counters>>| {
            Arc::get_mut(counters).is_none_or(|counters| !counters.get_mut().is_empty())
        };
        self.companies.write().retain(|_, counters| is_in_use(counters));
        drained
    }

    /// Keeps numbers that the store did not take, until the next try.
    pub(crate) fn keep(&self, counted: Vec<Counted>) {
        let mut failed = self.failed.lock();
        let room = MOST_FAILED.saturating_sub(failed.len());
        if counted.len() > room {
            tracing::warn!(
                lost = counted.len() - room,
                "numbers of refusals could not be written, and are lost"
            );
        }
        failed.extend(counted.into_iter().take(room));
    }

    /// When there is something to write. `None`: nothing is counted.
    pub fn due_at(&self, now: Timestamp) -> Option<Timestamp> {
        let is_empty = self.len.load(Ordering::SeqCst) == 0 && self.failed.lock().is_empty();
        let end = (minute(now) + 1).saturating_mul(MINUTE_MS);
        (!is_empty).then(|| Timestamp::from_millisecond(end).unwrap_or(Timestamp::MAX))
    }

    /// The numbers of a company that are not written yet.
    pub(crate) fn pending(&self, company: &CompanyId) -> Vec<(OperationId, u64)> {
        let Some(counters) = self.known(company) else { return Vec::new() };
        let counters = counters.lock();
        let several = counters.values().filter(|counter| counter.count > 1);
        several.map(|counter| (counter.first, counter.count)).collect()
    }

    /// Shows the numbers that are not written yet.
    pub fn show(&self, company: &CompanyId, operations: &mut [Operation]) {
        let Some(counters) = self.known(company) else { return };
        let counters = counters.lock();
        for operation in
            operations.iter_mut().filter(|operation| operation.outcome == Outcome::Refused)
        {
            if let Some(counter) = counters.values().find(|counter| counter.first == operation.id) {
                operation.count = counter.count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use memhost_types::OperationKind;

    use super::*;

    fn id(n: u64) -> OperationId {
        OperationId::new(1, n, n)
    }

    fn reason(token: usize) -> Reason {
        Reason {
            token: Some(token.to_string()),
            code: OperationErrorCode::Forbidden,
            alike: Alike::any(OperationKind::Query, Outcome::Refused),
        }
    }

    #[test]
    fn what_is_counted_is_bounded_and_the_sum_is_exact() {
        let refusals = Refusals::default();
        let now = Timestamp::from_millisecond(90_000).unwrap();
        let (mut written, mut sum) = (0, 0);
        let mut add = |ended: Vec<Counted>| ended.iter().for_each(|counted| sum += counted.count);
        // Two rounds of many tokens of each of many companies.
        for n in 0..2 * 100 * 400_u64 {
            let (token, company) =
                (usize::try_from(n % 400).unwrap(), format!("c{}", n / 400 % 100));
            match refusals.take_for(&company.parse().unwrap(), reason(token), id(n), now) {
                Taken::First { ended, .. } => {
                    written += 1;
                    add(ended);
                }
                Taken::Again(_) => {}
            }
            let companies = refusals.companies.read();
            assert!(
                refusals.len.load(Ordering::SeqCst) <= MOST
                    && companies.values().all(|of| of.lock().len() <= MOST_OF_A_COMPANY + 1)
            );
        }
        add(refusals.ended(now, true));
        assert_eq!(sum, 2 * 100 * 400);
        assert!(written < 2 * 100 * 300, "{written}");
        assert_eq!(refusals.len.load(Ordering::SeqCst), 0);
        assert!(refusals.companies.read().is_empty());
    }

    #[test]
    fn a_minute_that_has_ended_is_written() {
        let refusals = Refusals::default();
        let (company, at) =
            ("acme".parse().unwrap(), |ms| Timestamp::from_millisecond(ms).unwrap());
        assert!(matches!(
            refusals.take_for(&company, reason(1), id(1), at(59_000)),
            Taken::First { .. }
        ));
        assert!(matches!(
            refusals.take_for(&company, reason(1), id(2), at(59_999)),
            Taken::Again(first) if first == id(1),
        ));
        assert_eq!(refusals.due_at(at(59_999)), Some(at(60_000)));
        assert!(refusals.ended(at(59_999), false).is_empty());
        let Taken::First { ended, .. } = refusals.take_for(&company, reason(1), id(3), at(60_000))
        else {
            panic!()
        };
        assert_eq!((ended[0].first, ended[0].count), (id(1), 2));
        refusals.not_written(&company, id(3));
        assert_eq!(refusals.due_at(at(60_000)), None);
        // The store did not take the number: it is written in the next minute, unless the company
        // was erased.
        refusals.keep(ended);
        assert_eq!(refusals.due_at(at(60_001)), Some(at(120_000)));
        let again = refusals.ended(at(120_000), false);
        assert_eq!((again[0].first, again[0].count), (id(1), 2));
        refusals.keep(again);
        refusals.forget(&company);
        assert_eq!(refusals.due_at(at(120_000)), None);
    }

    #[test]
    fn refusals_are_told_apart_by_token_kind_and_reason() {
        let refusals = Refusals::default();
        let (company, now) = ("acme".parse().unwrap(), Timestamp::UNIX_EPOCH);
        let of_kind = Alike::any(OperationKind::Get, Outcome::Refused);
        let other_kind = Reason { alike: of_kind, ..reason(1) };
        let other_code = Reason { code: OperationErrorCode::RateLimited, ..reason(1) };
        for (n, reason) in (1..).zip([reason(1), reason(2), other_kind, other_code]) {
            let taken = refusals.take_for(&company, reason.clone(), id(n), now);
            assert!(matches!(taken, Taken::First { is_of_others: false, .. }));
            assert_eq!(refusals.count(&company, &reason, now), Some(id(n)));
        }
        let zeta: CompanyId = "zeta".parse().unwrap();
        assert_eq!(refusals.count(&zeta, &reason(1), now), None);
    }

    #[test]
    fn further_tokens_are_counted_together() {
        let refusals = Refusals::default();
        let (company, now) = ("acme".parse().unwrap(), Timestamp::UNIX_EPOCH);
        let mut others = 0;
        for n in 0..MOST_OF_A_COMPANY + 10 {
            let taken = refusals.take_for(&company, reason(n), id(n as u64), now);
            others += usize::from(!matches!(taken, Taken::First { is_of_others: false, .. }));
        }
        assert_eq!(others, 10);
        let ended = refusals.ended(now, true);
        assert_eq!(ended.iter().map(|counted| counted.count).max(), Some(10));
    }

    #[test]
    fn no_refusal_is_lost_between_threads_and_the_writing_of_numbers() {
        let refusals = Refusals::default();
        let company: CompanyId = "acme".parse().unwrap();
        let sum = AtomicUsize::new(0);
        let add = |ended: Vec<Counted>| {
            let count: u64 = ended.iter().map(|counted| counted.count).sum();
            sum.fetch_add(usize::try_from(count).unwrap(), Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (refusals, company) = (&refusals, &company);
                scope.spawn(move || {
                    for n in 0..2_000_u64 {
                        let at = Timestamp::from_millisecond(i64::try_from(n).unwrap() * 100);
                        let reason = reason(usize::try_from(n).unwrap() % 3);
                        match refusals.take_for(
                            company,
                            reason,
                            id(thread * 10_000 + n),
                            at.unwrap(),
                        ) {
                            Taken::First { ended, .. } => add(ended),
                            Taken::Again(_) => {}
                        }
                    }
                });
            }
            for minute in 0..50 {
                add(refusals.ended(Timestamp::from_second(minute * 4).unwrap(), false));
            }
        });
        add(refusals.ended(Timestamp::MAX, true));
        assert_eq!(sum.load(Ordering::SeqCst), 6_000);
        assert!(refusals.companies.read().is_empty());
    }

    #[test]
    fn no_refusal_waits_for_another_companys_counters() {
        let refusals = Refusals::default();
        let (acme, zeta): (CompanyId, CompanyId) =
            ("acme".parse().unwrap(), "zeta".parse().unwrap());
        let now = Timestamp::UNIX_EPOCH;
        for (n, company) in [(1, &acme), (2, &zeta)] {
            refusals.take_for(company, reason(1), id(n), now);
        }
        let counters = refusals.known(&acme).unwrap();
        let _held = counters.lock();
        assert!(matches!(refusals.take_for(&zeta, reason(1), id(3), now), Taken::Again(_)));
        assert!(matches!(refusals.take_for(&zeta, reason(2), id(4), now), Taken::First { .. }));
    }
}
