//! Where a follower is in the feed, as an opaque id: the feed is one for all companies, and nobody
//! is to count the events of others by the ids of its own.

use jiff::Timestamp;

/// The position of a follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The run of the host.
    pub(super) run: u64,
    pub(super) number: u64,
    /// When it was published.
    pub at: Timestamp,
}

impl Place {
    /// One of no run: a follower that continues from here reads the log again.
    pub fn in_the_log(at: Timestamp) -> Self {
        Self { run: 0, number: 0, at }
    }
}

/// Makes ids of places and reads them.
pub(super) struct Places {
    key: [u8; 32],
}

impl Places {
    /// `random` is good for one run of the host.
    pub(super) fn new(random: [u128; 2]) -> Self {
        let mut key = [0; 32];
        key[..16].copy_from_slice(&random[0].to_le_bytes());
        key[16..].copy_from_slice(&random[1].to_le_bytes());
        Self { key }
    }

    /// The mask that hides the number of one id.
    fn mask(&self, salt: u64) -> u64 {
        let hash = blake3::keyed_hash(&self.key, &salt.to_le_bytes());
        hash.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// The id of a place. `salt` is random.
    pub(super) fn id(&self, place: Place, salt: u64) -> String {
        let hidden = place.number ^ self.mask(salt);
        format!("{:x}-{salt:x}-{hidden:x}-{}", place.run, place.at.as_millisecond())
    }

    /// The place of an id. That of an earlier run, or of one that somebody made up, has a number
    /// without a meaning: it is looked for and not found.
    pub(super) fn parse(&self, text: &str) -> Option<Place> {
        let mut parts = text.splitn(4, '-');
        let mut hex = || u64::from_str_radix(parts.next()?, 16).ok();
        let (run, salt, hidden) = (hex()?, hex()?, hex()?);
        let at = Timestamp::from_millisecond(parts.next()?.parse().ok()?).ok()?;
        Some(Place { run, number: hidden ^ self.mask(salt), at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u64) -> Place {
        Place { run: 7, number, at: Timestamp::from_millisecond(1_000).unwrap() }
    }

    #[test]
    fn an_id_leads_back_and_its_number_cannot_be_read() {
        let places = Places::new([1, 2]);
        let ids: Vec<String> =
            (0..100).map(|number| places.id(place(number), number * 31)).collect();
        for (number, id) in (0..).zip(&ids) {
            assert_eq!(places.parse(id), Some(place(number)));
            assert_ne!(
                Places::new([1, 3]).parse(id),
                Some(place(number)),
                "only this run can read it"
            );
        }
        // Neighbours have nothing in common: the hidden numbers differ in about half of their bits.
        let hidden = |id: &String| u64::from_str_radix(id.split('-').nth(2).unwrap(), 16).unwrap();
        let differing: u32 =
            ids.windows(2).map(|two| (hidden(&two[0]) ^ hidden(&two[1])).count_ones()).sum();
        assert!((25..40).contains(&(differing / 99)), "{differing}");
    }

    #[test]
    fn what_is_no_place_is_none() {
        let places = Places::new([1, 2]);
        assert!(
            ["", "x", "1-2-3", "1-2-3-x", "g-1-1-1", "1-2-3-4-5"]
                .iter()
                .all(|text| places.parse(text).is_none())
        );
    }
}
