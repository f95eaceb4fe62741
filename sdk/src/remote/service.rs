//! The routes of a service, as [`Records`](super::Records) need them.

use super::Tag;
use crate::http;
use crate::types::{Error, ForgetEffect, Score, Snippet};

/// A record as a service has it.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// The service's own id.
    pub id: String,
    /// The key that it was added with, where this provider added it.
    pub key: Option<String>,
    /// Its text.
    pub text: String,
    /// What it was written with. Of a record that somebody else wrote: what the service knows of metadata and times.
    pub tag: Tag,
    /// Of a hit.
    pub score: Option<Score>,
    /// When it was last changed.
    pub updated_at: Option<String>,
}

impl Record {
    /// The id that the host knows it by.
    pub fn known_as(&self) -> &str {
        self.tag.id.as_deref().unwrap_or(&self.id)
    }

    pub(super) fn snippet(self) -> Snippet {
        let score = self.score.unwrap_or(Score::None);
        Snippet { updated_at: self.updated_at, ..self.tag.snippet(self.id, self.text, score) }
    }
}

/// How a service lists its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// By number of page, see [`pages`](super::pages).
    Pages,
    /// All at once, and no more than so many, see [`whole`](super::whole).
    Whole(usize),
}

/// The routes of a service that [`Records`](super::Records) needs. Each is one request, or a few that only read.
pub trait Service {
    /// Whether it cannot replace a record, only add and delete: [`Records`](super::Records) then add the new one, delete the
    /// old one, and keep the id that the host knows. Adding the same key, text and tag again must answer the same id. Its
    /// [`Service::replace`] is never called.
    const ONLY_ADDS: bool = false;

    /// Whether the service takes such a record: what it would refuse or cut is refused before anything is sent.
    ///
    /// # Errors
    /// An invalid request at what is too long, or what else is wrong.
    fn takes(&self, _text: &str, _tag: &Tag) -> Result<(), Error> {
        Ok(())
    }

    /// Whether a text can be an id of the service. What cannot is never asked for.
    fn is_id(&self, id: &str) -> bool;

    /// Adds one record as it is, with the tag and the key where [`Service::find`] and [`Service::written`] see them, and
    /// answers its id.
    ///
    /// # Errors
    /// What the request answers.
    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, http::Error>;

    /// The records that were added with this key, whose text is known.
    ///
    /// # Errors
    /// What the request answers.
    fn written(&self, key: &str, text: &str) -> Result<Vec<Record>, http::Error>;

    /// One record; none also where it is not this binding's.
    ///
    /// # Errors
    /// What the request answers.
    fn find(&self, id: &str) -> Result<Option<Record>, http::Error>;

    /// Replaces text and tag of a record.
    ///
    /// # Errors
    /// What the request answers.
    fn replace(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), http::Error>;

    /// Deletes a record. Deleting what is not there is no error.
    ///
    /// # Errors
    /// What the request answers.
    fn delete(&self, id: &str) -> Result<(), http::Error>;

    /// How far a record is forgotten that [`Service::find`] does not find any more.
    ///
    /// # Errors
    /// What the request answers.
    fn left_of(&self, id: &str) -> Result<ForgetEffect, http::Error>;

    /// The best hits, best first. `members` are texts of the metadata that each should have; a service may leave them out.
    ///
    /// # Errors
    /// What the request answers.
    fn search(&self, query: &str, members: &[(String, String)], most: usize) -> Result<Vec<Record>, http::Error>;

    /// The most hits that one search has.
    fn most_hits(&self) -> usize;

    /// A page of the list, from 1, and whether another one follows.
    ///
    /// # Errors
    /// What the request answers.
    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), http::Error>;

    /// How it lists.
    fn listing(&self) -> Listing;
}
