//! The rows of sums, as every store keeps them: a row for each day, binding, agent, provider and
//! model, and for each day and origin.

use jiff::civil::Date;

use crate::posting::{BLOCK, Posting};
use crate::{company_key, decode};
use memhost_types::{CompanyId, OTHER_ORIGINS, Rollup, RollupKey};

/// The most rows of one company and day. What would be a further one is added to its binding's row
/// of all others ([`other_sums`]): agents, providers and models are names that callers and
/// providers choose.
pub const MOST_SUM_ROWS: usize = 10_000;
/// The agent, provider and model of that row.
const OTHERS: &str = "other";

/// The first key of a company's sums from a day on; without a day, their prefix.
pub fn sums_prefix(company: &CompanyId, day: Option<Date>) -> Vec<u8> {
    let day = day.map(|day| day.strftime("%Y%m%d").to_string()).unwrap_or_default();
    company_key(company, &[b"r", day.as_bytes()].concat())
}

/// The key of one row of sums. Lengths separate its parts.
pub fn sum_key(company: &CompanyId, key: &RollupKey) -> Vec<u8> {
    let mut bytes = sums_prefix(company, Some(key.day));
    let parts = [
        key.binding_key.as_ref().map_or("", |key| key.as_str()),
        key.agent_id.as_ref().map_or("", |id| id.as_str()),
        &key.provider,
        key.model.as_deref().unwrap_or_default(),
        &key.binding_id.map(|id| id.0.to_string()).unwrap_or_default(),
    ];
    for part in parts.into_iter().chain(key.origin.as_deref()) {
        bytes.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

/// The key of the row that takes what has no row of its own.
pub fn other_sums(key: RollupKey) -> RollupKey {
    let (provider, model) = (OTHERS.to_owned(), Some(OTHERS.to_owned()));
    match key.origin {
        // It has nothing of what other rows have.
        Some(_) => RollupKey { origin: Some(OTHER_ORIGINS.to_owned()), ..key },
        None => RollupKey { agent_id: OTHERS.parse().ok(), provider, model, ..key },
    }
}

/// The key of the operations of one block that are in the sums: a [`Posting`].
pub fn summed_key(company: &CompanyId, block: u64) -> Vec<u8> {
    company_key(company, &[&b"s"[..], &block.to_be_bytes()].concat())
}

/// The key of how often an operation is in the sums, where that is more than once.
pub fn summed_count_key(company: &CompanyId, sequence: u64) -> Vec<u8> {
    company_key(company, &[&b"c"[..], &sequence.to_be_bytes()].concat())
}

/// How often that is. None where the value is damaged.
pub fn summed_count(value: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(value.try_into().ok()?))
}

/// Whether a row from outside is one of these and has its own key. Answers the highest number of an
/// operation that it says is summed, or 0.
pub fn check_sum_row(company: &CompanyId, key: &[u8], value: &[u8]) -> Option<u64> {
    if key.starts_with(&sums_prefix(company, None)) {
        let (row, _): (RollupKey, Rollup) = decode("sums", value).ok()?;
        return (sum_key(company, &row) == key).then_some(0);
    }
    let number = u64::from_be_bytes(*key.last_chunk::<8>()?);
    if number > 0 && summed_count_key(company, number) == key {
        return summed_count(value).map(|_| number);
    }
    if summed_key(company, number) != key {
        return None;
    }
    let last = Posting::decode(value)?.descending().next()?;
    number.checked_mul(BLOCK)?.checked_add(last)
}
