//! The provider: what it is, and the routes of its service, eight of an invented one. Each method
//! is one request.

use memhost_sdk::http::{Client, Error, segment};
use memhost_sdk::remote::{Record, Search, Service, Tag, owner, utc};
use memhost_sdk::types::{self, *};
use memhost_sdk::{Health, meter};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Config;

/// The notes on a page.
const PAGE: u32 = 100;

/// The service, as one notebook of it: the provider of a binding.
#[derive(Debug)]
pub struct Memory {
    config: Config,
    http: Client,
    /// Whose notes these are.
    book: String,
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
    created: Option<String>,
    changed: Option<String>,
}

impl From<Note> for Record {
    fn from(note: Note) -> Self {
        Self {
            id: note.id,
            key: note.key,
            text: note.text,
            // A note that somebody else wrote has none.
            tag: note.tag.unwrap_or_default().or_times(note.created.as_deref(), None),
            // A similarity is comparable between queries. Where it is not, it is `Score::rank`.
            score: note.score.map(Score::similarity),
            updated_at: note.changed.as_deref().and_then(utc),
            ..Self::default()
        }
    }
}

#[derive(Debug, Deserialize)]
struct Page {
    notes: Vec<Note>,
    #[serde(default)]
    more: bool,
}

impl Memory {
    fn path(&self, rest: &str) -> String {
        format!("/books/{}/notes{rest}", segment(&self.book))
    }

    fn one(&self, id: &str) -> String {
        self.path(&format!("/{}", segment(id)))
    }
}

impl Service for Memory {
    type Config = Config;

    const MOST_HITS: usize = 100;

    fn describe() -> Description {
        Description::new(
            "memory-template-http",
            env!("CARGO_PKG_VERSION"),
            "Keeps records at a service",
        )
        .configured_by::<Config>()
        // A record takes up to four requests, and a call has 64. The host splits larger requests.
        .at_most(15, 15)
        // What the service cannot keep, so that nobody relies on it.
        .without([Exception::AllOrNoneUpserts, Exception::ExactlyOnceLists])
        .require(Permission::Http(HttpPermission::to("{{config:/url}}")), "The records are there")
        .require(
            Permission::Storage(64 << 20),
            "Notes what was written, so that nothing is written twice",
        )
        .require(Permission::Secret("NOTES_API_KEY".to_owned()), "The key of the service")
    }

    fn open(config: Config) -> Result<Self, types::Error> {
        // The host puts the value in, on the way out: it never enters the sandbox.
        let http = Client::new(&config.url)?.secret("authorization", "Bearer", "NOTES_API_KEY");
        Ok(Self { config, http, book: String::new() })
    }

    fn serve(&mut self, company: &str) {
        self.book = owner(self.config.book.as_deref(), company);
    }

    fn is_id(&self, id: &str) -> bool {
        !id.is_empty()
            && id.len() <= 64
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    }

    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error> {
        self.http
            .post(&self.path(""))
            .json(&json!({"text": text, "key": key, "tag": tag}))
            .at("/id")
            .answer()
    }

    fn written(&self, key: &str, _text: &str) -> Result<Vec<Record>, Error> {
        let found: Vec<Note> =
            self.http.get(&self.path("")).query("key", key).at("/notes").answer()?;
        Ok(found.into_iter().map(Record::from).collect())
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        let found = self.http.get(&self.one(id)).answer_about(|note: &Note| note.id == id)?;
        Ok(found.map(Record::from))
    }

    fn replace(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), Error> {
        let body = json!({"text": text, "key": old.key, "tag": tag});
        self.http.put(&self.one(&old.id)).json(&body).answer::<Value>().map(drop)
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        self.http.delete(&self.one(id)).answer_if_found::<Value>().map(drop)
    }

    /// The service keeps nothing of a note that was deleted. One that hides it is
    /// `ForgetEffect::Soft`.
    fn left_of(&self, _gone: &Record) -> Result<ForgetEffect, Error> {
        Ok(ForgetEffect::Hard)
    }

    fn search(&self, search: &Search<'_>) -> Result<Vec<Record>, Error> {
        let request = self
            .http
            .get(&self.path("/search"))
            .query("q", search.query)
            .query("limit", &search.most);
        let found: Vec<Note> = request.at("/notes").answer()?;
        meter::charge("notes", "search", self.config.search_microcents);
        Ok(found.into_iter().map(Record::from).collect())
    }

    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), Error> {
        let request = self
            .http
            .get(&self.path(""))
            .query("offset", &((page - 1) * PAGE))
            .query("limit", &PAGE);
        let Page { notes, more } = request.answer()?;
        Ok((notes.into_iter().map(Record::from).collect(), more))
    }
}

impl Health for Memory {
    /// The host asks when a binding is made, in `memhost doctor`, and when calls have failed.
    fn check_health(&mut self) -> Result<Report, types::Error> {
        self.http.get("/status").answer::<Value>()?;
        Ok(Report { summary: format!("the service answers at {}", self.config.url) })
    }
}
