//! What MemOS answers.

use memhost_sdk::http::{Error, Request};
use memhost_sdk::remote::{of_unix, utc};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Around every answer.
#[derive(Deserialize)]
struct Answer<T> {
    code: u32,
    #[serde(default)]
    message: String,
    data: Option<T>,
}

/// Sends a request and answers its data. `None` if there is no such thing. MemOS has codes of its
/// own, also with the status 200.
pub(crate) fn data<T: DeserializeOwned>(
    path: &str,
    request: Request<'_>,
) -> Result<Option<T>, Error> {
    let Some(Answer { code, message, data }) = request.answer_if_found::<Answer<T>>()? else {
        return Ok(None);
    };
    let status = match code {
        0 | 200 => return Ok(data),
        // No such thing, no such memory, no such user.
        40_001 | 40_307 | 40_308 => return Ok(None),
        40_100..=40_199 => 401,
        40_300..=40_305 => 429,
        40_306 => 403,
        50_000.. => 503,
        _ => 400,
    };
    let message = format!("{code}: {message}");
    Err(Error::Status { request: path.to_owned(), status, message, retry_after: None })
}

/// A memory, or a preference, as every route shows it.
#[derive(Debug, Deserialize)]
pub(crate) struct Memory {
    pub(crate) id: String,
    memory_key: Option<String>,
    memory_value: Option<String>,
    memory_type: Option<String>,
    preference: Option<String>,
    preference_type: Option<String>,
    #[serde(default)]
    tags: Value,
    status: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) conversation_id: Option<String>,
    pub(crate) relativity: Option<f64>,
    pub(crate) info: Option<Map<String, Value>>,
    #[serde(default)]
    create_time: Value,
    #[serde(default)]
    update_time: Value,
}

impl Memory {
    /// Whether it is in use. What another one took the place of is archived.
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self.status.as_deref(), Some("archived" | "deleted"))
    }

    /// A text that was given with what was said.
    pub(crate) fn told(&self, name: &str) -> Option<&str> {
        self.info.as_ref()?.get(name)?.as_str()
    }

    pub(crate) fn text(&self) -> String {
        let all = [&self.memory_value, &self.preference, &self.memory_key];
        all.into_iter().flatten().find(|text| !text.is_empty()).cloned().unwrap_or_default()
    }

    /// MemOS's own metadata, of a memory that somebody else wrote.
    pub(crate) fn metadata(&self) -> String {
        let kind = self.memory_type.as_ref().or(self.preference_type.as_ref());
        json!({"key": self.memory_key, "tags": self.tags, "type": kind}).to_string()
    }

    pub(crate) fn times(&self) -> [Option<String>; 2] {
        [time(&self.create_time), time(&self.update_time)]
    }
}

/// A time as text, or as milliseconds since 1970, which can be text, too.
fn time(time: &Value) -> Option<String> {
    let millis = time.as_f64().or_else(|| time.as_str()?.parse().ok());
    millis.map_or_else(|| utc(time.as_str()?), |millis| of_unix(millis / 1_000.0))
}

/// Memories and preferences, of a search or a page.
#[derive(Default, Deserialize)]
pub(crate) struct Lists {
    memory_detail_list: Option<Vec<Memory>>,
    preference_detail_list: Option<Vec<Memory>>,
    pub(crate) pages: Option<u32>,
    pub(crate) total: Option<u64>,
}

impl Lists {
    pub(crate) fn all(self) -> impl Iterator<Item = Memory> {
        let lists = [self.memory_detail_list, self.preference_detail_list];
        lists.into_iter().flatten().flatten().filter(Memory::is_there)
    }
}

/// The answer to adding.
#[derive(Deserialize)]
pub(crate) struct Added {
    pub(crate) success: bool,
    pub(crate) task_id: Option<String>,
}
