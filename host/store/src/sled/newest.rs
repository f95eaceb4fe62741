//! Counting back from the newest operation, for the retention by number. Refusals are not counted:
//! whoever is refused must not push other records out.

use std::collections::HashSet;

use super::keys;
use super::state::{Companies, last, watermark};
use super::trees::Trees;
use crate::error::failed;
use crate::posting::Posting;
use crate::{StoreError, decode};
use memhost_types::{CompanyId, Operation, OperationFilter, Outcome};

/// The number of the oldest of the newest `count` operations that are no refusals. Reads keys only,
/// and the records that are not indexed yet.
pub(super) fn of(
    trees: &Trees,
    companies: &Companies,
    company: &CompanyId,
    count: u64,
) -> Result<Option<u64>, StoreError> {
    let indexed = watermark(companies, company);
    let filter = OperationFilter { outcome: Some(Outcome::Refused), ..OperationFilter::default() };
    let facet = keys::facets_wanted(company, &filter).into_iter().next().unwrap_or_default();
    let (mut left, mut refused, mut block) = (count, HashSet::new(), u64::MAX);
    let range = keys::record(company, 0)..=keys::record(company, last(companies, company));
    for entry in trees.records.range(range).rev() {
        let (key, value) = entry.map_err(failed("reading"))?;
        let Some(sequence) = keys::sequence(&key) else { continue };
        let is_refusal = if sequence > indexed {
            decode::<Operation>("operation", &value)?.outcome == Outcome::Refused
        } else {
            if block != sequence / keys::BLOCK {
                block = sequence / keys::BLOCK;
                let posting =
                    Posting::read(&trees.index, &keys::chunk(&facet, block))?.unwrap_or_default();
                refused = posting.descending().collect();
            }
            refused.contains(&(sequence % keys::BLOCK))
        };
        if !is_refusal {
            left = left.saturating_sub(1);
            if left == 0 {
                return Ok(Some(sequence));
            }
        }
    }
    Ok(None)
}
