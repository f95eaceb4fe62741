//! The quota of a company: how much a store keeps of it, and how much that may be.

use std::collections::BTreeMap;

use crate::DiskLevel;

/// What a store keeps of a company: its operations and the rows of its tables, keys included. Not
/// counted are the providers' private storage, which has limits of its own, sums, and what is
/// derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// Bytes.
    pub bytes: u64,
    /// The bytes at which new data is refused; 0 is no quota.
    pub quota: u64,
}

impl Held {
    /// The bytes that the company may have beside those that it has.
    pub fn room(self) -> u64 {
        match self.quota {
            0 => u64::MAX,
            quota => quota.saturating_sub(self.bytes),
        }
    }

    /// Whether the company has so much that its own deletions and decisions are refused, too,
    /// because each leaves a record: twice its quota.
    pub fn ends_deletions(self) -> bool {
        self.quota > 0 && self.bytes >= self.quota.saturating_mul(2)
    }

    /// Whether it has so much that its own changes of settings are refused, too, each of which
    /// leaves an entry of its activity: later than deletions, so that whoever deletes takes no
    /// administrator's way to a shorter retention.
    pub fn ends_settings(self) -> bool {
        self.quota > 0 && self.bytes >= self.quota.saturating_mul(2).saturating_add(self.quota / 2)
    }

    /// How much room the company has, in the words of the disk: at its quota new data is refused,
    /// and at a quarter more reads are refused, too, because each leaves a record.
    pub fn level(self) -> DiskLevel {
        match self.quota {
            0 => DiskLevel::Plenty,
            quota if self.bytes >= quota.saturating_add(quota / 4) => DiskLevel::Spent,
            quota if self.bytes >= quota => DiskLevel::Low,
            _ => DiskLevel::Plenty,
        }
    }
}

/// The prefix of a company's key: its id and a zero byte.
pub(crate) fn company_in(key: &[u8]) -> Option<&[u8]> {
    let end = key.iter().position(|byte| *byte == 0).filter(|end| *end > 0)?;
    Some(&key[..=end])
}

/// By how much one transaction changes what companies have, in bytes.
#[derive(Default)]
pub(crate) struct Growth(BTreeMap<Vec<u8>, i64>);

impl Growth {
    /// Adds one key, whose value had one length and gets another one. `None` if there is no value.
    pub(crate) fn add(&mut self, key: &[u8], before: Option<usize>, after: Option<usize>) {
        let Some(company) = company_in(key) else { return };
        let size = |value: Option<usize>| {
            value.map_or(0, |value| i64::try_from(key.len() + value).unwrap_or(i64::MAX))
        };
        let by = size(after).saturating_sub(size(before));
        match self.0.get_mut(company) {
            Some(sum) => *sum = sum.saturating_add(by),
            None => {
                self.0.insert(company.to_vec(), by);
            }
        }
    }

    /// Each company's prefix, and by how many bytes it changes.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&[u8], i64)> {
        self.0.iter().filter(|(_, by)| **by != 0).map(|(company, by)| (company.as_slice(), *by))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_company_has_the_levels_of_a_disk() {
        let level = |bytes, quota| Held { bytes, quota }.level();
        assert_eq!((level(u64::MAX, 0), level(99, 100)), (DiskLevel::Plenty, DiskLevel::Plenty));
        assert_eq!((level(100, 100), level(124, 100)), (DiskLevel::Low, DiskLevel::Low));
        assert_eq!(level(125, 100), DiskLevel::Spent);
    }

    #[test]
    fn there_is_an_end_beyond_the_quota() {
        let held = |bytes, quota| Held { bytes, quota };
        assert_eq!(
            (held(30, 100).room(), held(130, 100).room(), held(130, 0).room()),
            (70, 0, u64::MAX)
        );
        let ends = |held: Held| (held.ends_deletions(), held.ends_settings());
        assert_eq!((ends(held(199, 100)), ends(held(200, 100))), ((false, false), (true, false)));
        assert_eq!((ends(held(250, 100)), ends(held(u64::MAX, 0))), ((true, true), (false, false)));
    }
}
