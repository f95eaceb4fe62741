//! The requests, as the cloud client of `MemoryOS` 2.0.33 sends them.

use memhost_sdk::http::{Client, Error};
use memhost_sdk::meter;
use memhost_sdk::remote::{Record, Tag, escaped, items, work_of};
use memhost_sdk::types::{self, Scope, Score};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::answers::{Added, Lists, Memory, data};
use crate::config::Config;

/// A page of the list.
const PAGE: usize = 50;
/// How many pages are read for memories of a conversation, or for one whose user MemOS does not
/// tell.
const PAGES: u32 = 4;
/// The beginning of the names of this provider's conversations.
pub(crate) const OURS: &str = "memhost-";
/// The members of each capture beside its tag: its user, and those to filter by.
pub(crate) const USER: &str = "memhost_user";
pub(crate) const MEMBER: &str = "meta_";
/// The longest name of a conversation, in characters.
const LONGEST: usize = 100;
/// The agent whom a memory belongs to if it is not known any more: nobody.
const NOBODY: &str = "memhost-unknown";
/// The requests that change nothing.
const READS: [&str; 4] = ["/get/memory", "/get/message", "/get/status", "/search/memory"];

/// MemOS, as one user of it: the provider of a binding.
#[derive(Debug)]
pub struct Memos {
    pub(crate) config: Config,
    pub(crate) http: Client,
    /// The company of the call, and the owner of the memories.
    pub(crate) company: String,
    pub(crate) user: String,
}

/// The conversation of a capture, which is also its job here.
pub(crate) fn conversation(operation_id: &str) -> Result<String, Error> {
    let name = format!("{OURS}{}", escaped(operation_id, '_', "-"));
    let too_long = || {
        types::Error::invalid("operationId", "is too long for the name of a conversation of MemOS")
            .into()
    };
    (name.len() <= LONGEST).then_some(name).ok_or_else(too_long)
}

impl Memos {
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<Option<T>, Error> {
        let request = self.http.post(path).json(body);
        data(path, if READS.contains(&path) { request.reads() } else { request })
    }

    pub(crate) fn added(&self, path: &str, body: &Value) -> Result<Added, Error> {
        let added: Option<Added> = self.post(path, body)?;
        meter::charge("memos", "add", self.config.add_microcents);
        added
            .filter(|added| added.success)
            .ok_or_else(|| Error::unexpected(path, "it does not say that it succeeded"))
    }

    /// Whether something was said in a conversation.
    pub(crate) fn has(&self, conversation: &str) -> Result<bool, Error> {
        let body = json!({"user_id": self.user, "conversation_id": conversation});
        let found: Option<Value> = self.post("/get/message", &body)?;
        Ok(found.is_some_and(|found| {
            found["message_detail_list"].as_array().is_some_and(|all| !all.is_empty())
        }))
    }

    /// How a task stands; none if MemOS does not know it.
    pub(crate) fn status(&self, task: &str) -> Result<Option<String>, Error> {
        let found: Option<Value> = self.post("/get/status", &json!({"task_id": task}))?;
        // Older versions answer a list of one.
        Ok(found
            .and_then(|found| Some(found.get(0).unwrap_or(&found)["status"].as_str()?.to_owned())))
    }

    pub(crate) fn page(&self, page: u32, size: usize) -> Result<Lists, Error> {
        let body = json!({
            "user_id": self.user, "include_preference": true, "include_tool_memory": false,
            "page": page, "size": size,
        });
        Ok(self.post("/get/memory", &body)?.unwrap_or_default())
    }

    /// A page of the memories, and whether another one follows.
    pub(crate) fn entries(&self, page: u32) -> Result<(Vec<Memory>, bool), Error> {
        let lists = self.page(page, PAGE)?;
        let more = lists.pages.unwrap_or_default() > page;
        Ok((lists.all().collect(), more))
    }

    /// The memories that fit, among the newest ones.
    pub(crate) fn newest(
        &self,
        fits: impl Fn(&Memory) -> bool,
    ) -> impl Iterator<Item = Result<Memory, Error>> {
        items(PAGES, |page| self.entries(page), fits)
    }

    /// The memories that were made of a conversation.
    pub(crate) fn made_of(&self, conversation: &str) -> Result<Vec<String>, Error> {
        let made = self.newest(|memory| memory.conversation_id.as_deref() == Some(conversation));
        made.map(|memory| Ok(memory?.id)).collect()
    }

    pub(crate) fn record(&self, found: Memory) -> Result<Record, Error> {
        let conversation = found.conversation_id.clone().unwrap_or_default();
        let tag = match found.info.as_ref().and_then(Tag::of_members) {
            None if conversation.starts_with(OURS) => {
                let noted =
                    work_of(&conversation)?.and_then(|work| Tag::read(&work.details["tag"]));
                let nobody =
                    || Scope { agent_id: Some(NOBODY.to_owned()), ..Scope::company(&self.company) };
                noted.unwrap_or_else(|| Tag::of(&nobody()))
            }
            None => Tag { metadata: Some(found.metadata()), ..Tag::default() },
            Some(told) => told,
        };
        let [created, updated_at] = found.times();
        Ok(Record {
            tag: tag.or_times(created.as_deref(), None),
            key: Some(conversation),
            text: found.text(),
            id: found.id,
            score: found.relativity.map(Score::similarity),
            updated_at,
            ..Record::default()
        })
    }

    pub(crate) fn records(
        &self,
        found: impl IntoIterator<Item = Memory>,
    ) -> Result<Vec<Record>, Error> {
        found.into_iter().map(|memory| self.record(memory)).collect()
    }

    pub(crate) fn hits(&self, body: &Value) -> Result<Vec<Memory>, Error> {
        let found: Option<Lists> = self.post("/search/memory", body)?;
        meter::charge("memos", "search", self.config.search_microcents);
        let mut found: Vec<_> = found.unwrap_or_default().all().collect();
        found.sort_by(|a, b| {
            b.relativity.unwrap_or_default().total_cmp(&a.relativity.unwrap_or_default())
        });
        Ok(found)
    }
}
