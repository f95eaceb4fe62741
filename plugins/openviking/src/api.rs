//! The requests of OpenViking 0.5.2 and its answers.

use memhost_sdk::http::{Client, Error};
use memhost_sdk::remote::{Listing, Record, Service, Tag, hex, unhex, utc};
use memhost_sdk::types::{self, ForgetEffect, Score};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::Config;
use crate::name::{file, id_of, is_id, is_own, partition};

/// The most hits of one search.
const MOST: usize = 1_000;
/// Entries of one page of a tree.
const PAGE: u32 = 100;
/// The directories of a user whose files are records.
pub(crate) const ROOTS: [&str; 2] = ["memories", "peers"];

/// OpenViking, as the user whose key the host sends: `~` in a URI is that user.
#[derive(Debug)]
pub struct Api {
    pub(crate) config: Config,
    pub(crate) http: Client,
}

/// Every answer.
#[derive(Deserialize)]
pub(crate) struct Answer<T> {
    pub(crate) result: T,
    #[serde(default)]
    pub(crate) has_more: bool,
}

#[derive(Deserialize)]
struct Status {
    user: String,
}

/// A file or a directory of a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    pub(crate) uri: String,
    pub(crate) is_dir: bool,
    mod_time: String,
}

#[derive(Deserialize)]
struct Hits {
    memories: Vec<Hit>,
}

/// A file in the index.
#[derive(Deserialize)]
struct Hit {
    uri: String,
    score: f64,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(rename = "abstract")]
    beginning: String,
    content: Option<String>,
}

/// What OpenViking does not keep of a record. In one of its tags, in hexadecimal digits.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    tag: Tag,
    /// The text, where OpenViking would change it: it cuts white space off and reads fields in comments.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Hit {
    /// None for a file that is no record, and for one of ours that is not written whole.
    fn record(self) -> Option<Record> {
        let id = id_of(&self.uri)?.to_owned();
        let tag = self.tags.iter().find_map(|tag| tag.strip_prefix("memhost="));
        let kept: Option<Kept> = tag.and_then(|tag| serde_json::from_str(&unhex(tag)?).ok());
        if kept.is_none() && is_own(&id) {
            return None;
        }
        let text = self.content.unwrap_or(self.beginning);
        let score = Some(Score::Similarity(self.score.clamp(0.0, 1.0)));
        Some(match kept {
            Some(kept) => {
                let text = kept.text.unwrap_or(text);
                Record { id, key: Some(kept.key), text, tag: kept.tag, score, updated_at: None }
            }
            None => {
                Record { tag: Tag { scope: partition(&id), ..Tag::default() }, id, text, score, ..Record::default() }
            }
        })
    }
}

pub(crate) fn uri(id: &str) -> String {
    format!("viking://~/{id}")
}

impl Api {
    pub(crate) fn new(config: Config) -> Result<Self, types::Error> {
        let http = Client::new(&config.url)?.secret("x-api-key", "", "OPENVIKING_API_KEY");
        Ok(Self { config, http })
    }

    /// Whose memories these are.
    pub(crate) fn user(&self) -> Result<String, Error> {
        let status: Answer<Status> = self.http.get("/api/v1/system/status").answer()?;
        Ok(status.result.user)
    }

    /// Entries of a directory: with `ls` those in it, with `tree` all below it. None if there is no such directory.
    pub(crate) fn entries(
        &self,
        route: &str,
        uri: &str,
        offset: u32,
        limit: u32,
    ) -> Result<Option<Answer<Vec<Entry>>>, Error> {
        let request = self.http.get(&format!("/api/v1/fs/{route}")).query("uri", uri).query("output", "original");
        let order = if route == "ls" { ("sort_by", "name") } else { ("level_limit", "100") };
        request.query(order.0, order.1).query("offset", &offset).query("limit", &limit).answer_if_found()
    }

    /// Records in the index, below these URIs. Without words they have no order.
    pub(crate) fn find_in(
        &self,
        query: &str,
        uris: &Value,
        tags: &[String],
        most: usize,
    ) -> Result<Vec<Record>, Error> {
        // Levels 0 and 1 are summaries of directories.
        let mut body = json!({"query": query, "context_type": "memory", "level": 2, "limit": most, "target_uri": uris,
            "read_content": true, "tags": tags});
        if let Some(threshold) = self.config.threshold.filter(|_| !query.is_empty()) {
            body["score_threshold"] = threshold.into();
        }
        let found: Answer<Hits> = self.http.post("/api/v1/search/find").json(&body).reads().answer()?;
        Ok(found.result.memories.into_iter().filter_map(Hit::record).collect())
    }

    fn write(&self, id: &str, key: &str, text: &str, tag: &Tag) -> Result<(), Error> {
        let is_changed = text.trim() != text || text.contains("MEMORY_FIELDS");
        let kept = Kept { key: key.to_owned(), tag: tag.clone(), text: is_changed.then(|| text.to_owned()) };
        let mut tags = members(&tag.texts());
        tags.push(format!("memhost={}", hex(&json!(kept).to_string())));
        // It answers once the file is in the index. `create` also replaces a file.
        let body = json!({"uri": uri(id), "content": text, "mode": "create", "wait": true, "tags": tags});
        self.http.post("/api/v1/content/write").json(&body).answer::<Answer<Value>>().map(drop)
    }

    pub(crate) fn read(&self, uri: &str) -> Result<Option<String>, Error> {
        let found = self.http.get("/api/v1/content/read").query("uri", uri).answer_if_found::<Answer<String>>()?;
        Ok(found.map(|found| found.result))
    }

    /// Removes a file, or a directory with all below it; it answers once it has left the index and the summaries.
    pub(crate) fn remove(&self, id: &str, is_directory: bool) -> Result<(), Error> {
        let request = self.http.delete("/api/v1/fs").query("uri", &uri(id)).query("wait", "true");
        request.query("recursive", &is_directory).answer_if_found::<Answer<Value>>().map(drop)
    }
}

/// Members of the metadata as tags of OpenViking, which have one `=`.
fn members(texts: &[(String, String)]) -> Vec<String> {
    let filled = texts.iter().filter(|(_, text)| !text.is_empty());
    filled.map(|(name, text)| format!("memhost-{}={}", hex(name), hex(text))).collect()
}

impl Service for Api {
    fn is_id(&self, id: &str) -> bool {
        is_id(id)
    }

    /// The file is named after the key, so that adding again writes the same one.
    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error> {
        let id = file(key);
        self.write(&id, key, text, tag).map(|()| id)
    }

    fn written(&self, key: &str, _: &str) -> Result<Vec<Record>, Error> {
        Ok(self.find(&file(key))?.filter(|record| record.key.as_deref() == Some(key)).into_iter().collect())
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        match self.find_in("", &json!(uri(id)), &[], 1)?.pop() {
            Some(other) if other.id != id => Err(odd("POST /api/v1/search/find", "it is another file")),
            found => Ok(found),
        }
    }

    fn replace(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), Error> {
        self.write(&old.id, old.key.as_deref().unwrap_or_default(), text, tag)
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        self.remove(id, false)
    }

    fn left_of(&self, id: &str) -> Result<ForgetEffect, Error> {
        match self.read(&uri(id))? {
            None => Ok(ForgetEffect::Hard),
            Some(_) => Err(odd("DELETE /api/v1/fs", "the file has left the index and is still there")),
        }
    }

    fn search(&self, query: &str, texts: &[(String, String)], most: usize) -> Result<Vec<Record>, Error> {
        self.find_in(query, &json!(ROOTS.map(uri)), &members(texts), most)
    }

    fn most_hits(&self) -> usize {
        MOST
    }

    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), Error> {
        let (mut files, mut has_more) = (Vec::new(), false);
        for root in ROOTS {
            let found = self.entries("tree", &uri(root), (page - 1) * PAGE, PAGE)?;
            let Some(found) = found else { continue };
            has_more |= found.has_more;
            files.extend(found.result.into_iter().filter(|entry| !entry.is_dir && id_of(&entry.uri).is_some()));
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

    fn listing(&self) -> Listing {
        Listing::Pages
    }
}

pub(crate) fn odd(request: &str, reason: &str) -> Error {
    Error::Answer { request: request.to_owned(), reason: reason.to_owned() }
}
