//! What left the host, by origin, binding and provider.

use std::collections::BTreeMap;

use super::sums::days;
use super::{BillingError, Ledger, SumsQuery};
use memhost_types::{
    BindingKey, CompanyId, OTHER_ORIGINS, OutgoingReport, OutgoingRow, Rollup, RollupKey,
};

/// The most rows of a report. All others are counted in one more.
const MOST_ROWS: usize = 500;

/// Whose row it is: the binding, the provider and the origin.
type Whose = (Option<BindingKey>, String, String);

impl Ledger {
    /// What left the host for a company on some days; `group_by` has no effect.
    ///
    /// # Errors
    /// Where the days are not valid or the sums cannot be read.
    pub async fn outgoing(
        &self,
        company: &CompanyId,
        query: &SumsQuery,
    ) -> Result<OutgoingReport, BillingError> {
        let (since, until) = days(query, self.clock.now())?;
        let mut total = Rollup::default();
        let mut rows: BTreeMap<Whose, Rollup> = BTreeMap::new();
        for (key, sums) in self.store.rollups(company, since, until).await? {
            let is_wanted = query.is_for(&key);
            let RollupKey { binding_key, provider, origin: Some(origin), .. } = key else {
                continue;
            };
            if is_wanted {
                total.add(&sums);
                rows.entry((binding_key, provider, origin)).or_default().add(&sums);
            }
        }
        let mut rows: Vec<(Whose, Rollup)> = rows.into_iter().collect();
        rows.sort_by_key(|(_, sums)| {
            std::cmp::Reverse((sums.outgoing.bytes_sent, sums.outgoing.requests))
        });
        let further = rows.split_off(rows.len().min(MOST_ROWS));
        let others = further.len() as u64;
        if others > 0 {
            let mut together = Rollup::default();
            further.iter().for_each(|(_, sums)| together.add(sums));
            rows.push(((None, String::new(), OTHER_ORIGINS.to_owned()), together));
        }
        let items = rows.into_iter().map(|((binding_key, provider, origin), sums)| OutgoingRow {
            origin,
            binding_key,
            provider,
            counts: sums.outgoing,
            last_at: sums.last_outgoing,
        });
        let items = items.collect();
        Ok(OutgoingReport { since, until, items, others, total: total.outgoing })
    }
}
