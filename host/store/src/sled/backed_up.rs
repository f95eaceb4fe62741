//! What a backup has of the log and of the sums, compared with each other. It has no index: a store
//! that is made from it makes that again.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use super::gate::OPERATIONS;
use super::keys;
use crate::posting::Posting;
use crate::{Table, company_of, decode};
use memhost_types::{CompanyId, Operation, Outcome, counted};

/// How long before the newest operation one must have ended to be in the sums: a little later is
/// while the index of a busy host was being written.
const SUMMED_AFTER: SignedDuration = SignedDuration::from_mins(10);
/// No call of a provider takes so long: the end of such an operation was lost.
const LONGEST: SignedDuration = SignedDuration::from_hours(24);

/// What the frames of a backup say. A later frame of a key replaces an earlier one.
#[derive(Default)]
pub(super) struct Contents {
    operations: HashMap<Vec<u8>, Result<Seen, String>>,
    intents: HashSet<Vec<u8>>,
    sums: HashMap<Vec<u8>, Option<Posting>>,
    newest: HashMap<CompanyId, Timestamp>,
}

/// What is compared of an operation.
struct Seen {
    company: CompanyId,
    sequence: u64,
    started_at: Timestamp,
    finished_at: Option<Timestamp>,
    is_in_progress: bool,
}

impl Contents {
    /// Notes a row, or that it was removed.
    pub(super) fn take(&mut self, tree: &str, key: &[u8], value: Option<&[u8]>) {
        let Some(company) = company_of(key) else { return };
        let Some(sequence) = keys::sequence(key) else { return };
        if tree == OPERATIONS && key == keys::record(&company, sequence) {
            match value {
                Some(value) => {
                    let seen = self.seen(&company, sequence, value);
                    self.operations.insert(key.to_vec(), seen);
                }
                None => drop(self.operations.remove(key)),
            }
        } else if tree == OPERATIONS && key == keys::intent(&company, sequence) {
            match value {
                Some(_) => self.intents.insert(keys::record(&company, sequence)),
                None => self.intents.remove(&keys::record(&company, sequence)),
            };
        } else if tree == Table::Sums.name() && key == crate::summed_key(&company, sequence) {
            match value {
                Some(value) => self.sums.insert(key.to_vec(), Posting::decode(value)),
                None => self.sums.remove(key),
            };
        }
    }

    fn seen(&mut self, company: &CompanyId, sequence: u64, value: &[u8]) -> Result<Seen, String> {
        let operation: Operation = decode("operation", value)
            .map_err(|error| format!("{company}: operation number {sequence}: {error}"))?;
        if operation.id.sequence() != sequence || operation.company_id != *company {
            let id = operation.id;
            return Err(format!("{company}: operation {id} stands under another's number"));
        }
        let newest = self.newest.entry(company.clone()).or_insert(operation.started_at);
        *newest = operation.started_at.max(*newest);
        Ok(Seen {
            company: company.clone(),
            sequence,
            started_at: operation.started_at,
            finished_at: operation.finished_at,
            is_in_progress: operation.outcome == Outcome::InProgress,
        })
    }

    /// One line for each difference.
    pub(super) fn findings(self) -> Vec<String> {
        let mut findings: Vec<String> = Vec::new();
        let mut lacking: BTreeMap<&CompanyId, usize> = BTreeMap::new();
        let mut lost: BTreeMap<&CompanyId, usize> = BTreeMap::new();
        for (key, operation) in &self.operations {
            let seen = match operation {
                Ok(seen) => seen,
                Err(error) => {
                    findings.push(error.clone());
                    continue;
                }
            };
            let Some(newest) = self.newest.get(&seen.company) else { continue };
            if seen.is_in_progress {
                let is_lost = newest.duration_since(seen.started_at) > LONGEST;
                if is_lost || !self.intents.contains(key) {
                    *lost.entry(&seen.company).or_default() += 1;
                }
                continue;
            }
            let ended = seen.finished_at.unwrap_or(seen.started_at);
            let (block, offset) = (seen.sequence / keys::BLOCK, seen.sequence % keys::BLOCK);
            let is_summed = self
                .sums
                .get(&crate::summed_key(&seen.company, block))
                .and_then(Option::as_ref)
                .is_some_and(|summed| summed.contains(offset));
            if !is_summed && newest.duration_since(ended) > SUMMED_AFTER {
                *lacking.entry(&seen.company).or_default() += 1;
            }
        }
        findings.sort();
        findings.extend(lost.into_iter().map(|(company, count)| {
            let operations = counted(count, "operation", "operations");
            format!("{company}: the end of {operations} is not in the log")
        }));
        findings.extend(lacking.into_iter().map(|(company, count)| {
            let operations = counted(count, "operation", "operations");
            format!("{company}: the sums lack {operations}")
        }));
        let damaged = self.sums.values().filter(|summed| summed.is_none()).count();
        if damaged > 0 {
            findings.push(format!("rows of the sums that are damaged: {damaged}"));
        }
        findings
    }
}
