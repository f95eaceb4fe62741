//! The requests, as the cloud client of `MemoryOS` 2.0.33 sends them.

use std::cell::{OnceCell, RefCell};

use memhost_sdk::http::{Client, Error, segment};
use memhost_sdk::meter;
use memhost_sdk::remote::{Listing, Record, Service, Tag, Writes};
use memhost_sdk::types::{self, ForgetEffect, Scope, Score};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answers::{Added, Lists, Memory, data, odd};
use crate::config::Config;

/// A page of the list, and the most hits of one search, of memories and of preferences each.
const PAGE: usize = 50;
const MOST: usize = 25;
/// How many pages are read for memories of a conversation, or for one whose user MemOS does not tell.
const PAGES: u32 = 4;
/// What the conversations of this provider begin with.
pub(crate) const OURS: &str = "memhost-";
/// What is told with each capture: its tag, its user, its partition, and what can be filtered by.
const TAG: &str = "memhost";
const USER: &str = "memhost_user";
const PARTITION: [&str; 3] = ["memhost_agent", "memhost_subject", "memhost_namespace"];
const MEMBER: &str = "meta_";
/// The agent whom a memory belongs to if it is not known any more: nobody.
const NOBODY: &str = "memhost-unknown";
/// The requests that change nothing.
const READS: [&str; 4] = ["/get/memory", "/get/message", "/get/status", "/search/memory"];

/// What is noted of a capture, by its conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Learnt {
    /// None: the answer that named it was lost.
    pub(crate) task: Option<String>,
    pub(crate) tag: Tag,
}

/// The captures of this binding.
pub(crate) fn captures() -> Writes<Learnt> {
    Writes::new("captures")
}

/// MemOS, as one user of it.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) config: Config,
    http: Client,
    company: OnceCell<String>,
    /// Conditions of the partition that is asked for.
    narrow: RefCell<Vec<Value>>,
}

impl Api {
    pub(crate) fn new(config: Config) -> Result<Self, types::Error> {
        let http = Client::new(&config.url)?.secret("authorization", "Token", "MEMOS_API_KEY");
        Ok(Self { http, config, company: OnceCell::new(), narrow: RefCell::default() })
    }

    /// Whose call this is: an instance gets the calls of one company only.
    pub(crate) fn serve(&self, scope: &Scope) {
        self.company.get_or_init(|| scope.company_id.clone());
        let either = |(name, asked): (&str, Option<&str>)| {
            let asked = asked?;
            Some(json!({"or": [{name: format!("={asked}")}, {name: "-"}]}))
        };
        self.narrow.replace(PARTITION.into_iter().zip(partition(scope)).filter_map(either).collect());
    }

    fn company(&self) -> &str {
        self.company.get().map_or("", String::as_str)
    }

    fn user(&self) -> String {
        self.config.user_id.clone().unwrap_or_else(|| format!("memhost-{}", self.company()))
    }

    fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<Option<T>, Error> {
        let request = self.http.post(path).json(body);
        data(path, if READS.contains(&path) { request.reads() } else { request })
    }

    fn added(&self, path: &str, body: &Value) -> Result<Added, Error> {
        let added: Option<Added> = self.post(path, body)?;
        meter::charge("memos", "add", self.config.add_microcents);
        added.filter(|added| added.success).ok_or_else(|| odd(path, "it does not say that it succeeded"))
    }

    /// Gives what was said as a conversation of its own.
    pub(crate) fn learn(&self, conversation: &str, messages: &[Value], tag: &Tag) -> Result<Learnt, Error> {
        let mut info: Map<_, _> =
            tag.texts().into_iter().map(|(name, text)| (format!("{MEMBER}{name}"), text.into())).collect();
        info.insert(TAG.to_owned(), json!(tag).to_string().into());
        info.insert(USER.to_owned(), self.user().into());
        for (name, own) in PARTITION.into_iter().zip(tag.scope.as_ref().map(partition).unwrap_or_default()) {
            info.insert(name.to_owned(), own.map_or_else(|| "-".to_owned(), |own| format!("={own}")).into());
        }
        let body = json!({"messages": messages, "user_id": self.user(), "conversation_id": conversation, "info": info,
            "async_mode": true, "allow_public": false});
        Ok(Learnt { task: self.added("/add/message", &body)?.task_id, tag: tag.clone() })
    }

    /// Says in words what is wrong. MemOS finds and changes the memories by itself.
    pub(crate) fn feedback(&self, conversation: &str, said: &str) -> Result<(), Error> {
        let body = json!({"user_id": self.user(), "conversation_id": conversation, "feedback_content": said});
        self.added("/add/feedback", &body).map(drop)
    }

    /// Whether something was said in a conversation.
    pub(crate) fn has(&self, conversation: &str) -> Result<bool, Error> {
        let body = json!({"user_id": self.user(), "conversation_id": conversation});
        let found: Option<Value> = self.post("/get/message", &body)?;
        Ok(found.is_some_and(|found| found["message_detail_list"].as_array().is_some_and(|all| !all.is_empty())))
    }

    /// How a task stands; none if MemOS does not know it.
    pub(crate) fn status(&self, task: &str) -> Result<Option<String>, Error> {
        let found: Option<Value> = self.post("/get/status", &json!({"task_id": task}))?;
        // Older versions answer a list of one.
        Ok(found.and_then(|found| Some(found.get(0).unwrap_or(&found)["status"].as_str()?.to_owned())))
    }

    fn page(&self, page: u32, size: usize) -> Result<Lists, Error> {
        let body = json!({"user_id": self.user(), "include_preference": true, "include_tool_memory": false,
            "page": page, "size": size});
        Ok(self.post("/get/memory", &body)?.unwrap_or_default())
    }

    /// The memories that fit, among the newest ones.
    fn newest(&self, fits: impl Fn(&Memory) -> bool) -> Result<Vec<Memory>, Error> {
        let mut found = Vec::new();
        for page in 1..=PAGES {
            let lists = self.page(page, PAGE)?;
            let is_last = lists.pages.unwrap_or_default() <= page;
            found.extend(lists.all().filter(&fits));
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// The memories that were made of a conversation.
    pub(crate) fn made_of(&self, conversation: &str) -> Result<Vec<String>, Error> {
        let made = self.newest(|memory| memory.conversation_id.as_deref() == Some(conversation))?;
        Ok(made.into_iter().map(|memory| memory.id).collect())
    }

    pub(crate) fn rewrite(&self, id: &str, text: &str) -> Result<(), Error> {
        let done: Option<Value> = self.post("/update/memory", &json!({"memory_id": id, "content": text}))?;
        done.map(drop).ok_or_else(|| odd("/update/memory", "there is no such memory"))
    }

    pub(crate) fn delete_all(&self) -> Result<(), Error> {
        self.post::<Value>("/delete/memory", &json!({"user_id": self.user()})).map(drop)
    }

    /// How many memories the user has, where MemOS tells.
    pub(crate) fn ping(&self) -> Result<Option<u64>, Error> {
        Ok(self.page(1, 1)?.total)
    }

    fn record(&self, found: Memory) -> Result<Record, Error> {
        let conversation = found.conversation_id.clone().unwrap_or_default();
        let told = found.told(TAG).and_then(|tag| serde_json::from_str(tag).ok());
        let tag: Option<Tag> = match told {
            None if conversation.starts_with(OURS) => {
                let noted = captures().find(&conversation).map_err(Error::Other)?.map(|learnt| learnt.tag);
                let nobody = || Scope { agent_id: Some(NOBODY.to_owned()), ..Scope::company(self.company()) };
                Some(noted.unwrap_or_else(|| Tag::of(&nobody())))
            }
            told => told,
        };
        let [created, updated_at] = found.times();
        let mut tag = tag.unwrap_or_else(|| Tag { metadata: Some(found.metadata()), ..Tag::default() });
        tag.created_at = tag.created_at.or(created);
        let score = found.relativity.filter(|of| of.is_finite()).map(|of| Score::Similarity(of.clamp(0.0, 1.0)));
        Ok(Record { text: found.text(), id: found.id, key: Some(conversation), tag, score, updated_at })
    }

    fn records(&self, found: impl IntoIterator<Item = Memory>) -> Result<Vec<Record>, Error> {
        found.into_iter().map(|memory| self.record(memory)).collect()
    }

    fn hits(&self, body: &Value) -> Result<Vec<Memory>, Error> {
        let found: Option<Lists> = self.post("/search/memory", body)?;
        meter::charge("memos", "search", self.config.search_microcents);
        let mut found: Vec<_> = found.unwrap_or_default().all().collect();
        found.sort_by(|a, b| b.relativity.unwrap_or_default().total_cmp(&a.relativity.unwrap_or_default()));
        Ok(found)
    }
}

impl Service for Api {
    fn is_id(&self, id: &str) -> bool {
        (1..=200).contains(&id.len())
    }

    fn add(&self, _: &str, _: &str, _: &Tag) -> Result<String, Error> {
        Err(Error::Other(as_it_is()))
    }

    fn written(&self, _: &str, _: &str) -> Result<Vec<Record>, Error> {
        Ok(Vec::new())
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        let path = format!("/get/memory/{}", segment(id));
        let Some(found) = data::<Memory>(&path, self.http.get(&path))? else { return Ok(None) };
        if found.id != id {
            return Err(odd(&path, "it is another memory"));
        }
        // The key reads the memories of every user.
        let is_ours = match found.user_id.as_deref().or(found.told(USER)) {
            Some(user) => user == self.user(),
            None => !self.newest(|memory| memory.id == id)?.is_empty(),
        };
        Some(found).filter(|found| is_ours && found.is_there()).map(|found| self.record(found)).transpose()
    }

    fn replace(&self, _: &Record, _: &str, _: &Tag) -> Result<(), Error> {
        Err(Error::Other(as_it_is()))
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        self.post::<Value>("/delete/memory", &json!({"memory_ids": [id]})).map(drop)
    }

    /// What was said stays in the conversation, which has no route that deletes it.
    fn left_of(&self, _: &str) -> Result<ForgetEffect, Error> {
        Ok(ForgetEffect::HistoryKept)
    }

    fn search(&self, query: &str, members: &[(String, String)], most: usize) -> Result<Vec<Record>, Error> {
        let mut body = json!({"query": query, "user_id": self.user(), "memory_limit_number": most,
            "include_preference": true, "preference_limit_number": most, "include_tool_memory": false});
        if let Some(threshold) = self.config.threshold {
            body["relativity"] = threshold.into();
        }
        let mut narrow = self.narrow.borrow().clone();
        narrow.extend(members.iter().map(|(name, text)| json!({format!("{MEMBER}{name}"): text})));
        if !narrow.is_empty() {
            let mut filtered = body.clone();
            filtered["filter"] = json!({"and": narrow});
            let found = self.hits(&filtered)?;
            if !found.is_empty() {
                return self.records(found);
            }
        }
        // Also what somebody else wrote.
        self.records(self.hits(&body)?)
    }

    fn most_hits(&self) -> usize {
        MOST
    }

    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), Error> {
        let lists = self.page(page, PAGE)?;
        let more = lists.pages.unwrap_or_default() > page;
        Ok((self.records(lists.all())?, more))
    }

    fn listing(&self) -> Listing {
        Listing::Pages
    }
}

/// Why a record is not written.
pub(crate) fn as_it_is() -> types::Error {
    types::Error::unsupported("MemOS keeps no text as it is, only what it makes of one; capture the text")
}

fn partition(scope: &Scope) -> [Option<&str>; 3] {
    [scope.agent_id.as_deref(), scope.subject_id.as_deref(), scope.namespace.as_deref()]
}
