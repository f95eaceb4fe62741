//! What mem0 is to the SDK: a service with these routes, events as jobs, and a user who can be
//! wiped.

use memhost_sdk::Health;
use memhost_sdk::http::{Client, Error, filled, segment};
use memhost_sdk::meter;
use memhost_sdk::remote::{
    Capture, Elsewhere, Learnt, Listing, Progress, Record, Search, Service, Tag, Wipes, Work, owner,
};
use memhost_sdk::types::{self, *};
use serde_json::{Value, json};

use crate::api::{Added, KEY, List, Mem0, Memory, day_of_expiry, filterable, metadata};
use crate::config::{Api, Config};

/// A page of the hosted API.
const PAGE: u32 = 100;

fn message(turn: &Turn) -> Value {
    let role = match turn.role.as_str() {
        role @ ("assistant" | "system") => role,
        _ => "user",
    };
    json!({"role": role, "content": turn.text})
}

impl Service for Mem0 {
    type Config = Config;

    const MOST_HITS: usize = 1_000;

    fn describe() -> Description {
        Description::new(
            "mem0",
            env!("CARGO_PKG_VERSION"),
            "Keeps records in mem0, hosted or self-hosted",
        )
        .configured_by::<Config>()
        .extracts()
        .concurrent(8)
        // A record takes up to four requests, and a call has 64.
        .at_most(15, 15)
        .without([Exception::AllOrNoneUpserts, Exception::ExactlyOnceLists])
        .require(Permission::Http(HttpPermission::to("{{config:/url}}")), "The memories are there")
        .require(
            Permission::Storage(64 << 20),
            "Notes what was written, so that nothing is written twice",
        )
        .prefer(
            Permission::Secret("MEM0_API_KEY".to_owned()),
            "mem0's key, unless your server has no authentication",
        )
    }

    fn open(config: Config) -> Result<Self, types::Error> {
        let http = Client::new(&config.url)?;
        let http = match (config.without_key, config.api) {
            (true, _) => http,
            (false, Api::Hosted) => http.secret("authorization", "Token", "MEM0_API_KEY"),
            (false, Api::SelfHosted) => http.secret("x-api-key", "", "MEM0_API_KEY"),
        };
        Ok(Self { config, http, user: String::new() })
    }

    fn serve(&mut self, company: &str) {
        self.user = owner(self.config.user_id.as_deref(), company);
    }

    fn is_id(&self, id: &str) -> bool {
        let fits = |(at, c): (usize, char)| {
            if [8, 13, 18, 23].contains(&at) { c == '-' } else { c.is_ascii_hexdigit() }
        };
        id.len() == 36 && id.char_indices().all(fits)
    }

    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error> {
        let added =
            self.add_messages(key, &json!([{"role": "user", "content": text}]), tag, false)?;
        added.ids().pop().ok_or_else(|| Error::unexpected("adding a memory", "it names no memory"))
    }

    fn written(&self, key: &str, text: &str) -> Result<Vec<Record>, Error> {
        let filters = self.filters([(KEY, key)].into_iter());
        let mut hits =
            self.hits(&json!({"query": text, "filters": filters, "top_k": 100, "threshold": 0.0}))?;
        hits.retain(|record| record.key.as_deref() == Some(key));
        Ok(hits)
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        let found = self.http.get(&self.one(id)).answer_about(|memory: &Memory| memory.id == id)?;
        Ok(found.filter(|memory| memory.user_id.as_ref() == Some(&self.user)).map(Record::from))
    }

    fn replace(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), Error> {
        let metadata = metadata(old.key.as_deref(), tag);
        let body =
            json!({"text": text, "metadata": metadata, "expiration_date": day_of_expiry(tag)});
        self.http.put(&self.one(&old.id)).json(&body).send().map(drop)
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        self.http.delete(&self.one(id)).answer_if_found::<Value>().map(drop)
    }

    fn left_of(&self, gone: &Record) -> Result<ForgetEffect, Error> {
        let path = self.route("/v1/memories/{}/history/", "/memories/{}/history", &gone.id);
        let history = self.http.get(&path).answer_if_found::<Vec<Value>>()?.unwrap_or_default();
        let has_text =
            |entry: &Value| entry["old_memory"].is_string() || entry["new_memory"].is_string();
        Ok(ForgetEffect::hard_unless(history.iter().any(has_text)))
    }

    fn search(&self, search: &Search<'_>) -> Result<Vec<Record>, Error> {
        let filters = self.filters(filterable(search.members));
        let hits = self.hits(&filled(
            json!({"query": search.query, "filters": filters, "top_k": search.most,
            "threshold": self.config.threshold}),
        ))?;
        meter::charge("mem0", "search", self.config.search_microcents);
        Ok(hits)
    }

    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), Error> {
        let request = if self.is_hosted() {
            let paged = self
                .http
                .post("/v3/memories/")
                .query("page", &page)
                .query("page_size", &PAGE)
                .reads();
            paged.json(&json!({"filters": self.filters(std::iter::empty())}))
        } else {
            self.whole(Self::MOST_HITS)
        };
        let List { results, next } = request.answer()?;
        Ok((results.into_iter().map(Record::from).collect(), next.is_some()))
    }

    fn listing(&self) -> Listing {
        if self.is_hosted() { Listing::Pages } else { Listing::Whole(Self::MOST_HITS) }
    }

    fn learns(&self, mode: CaptureMode) -> bool {
        self.config.infer.is_for(mode)
    }

    fn learn(&self, capture: &Capture<'_>) -> Result<Learnt, Error> {
        let messages = capture.turns.iter().map(message).collect();
        let added = self.add_messages(capture.key, &messages, capture.tag, true)?;
        let job = added.event_id.clone().filter(|_| added.results.is_none());
        Ok(Learnt { records: added.ids(), job, ..Learnt::default() })
    }

    fn learnt(&self, capture: &Capture<'_>) -> Result<Option<Learnt>, Error> {
        let records: Vec<_> =
            self.written(capture.key, capture.text)?.into_iter().map(|record| record.id).collect();
        let job = if records.is_empty() { self.event_of(capture.key)? } else { None };
        Ok((!records.is_empty() || job.is_some()).then(|| Learnt {
            records,
            job,
            ..Learnt::default()
        }))
    }
}

impl Elsewhere for Mem0 {
    /// A job is an event of the hosted API, in which its model extracts.
    fn ask(&self, id: &str, _: &Work) -> Result<Progress, Error> {
        let event: Option<Added> =
            self.http.get(&format!("/v1/event/{}/", segment(id))).answer_if_found()?;
        let Some(event) = event else {
            return Ok(Progress::failed("mem0 does not know the event"));
        };
        Ok(match event.status.as_str() {
            "SUCCEEDED" => Progress::done(event.ids()),
            "FAILED" => {
                Progress::Failed(event.error.unwrap_or_else(|| "mem0 gives no reason".to_owned()))
            }
            _ => Progress::Working,
        })
    }
}

impl Health for Mem0 {
    fn check_health(&mut self) -> Result<Report, types::Error> {
        if self.is_hosted() { self.http.get("/v1/ping/") } else { self.whole(1) }.send()?;
        Ok(Report { summary: format!("mem0 answers at {}", self.config.url) })
    }
}

impl Wipes for Mem0 {
    fn wipe(&self) -> Result<ForgetScopeResponse, Error> {
        self.http
            .delete(&self.route("/v1/memories/", "/memories", ""))
            .query("user_id", &self.user)
            .send()?;
        // The histories of the memories stay at the open-source server; at the other nobody can
        // look.
        Ok(Extent::HistoryKept.into())
    }
}
