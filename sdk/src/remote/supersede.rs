//! Replacing records at a service that can only add and delete.

use super::records::given;
use super::{Record, Records, Service, Tag};
use crate::types::{Error, Scope, Snippet};

impl<S: Service> Records<'_, S> {
    /// Adds what takes the place of a record, then deletes the record. What is noted between makes
    /// [`Records::is_current`] true of exactly one of them, and lets the next call finish what
    /// broke.
    pub(super) fn supersede(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), Error> {
        let known = old.known_as();
        self.finish(known)?;
        self.writes.note(&given(known), &old.id)?;
        let key = old.key.clone().unwrap_or_else(|| given(known));
        let new = match self.service.add(&key, text, tag) {
            Err(error) if error.may_have_acted() => self.service.add(&key, text, tag)?,
            added => added?,
        };
        match self.service.find(&new)? {
            Some(record) if record.text == text && record.tag == *tag => {}
            _ => {
                return Err(Error::internal(format!(
                    "the replacement of {known} is missing; try again"
                )));
            }
        }
        if new != old.id {
            self.writes.note(&outdated(known), &old.id)?;
            self.writes.note(&given(known), &new)?;
        }
        self.finish(known)
    }

    /// Deletes what a record took the place of.
    pub(super) fn finish(&self, known: &str) -> Result<(), Error> {
        if S::ONLY_ADDS
            && let Some(old) = self.writes.find(&outdated(known))?
        {
            let deleted = self.service.delete(&old);
            if self.service.find(&old)?.is_some() {
                deleted?;
                return Err(Error::internal(format!(
                    "an outdated record of {known} is still there; try again"
                )));
            }
            self.writes.forget(&outdated(known))?;
        }
        Ok(())
    }

    /// Whether a record of the service is one that this scope may see. One whose id the host would
    /// refuse is none.
    pub fn shows(&self, record: &Record, scope: &Scope) -> bool {
        let id = record.known_as();
        if !crate::is_record_id(id) {
            let id = id.escape_debug();
            crate::warn_once(&format!(
                "the record `{id}` is left out; its id is no id of a record"
            ));
            return false;
        }
        record.tag.is_visible_in(scope) && self.is_current(record)
    }

    /// Records as they are answered.
    pub(super) fn shown(&self, records: Vec<Record>, scope: &Scope) -> Vec<Snippet> {
        records.into_iter().map(|record| self.one_shown(record, scope)).collect()
    }

    /// A record as it is answered.
    pub(super) fn one_shown(&self, record: Record, scope: &Scope) -> Snippet {
        let mut snippet = record.snippet();
        for problem in snippet.fit(&scope.company_id) {
            crate::warn_once(&format!("the record `{}` {problem}", snippet.id));
        }
        snippet
    }

    /// Whether no other record took its place.
    pub(super) fn is_current(&self, record: &Record) -> bool {
        let noted =
            if S::ONLY_ADDS { self.writes.find(&given(record.known_as())) } else { Ok(None) };
        noted.ok().flatten().is_none_or(|current| current == record.id)
    }
}

/// Where the service's id of a record is noted that is to be deleted, because another one took its
/// place.
fn outdated(id: &str) -> String {
    format!("outdated/{id}")
}
