//! Whether a company's log, its indexes and its sums fit, and making again what does not. The log
//! is what counts: everything else is derived from it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::index::{stored_watermark, write};
use super::state::{self, Applied, Companies};
use super::tree::KeyChange;
use super::trees::Trees;
use super::{keys, named, sums};
use crate::error::failed;
use crate::posting::Posting;
use crate::{StoreError, decode};
use memhost_types::{CompanyId, Operation, Outcome, counted};

/// All blocks of a log.
pub(super) const EVERY: Range<u64> = 0..u64::MAX / keys::BLOCK;
/// Blocks that are compared at once while the host works.
const PART: u64 = 16;

/// What does not fit in a part of a company's log.
#[derive(Default)]
pub(super) struct Misfit {
    /// Records of the log that are damaged. Nothing makes them again.
    pub(super) damaged: Vec<String>,
    /// Derived rows that are not what the log says.
    pub(super) derived: Vec<String>,
    /// What makes the index fit.
    changes: Vec<KeyChange>,
    /// The operations that the sums lack, or have with a smaller count.
    unsummed: Vec<Applied>,
    /// New bitmaps of the sums, by block.
    summed: BTreeMap<u64, Posting>,
}

/// What of a company was known when the comparison began: the operations that were not indexed yet,
/// and the last number.
pub(super) type Known = (BTreeSet<u64>, u64);

fn known(companies: &Companies, company: &CompanyId) -> Known {
    let companies = companies.lock();
    companies.get(company).map(|state| (state.open.clone(), state.last)).unwrap_or_default()
}

/// Compares all of a company's log. Answers one line for each difference.
pub(super) fn verify(
    trees: &Trees,
    companies: &Companies,
    company: &CompanyId,
) -> Result<Vec<String>, StoreError> {
    let mut found = compare(trees, companies, company, &EVERY, known(companies, company))?;
    if !found.derived.is_empty() {
        // An entry whose count was written meanwhile has not reached the sums yet.
        let _indexing = trees.indexing.lock();
        found = compare(trees, companies, company, &EVERY, known(companies, company))?;
    }
    Ok([found.damaged, found.derived].concat())
}

/// Compares the next part of a company's log, from an operation's number on, and makes again what
/// does not fit. Answers what that was, and where the next part begins, if there is one.
pub(super) fn mend_part(
    trees: &Trees,
    companies: &Companies,
    company: &CompanyId,
    from: u64,
) -> Result<(Vec<String>, Option<u64>), StoreError> {
    let range = keys::record(company, from)..=keys::record(company, u64::MAX);
    let first = trees.records.range(range).next().transpose().map_err(failed("reading"))?;
    let Some(first) = first.and_then(|(key, _)| keys::sequence(&key)) else {
        return Ok((Vec::new(), None));
    };
    // Also what the index has of numbers that the log does not have.
    let blocks = from / keys::BLOCK..first / keys::BLOCK + PART;
    let mended = mend(trees, companies, company, &blocks)?;
    Ok((mended, Some(blocks.end * keys::BLOCK)))
}

/// The same for these blocks.
pub(super) fn mend(
    trees: &Trees,
    companies: &Companies,
    company: &CompanyId,
    blocks: &Range<u64>,
) -> Result<Vec<String>, StoreError> {
    let found = compare(trees, companies, company, blocks, known(companies, company))?;
    if found.derived.is_empty() {
        return Ok(Vec::new());
    }
    // Nothing is indexed while this is looked at again and written.
    let _indexing = trees.indexing.lock();
    let found = compare(trees, companies, company, blocks, known(companies, company))?;
    let _moving = trees.sums.write();
    if !found.summed.is_empty() {
        sums::set_blocks(trees, company, found.summed)?;
    }
    if !found.unsummed.is_empty() {
        sums::add(trees, &found.unsummed)?;
    }
    write(trees, found.changes)?;
    Ok(found.derived)
}

/// Compares some blocks of a company's log, from when this was known of it.
pub(super) fn compare(
    trees: &Trees,
    companies: &Companies,
    company: &CompanyId,
    blocks: &Range<u64>,
    (open, last): Known,
) -> Result<Misfit, StoreError> {
    let (log, index) = (&trees.records, &trees.index);
    let mut misfit = Misfit::default();
    let mut expected: BTreeMap<Vec<u8>, Posting> = BTreeMap::new();
    // An operation that begins while this runs may be in one of the two and not in the other yet.
    let has_begun = |sequence: u64| sequence > last && sequence <= state::last(companies, company);
    let is_moving = |sequence: u64| open.contains(&sequence) || has_begun(sequence);
    let is_open = |sequence: u64| {
        companies.lock().get(company).is_some_and(|state| state.open.contains(&sequence))
    };
    // Removed operations are still in the chunk of the oldest block.
    let first = log.range(keys::record(company, 0)..=keys::record(company, u64::MAX)).next();
    let first = first.transpose().map_err(failed("reading"))?;
    let first = first.and_then(|(key, _)| keys::sequence(&key)).unwrap_or(0);
    let mut named = named::Check::new(index, company, &is_moving, (first, blocks.clone()));
    let mut summed = sums::Check::new(trees, company, stored_watermark(trees, company)?);
    let mut lacking: BTreeMap<u64, usize> = BTreeMap::new();
    let of_blocks = keys::record(company, blocks.start.saturating_mul(keys::BLOCK))
        ..keys::record(company, blocks.end.saturating_mul(keys::BLOCK));
    for entry in log.range(of_blocks) {
        let (key, value) = entry.map_err(failed("reading"))?;
        let Some(sequence) = keys::sequence(&key) else { continue };
        match decode::<Operation>("operation", &value) {
            Err(error) => {
                misfit.damaged.push(format!("{company}: operation number {sequence}: {error}"));
            }
            Ok(operation) => {
                if operation.id.sequence() != sequence || operation.company_id != *company {
                    misfit.damaged.push(format!(
                        "{company}: operation {} stands under another's number",
                        operation.id
                    ));
                }
                if operation.outcome == Outcome::InProgress || is_moving(sequence) {
                    continue;
                }
                named.expect(&operation)?;
                if !summed.has(&operation)? && !is_open(sequence) {
                    *lacking.entry(sequence / keys::BLOCK).or_default() += 1;
                    misfit.unsummed.push(Applied::of(&operation));
                }
                for facet in keys::facets_of(&operation) {
                    let chunk =
                        expected.entry(keys::chunk(&facet, sequence / keys::BLOCK)).or_default();
                    chunk.insert(sequence % keys::BLOCK);
                }
            }
        }
    }
    for entry in index.scan_prefix(keys::postings(company)) {
        let (key, value) = entry.map_err(failed("reading"))?;
        let block = keys::sequence(&key).unwrap_or(0);
        if !blocks.contains(&block) {
            continue;
        }
        let wanted = expected.remove(key.as_ref()).unwrap_or_default();
        let found = Posting::decode(&value);
        // An operation that was indexed while this ran is in the chunk.
        let late = |offset: &u64| {
            let sequence = block * keys::BLOCK + offset;
            is_moving(sequence) || sequence < first
        };
        let fits = found.as_ref().is_some_and(|found| {
            found.descending().filter(|offset| !late(offset)).eq(wanted.descending())
        });
        if fits {
            continue;
        }
        let what = if found.is_some() { "does not fit the log" } else { "is damaged" };
        let shown = String::from_utf8_lossy(&key).into_owned();
        misfit.derived.push(format!("{company}: the index chunk {shown:?} {what}"));
        let mut right = wanted;
        found.iter().flat_map(Posting::descending).filter(late).for_each(|late| right.insert(late));
        let right = right.encode();
        misfit.changes.push((key, (!right.is_empty()).then(|| right.into())));
    }
    let (findings, changes) = named.end()?;
    misfit.derived.extend(findings);
    misfit.changes.extend(changes);
    for (key, wanted) in expected {
        let shown = String::from_utf8_lossy(&key).into_owned();
        misfit.derived.push(format!("{company}: the index chunk {shown:?} is missing"));
        misfit.changes.push((key.into(), Some(wanted.encode().into())));
    }
    misfit.summed = summed.damaged();
    misfit.derived.extend(misfit.summed.keys().map(|block| {
        format!(
            "{company}: the list of what is summed of block {block} is damaged; all that was \
             indexed counts as summed"
        )
    }));
    misfit.derived.extend(lacking.into_iter().map(|(block, count)| {
        let operations = counted(count, "operation", "operations");
        format!("{company}: the sums lack {operations} of block {block}")
    }));
    Ok(misfit)
}
