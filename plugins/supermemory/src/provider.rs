//! What supermemory is to the SDK: a service with these routes, documents as jobs, and a container
//! that can be wiped.

use memhost_sdk::http::{Client, Error, filled};
use memhost_sdk::remote::{
    Capture, Elsewhere, Learnt, Progress, Record, Search, Service, Tag, Wipes, Work, escaped,
    owner, partition_choices,
};
use memhost_sdk::types::{self, *};
use memhost_sdk::{Health, Profile, meter};
use serde_json::{Value, json};

use crate::api::{Known, Memory, OWN, Supermemory, all_of, equal, filters, metadata};
use crate::config::Config;

/// The longest text of a memory, in characters.
const LONGEST: usize = 10_000;
/// The most bytes of a profile.
const PROFILE: usize = 60 << 10;

impl Service for Supermemory {
    type Config = Config;

    const MOST_HITS: usize = 100;

    fn describe() -> Description {
        Description::new("supermemory", env!("CARGO_PKG_VERSION"), "Keeps records in supermemory")
            .configured_by::<Config>()
            .extracts()
            .concurrent(8)
            // A record takes up to five requests, and a call has 64.
            .at_most(12, 12)
            .without([Exception::AllOrNoneUpserts, Exception::ExactlyOnceLists])
            .require(
                Permission::Http(HttpPermission::to("{{config:/url}}")),
                "The memories are there",
            )
            .require(
                Permission::Storage(64 << 20),
                "Notes what was written, and which scope a document is of",
            )
            .require(Permission::Secret("SUPERMEMORY_API_KEY".to_owned()), "supermemory's key")
    }

    fn open(config: Config) -> Result<Self, types::Error> {
        let http =
            Client::new(&config.url)?.secret("authorization", "Bearer", "SUPERMEMORY_API_KEY");
        Ok(Self { config, http, container: String::new() })
    }

    fn serve(&mut self, company: &str) {
        self.container = escaped(&owner(self.config.container_tag.as_deref(), company), '_', "-_");
    }

    fn takes(&self, text: &str, _: &Tag) -> Result<(), types::Error> {
        if text.chars().count() <= LONGEST {
            return Ok(());
        }
        Err(types::Error::invalid(
            "text",
            "has more than the 10,000 characters that supermemory takes",
        ))
    }

    fn is_id(&self, id: &str) -> bool {
        (1..=200).contains(&id.len())
    }

    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error> {
        let id = format!("{OWN}{key}");
        let memory = json!({
            "content": text, "metadata": metadata(Some(&id), tag), "forgetAfter": tag.expires_at,
        });
        let body = json!({"memories": [filled(memory)], "containerTag": self.container});
        self.http.post("/v4/memories").json(&body).answer::<Value>()?;
        meter::charge("supermemory", "add", self.config.add_microcents);
        Ok(id)
    }

    fn written(&self, key: &str, _: &str) -> Result<Vec<Record>, Error> {
        self.of_id(&format!("{OWN}{key}"))?.into_iter().map(Memory::record).collect()
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        let found = self.entry(id)?.map(Memory::record).transpose()?;
        // An earlier version's id is asked for, and the latest one is answered under it.
        Ok(found.map(|record| Record { id: id.to_owned(), ..record }))
    }

    fn replace(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), Error> {
        let Some(latest) = self.entry(&old.id)? else { return Ok(()) };
        let body = json!({"id": latest.id, "containerTag": self.container, "newContent": text,
            "metadata": metadata(Some(&old.id), tag), "forgetAfter": tag.expires_at});
        self.http.patch("/v4/memories").json(&body).send().map(drop)
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        let Some(latest) = self.entry(id)? else { return Ok(()) };
        let body = json!({"id": latest.id, "containerTag": self.container});
        self.http.delete("/v4/memories").json(&body).answer_if_found::<Value>().map(drop)
    }

    fn left_of(&self, _: &Record) -> Result<ForgetEffect, Error> {
        Ok(ForgetEffect::Soft)
    }

    fn search(&self, search: &Search<'_>) -> Result<Vec<Record>, Error> {
        let body =
            filled(json!({"q": search.query, "containerTag": self.container, "limit": search.most,
            "searchMode": "memories", "include": {"documents": true},
            "threshold": self.config.threshold,
            "filters": filters(search.members)}));
        let request = self.http.post("/v4/search").json(&body).reads().at("/results");
        let found: Option<Vec<Memory>> = request.answer_if_found()?;
        meter::charge("supermemory", "search", self.config.search_microcents);
        found.unwrap_or_default().into_iter().map(Memory::record).collect()
    }

    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), Error> {
        let (entries, more) = self.entries(page, &[])?;
        Ok((entries.into_iter().map(Memory::record).collect::<Result<_, _>>()?, more))
    }

    fn learns(&self, mode: CaptureMode) -> bool {
        self.config.extract.is_for(mode)
    }

    /// A capture is a document, which is read back. The same key again is the same document.
    fn learn(&self, capture: &Capture<'_>) -> Result<Learnt, Error> {
        let custom_id = escaped(capture.key, '.', "-_");
        let body = json!({
            "content": capture.text, "containerTag": self.container, "customId": custom_id,
            "metadata": metadata(None, capture.tag),
        });
        let id: String = self.http.post("/v3/documents").json(&body).at("/id").answer()?;
        meter::charge("supermemory", "add", self.config.add_microcents);
        match self.document(&id)? {
            Some(document) if document.custom_id == Some(custom_id) => Ok(Learnt::job(id)),
            _ => Err(Error::unexpected(
                "POST /v3/documents",
                &format!("the document is not there as {id}"),
            )),
        }
    }
}

impl Elsewhere for Supermemory {
    /// A job is the document of a capture.
    fn ask(&self, id: &str, _: &Work) -> Result<Progress, Error> {
        Ok(match self.document(id)?.map(|document| document.status).as_deref() {
            Some("done") => {
                let made = self.newest(|memory| memory.is_made_of(id));
                Progress::done(made.map(|memory| Ok(memory?.id)).collect::<Result<_, Error>>()?)
            }
            Some("failed") => Progress::failed("supermemory could not process the document"),
            Some(_) => Progress::Working,
            // It deletes what it cannot process, two minutes later.
            None => Progress::failed("supermemory does not have the document, or has it no more"),
        })
    }
}

impl Profile for Supermemory {
    fn get_profile(&mut self, scope: Scope) -> Result<ProfileResponse, types::Error> {
        self.serve(&scope.company_id);
        let either = |(name, values): (_, [String; 2])| {
            json!({
                "OR": values.map(|value| equal(name, &value)),
            })
        };
        let filters = all_of(partition_choices(&scope).into_iter().map(either));
        let body = filled(json!({"containerTag": self.container, "filters": filters}));
        let request = self.http.post("/v4/profile").json(&body).reads().at("/profile");
        let known = request.answer_if_found::<Known>()?.unwrap_or_default();
        Ok(ProfileResponse::of_lines(known.r#static.into_iter().chain(known.dynamic), PROFILE))
    }
}

impl Health for Supermemory {
    fn check_health(&mut self) -> Result<Report, types::Error> {
        let request = self.http.post("/v3/documents/list").json(&json!({"limit": 1})).reads();
        let documents: u64 = request.at("/pagination/totalItems").answer()?;
        Ok(Report {
            summary: format!("supermemory answers at {}, {documents} documents", self.config.url),
        })
    }
}

impl Wipes for Supermemory {
    /// Deletes what was captured, and so what was made of it.
    fn wipe(&self) -> Result<ForgetScopeResponse, Error> {
        let body = json!({"containerTags": [self.container]});
        self.http.delete("/v3/documents/bulk").json(&body).answer_if_found::<Value>()?;
        // It says that documents are gone for good, and nothing of memories that were hidden
        // before.
        Ok(Extent::Soft.into())
    }
}
