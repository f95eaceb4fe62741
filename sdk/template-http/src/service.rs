//! The routes of the service: eight, of an invented one. Each method is one request.

use std::cell::OnceCell;

use memhost_sdk::http::{Client, Error, segment};
use memhost_sdk::meter;
use memhost_sdk::remote::{Listing, Record, Service, Tag, utc};
use memhost_sdk::types::{self, ForgetEffect, Score};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Config;

/// The most hits of one search, and the notes on a page.
const MOST: usize = 100;
const PAGE: u32 = 100;

/// The service, as one notebook of it.
#[derive(Debug)]
pub struct Notes {
    pub(crate) config: Config,
    http: Client,
    book: OnceCell<String>,
}

/// A note as all routes show it.
#[derive(Debug, Deserialize)]
struct Note {
    id: String,
    text: String,
    /// What the note was added with.
    key: Option<String>,
    tag: Option<Tag>,
    score: Option<f64>,
    changed: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Page {
    notes: Vec<Note>,
    #[serde(default)]
    more: bool,
}

impl From<Note> for Record {
    fn from(note: Note) -> Self {
        Self {
            id: note.id,
            key: note.key,
            text: note.text,
            // A note that somebody else wrote has none.
            tag: note.tag.unwrap_or_default(),
            // A similarity is comparable between queries. Where it is not, it is `Score::Rank`.
            score: note.score.map(|score| Score::Similarity(score.clamp(0.0, 1.0))),
            updated_at: note.changed.as_deref().and_then(utc),
        }
    }
}

impl Notes {
    pub(crate) fn new(config: Config) -> Result<Self, types::Error> {
        // The host puts the value in, on the way out: it never enters the sandbox.
        let http = Client::new(&config.url)?.secret("authorization", "Bearer", "NOTES_API_KEY");
        Ok(Self { config, http, book: OnceCell::new() })
    }

    /// Whose notes these are: an instance gets the calls of one company only.
    pub(crate) fn belong_to(&self, company: &str) {
        self.book.get_or_init(|| format!("memhost-{company}"));
    }

    fn path(&self, rest: &str) -> String {
        format!("/books/{}/notes{rest}", segment(self.book.get().map_or("memhost", String::as_str)))
    }

    fn one(&self, id: &str) -> String {
        self.path(&format!("/{}", segment(id)))
    }

    pub(crate) fn ping(&self) -> Result<(), Error> {
        self.http.get("/status").answer().map(|_: Value| ())
    }
}

impl Service for Notes {
    fn is_id(&self, id: &str) -> bool {
        !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    }

    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error> {
        let body = json!({"text": text, "key": key, "tag": tag});
        let added: Note = self.http.post(&self.path("")).json(&body).answer()?;
        Ok(added.id)
    }

    fn written(&self, key: &str, _text: &str) -> Result<Vec<Record>, Error> {
        let found: Page = self.http.get(&self.path("")).query("key", key).answer()?;
        Ok(found.notes.into_iter().map(Record::from).collect())
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        let found: Option<Note> = self.http.get(&self.one(id)).answer_if_found()?;
        Ok(found.map(Record::from))
    }

    fn replace(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), Error> {
        let body = json!({"text": text, "key": old.key, "tag": tag});
        self.http.put(&self.one(&old.id)).json(&body).answer().map(|_: Value| ())
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        self.http.delete(&self.one(id)).answer_if_found().map(|_: Option<Value>| ())
    }

    /// The service keeps nothing of a note that was deleted. One that hides it is `ForgetEffect::Soft`.
    fn left_of(&self, _id: &str) -> Result<ForgetEffect, Error> {
        Ok(ForgetEffect::Hard)
    }

    fn search(&self, query: &str, _members: &[(String, String)], most: usize) -> Result<Vec<Record>, Error> {
        let request = self.http.get(&self.path("/search")).query("q", query).query("limit", &most.to_string());
        let found: Page = request.answer()?;
        meter::charge("notes", "search", self.config.search_microcents);
        Ok(found.notes.into_iter().map(Record::from).collect())
    }

    fn most_hits(&self) -> usize {
        MOST
    }

    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), Error> {
        let offset = (page - 1) * PAGE;
        let request = self.http.get(&self.path("")).query("offset", &offset.to_string());
        let found: Page = request.query("limit", &PAGE.to_string()).answer()?;
        Ok((found.notes.into_iter().map(Record::from).collect(), found.more))
    }

    fn listing(&self) -> Listing {
        Listing::Pages
    }
}
