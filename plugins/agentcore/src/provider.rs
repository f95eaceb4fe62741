//! What AgentCore is to the SDK: a service with these routes, and a company that can be wiped.

use memhost_sdk::Health;
use memhost_sdk::http::{Client, Error, segment};
use memhost_sdk::meter;
use memhost_sdk::remote::{Capture, Learnt, Listing, Record, Search, Service, Tag, Wipes};
use memhost_sdk::types::{self, *};
use serde_json::{Value, json};

use crate::api::{AgentCore, Budget, MemoryRecord, PAGE, PAGES, filters, now};
use crate::config::Config;
use crate::extraction::Event;
use crate::turns::messages;
use crate::{metadata, place};

/// The longest text of a record, and the longest query, in characters.
const LONGEST_TEXT: usize = 16_000;
const LONGEST_QUERY: usize = 10_000;
/// The most requests of forgetting a company; a call has 64.
const BUDGET: usize = 48;

impl Service for AgentCore {
    type Config = Config;

    const MOST_HITS: usize = PAGE;
    const RETRIES_JOBS: bool = true;

    fn describe() -> Description {
        Description::new(
            "agentcore",
            env!("CARGO_PKG_VERSION"),
            "Keeps records in AWS AgentCore Memory",
        )
        .configured_by::<Config>()
        .extracts()
        .concurrent(8)
        // A record takes up to five requests, and a call has 64.
        .at_most(12, 16)
        .without([Exception::AllOrNoneUpserts, Exception::ReadAfterWrite])
        .require(Permission::Http(HttpPermission::to("{{config:/url}}")), "The memories are there")
        .require(
            Permission::Storage(64 << 20),
            "Notes what was written, so that nothing is written twice",
        )
        .require(Permission::Secret("AWS_KEY".to_owned()), "The host signs each request with it")
    }

    fn open(config: Config) -> Result<Self, types::Error> {
        Ok(Self {
            http: Client::new(&config.url)?.signed("AWS_KEY"),
            config,
            company: String::new(),
        })
    }

    fn serve(&mut self, company: &str) {
        company.clone_into(&mut self.company);
    }

    fn takes(&self, text: &str, tag: &Tag) -> Result<(), types::Error> {
        let id = tag.id.as_deref().unwrap_or_default();
        let problem = if text.chars().count() > LONGEST_TEXT {
            ("text", "has more than the 16,000 characters that AgentCore takes")
        } else if !metadata::fits(&format!("id_2f{}", place::escaped(id))) {
            (
                "id",
                "is too long for AgentCore: at most 250 letters and digits, where any other \
                 character counts as three",
            )
        } else if metadata::write(None, tag, &[]).is_none() {
            (
                "metadata",
                "is too long for AgentCore, with source and summary: about 2,400 bytes in all",
            )
        } else {
            return Ok(());
        };
        Err(types::Error::invalid(problem.0, problem.1))
    }

    fn is_id(&self, id: &str) -> bool {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        id.starts_with("mem-") && (40..=50).contains(&id.len()) && id.bytes().all(fits)
    }

    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error> {
        let mut record = self.stored(Some(key), text, tag);
        record["requestIdentifier"] = "memhost".into();
        record["namespaces"] = tag.scope.iter().map(place::records).collect();
        let id = self.batch("memoryRecords/batchCreate", &record)?;
        meter::charge("agentcore", "add", self.config.add_microcents);
        Ok(id)
    }

    fn written(&self, key: &str, _: &str) -> Result<Vec<Record>, Error> {
        Ok(self.records(
            self.records_below(&place::path(&self.company), Some(&place::escaped(key)))?.0,
        ))
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        let request = self.get(&format!("memoryRecord/{}", segment(id))).at("/memoryRecord");
        let found = request.answer_about(|record: &MemoryRecord| record.id == id)?;
        Ok(found.and_then(|record| self.record(record)))
    }

    fn replace(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), Error> {
        let mut record = self.stored(old.key.as_deref(), text, tag);
        record["memoryRecordId"] = old.id.as_str().into();
        self.batch("memoryRecords/batchUpdate", &record).map(drop)
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        self.delete_at(&format!("memoryRecords/{}", segment(id)))
    }

    /// The events of an extracted record stay until they expire.
    fn left_of(&self, gone: &Record) -> Result<ForgetEffect, Error> {
        Ok(ForgetEffect::hard_unless(gone.is_extracted))
    }

    fn search(&self, search: &Search<'_>) -> Result<Vec<Record>, Error> {
        let query: String = search.query.chars().take(LONGEST_QUERY).collect();
        let mut criteria = json!({"searchQuery": query, "topK": search.most});
        let can_filter = |(name, text): &&(String, String)| {
            self.config.indexed.contains(name) && metadata::fits(text)
        };
        let asked = search.members.iter().filter(can_filter).take(5);
        let asked: Vec<_> = asked.map(|(name, text)| (name.as_str(), text.as_str())).collect();
        if !asked.is_empty() {
            criteria["metadataFilters"] = filters(asked.into_iter());
        }
        let path = place::path(&self.company);
        let body =
            json!({"namespacePath": path, "searchCriteria": criteria, "maxResults": search.most});
        let found = self.post("retrieve", &body).reads().at("/memoryRecordSummaries").answer()?;
        meter::charge("agentcore", "search", self.config.search_microcents);
        Ok(self.records(found))
    }

    fn list(&self, _: u32) -> Result<(Vec<Record>, bool), Error> {
        // A page of AgentCore can have fewer records than it may: their number does not tell
        // whether these are all.
        let (found, are_all) = self.records_below(&place::path(&self.company), None)?;
        Ok((self.records(found), !are_all))
    }

    fn listing(&self) -> Listing {
        Listing::Whole(PAGE * PAGES)
    }

    fn learns(&self, mode: CaptureMode) -> bool {
        self.config.extract.is_for(mode)
    }

    /// A capture is an event, which is read back. The same token again is the same event.
    fn learn(&self, capture: &Capture<'_>) -> Result<Learnt, Error> {
        let session = capture.scope.session_key.as_deref().map(place::escaped);
        let session = session
            .filter(|session| session.len() <= 100)
            .unwrap_or_else(|| place::escaped(capture.key));
        let (actor, asked) = (place::actor(capture.scope), now());
        let body = json!({
            "actorId": actor, "sessionId": session, "eventTimestamp": asked,
            "payload": messages(capture.turns), "clientToken": capture.key,
        });
        let id: String = self.post("events", &body).at("/event/eventId").answer()?;
        meter::charge("agentcore", "add", self.config.add_microcents);
        let path = format!(
            "actor/{}/sessions/{}/events/{}",
            segment(&actor),
            segment(&session),
            segment(&id)
        );
        let found: Value = self.get(&path).at("/event").answer_if_found()?.unwrap_or_default();
        match found["eventTimestamp"].as_f64().filter(|_| found["eventId"] == *id) {
            Some(since) => {
                let details = json!(Event { session, tries: 0, since, asked });
                Ok(Learnt { details, ..Learnt::job(id) })
            }
            None => Err(Error::unexpected("events", &format!("no event is there as {id}"))),
        }
    }
}

impl Health for AgentCore {
    fn check_health(&mut self) -> Result<Report, types::Error> {
        let body = json!({"namespacePath": "/memhost/", "maxResults": 1});
        self.post("memoryRecords", &body).reads().answer::<Value>()?;
        Ok(Report {
            summary: format!(
                "AgentCore answers at {} for {}",
                self.config.url, self.config.memory_id
            ),
        })
    }
}

impl AgentCore {
    /// The ids in a list, and whether these are all.
    fn ids(
        &self,
        rest: &str,
        list: &str,
        id: &str,
        budget: &Budget,
    ) -> Result<(Vec<String>, bool), Error> {
        let mut body = json!({"maxResults": 100});
        if list == "events" {
            body["includePayloads"] = false.into();
        }
        let (found, are_all) = self.pages::<Value>(rest, body, list, budget)?;
        Ok((found.iter().filter_map(|item| Some(item[id].as_str()?.to_owned())).collect(), are_all))
    }

    /// Deletes the events of the company. Whether that is all of them.
    fn delete_events(&self, budget: &Budget) -> Result<bool, Error> {
        let ours = format!("{}/", place::escaped(&self.company));
        let (actors, mut is_all) = self.ids("actors", "actorSummaries", "actorId", budget)?;
        for actor in actors.into_iter().filter(|actor| actor.starts_with(&ours)) {
            let sessions = format!("actor/{}/sessions", segment(&actor));
            let (found, all) = self.ids(&sessions, "sessionSummaries", "sessionId", budget)?;
            is_all &= all;
            for session in found {
                let session = format!("{sessions}/{}", segment(&session));
                let (events, all) = self.ids(&session, "events", "eventId", budget)?;
                is_all &= all;
                for event in events {
                    if !budget.spend() {
                        return Ok(false);
                    }
                    self.delete_at(&format!("{session}/events/{}", segment(&event)))?;
                }
            }
        }
        Ok(is_all)
    }
}

impl Wipes for AgentCore {
    fn wipe(&self) -> Result<ForgetScopeResponse, Error> {
        let (budget, mut count) = (Budget::new(BUDGET), 0);
        let a_part = "a part of the company's memory is deleted; the next call deletes more";
        let again = || Err(types::Error::unavailable(a_part, Some(1_000)).into());
        if !self.delete_events(&budget)? {
            return again();
        }
        let body = json!({"namespacePath": place::path(&self.company), "maxResults": 100});
        // Reading a page, and deleting it.
        while budget.spend() {
            let list = self.post("memoryRecords", &body).reads().at("/memoryRecordSummaries");
            let found: Vec<Value> = list.answer_if_found()?.unwrap_or_default();
            if found.is_empty() {
                return Ok(ForgetScopeResponse {
                    extent: Extent::Hard,
                    count: Some(count),
                    usage: Vec::new(),
                });
            }
            if !budget.spend() {
                break;
            }
            let ids: Vec<_> = found
                .iter()
                .map(|record| json!({"memoryRecordId": record["memoryRecordId"]}))
                .collect();
            let deleted = self
                .post("memoryRecords/batchDelete", &json!({"records": ids}))
                .at("/successfulRecords");
            count += deleted.answer::<Vec<Value>>()?.len() as u64;
        }
        again()
    }
}
