//! One posting chunk: which of a block's 4,096 operations have a facet's value. Few of them are a
//! list of offsets, many a bitmap.

/// Operations of one block share a chunk.
pub const BLOCK: u64 = 4_096;

const WORDS: usize = BLOCK as usize / 64;
const BITMAP_BYTES: usize = BLOCK as usize / 8;
/// A list is shorter than a bitmap up to here; so the length tells the two apart.
const MAX_LIST: usize = BITMAP_BYTES / 2 - 1;

/// A chunk in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posting([u64; WORDS]);

impl Default for Posting {
    fn default() -> Self {
        Self([0; WORDS])
    }
}

impl Posting {
    /// From its stored form. `None` if that is damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut posting = Self::default();
        if bytes.len() == BITMAP_BYTES {
            for (word, bytes) in posting.0.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = u64::from_le_bytes(bytes.try_into().ok()?);
            }
            return Some(posting);
        }
        if !bytes.len().is_multiple_of(2) || bytes.len() > 2 * MAX_LIST {
            return None;
        }
        for offset in bytes.chunks_exact(2) {
            let offset = u16::from_le_bytes(offset.try_into().ok()?);
            if u64::from(offset) >= BLOCK {
                return None;
            }
            posting.insert(u64::from(offset));
        }
        Some(posting)
    }

    /// Its stored form.
    pub fn encode(&self) -> Vec<u8> {
        let count: u32 = self.0.iter().map(|word| word.count_ones()).sum();
        let is_list = count as usize <= MAX_LIST;
        let mut bytes = Vec::with_capacity(if is_list { 2 * count as usize } else { BITMAP_BYTES });
        if is_list {
            let offsets = self.descending().filter_map(|offset| u16::try_from(offset).ok());
            offsets.for_each(|offset| bytes.extend_from_slice(&offset.to_le_bytes()));
        } else {
            self.0.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        }
        bytes
    }

    /// Adds an offset within the block.
    pub fn insert(&mut self, offset: u64) {
        if let Some(word) = self.0.get_mut((offset / 64) as usize) {
            *word |= 1 << (offset % 64);
        }
    }

    /// Whether an offset is in it.
    pub fn contains(&self, offset: u64) -> bool {
        self.0.get((offset / 64) as usize).is_some_and(|word| word & (1 << (offset % 64)) != 0)
    }

    /// Keeps what is also in the other.
    pub fn intersect(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= other);
    }

    /// Offsets, highest first.
    pub fn descending(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().enumerate().rev().flat_map(|(index, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.checked_ilog2()?;
                left ^= 1 << bit;
                Some(index as u64 * 64 + u64::from(bit))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chunks_round_trip(offsets in prop::collection::btree_set(0..BLOCK, 0..600)) {
            let mut posting = Posting::default();
            offsets.iter().for_each(|offset| posting.insert(*offset));
            let back = Posting::decode(&posting.encode()).unwrap();
            prop_assert!(back == posting);
            prop_assert_eq!(
                back.descending().collect::<Vec<_>>(),
                offsets.into_iter().rev().collect::<Vec<_>>(),
            );
        }
    }

    #[test]
    fn damage_is_noticed() {
        assert!(Posting::decode(&[1]).is_none());
        assert!(Posting::decode(&[0xff, 0xff]).is_none());
        assert!(Posting::decode(&vec![0; 511]).is_none());
    }
}
