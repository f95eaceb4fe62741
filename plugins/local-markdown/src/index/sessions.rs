//! The neighbours of records: a session's records in the order in which they happened.

use std::collections::BTreeSet;

use super::postings::ByHash;
use super::{DocId, Key};

const NONE: DocId = DocId::MAX;

/// Up to this many words a record is like a turn of a conversation, which is understood with those
/// around it.
const TURN: f32 = 60.0;

type Place = (i64, Key, DocId);

/// The sessions, and for each record its neighbours.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    members: ByHash<BTreeSet<Place>>,
    /// By record: the one before it and the one after it.
    beside: Vec<(DocId, DocId)>,
    /// By record: its session. It is stored apart from the records, because a search reads it far
    /// more often.
    of: Vec<Of>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Of {
    session: u64,
    share: f32,
}

impl Sessions {
    /// The record before this one.
    pub(crate) fn before(&self, doc: DocId) -> Option<DocId> {
        self.beside.get(doc as usize).map(|(before, _)| *before).filter(|before| *before != NONE)
    }

    /// The record after this one.
    pub(crate) fn behind(&self, doc: DocId) -> Option<DocId> {
        self.beside.get(doc as usize).map(|(_, behind)| *behind).filter(|behind| *behind != NONE)
    }

    /// The session of a record; 0 is none.
    pub(crate) fn of(&self, doc: DocId) -> u64 {
        self.of.get(doc as usize).map_or(0, |of| of.session)
    }

    /// How much the records around a record count for it, 0 to 1: less for a long one, which says
    /// by itself what it is about.
    pub(crate) fn share(&self, doc: DocId) -> f32 {
        self.of.get(doc as usize).map_or(0.0, |of| of.share)
    }

    /// Adds a record to its session; 0 is none.
    pub(super) fn insert(&mut self, session: u64, when: i64, key: Key, doc: DocId, words: u32) {
        if self.beside.len() <= doc as usize {
            self.beside.resize(doc as usize + 1, (NONE, NONE));
            self.of.resize(doc as usize + 1, Of::default());
        }
        #[allow(clippy::cast_precision_loss, reason = "a count for a share")]
        let share = (TURN / words.max(1) as f32).min(1.0);
        self.of[doc as usize] = Of { session, share };
        self.beside[doc as usize] = (NONE, NONE);
        if session == 0 {
            return;
        }
        let members = self.members.entry(session).or_default();
        let place = (when, key, doc);
        let before = members.range(..place).next_back().map_or(NONE, |(.., doc)| *doc);
        let behind = members.range(place..).next().map_or(NONE, |(.., doc)| *doc);
        members.insert(place);
        self.beside[doc as usize] = (before, behind);
        self.link(before, doc);
        self.link(doc, behind);
    }

    /// Removes a record.
    pub(super) fn remove(&mut self, session: u64, when: i64, key: Key, doc: DocId) {
        let Some(members) = self.members.get_mut(&session) else { return };
        if !members.remove(&(when, key, doc)) {
            return;
        }
        if members.is_empty() {
            self.members.remove(&session);
        }
        let (before, behind) = std::mem::replace(&mut self.beside[doc as usize], (NONE, NONE));
        self.link(before, behind);
        if before == NONE && behind != NONE {
            self.beside[behind as usize].0 = NONE;
        }
    }

    fn link(&mut self, before: DocId, behind: DocId) {
        if before != NONE {
            self.beside[before as usize].1 = behind;
        }
        if behind != NONE {
            self.beside[behind as usize].0 = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_follow_the_order_of_events_not_of_writes() {
        let mut sessions = Sessions::default();
        let key = |doc: DocId| Key { created: 0, id_hash: u64::from(doc) };
        for (doc, when) in [(0, 30), (1, 10), (2, 20), (3, 20)] {
            sessions.insert(7, when, key(doc), doc, 10);
        }
        sessions.insert(0, 15, key(4), 4, 120);
        assert_eq!([3, 4, 5].map(|doc| sessions.share(doc)), [1.0, 0.5, 0.0]);
        let order = |sessions: &Sessions| {
            std::iter::successors(Some(1), |doc| sessions.behind(*doc)).collect::<Vec<DocId>>()
        };
        assert_eq!(order(&sessions), [1, 2, 3, 0]);
        sessions.remove(7, 20, key(2), 2);
        assert_eq!(order(&sessions), [1, 3, 0]);
        assert_eq!(
            (sessions.before(3), sessions.before(1), sessions.behind(4)),
            (Some(1), None, None)
        );
        sessions.remove(7, 10, key(1), 1);
        assert_eq!(sessions.before(3), None);
    }
}
