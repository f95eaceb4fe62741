//! The groups of companies. Each has a home of its own.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use memhost_types::CompanyId;

/// How many groups companies are in. The schema knows this number.
const OF_COMPANIES: u8 = 16;

/// The database's timeline, which is another one once a standby was promoted or a backup was
/// restored: what was committed before may be lost then.
pub(crate) const TIMELINE: &str =
    "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint";
/// A group's token has its timeline in front of so many bits.
pub(crate) const BITS_BELOW_TIMELINE: u32 = 32;

/// Whether the token of `h`, a row of `homes`, was given on the database's timeline. What the home
/// of a group has in memory may otherwise be built on what a standby had not received before it was
/// promoted. Companies have tokens without a timeline.
pub(crate) fn on_this_timeline() -> String {
    format!("(h.company > 0 OR h.token >> {BITS_BELOW_TIMELINE} = (SELECT {TIMELINE}))")
}

/// The unit that a host serves: the companies of a group, or the host's own rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group(u8);

impl Group {
    /// What belongs to no company: operators' tokens, and the list of companies.
    pub const HOST: Self = Self(0);
    /// How many there are, with that one.
    pub const COUNT: usize = OF_COMPANIES as usize + 1;

    /// The group of a company, which follows from its name.
    pub fn of(company: &CompanyId) -> Self {
        // The schema computes the same.
        let digest = Sha256::digest(company.as_str().as_bytes());
        Self(digest.first().copied().unwrap_or_default() % OF_COMPANIES + 1)
    }

    /// All of them, the host's own rows first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=OF_COMPANIES).map(Self)
    }

    /// From 0 for the host's own rows to 16.
    pub fn number(self) -> usize {
        usize::from(self.0)
    }

    /// The group with a number.
    pub fn numbered(number: usize) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| *number <= OF_COMPANIES).map(Self)
    }

    /// Its number as the schema has it.
    pub(crate) fn column(self) -> i16 {
        i16::from(self.0)
    }

    /// The row of `homes` that says who its home is.
    pub(crate) fn row(self) -> i64 {
        -1 - i64::from(self.0)
    }

    /// The group whose row of `homes` this is.
    pub(crate) fn of_row(row: i64) -> Option<Self> {
        Self::numbered(usize::try_from(row.checked_neg()?.checked_sub(1)?).ok()?)
    }
}

/// The right of a host to write what belongs to a group, until another one takes that over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Term {
    pub(crate) host: Uuid,
    /// Rises whenever a host takes the group over, and with the database's timeline.
    pub token: i64,
    /// The group.
    pub group: Group,
}

impl Term {
    /// Whether it has begun on a timeline. On another one, what its host has read may be lost.
    pub(crate) fn is_of(self, timeline: i64) -> bool {
        self.token >> BITS_BELOW_TIMELINE == timeline
    }
}

/// Which of the hosts should be the home of each group: about as many groups at each, and as few
/// others as possible when one comes or goes. Every host finds the same. `None`: there is none.
pub(crate) fn assigned(hosts: &[Uuid]) -> Vec<Option<Uuid>> {
    let most = Group::COUNT.div_ceil(hosts.len().max(1));
    let mut loads = vec![0; hosts.len()];
    let mut choose = |group: Group| {
        let weight =
            |host: &Uuid| *blake3::hash(&[host.as_bytes(), &[group.0][..]].concat()).as_bytes();
        let free = (0..hosts.len()).filter(|at| loads.get(*at).is_some_and(|load| *load < most));
        let best = free.max_by_key(|at| hosts.get(*at).map(weight))?;
        *loads.get_mut(best)? += 1;
        hosts.get(best).copied()
    };
    Group::all().map(&mut choose).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn groups_are_spread_evenly_and_few_of_them_move() {
        let hosts: Vec<Uuid> = (1..=5).map(Uuid::from_u128).collect();
        for count in 1..=hosts.len() {
            let all = assigned(&hosts[..count]);
            let mut loads = HashMap::new();
            all.iter().for_each(|host| *loads.entry(host.unwrap()).or_insert(0) += 1);
            assert_eq!((all.len(), loads.len()), (Group::COUNT, count));
            assert!(loads.values().max().unwrap() <= &Group::COUNT.div_ceil(count), "{loads:?}");
        }
        let (before, after) = (assigned(&hosts[..3]), assigned(&hosts[..4]));
        let moved = before.iter().zip(&after).filter(|(one, other)| one != other).count();
        assert!(moved <= 9, "{moved} of {} moved", Group::COUNT);
        assert!(assigned(&[]).iter().all(Option::is_none));
    }

    #[test]
    fn a_term_belongs_to_a_timeline() {
        let of = |token| Term { host: Uuid::nil(), token, group: Group::HOST };
        let term = of((3 << 32) + 7);
        assert!(term.is_of(3) && !term.is_of(4) && !term.is_of(2));
        assert!(!of(7).is_of(1), "what an earlier version has taken");
    }

    #[test]
    fn a_group_is_told_by_its_row() {
        assert!(Group::all().all(|group| Group::of_row(group.row()) == Some(group)));
        assert_eq!((Group::of_row(0), Group::of_row(7), Group::of_row(-18)), (None, None, None));
        let company = "acme".parse().unwrap();
        assert!((1..Group::COUNT).contains(&Group::of(&company).number()));
    }
}
