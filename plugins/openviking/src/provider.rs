//! What OpenViking is to the SDK: a service with these routes, and a user who can be wiped.

use memhost_sdk::Health;
use memhost_sdk::http::{Client, Error};
use memhost_sdk::remote::{Capture, Learnt, Record, Search, Service, Tag, Wipes, utc};
use memhost_sdk::types::{self, *};
use serde_json::json;

use crate::api::{OpenViking, ROOTS, members, uri};
use crate::config::Config;
use crate::name::{file, id_of, is_id, peer};
use crate::sessions::{messages, session};

/// Entries of one page of a tree.
const PAGE: u32 = 100;

impl Service for OpenViking {
    type Config = Config;

    const MOST_HITS: usize = 1_000;

    fn describe() -> Description {
        let summary = "Keeps records as memories of a user of OpenViking";
        let key = Permission::Secret("OPENVIKING_API_KEY".to_owned());
        Description::new("openviking", env!("CARGO_PKG_VERSION"), summary)
            .configured_by::<Config>()
            .extracts()
            .concurrent(8)
            // Each record waits for the index. One that is forgotten takes four requests, and a
            // call has 64.
            .at_most(5, 15)
            .without([Exception::AllOrNoneUpserts, Exception::ExactlyOnceLists])
            .require(
                Permission::Http(HttpPermission::to("{{config:/url}}")),
                "The memories are there",
            )
            .require(
                Permission::Storage(64 << 20),
                "Notes what was written and which sessions OpenViking works on",
            )
            .require(key, "The key of the user whose memories these are")
    }

    fn open(config: Config) -> Result<Self, types::Error> {
        let http = Client::new(&config.url)?.secret("x-api-key", "", "OPENVIKING_API_KEY");
        Ok(Self { config, http })
    }

    fn is_id(&self, id: &str) -> bool {
        is_id(id)
    }

    /// The file is named after the key, so that adding again writes the same one.
    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error> {
        let id = file(key);
        self.write(&id, key, text, tag).map(|()| id)
    }

    fn written(&self, key: &str, _: &str) -> Result<Vec<Record>, Error> {
        Ok(self.find(&file(key))?.into_iter().collect())
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        match self.find_in("", &json!(uri(id)), &[], 1)?.pop() {
            Some(other) if other.id != id => {
                Err(Error::unexpected("POST /api/v1/search/find", "it is another file"))
            }
            found => Ok(found),
        }
    }

    fn replace(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), Error> {
        self.write(&old.id, old.key.as_deref().unwrap_or_default(), text, tag)
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        self.remove(id, false)
    }

    fn left_of(&self, gone: &Record) -> Result<ForgetEffect, Error> {
        match self.read(&uri(&gone.id))? {
            None => Ok(ForgetEffect::Hard),
            Some(_) => Err(Error::unexpected(
                "DELETE /api/v1/fs",
                "the file has left the index and is still there",
            )),
        }
    }

    fn search(&self, search: &Search<'_>) -> Result<Vec<Record>, Error> {
        self.find_in(search.query, &json!(ROOTS.map(uri)), &members(search.members), search.most)
    }

    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), Error> {
        let (mut files, mut has_more) = (Vec::new(), false);
        for root in ROOTS {
            let found =
                self.entries("tree", &uri(root), (page as usize - 1) * PAGE as usize, PAGE)?;
            let Some(found) = found else { continue };
            has_more |= found.has_more;
            files.extend(
                found
                    .result
                    .into_iter()
                    .filter(|entry| !entry.is_dir && id_of(&entry.uri).is_some()),
            );
        }
        if files.is_empty() {
            return Ok((Vec::new(), has_more));
        }
        let uris: Vec<_> = files.iter().map(|entry| entry.uri.as_str()).collect();
        let mut records = self.find_in("", &json!(uris), &[], uris.len())?;
        let place = |id: &str| files.iter().position(|entry| id_of(&entry.uri) == Some(id));
        for record in &mut records {
            record.updated_at = place(&record.id).and_then(|at| utc(&files[at].mod_time));
            record.score = None;
        }
        records.sort_by_key(|record| place(&record.id));
        Ok((records, has_more))
    }

    fn learns(&self, mode: CaptureMode) -> bool {
        self.config.infer.is_for(mode)
    }

    fn learn(&self, capture: &Capture<'_>) -> Result<Learnt, Error> {
        let peer = peer(capture.scope).ok_or_else(|| {
            types::Error::unsupported(
                "the names of company, agent, subject and namespace are too long together",
            )
        })?;
        let session = session(capture.key);
        self.converse(&session, &messages(capture, &peer))?;
        Ok(Learnt::job(session))
    }

    fn learnt(&self, capture: &Capture<'_>) -> Result<Option<Learnt>, Error> {
        Ok(self.task(&session(capture.key))?.map(|_| Learnt::job(session(capture.key))))
    }
}

impl Health for OpenViking {
    fn check_health(&mut self) -> Result<Report, types::Error> {
        let user: String = self.http.get("/api/v1/system/status").at("/result/user").answer()?;
        Ok(Report { summary: format!("OpenViking answers at {}, user {user}", self.config.url) })
    }
}

impl Wipes for OpenViking {
    fn wipe(&self) -> Result<ForgetScopeResponse, Error> {
        ROOTS.iter().chain(&["sessions"]).try_for_each(|directory| self.remove(directory, true))?;
        Ok(Extent::Hard.into())
    }
}
