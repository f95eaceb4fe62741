//! The requests of claude-mem's worker 13.25 and its answers.

use memhost_sdk::http::{Client, Error};
use memhost_sdk::remote::{Kept, Record, Tag, partition_of, plain, utc};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::Config;

/// The most characters of a phrase: it is a part of the address.
const PHRASE: usize = 500;
/// The name of this provider's sessions and their tool there.
pub(crate) const NAME: &str = "memhost";

/// claude-mem, as one project of it: the provider of a binding.
#[derive(Debug)]
pub struct ClaudeMem {
    pub(crate) config: Config,
    pub(crate) http: Client,
    /// The project of the observations.
    pub(crate) project: String,
}

/// An observation. Lists in it are texts in JSON.
#[derive(Debug, Deserialize)]
pub(crate) struct Observation {
    pub(crate) id: u64,
    pub(crate) project: String,
    pub(crate) memory_session_id: String,
    title: Option<String>,
    narrative: Option<String>,
    text: Option<String>,
    facts: Option<String>,
    created_at: String,
    agent_id: Option<String>,
    generated_by_model: Option<String>,
    metadata: Option<String>,
}

impl From<Observation> for Record {
    fn from(seen: Observation) -> Self {
        let metadata: Value =
            seen.metadata.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
        let record = match metadata.get(NAME).and_then(|kept| Kept::deserialize(kept).ok()) {
            Some(kept) => kept.record(seen.id.to_string(), seen.narrative.unwrap_or_default()),
            // Written by somebody else, or by claude-mem's model.
            None => {
                let facts: Vec<String> = seen
                    .facts
                    .and_then(|list| serde_json::from_str(&list).ok())
                    .unwrap_or_default();
                let facts =
                    facts.iter().map(|fact| format!("- {fact}")).collect::<Vec<_>>().join("\n");
                let parts = [seen.title.clone(), seen.narrative.or(seen.text), Some(facts)];
                let mut parts: Vec<_> =
                    parts.into_iter().flatten().filter(|part| !part.trim().is_empty()).collect();
                parts.dedup();
                let tag = Tag {
                    scope: seen.agent_id.as_deref().and_then(partition_of),
                    summary: seen.title,
                    metadata: metadata.is_object().then(|| metadata.to_string()),
                    ..Tag::default()
                };
                Self { id: seen.id.to_string(), text: parts.join("\n\n"), tag, ..Self::default() }
            }
        };
        Self {
            tag: record.tag.or_times(Some(&seen.created_at), None),
            updated_at: utc(&seen.created_at),
            is_extracted: seen.generated_by_model.is_some(),
            ..record
        }
    }
}

/// The use of a tool, and the observation that was made of it.
#[derive(Deserialize)]
pub(crate) struct Use {
    pub(crate) tool_use_id: String,
    pub(crate) memory_session_id: Option<String>,
    pub(crate) observation_id: Option<u64>,
}

/// The state of the worker: its queue, and the sessions that it cannot process.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Processing {
    pub(crate) is_processing: bool,
    pub(crate) queue_depth: u64,
    pub(crate) parked_sessions: u64,
}

/// The session of a capture, which is its job here and its tool use there, too.
pub(crate) fn session(operation_id: &str) -> String {
    format!("{NAME}-{}", plain(operation_id))
}

impl ClaudeMem {
    /// The project's observations, the newest first, or those with a phrase.
    pub(crate) fn observations(
        &self,
        phrase: &str,
        offset: usize,
        most: usize,
    ) -> Result<Vec<Observation>, Error> {
        let request =
            self.http.get("/api/search").query("format", "json").query("type", "observations");
        let request =
            request.query("project", &self.project).query("limit", &most).query("offset", &offset);
        let order = if phrase.is_empty() { "date_desc" } else { "relevance" };
        let phrase: String = phrase.chars().take(PHRASE).collect();
        request.query("query", &phrase).query("orderBy", order).at("/observations").answer()
    }

    /// The observations of this project with these numbers.
    pub(crate) fn batch(&self, ids: &[u64]) -> Result<Vec<Record>, Error> {
        let body = json!({"ids": ids, "project": self.project});
        let found: Vec<Observation> =
            self.http.post("/api/observations/batch").json(&body).reads().answer()?;
        Ok(found.into_iter().map(Record::from).collect())
    }

    /// What was seen around an observation, before and after it. claude-mem tells it as text, with
    /// a table of numbers.
    pub(crate) fn timeline(&self, id: u64) -> Result<Vec<u64>, Error> {
        let request =
            self.http.get("/api/timeline").query("anchor", &id).query("project", &self.project);
        let request = request.query("depth_before", "10").query("depth_after", "10");
        let text: String = request.at("/content/0/text").answer()?;
        let number = |line: &str| line.strip_prefix("| #")?.split_once(' ')?.0.parse().ok();
        Ok(text.lines().filter_map(number).filter(|number| *number != id).collect())
    }

    pub(crate) fn use_of(&self, session: &str) -> Result<Option<Use>, Error> {
        let request = self.http.get("/api/tool-uses").query("session", session).at("/toolUses");
        Ok(request.answer::<Vec<Use>>()?.into_iter().find(|one| one.tool_use_id == session))
    }
}
