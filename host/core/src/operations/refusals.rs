//! Refusals, counted: one record for each token, minute, kind of operation and reason. The first
//! refusal of a minute is written like every operation. Later ones are counted here, and the number
//! is written into the first one's record when the minute has ended, or when the host stops. A
//! caller that floods the host with refused calls thus writes two small records in a minute and not
//! one for each call.

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;

use memhost_types::{
    CompanyId, Operation, OperationErrorCode, OperationId, OperationKind, Outcome,
};

/// Different refusals of a company that are counted apart in a minute. Further ones are counted
/// together, by their code.
const MOST_OF_A_COMPANY: usize = 256;
/// Counters of all companies. With more, all of them are written and the counting begins again.
const MOST: usize = 16_384;
/// Numbers that could not be written and are kept for another try. Further ones are lost.
const MOST_FAILED: usize = 4_096;
const MINUTE_MS: i64 = 60_000;
/// The principal of the record for refusals of further tokens.
pub(crate) const OTHERS: &str = "other tokens";

/// What is counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reason {
    /// The caller's key. `None`: all further tokens together.
    pub(crate) token: Option<String>,
    pub(crate) kind: OperationKind,
    pub(crate) code: OperationErrorCode,
}

/// A record that stands for several refusals.
#[derive(Debug, Clone, Copy)]
struct Counter {
    minute: i64,
    first: OperationId,
    count: u64,
}

/// A number that is to be written into a record.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) company: CompanyId,
    pub(crate) first: OperationId,
    pub(crate) count: u64,
}

/// What became of a refusal.
pub(crate) enum Taken {
    /// It is the first one of its minute, and it is to be written. `is_of_others`: it stands for
    /// further tokens.
    First { is_of_others: bool, ended: Vec<Counted> },
    /// It is counted in this record.
    Again(OperationId),
}

#[derive(Default)]
struct Counters {
    by_company: HashMap<CompanyId, HashMap<Reason, Counter>>,
    len: usize,
}

/// The refusals of the current minute.
#[derive(Default)]
pub(crate) struct Refusals {
    counters: Mutex<Counters>,
    /// Numbers that the store did not take, for example because the disk is full.
    failed: Mutex<Vec<Counted>>,
    /// Held while numbers are written: an erasure must not come between reading a record and
    /// writing it.
    pub(crate) writing: tokio::sync::Mutex<()>,
}

fn minute(now: Timestamp) -> i64 {
    now.as_millisecond().div_euclid(MINUTE_MS)
}

impl Refusals {
    /// Counts a refusal if its reason was recorded in this minute already. Answers that record.
    pub(crate) fn again(
        &self,
        company: &CompanyId,
        reason: &Reason,
        now: Timestamp,
    ) -> Option<OperationId> {
        let mut counters = self.counters.lock();
        let of_company = counters.by_company.get_mut(company)?;
        let counter = match of_company.contains_key(reason) {
            true => of_company.get_mut(reason),
            false if of_company.len() >= MOST_OF_A_COMPANY => {
                of_company.get_mut(&reason.of_others())
            }
            false => None,
        }?;
        if counter.minute != minute(now) {
            return None;
        }
        counter.count += 1;
        Some(counter.first)
    }

    /// Counts a refusal whose operation has this id.
    pub(crate) fn take(
        &self,
        company: &CompanyId,
        reason: Reason,
        id: OperationId,
        now: Timestamp,
    ) -> Taken {
        if let Some(first) = self.again(company, &reason, now) {
            return Taken::Again(first);
        }
        let mut ended = Vec::new();
        let mut counters = self.counters.lock();
        if counters.len >= MOST {
            ended = counters.drain(|_| true);
        }
        let of_company = counters.by_company.entry(company.clone()).or_default();
        let is_known = of_company.contains_key(&reason) || of_company.len() < MOST_OF_A_COMPANY;
        let reason = if is_known { reason } else { reason.of_others() };
        let is_of_others = !is_known;
        let new = Counter { minute: minute(now), first: id, count: 1 };
        match of_company.get_mut(&reason) {
            // Another task was first, between the two locks.
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
                of_company.insert(reason, new);
                counters.len += 1;
            }
        }
        Taken::First { is_of_others, ended }
    }

    /// Forgets a counter whose first refusal could not be written: the next one is written.
    pub(crate) fn not_written(&self, company: &CompanyId, id: OperationId) {
        let mut counters = self.counters.lock();
        let Counters { by_company, len } = &mut *counters;
        if let Some(of_company) = by_company.get_mut(company) {
            let before = of_company.len();
            of_company.retain(|_, counter| counter.first != id);
            *len -= before - of_company.len();
        }
    }

    /// Forgets an erased company. The caller holds `writing`.
    pub(crate) fn forget(&self, company: &CompanyId) {
        let mut counters = self.counters.lock();
        let gone = counters.by_company.remove(company).map_or(0, |of_company| of_company.len());
        counters.len -= gone;
        self.failed.lock().retain(|counted| counted.company != *company);
    }

    /// The numbers of the minutes that have ended; with `also_this` those of the current minute,
    /// too.
    pub(crate) fn ended(&self, now: Timestamp, also_this: bool) -> Vec<Counted> {
        let this = minute(now);
        let mut ended = std::mem::take(&mut *self.failed.lock());
        ended.extend(self.counters.lock().drain(|counter| also_this || counter.minute != this));
        ended
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

    /// When there is something to write; none where nothing is counted.
    pub(crate) fn due_at(&self, now: Timestamp) -> Option<Timestamp> {
        let is_empty = self.counters.lock().len == 0 && self.failed.lock().is_empty();
        let end = (minute(now) + 1).saturating_mul(MINUTE_MS);
        (!is_empty).then(|| Timestamp::from_millisecond(end).unwrap_or(Timestamp::MAX))
    }

    /// Shows the numbers that are not written yet.
    pub(crate) fn show(&self, company: &CompanyId, operations: &mut [Operation]) {
        let counters = self.counters.lock();
        let Some(of_company) = counters.by_company.get(company) else { return };
        for operation in
            operations.iter_mut().filter(|operation| operation.outcome == Outcome::Refused)
        {
            if let Some(counter) = of_company.values().find(|counter| counter.first == operation.id)
            {
                operation.count = counter.count;
            }
        }
    }
}

impl Reason {
    fn of_others(&self) -> Self {
        Self { token: None, kind: OperationKind::Control, code: self.code }
    }
}

impl Counters {
    fn drain(&mut self, is_wanted: impl Fn(&Counter) -> bool) -> Vec<Counted> {
        let mut drained = Vec::new();
        for (company, of_company) in &mut self.by_company {
            for (_, counter) in of_company.extract_if(|_, counter| is_wanted(counter)) {
                self.len -= 1;
                drained.push(Counted {
                    company: company.clone(),
                    first: counter.first,
                    count: counter.count,
                });
            }
        }
        self.by_company.retain(|_, of_company| !of_company.is_empty());
        drained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> OperationId {
        OperationId::new(1, n, n)
    }

    fn reason(token: usize) -> Reason {
        Reason {
            token: Some(token.to_string()),
            kind: OperationKind::Query,
            code: OperationErrorCode::Forbidden,
        }
    }

    #[test]
    fn what_is_counted_is_bounded_and_the_sum_is_exact() {
        let refusals = Refusals::default();
        let now = Timestamp::from_millisecond(90_000).unwrap();
        let (mut written, mut sum) = (0, 0);
        let mut record =
            |ended: Vec<Counted>| ended.iter().for_each(|counted| sum += counted.count);
        // Two rounds of many tokens of each of many companies.
        for n in 0..2 * 100 * 400_u64 {
            let (token, company) =
                (usize::try_from(n % 400).unwrap(), format!("c{}", n / 400 % 100));
            match refusals.take(&company.parse().unwrap(), reason(token), id(n), now) {
                Taken::First { ended, .. } => {
                    written += 1;
                    record(ended);
                }
                Taken::Again(_) => {}
            }
            let counters = refusals.counters.lock();
            assert!(
                counters.len <= MOST
                    && counters.by_company.values().all(|of| of.len() <= MOST_OF_A_COMPANY + 1)
            );
        }
        record(refusals.ended(now, true));
        assert_eq!(sum, 2 * 100 * 400);
        assert!(written < 2 * 100 * 300, "{written}");
        assert_eq!(refusals.counters.lock().len, 0);
    }

    #[test]
    fn a_minute_that_has_ended_is_written() {
        let refusals = Refusals::default();
        let (company, at) =
            ("acme".parse().unwrap(), |ms| Timestamp::from_millisecond(ms).unwrap());
        assert!(matches!(
            refusals.take(&company, reason(1), id(1), at(59_000)),
            Taken::First { .. }
        ));
        assert!(
            matches!(refusals.take(&company, reason(1), id(2), at(59_999)), Taken::Again(first) if first == id(1))
        );
        assert_eq!(refusals.due_at(at(59_999)), Some(at(60_000)));
        assert!(refusals.ended(at(59_999), false).is_empty());
        let Taken::First { ended, .. } = refusals.take(&company, reason(1), id(3), at(60_000))
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
}
