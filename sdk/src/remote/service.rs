//! The routes of a service, and what else tells one provider for a service from another.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Tag;
use super::capture::{Capture, Learnt};
use crate::http::Error;
use crate::types::{self, CaptureMode, Description, ForgetEffect, Node, Scope, Score, Snippet};

/// A record as a service has it.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// The service's own id.
    pub id: String,
    /// The key that it was added with, where this provider added it.
    pub key: Option<String>,
    /// Its text.
    pub text: String,
    /// What it was written with. If somebody else wrote it: the metadata and times that the service
    /// knows.
    pub tag: Tag,
    /// The score of a hit.
    pub score: Option<Score>,
    /// When it was last changed.
    pub updated_at: Option<String>,
    /// Whether the service made it of what was captured: then what it says may be there elsewhere,
    /// too.
    pub is_extracted: bool,
}

/// The most characters of a node's label.
const LABEL: usize = 80;

impl Record {
    /// The id that the host knows it by.
    pub fn known_as(&self) -> &str {
        self.tag.id.as_deref().unwrap_or(&self.id)
    }

    /// The record in a tree of [`Browse`](crate::Browse), with the first line of its text, of at
    /// most 80 characters.
    pub fn node(&self, path: String, has_children: bool) -> Node {
        let label = self.text.lines().next().unwrap_or_default().chars().take(LABEL).collect();
        let record_id = Some(self.known_as()).filter(|id| crate::is_record_id(id));
        Node { path, label, has_children, record_id: record_id.map(str::to_owned) }
    }

    pub(super) fn snippet(self) -> Snippet {
        let score = self.score.unwrap_or(Score::None);
        Snippet { updated_at: self.updated_at, ..self.tag.snippet(self.id, self.text, score) }
    }
}

/// All that a record needs and a service does not keep, as one value: for services that keep one
/// text beside a record, and for those that change texts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kept {
    key: String,
    tag: Tag,
    /// The text, where the service would change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Kept {
    /// The entry of a record that is added. `changes`: the service would change this text.
    pub fn new(key: &str, text: &str, tag: &Tag, changes: bool) -> Self {
        Self { key: key.to_owned(), tag: tag.clone(), text: changes.then(|| text.to_owned()) }
    }

    /// The record, with the text that the service has unless it would have changed it.
    pub fn record(self, id: String, text: String) -> Record {
        Record {
            id,
            key: Some(self.key),
            text: self.text.unwrap_or(text),
            tag: self.tag,
            ..Record::default()
        }
    }
}

/// How a service lists its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// By number of page, see [`pages`](super::pages).
    Pages,
    /// All at once, and no more than so many, see [`whole`](super::whole). As many, or another page
    /// that follows, mean that the rest is not listed.
    Whole(usize),
}

/// A query.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// The question: not empty, and without blanks around it.
    pub query: &'a str,
    /// Texts of the metadata that each hit should have. A service may leave them out: every hit is
    /// looked through.
    pub members: &'a [(String, String)],
    /// The scope that asks. A service that can leave out what it may not see finds more that it
    /// may.
    pub scope: &'a Scope,
    /// The most hits; never more than [`Service::MOST_HITS`].
    pub most: usize,
}

/// A provider whose records are at a service: what it is, and the service's routes, each of which
/// is one request, or a few that only read. Whoever implements it has [`Provider`](crate::Provider)
/// and [`Correction`](crate::Correction) by it, with partitions, filters, cursors, and writes that
/// happen once: see [`Records`](super::Records).
///
/// [`Elsewhere`](super::Elsewhere) are the jobs in which a service extracts, and
/// [`Wipes`](super::Wipes) is forgetting all of a company at once. Other interfaces are implemented
/// as in every provider; they call [`Service::serve`] first.
pub trait Service: Sized + 'static {
    /// The configuration of a binding.
    type Config: DeserializeOwned + 'static;

    /// The most hits that one search has.
    const MOST_HITS: usize;
    /// Whether it cannot replace a record, only add and delete: [`Records`](super::Records) then
    /// add the new one, delete the old one, and keep the id that the host knows. Adding the same
    /// key, text and tag again must answer the same id. Its [`Service::replace`] is never called.
    const ONLY_ADDS: bool = false;
    /// Whether it keeps a text as it is. If not, every capture is learnt from, nothing is upserted,
    /// and [`Service::add`] and [`Service::written`] are never called.
    const KEEPS_TEXTS: bool = true;
    /// Whether it takes corrections in words, by [`Service::instruct`].
    const TAKES_INSTRUCTIONS: bool = false;

    /// Whether a job that failed can be taken up again, by
    /// [`Elsewhere::retry`](super::Elsewhere::retry).
    const RETRIES_JOBS: bool = false;

    /// The component's description.
    fn describe() -> Description;

    /// A provider for one binding. No requests here.
    ///
    /// # Errors
    /// If the configuration cannot work.
    fn open(config: Self::Config) -> Result<Self, types::Error>;

    /// Called before every call with the company that it is about, and once after [`Service::open`]
    /// with an empty one: health is asked for no company. Every call of an instance is about the
    /// same company. See [`owner`](super::owner).
    fn serve(&mut self, _company: &str) {}

    /// Whether the service takes such a record: what it would refuse or cut is refused before
    /// anything is sent.
    ///
    /// # Errors
    /// An invalid request at what is too long, or what else is wrong.
    fn takes(&self, _text: &str, _tag: &Tag) -> Result<(), types::Error> {
        Ok(())
    }

    /// Whether a text can be an id of the service. What cannot is never asked for.
    fn is_id(&self, id: &str) -> bool;

    /// Adds one record as it is, with the tag and the key where [`Service::find`] and
    /// [`Service::written`] see them, and answers its id.
    ///
    /// # Errors
    /// The error of the request.
    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error>;

    /// The records that may have been added with this key, whose text is known: those that have
    /// another key are left out.
    ///
    /// # Errors
    /// The error of the request.
    fn written(&self, key: &str, text: &str) -> Result<Vec<Record>, Error>;

    /// One record; none also where it is not this binding's.
    ///
    /// # Errors
    /// The error of the request.
    fn find(&self, id: &str) -> Result<Option<Record>, Error>;

    /// Replaces text and tag of a record.
    ///
    /// # Errors
    /// The error of the request.
    fn replace(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), Error>;

    /// Deletes a record. Deleting what is not there is no error.
    ///
    /// # Errors
    /// The error of the request.
    fn delete(&self, id: &str) -> Result<(), Error>;

    /// How far a record is forgotten that was deleted, and that [`Service::find`] does not find any
    /// more. `gone` has its id, its scope and whether it was extracted.
    ///
    /// # Errors
    /// The error of the request.
    fn left_of(&self, gone: &Record) -> Result<ForgetEffect, Error>;

    /// The best hits, best first.
    ///
    /// # Errors
    /// The error of the request.
    fn search(&self, search: &Search<'_>) -> Result<Vec<Record>, Error>;

    /// A page of the list, from 1, and whether another one follows.
    ///
    /// # Errors
    /// The error of the request.
    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), Error>;

    /// How it lists.
    fn listing(&self) -> Listing {
        Listing::Pages
    }

    /// Says in words what is wrong with a record, where [`Service::TAKES_INSTRUCTIONS`].
    ///
    /// # Errors
    /// The error of the request.
    fn instruct(&self, _old: &Record, _instruction: &str) -> Result<(), Error> {
        Err(types::Error::unsupported("the service takes no instructions").into())
    }

    /// Whether the service extracts from a capture of this mode. Otherwise the capture is a record.
    fn learns(&self, _mode: CaptureMode) -> bool {
        false
    }

    /// Lets the service extract from a capture.
    ///
    /// # Errors
    /// What the request answers. Where more requests follow the one that writes, theirs are
    /// [`Error::after_write`], unless learning from the same capture again does nothing twice.
    fn learn(&self, _capture: &Capture<'_>) -> Result<Learnt, Error> {
        Err(types::Error::unsupported("the service extracts nothing; every capture is a record")
            .into())
    }

    /// What an earlier [`Service::learn`] from this capture led to, whose answer was lost. Without
    /// this method it is asked to learn again, as is right for a service that takes the same key
    /// for the same capture.
    ///
    /// # Errors
    /// The error of the request.
    fn learnt(&self, _capture: &Capture<'_>) -> Result<Option<Learnt>, Error> {
        Ok(None)
    }
}
