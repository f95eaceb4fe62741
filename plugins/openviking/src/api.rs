//! The requests of OpenViking 0.5.2 and its answers.

use memhost_sdk::http::{Client, Error, filled};
use memhost_sdk::remote::{Kept, Record, Tag, hex, unhex};
use memhost_sdk::types::Score;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::Config;
use crate::name::{id_of, is_own, partition};

/// The directories of a user whose files are records.
pub(crate) const ROOTS: [&str; 2] = ["memories", "peers"];

/// OpenViking, as the user whose key the host sends: `~` in a URI is that user. The provider of a
/// binding.
#[derive(Debug)]
pub struct OpenViking {
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

/// A file or a directory of a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    pub(crate) uri: String,
    pub(crate) is_dir: bool,
    pub(crate) mod_time: String,
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

impl Hit {
    /// None for a file that is no record, and for one of ours that is not written whole.
    fn record(self) -> Option<Record> {
        let id = id_of(&self.uri)?.to_owned();
        let tag = self.tags.iter().find_map(|tag| tag.strip_prefix("memhost="));
        let kept: Option<Kept> = tag.and_then(|tag| serde_json::from_str(&unhex(tag)?).ok());
        if kept.is_none() && is_own(&id) {
            return None;
        }
        // The file is gone and is still in the index: it can be forgotten.
        let text = self.content.unwrap_or(self.beginning);
        let record = match kept {
            Some(kept) => kept.record(id, text),
            None => Record {
                tag: Tag { scope: partition(&id), ..Tag::default() },
                id,
                text,
                ..Record::default()
            },
        };
        Some(Record { score: Some(Score::similarity(self.score)), ..record })
    }
}

pub(crate) fn uri(id: &str) -> String {
    format!("viking://~/{id}")
}

impl OpenViking {
    /// Entries of a directory: with `ls` those in it, with `tree` all below it. None if there is no
    /// such directory.
    pub(crate) fn entries(
        &self,
        route: &str,
        uri: &str,
        offset: usize,
        limit: u32,
    ) -> Result<Option<Answer<Vec<Entry>>>, Error> {
        let request = self
            .http
            .get(&format!("/api/v1/fs/{route}"))
            .query("uri", uri)
            .query("output", "original");
        let order = if route == "ls" { ("sort_by", "name") } else { ("level_limit", "100") };
        request
            .query(order.0, order.1)
            .query("offset", &offset)
            .query("limit", &limit)
            .answer_if_found()
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
        let threshold = self.config.threshold.filter(|_| !query.is_empty());
        let body =
            filled(json!({"query": query, "context_type": "memory", "level": 2, "limit": most,
            "target_uri": uris, "read_content": true, "tags": tags, "score_threshold": threshold}));
        let request =
            self.http.post("/api/v1/search/find").json(&body).reads().at("/result/memories");
        let record = |mut hit: Hit| {
            // OpenViking leaves the content out where it could not read it, and says no more. A
            // beginning of it would be taken for the whole text.
            if hit.content.is_none() && id_of(&hit.uri).is_some() {
                hit.content = self.read(&hit.uri)?;
            }
            Ok(hit.record())
        };
        request
            .answer::<Vec<Hit>>()?
            .into_iter()
            .filter_map(|hit| record(hit).transpose())
            .collect()
    }

    pub(crate) fn write(&self, id: &str, key: &str, text: &str, tag: &Tag) -> Result<(), Error> {
        // It cuts white space off and reads fields in comments.
        let is_changed = text.trim() != text || text.contains("MEMORY_FIELDS");
        let kept = Kept::new(key, text, tag, is_changed);
        let mut tags = members(&tag.texts());
        tags.push(format!("memhost={}", hex(&json!(kept).to_string())));
        // It answers once the file is in the index. `create` also replaces a file.
        let body =
            json!({"uri": uri(id), "content": text, "mode": "create", "wait": true, "tags": tags});
        self.http
            .post("/api/v1/content/write")
            .json(&body)
            .at("/result")
            .answer::<Value>()
            .map(drop)
    }

    pub(crate) fn read(&self, uri: &str) -> Result<Option<String>, Error> {
        self.http.get("/api/v1/content/read").query("uri", uri).at("/result").answer_if_found()
    }

    /// Removes a file, or a directory with all below it; it answers once it has left the index and
    /// the summaries.
    pub(crate) fn remove(&self, id: &str, is_directory: bool) -> Result<(), Error> {
        let request = self.http.delete("/api/v1/fs").query("uri", &uri(id)).query("wait", "true");
        request.query("recursive", &is_directory).at("/result").answer_if_found::<Value>().map(drop)
    }
}

/// Members of the metadata as tags of OpenViking, which have one `=`.
pub(crate) fn members(texts: &[(String, String)]) -> Vec<String> {
    let filled = texts.iter().filter(|(_, text)| !text.is_empty());
    filled.map(|(name, text)| format!("memhost-{}={}", hex(name), hex(text))).collect()
}
