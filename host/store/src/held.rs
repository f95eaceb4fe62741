//! How much a store keeps of one company, and how much that may be.

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
