//! How much a store keeps of one company, and how much that may be.

use crate::DiskLevel;

/// What a store keeps of a company: its operations and the rows of its tables, keys included. Not counted are the providers'
/// private storage, which has limits of its own, sums, and what is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// Bytes.
    pub bytes: u64,
    /// The bytes at which new data is refused; 0 is no quota.
    pub quota: u64,
}

impl Held {
    /// How much room the company has, in the words of the disk: at its quota new data is refused, and at a quarter more
    /// reads are refused, too, because each leaves a record.
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
}
