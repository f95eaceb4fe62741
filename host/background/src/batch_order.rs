//! When the events of batches are due.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use memhost_types::CompanyId;

/// When the last event of a company's batches is due: events of batches are due one after the
/// other, because work begins in the order of time.
#[derive(Default)]
pub(crate) struct BatchOrder(Mutex<HashMap<CompanyId, Timestamp>>);

impl BatchOrder {
    /// The times of so many events, a millisecond apart: in the past, unless an earlier batch has
    /// taken that.
    pub(crate) fn times(
        &self,
        company: &CompanyId,
        now: Timestamp,
        count: usize,
    ) -> impl Iterator<Item = Timestamp> + use<> {
        let step = SignedDuration::from_millis(1);
        let wide = SignedDuration::from_millis(i64::try_from(count).unwrap_or(i64::MAX));
        let mut last = self.0.lock();
        // What is in the past orders nothing any more.
        last.retain(|_, at| *at > now.checked_sub(SignedDuration::from_mins(1)).unwrap_or(now));
        let earliest = now.checked_sub(wide).unwrap_or(now);
        let first = last
            .get(company)
            .map_or(earliest, |last| earliest.max(last.checked_add(step).unwrap_or(*last)));
        last.insert(company.clone(), first.checked_add(wide).unwrap_or(first));
        let times = (0..count)
            .map(move |number| SignedDuration::from_millis(i64::try_from(number).unwrap_or(0)));
        times.map(move |after| first.checked_add(after).unwrap_or(first))
    }
}
